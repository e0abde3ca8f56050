//! The guest disk: what a machine would see, whatever file it comes in.

use std::io;

/// What stands in a range of the disk. Three different things: a written zero is content, and a store may give back
/// anything at all for what was never written (EBS does).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExtentKind {
    /// Bytes.
    Data,
    /// Zeros that were written as such.
    Zero,
    /// Nothing was ever written; reads as zeros.
    Hole,
}

/// A range of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Where it begins, in bytes.
    pub start: u64,
    /// How long it is, in bytes.
    pub length: u64,
    /// What stands there.
    pub kind: ExtentKind,
}

/// Why a disk could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The file could not be read.
    #[error("cannot be read")]
    Io(#[source] io::Error),
    /// A place outside the disk was asked for.
    #[error("bytes {offset} to {end} lie outside the disk of {size} bytes")]
    OutOfRange {
        /// First byte.
        offset: u64,
        /// Behind the last byte.
        end: u64,
        /// Size of the disk.
        size: u64,
    },
    /// The container is damaged, or lies.
    #[error("{what} at byte {offset} of the file: {expected}")]
    Damaged {
        /// What is damaged.
        what: &'static str,
        /// Where in the file.
        offset: u64,
        /// What was expected.
        expected: String,
    },
}

impl From<io::Error> for DiskError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// How pieces of a container are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Raw deflate.
    Deflate,
    /// One frame of Zstandard.
    Zstd,
}

/// A disk as a machine would see it. Readers may run on many threads at once.
pub trait GuestDisk: Send + Sync {
    /// Size in bytes.
    fn size(&self) -> u64;

    /// What stands where, in order, without gaps, from the first byte to the last.
    fn extents(&self) -> Result<Vec<Extent>, DiskError>;

    /// Fills a buffer from an offset. Holes and zeros read as zeros.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError>;

    /// A range that the container holds as one compressed piece, as it is there; none where it does not.
    fn packed(&self, _offset: u64, _length: u64, _codec: Codec) -> Result<Option<Vec<u8>>, DiskError> {
        Ok(None)
    }

    /// How the container compresses pieces, where it has any that are compressed.
    fn codec(&self) -> Option<Codec> {
        None
    }

    /// Where a range stands in the file, if its bytes stand there as they are and are nobody else's.
    fn place(&self, _offset: u64, _length: u64) -> Result<Option<u64>, DiskError> {
        Ok(None)
    }

    /// Bytes that the container holds for the disk, where it tells.
    fn allocated(&self) -> Option<u64> {
        None
    }
}

/// Reads a piece into memory.
pub(crate) fn read_vec(disk: &dyn GuestDisk, offset: u64, length: usize) -> Result<Vec<u8>, DiskError> {
    let end = offset.saturating_add(length as u64);
    if end > disk.size() {
        return Err(DiskError::OutOfRange { offset, end, size: disk.size() });
    }
    let mut bytes = vec![0; length];
    disk.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

/// Reads unit by unit: `fill` is given the number of a unit, an offset in it, and the bytes to fill from there.
pub(crate) fn read_by_unit(
    disk: &dyn GuestDisk,
    offset: u64,
    buffer: &mut [u8],
    unit: u64,
    mut fill: impl FnMut(u64, u64, &mut [u8]) -> Result<(), DiskError>,
) -> Result<(), DiskError> {
    let end = offset.saturating_add(buffer.len() as u64);
    if end > disk.size() {
        return Err(DiskError::OutOfRange { offset, end, size: disk.size() });
    }
    let mut at = offset;
    let mut rest = buffer;
    while !rest.is_empty() {
        let inside = at % unit;
        let length = usize::try_from(unit - inside).unwrap_or(0).min(rest.len());
        let (now, later) = rest.split_at_mut(length);
        fill(at / unit, inside, now)?;
        at += length as u64;
        rest = later;
    }
    Ok(())
}

/// A piece of a unit in memory.
pub(crate) fn copy_from(unit: &[u8], inside: u64, buffer: &mut [u8]) {
    let from = usize::try_from(inside).unwrap_or(usize::MAX);
    if let Some(piece) = unit.get(from..).and_then(|rest| rest.get(..buffer.len())) {
        buffer.copy_from_slice(piece);
    }
}

/// Adds an extent to a list, joined with the last one where both are alike.
pub(crate) fn push_extent(extents: &mut Vec<Extent>, extent: Extent) {
    if extent.length == 0 {
        return;
    }
    match extents.last_mut() {
        Some(last) if last.kind == extent.kind && last.start + last.length == extent.start => {
            last.length += extent.length;
        }
        _ => extents.push(extent),
    }
}
