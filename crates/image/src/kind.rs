//! What a file is: told by its first bytes (a fixed VHD's by its last), never by its name.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::format::{Container, FileView, vhd};
use crate::open::Compression;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// Compressed; what is in it is not told by its first bytes.
    Compressed(Compression),
    /// A disk image.
    Image(Container),
    /// A tar archive: an OVA, Google's archive, an OCI archive.
    Archive,
    /// Nothing of these.
    Other,
}

impl FileKind {
    /// Of a file.
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::of_view(&FileView::whole(File::open(path)?)?)
    }

    pub(crate) fn of_view(view: &FileView) -> io::Result<Self> {
        let head = view.read_up_to(0, 8192)?;
        let at = |offset: usize, magic: &[u8]| head.get(offset..).is_some_and(|rest| rest.starts_with(magic));
        Ok(if at(0, &[0x1f, 0x8b]) {
            Self::Compressed(Compression::Gzip)
        } else if at(0, b"\xfd7zXZ\0") {
            Self::Compressed(Compression::Xz)
        } else if at(0, &[0x28, 0xb5, 0x2f, 0xfd]) {
            Self::Compressed(Compression::Zstd)
        } else if at(0, b"QFI\xfb") {
            Self::Image(Container::Qcow2)
        } else if at(0, b"KDMV") {
            Self::Image(Container::Vmdk)
        } else if at(257, b"ustar") {
            Self::Archive
        } else if vhd::is_vhd(view) {
            Self::Image(Container::Vhd)
        } else if at(510, &[0x55, 0xaa]) || at(512, b"EFI PART") || at(4096, b"EFI PART") {
            Self::Image(Container::Raw)
        } else {
            Self::Other
        })
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compressed(Compression::Gzip) => "gzip data",
            Self::Compressed(Compression::Xz) => "xz data",
            Self::Compressed(Compression::Zstd) => "Zstandard data",
            Self::Image(Container::Qcow2) => "a QEMU disk image (qcow2)",
            Self::Image(Container::Vmdk) => "a VMware disk image (vmdk)",
            Self::Image(Container::Vhd) => "a Hyper-V disk image (vhd)",
            Self::Image(Container::Raw) => "a raw disk image",
            Self::Archive => "a tar archive (OVA or OCI)",
            Self::Other => "no image format that is known",
        })
    }
}
