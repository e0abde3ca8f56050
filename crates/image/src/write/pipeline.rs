//! Pieces of a disk are read and worked on by all cores, and arrive in order: the output does not depend on the number of
//! threads, and memory is bounded.

use std::sync::mpsc::{Receiver, sync_channel};

use super::WriteError;
use crate::disk::{DiskError, Extent, ExtentKind, GuestDisk};

/// Finished pieces that may wait for their turn, for each thread.
const WAITING: usize = 2;

/// A piece of the disk, and what stands in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first unit.
    pub first: u64,
    /// The number of units.
    pub count: u64,
    /// What stands there; data where any byte of a unit is.
    pub kind: ExtentKind,
}

/// The extents of a disk in units of a container: a unit with any data is data, a unit with any written zero is zero.
pub(crate) fn runs(disk: &dyn GuestDisk, unit: u64) -> Result<Vec<Run>, DiskError> {
    let rank = |kind| match kind {
        ExtentKind::Hole => 0,
        ExtentKind::Zero => 1,
        ExtentKind::Data => 2,
    };
    let mut runs: Vec<Run> = Vec::new();
    let push = |runs: &mut Vec<Run>, run: Run| match runs.last_mut() {
        _ if run.count == 0 => {}
        Some(last) if last.kind == run.kind => last.count += run.count,
        _ => runs.push(run),
    };
    for Extent { start, length, kind } in disk.extents()?.into_iter().filter(|e| e.length > 0) {
        let (mut first, end) = (start / unit, (start + length).div_ceil(unit));
        // The unit that this extent shares with the one before.
        if let Some(last) = runs.last_mut().filter(|last| last.first + last.count > first) {
            if rank(kind) > rank(last.kind) {
                last.count -= 1;
                if last.count == 0 {
                    runs.pop();
                }
                push(&mut runs, Run { first, count: 1, kind });
            }
            first += 1;
        }
        push(&mut runs, Run { first, count: end.saturating_sub(first), kind });
    }
    Ok(runs)
}

/// Cuts runs into pieces of at most so many units; all but the first end at multiples of it.
pub(crate) fn pieces(runs: &[Run], most: u64) -> Vec<Run> {
    let mut pieces = Vec::new();
    for run in runs {
        let (mut first, end) = (run.first, run.first + run.count);
        while first < end {
            let next = ((first / most + 1) * most).min(end);
            pieces.push(Run { first, count: next - first, kind: run.kind });
            first = next;
        }
    }
    pieces
}

/// Reads the units of a piece, padded with zeros behind the end of the disk.
pub(crate) fn read(
    disk: &dyn GuestDisk,
    piece: Run,
    unit: u64,
    buffer: &mut Vec<u8>,
) -> Result<(), DiskError> {
    let start = piece.first * unit;
    let length = usize::try_from(piece.count * unit).unwrap_or(0);
    buffer.clear();
    buffer.resize(length, 0);
    let there = usize::try_from(disk.size().saturating_sub(start)).unwrap_or(length).min(length);
    disk.read_at(start, buffer.get_mut(..there).unwrap_or_default())
}

/// Works on all pieces with all cores, and hands the results over in the order of the pieces. Each thread has a state of
/// its own, so that encoders are made once.
pub(crate) fn in_order<S, T: Send>(
    pieces: &[Run],
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, Run) -> Result<T, WriteError> + Sync,
    mut take: impl FnMut(Run, T) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(pieces.len().max(1));
    std::thread::scope(|scope| {
        let (state, work) = (&state, &work);
        let results: Vec<Receiver<Result<T, WriteError>>> = (0..threads)
            .map(|thread| {
                let (send, receive) = sync_channel(WAITING);
                scope.spawn(move || {
                    let mut state = state();
                    for piece in pieces.iter().skip(thread).step_by(threads) {
                        let result = work(&mut state, *piece);
                        let stop = result.is_err();
                        // A closed channel: the taker has failed, and tells why.
                        if send.send(result).is_err() || stop {
                            break;
                        }
                    }
                });
                receive
            })
            .collect();
        for (piece, results) in pieces.iter().zip(results.iter().cycle()) {
            let result = results.recv().map_err(|_| WriteError::Stopped)??;
            take(*piece, result)?;
        }
        Ok(())
    })
}

/// Whether there are only zeros.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<32>();
    chunks.iter().all(|chunk| *chunk == [0; 32]) && rest.iter().all(|byte| *byte == 0)
}
