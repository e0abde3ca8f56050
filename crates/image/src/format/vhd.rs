//! Fixed VHD: the disk, then a footer of 512 bytes (Microsoft "Virtual Hard Disk Image Format Specification").

use super::FileView;
use super::raw::RawDisk;
use crate::disk::DiskError;

/// Whether a file ends with a footer.
pub(crate) fn is_vhd(view: &FileView) -> bool {
    let tail = view.len().checked_sub(512).and_then(|at| view.read_up_to(at, 8).ok());
    tail.is_some_and(|tail| tail == b"conectix")
}

/// The disk in front of the footer.
pub(crate) fn open(view: &FileView) -> Result<RawDisk, DiskError> {
    let at = view.len().saturating_sub(512);
    let footer = view.read_up_to(at, 512)?;
    let damaged = |expected: &str| DiskError::Damaged {
        what: "the VHD footer",
        offset: at,
        expected: expected.to_owned(),
    };
    let big = |from: usize, length: usize| {
        footer.get(from..from + length).unwrap_or_default().iter().fold(0_u64, |n, b| n << 8 | u64::from(*b))
    };
    if big(60, 4) != 2 {
        return Err(damaged(
            "a fixed disk; dynamic and differencing ones are converted with another tool first",
        ));
    }
    if big(48, 8) > at {
        return Err(damaged("a size that is not larger than the file"));
    }
    let disk = view.piece(0, big(48, 8)).ok_or_else(|| damaged("a size that is not larger than the file"))?;
    Ok(RawDisk::new(disk))
}
