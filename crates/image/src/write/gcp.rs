//! What Google Cloud imports: `disk.raw` in a tar of the old GNU dialect (the importer is picky about others), in gzip.
//!
//! The gzip stream is one member. Its pieces are compressed on all cores, each ending on a byte, and the checksums of the
//! pieces are joined; a piece of zeros is compressed once.

use std::io::Write;

use flate2::{Compress, Compression, Crc, FlushCompress};

use super::pipeline::{self, Run};
use super::{Format, WriteError};
use crate::disk::{ExtentKind, GuestDisk};

const PIECE: u64 = 1 << 20;
const LEVEL: u32 = 6;

/// A piece in deflate, with the checksum and length of what it holds.
struct Deflated {
    bytes: Vec<u8>,
    crc: Crc,
}

pub(super) fn to_pipe(disk: &dyn GuestDisk, output: &mut dyn Write) -> Result<(), WriteError> {
    let size = Format::Gcp.size_of(disk.size());
    let mut runs = pipeline::runs(disk, PIECE)?;
    let there = disk.size().div_ceil(PIECE);
    runs.push(Run { first: there, count: size / PIECE - there, kind: ExtentKind::Hole });
    let zeros = State::default().deflate(&vec![0; usize::try_from(PIECE).unwrap_or(0)])?;

    // No name, no time, an unknown system: the same bytes everywhere.
    output.write_all(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])?;
    let mut crc = Crc::new();
    let mut put = |deflated: &Deflated| -> Result<(), WriteError> {
        output.write_all(&deflated.bytes)?;
        crc.combine(&deflated.crc);
        Ok(())
    };
    put(&State::default().deflate(&header(size))?)?;
    let work = |state: &mut State, piece: Run| -> Result<Option<Deflated>, WriteError> {
        if piece.kind != ExtentKind::Data {
            return Ok(None);
        }
        let mut buffer = std::mem::take(&mut state.buffer);
        pipeline::read(disk, piece, PIECE, &mut buffer)?;
        let deflated = if pipeline::is_zero(&buffer) { None } else { Some(state.deflate(&buffer)?) };
        state.buffer = buffer;
        Ok(deflated)
    };
    pipeline::in_order(&pipeline::pieces(&runs, 1), State::default, work, |_, deflated| {
        put(deflated.as_ref().unwrap_or(&zeros))
    })?;
    // The end of the archive: two blocks of zeros, in records of ten KiB as tar pads them.
    let content = 512 + size;
    let end = usize::try_from((content + 1024).next_multiple_of(10 << 10) - content).unwrap_or(1024);
    put(&State::default().deflate(&vec![0; end])?)?;
    // An empty last block.
    output.write_all(&[3, 0])?;
    output.write_all(&crc.sum().to_le_bytes())?;
    Ok(output.write_all(&crc.amount().to_le_bytes())?)
}

/// A thread's own.
struct State {
    encoder: Compress,
    buffer: Vec<u8>,
}

impl Default for State {
    fn default() -> Self {
        Self { encoder: Compress::new(Compression::new(LEVEL), false), buffer: Vec::new() }
    }
}

impl State {
    fn deflate(&mut self, input: &[u8]) -> Result<Deflated, WriteError> {
        self.encoder.reset();
        let mut bytes = Vec::with_capacity(input.len() + input.len() / 1000 + 1024);
        self.encoder.compress_vec(input, &mut bytes, FlushCompress::Sync).map_err(std::io::Error::other)?;
        let mut crc = Crc::new();
        crc.update(input);
        Ok(Deflated { bytes, crc })
    }
}

/// The header of the one member, as `tar --format=oldgnu --owner=0 --group=0` writes it.
fn header(size: u64) -> Vec<u8> {
    let mut header = b"disk.raw".to_vec();
    let mut field = |at: usize, bytes: &[u8]| {
        header.resize(at, 0);
        header.extend(bytes);
    };
    field(100, b"0000644\x000000000\x000000000\0");
    if size < 1 << 33 {
        field(124, format!("{size:011o}\0").as_bytes());
    } else {
        // Too large for eleven octal digits: the number itself, big-endian, with the first bit set.
        field(124, &[0x80, 0, 0, 0]);
        field(128, &size.to_be_bytes());
    }
    field(136, b"00000000000\0");
    field(148, b"        0");
    field(257, b"ustar  \0root");
    field(297, b"root");
    field(512, b"");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    if let Some(place) = header.get_mut(148..156) {
        place.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    header
}
