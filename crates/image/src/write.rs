//! Writers: a guest disk becomes a file of any format. All cores work, memory is bounded, and the bytes are the same on
//! every run and for every number of threads.

mod gcp;
mod pipeline;
mod qcow2;
mod raw;
mod vhd;
mod vmdk;

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::disk::{Codec, DiskError, GuestDisk};
use crate::format::Container;
use crate::open::Opened;

/// A format that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The disk itself, with holes where there are zeros.
    Raw,
    /// qcow2 version 3 with clusters of 64 KiB.
    Qcow2(ClusterCompression),
    /// `streamOptimized` VMDK.
    Vmdk,
    /// Fixed VHD, a whole number of MiB, as Azure wants it.
    Vhd,
    /// `disk.raw` of a whole number of GiB in an old GNU tar in gzip, as Google Cloud wants it.
    Gcp,
}

/// How the clusters of a qcow2 file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClusterCompression {
    /// Not at all.
    #[default]
    None,
    /// Deflate, which every QEMU reads.
    Zlib,
    /// Zstandard, which QEMU reads since 5.1.
    Zstd,
}

impl Format {
    /// What a platform takes (coreos-assembler `src/cosalib/qemuvariants.py`, `src/cmd-osbuild`); none for platforms
    /// that are not known here.
    pub fn of_platform(platform: &str) -> Option<Self> {
        Some(match platform {
            "aws" | "vmware" => Self::Vmdk,
            "azure" | "azurestack" => Self::Vhd,
            "gcp" => Self::Gcp,
            "nutanix" => Self::Qcow2(ClusterCompression::Zlib),
            "openstack" | "qemu" | "kubevirt" | "ibmcloud" => Self::Qcow2(ClusterCompression::None),
            "metal" => Self::Raw,
            _ => return None,
        })
    }

    /// By the ending of a file's name, for a file that is to be; what a file is, its content tells.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let endings = [
            (".qcow2", Self::Qcow2(ClusterCompression::None)),
            (".vmdk", Self::Vmdk),
            (".vhd", Self::Vhd),
            (".tar.gz", Self::Gcp),
            (".tgz", Self::Gcp),
            (".raw", Self::Raw),
            (".img", Self::Raw),
        ];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    }

    /// That of an opened image, with the compression that it has.
    pub fn of_image(opened: &Opened) -> Self {
        match opened.container {
            Container::Qcow2 => Self::Qcow2(match opened.disk.codec() {
                None => ClusterCompression::None,
                Some(Codec::Deflate) => ClusterCompression::Zlib,
                Some(Codec::Zstd) => ClusterCompression::Zstd,
            }),
            Container::Vmdk => Self::Vmdk,
            Container::Vhd => Self::Vhd,
            Container::Raw => Self::Raw,
        }
    }

    /// The size of the guest disk in this format: what the platform's own rules make of it.
    pub fn size_of(self, size: u64) -> u64 {
        match self {
            Self::Raw => size,
            Self::Qcow2(_) | Self::Vmdk => size.next_multiple_of(512),
            Self::Vhd => size.next_multiple_of(1 << 20),
            Self::Gcp => size.next_multiple_of(1 << 30),
        }
    }

    /// Whether it can be written to a pipe.
    pub fn streams(self) -> bool {
        !matches!(self, Self::Qcow2(_))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Raw => "raw",
            Self::Qcow2(ClusterCompression::None) => "qcow2",
            Self::Qcow2(ClusterCompression::Zlib) => "qcow2 with zlib",
            Self::Qcow2(ClusterCompression::Zstd) => "qcow2 with Zstandard",
            Self::Vmdk => "stream-optimised vmdk",
            Self::Vhd => "fixed vhd",
            Self::Gcp => "disk.raw in tar.gz",
        })
    }
}

/// The size that a platform wants a disk to be grown to, in bytes (coreos-assembler `src/cosalib/ibmcloud.py`).
pub fn disk_size_of_platform(platform: &str) -> Option<u64> {
    (platform == "ibmcloud").then_some(100 << 30)
}

/// Why an image was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The disk cannot be read.
    #[error("the disk cannot be read")]
    Disk(#[from] DiskError),
    /// The output cannot be written.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
    /// The disk does not fit into the format.
    #[error("a disk of {size} bytes does not fit into {format}: its largest is {largest}")]
    TooLarge {
        /// Size of the disk.
        size: u64,
        /// The format.
        format: &'static str,
        /// The largest size.
        largest: u64,
    },
    /// qcow2 to a pipe.
    #[error("qcow2 needs a file: its tables stand in front of what they are made from")]
    NotSeekable,
    /// A thread ended before its work did.
    #[error("a worker stopped")]
    Stopped,
}

/// Writes a disk as a new file. It appears under its name when it is whole and on disk, `check` having agreed, or never.
pub fn write_file<E: From<WriteError>>(
    disk: &dyn GuestDisk,
    format: Format,
    path: &Path,
    check: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let failed = |error: io::Error| E::from(WriteError::Output(error));
    let partial = partial(path).map_err(failed)?;
    let file = partial.as_file();
    match format {
        Format::Raw => raw::to_file(disk, disk.size(), file),
        Format::Qcow2(compression) => qcow2::to_file(disk, compression, file),
        Format::Vhd => vhd::to_file(disk, file),
        Format::Vmdk | Format::Gcp => {
            write_pipe(disk, format, &mut io::BufWriter::with_capacity(1 << 20, file))
        }
    }?;
    check()?;
    persist(partial, path).map_err(failed)
}

/// Writes a disk to a pipe.
pub fn write_pipe(disk: &dyn GuestDisk, format: Format, output: &mut dyn Write) -> Result<(), WriteError> {
    match format {
        Format::Raw => raw::to_pipe(disk, disk.size(), output),
        Format::Qcow2(_) => Err(WriteError::NotSeekable),
        Format::Vhd => vhd::to_pipe(disk, output),
        Format::Vmdk => vmdk::to_pipe(disk, output),
        Format::Gcp => gcp::to_pipe(disk, output),
    }?;
    Ok(output.flush()?)
}

/// A file beside the one that is to be.
pub(crate) fn partial(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new()
        .prefix(".bootwright-")
        .suffix(".partial")
        .permissions(permissions)
        .tempfile_in(folder)
}

/// Gives a finished file its name.
pub(crate) fn persist(partial: tempfile::NamedTempFile, path: &Path) -> io::Result<()> {
    partial.as_file().sync_all()?;
    partial.persist(path).map_err(|error| error.error)?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
