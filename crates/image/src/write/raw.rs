//! Raw: the disk itself.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt as _;

use super::WriteError;
use super::pipeline::{self, Run};
use crate::disk::{ExtentKind, GuestDisk};

/// What is read at once, and left out where it is all zeros.
const UNIT: u64 = 64 << 10;
/// Units of a piece.
const PIECE: u64 = 16;

/// Writes data and leaves holes where there are zeros. `size` is that of the file.
pub(super) fn to_file(disk: &dyn GuestDisk, size: u64, file: &File) -> Result<(), WriteError> {
    file.set_len(size)?;
    let mut runs = pipeline::runs(disk, UNIT)?;
    runs.retain(|run| run.kind == ExtentKind::Data);
    // Pieces do not overlap, so every thread writes its own.
    let work = |buffer: &mut Vec<u8>, piece: Run| -> Result<(), WriteError> {
        pipeline::read(disk, piece, UNIT, buffer)?;
        let start = piece.first * UNIT;
        let there = usize::try_from(disk.size() - start).unwrap_or(usize::MAX).min(buffer.len());
        let unit = usize::try_from(UNIT).unwrap_or(1);
        let bytes = buffer.get(..there).unwrap_or_default();
        // Neighbours that hold anything are one write.
        let mut at = 0;
        while at < bytes.len() {
            let mut blocks = bytes.get(at..).unwrap_or_default().chunks(unit);
            let zeros: usize = blocks.by_ref().take_while(|b| pipeline::is_zero(b)).map(<[u8]>::len).sum();
            at += zeros;
            let rest = bytes.get(at..).unwrap_or_default();
            let length: usize =
                rest.chunks(unit).take_while(|b| !pipeline::is_zero(b)).map(<[u8]>::len).sum();
            file.write_all_at(rest.get(..length).unwrap_or_default(), start + at as u64)?;
            at += length;
        }
        Ok(())
    };
    pipeline::in_order(&pipeline::pieces(&runs, PIECE), Vec::new, work, |_, ()| Ok(()))
}

/// Writes every byte, from the first to the last.
pub(super) fn to_pipe(disk: &dyn GuestDisk, size: u64, output: &mut dyn Write) -> Result<(), WriteError> {
    let unit = usize::try_from(UNIT * PIECE).unwrap_or(0);
    let zeros = vec![0; unit];
    let pieces = pipeline::pieces(&pipeline::runs(disk, UNIT)?, PIECE);
    let mut written = 0;
    let work = |(): &mut (), piece: Run| -> Result<Vec<u8>, WriteError> {
        let mut buffer = Vec::new();
        if piece.kind == ExtentKind::Data {
            pipeline::read(disk, piece, UNIT, &mut buffer)?;
        }
        Ok(buffer)
    };
    pipeline::in_order(
        &pieces,
        || (),
        work,
        |piece, buffer| {
            let length = (piece.count * UNIT).min(disk.size() - piece.first * UNIT);
            let bytes = if piece.kind == ExtentKind::Data { &buffer } else { &zeros };
            output.write_all(bytes.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default())?;
            written += length;
            Ok(())
        },
    )?;
    while written < size {
        let length = usize::try_from(size - written).unwrap_or(unit).min(unit);
        output.write_all(zeros.get(..length).unwrap_or_default())?;
        written += length as u64;
    }
    Ok(())
}
