//! A raw disk: the file is the disk. Holes are those that the filesystem knows.

use rustix::fs::{SeekFrom, seek};

use super::FileView;
use crate::disk::{DiskError, Extent, ExtentKind, GuestDisk, push_extent};

/// A raw disk, in a file or in a piece of one.
pub(crate) struct RawDisk {
    view: FileView,
}

impl RawDisk {
    pub(crate) fn new(view: FileView) -> Self {
        Self { view }
    }
}

impl GuestDisk for RawDisk {
    fn size(&self) -> u64 {
        self.view.len()
    }

    fn extents(&self) -> Result<Vec<Extent>, DiskError> {
        let (start, end) = (self.view.start(), self.view.start() + self.view.len());
        let mut extents = Vec::new();
        let mut at = start;
        while at < end {
            // ENXIO: no data behind; anything else: the filesystem tells nothing, so all of it is data.
            let data = match seek(self.view.file(), SeekFrom::Data(at)) {
                Ok(data) => data.clamp(at, end),
                Err(rustix::io::Errno::NXIO) => end,
                Err(_) => at,
            };
            push_extent(
                &mut extents,
                Extent { start: at - start, length: data - at, kind: ExtentKind::Hole },
            );
            if data >= end {
                break;
            }
            let hole = seek(self.view.file(), SeekFrom::Hole(data)).map_or(end, |hole| hole.clamp(data, end));
            let hole = if hole == data { end } else { hole };
            push_extent(
                &mut extents,
                Extent { start: data - start, length: hole - data, kind: ExtentKind::Data },
            );
            at = hole;
        }
        Ok(extents)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        Ok(self.view.read_exact_at(buffer, offset)?)
    }

    fn place(&self, offset: u64, length: u64) -> Result<Option<u64>, DiskError> {
        Ok((offset.saturating_add(length) <= self.view.len()).then(|| self.view.start() + offset))
    }

    fn allocated(&self) -> Option<u64> {
        use std::os::unix::fs::MetadataExt as _;
        self.view.file().metadata().ok().map(|m| m.blocks() * 512)
    }
}
