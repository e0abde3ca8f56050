//! Containers of guest disks, told by magic bytes and never by name. Everything that a header claims is checked against
//! the file before it is used or allocated.

pub(crate) mod qcow2;
pub(crate) mod raw;
pub(crate) mod tar;
pub(crate) mod vhd;
pub(crate) mod vmdk;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use serde::Serialize;

/// A container of a guest disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Container {
    /// The disk itself.
    Raw,
    /// QEMU's format, version 2 or 3.
    Qcow2,
    /// VMware's sparse or stream-optimised format.
    Vmdk,
    /// Hyper-V's fixed format: the disk with a footer.
    Vhd,
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
            Self::Vmdk => "vmdk",
            Self::Vhd => "vhd",
        })
    }
}

/// A piece of a file that is read as if it were a file: a member of an archive, or the whole.
#[derive(Debug, Clone)]
pub(crate) struct FileView {
    file: Arc<File>,
    start: u64,
    length: u64,
}

impl FileView {
    pub(crate) fn whole(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), start: 0, length })
    }

    /// A piece of this view; none where it lies outside.
    pub(crate) fn piece(&self, start: u64, length: u64) -> Option<Self> {
        (start.checked_add(length)? <= self.length).then(|| Self {
            file: Arc::clone(&self.file),
            start: self.start + start,
            length,
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= self.length);
        if end.is_none() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file ends before what its header promises",
            ));
        }
        self.file.read_exact_at(buffer, self.start + offset)
    }

    /// Reads what is there, up to a length.
    pub(crate) fn read_up_to(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let there = self.length.saturating_sub(offset).min(length as u64);
        let mut bytes = vec![0; usize::try_from(there).unwrap_or(0)];
        self.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}
