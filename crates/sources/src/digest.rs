//! Digests of files, and what kind of file the first bytes tell.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::word::SourceError;

/// A sha256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a file is, by its first bytes (a fixed VHD by its last).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// gzip.
    Gzip,
    /// xz.
    Xz,
    /// Zstandard.
    Zstd,
    /// A QEMU disk image.
    Qcow2,
    /// A VMware disk image.
    Vmdk,
    /// A Hyper-V disk image with a footer.
    Vhd,
    /// A tar archive: an OVA, or an OCI archive.
    Tar,
    /// A disk with a partition table.
    RawDisk,
    /// Nothing of these.
    Other,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip data",
            Self::Xz => "xz data",
            Self::Zstd => "Zstandard data",
            Self::Qcow2 => "a QEMU disk image (qcow2)",
            Self::Vmdk => "a VMware disk image (vmdk)",
            Self::Vhd => "a Hyper-V disk image (vhd)",
            Self::Tar => "a tar archive (OVA or OCI)",
            Self::RawDisk => "a raw disk image",
            Self::Other => "no image format that is known",
        })
    }
}

/// Reads a whole file once: its digest and its kind.
pub fn inspect_file(path: &Path) -> Result<(Digest, FileKind), SourceError> {
    let error = |source| SourceError::Read { path: path.display().to_string(), source };
    let file = File::open(path).map_err(error)?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut hasher = Sha256::new();
    let mut head = Vec::new();
    loop {
        let chunk = reader.fill_buf().map_err(error)?;
        if chunk.is_empty() {
            break;
        }
        if head.is_empty() {
            head.extend_from_slice(chunk.get(..1024.min(chunk.len())).unwrap_or_default());
        }
        hasher.update(chunk);
        let length = chunk.len();
        reader.consume(length);
    }
    let mut tail = Vec::new();
    let mut file = reader.into_inner();
    if file.seek(SeekFrom::End(-512)).is_ok() {
        file.read_to_end(&mut tail).map_err(error)?;
    }
    Ok((Digest(hasher.finalize().into()), kind(&head, &tail)))
}

fn kind(head: &[u8], tail: &[u8]) -> FileKind {
    let at = |offset: usize, magic: &[u8]| head.get(offset..).is_some_and(|rest| rest.starts_with(magic));
    if at(0, &[0x1f, 0x8b]) {
        FileKind::Gzip
    } else if at(0, b"\xfd7zXZ\0") {
        FileKind::Xz
    } else if at(0, &[0x28, 0xb5, 0x2f, 0xfd]) {
        FileKind::Zstd
    } else if at(0, b"QFI\xfb") {
        FileKind::Qcow2
    } else if at(0, b"KDMV") {
        FileKind::Vmdk
    } else if at(257, b"ustar") {
        FileKind::Tar
    } else if tail.starts_with(b"conectix") {
        FileKind::Vhd
    } else if at(510, &[0x55, 0xaa]) || at(512, b"EFI PART") {
        FileKind::RawDisk
    } else {
        FileKind::Other
    }
}
