//! A file becomes a guest disk: compression and container are told by magic bytes, never by name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::mpsc;

use liblzma::bufread::XzDecoder;
use liblzma::stream::MtStreamBuilder;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::disk::{DiskError, GuestDisk};
use crate::format::{Container, FileView, qcow2::Qcow2Disk, raw::RawDisk, tar, vhd, vmdk::VmdkDisk};
use crate::hash::Sha256Hex;
use crate::kind::FileKind;

/// Bytes that are read, decompressed and hashed at a time.
const CHUNK: usize = 1 << 20;
/// Chunks that may wait for the hasher: memory stays small.
const WAITING: usize = 4;
/// Content beyond this is no boot image; a small file may claim to hold far more.
const LARGEST_CONTENT: u64 = 1 << 40;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Compression {
    /// gzip.
    Gzip,
    /// xz.
    Xz,
    /// Zstandard.
    Zstd,
}

/// Why a file is no disk image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It cannot be read.
    #[error("{path}: cannot be read")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It does not decompress.
    #[error("{path}: damaged {compression:?} data; download it again and compare its sha256")]
    Compressed {
        /// The file.
        path: String,
        /// The compression.
        compression: Compression,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its container is damaged or not supported.
    #[error("{path}: not usable as a {container} image")]
    Container {
        /// The file.
        path: String,
        /// The container.
        container: Container,
        /// Why.
        #[source]
        source: DiskError,
    },
    /// It is nothing of these.
    #[error(
        "{path}: no disk image: expected raw with a partition table, qcow2, vmdk, fixed vhd, an OVA or a Google archive, plain or in gzip, xz or Zstandard"
    )]
    Unknown {
        /// The file.
        path: String,
    },
}

/// An opened image.
pub struct Opened {
    /// The guest disk.
    pub disk: Box<dyn GuestDisk>,
    /// The container.
    pub container: Container,
    /// Whether it is a member of an archive, and its name there.
    pub member: Option<String>,
    /// How the file is compressed.
    pub compression: Option<Compression>,
    /// Digest of the file as it is; known where it had to be read as a whole.
    pub sha256: Option<Sha256Hex>,
    /// Digest of what is in it once decompressed; known where it was.
    pub content_sha256: Option<Sha256Hex>,
}

/// Opens an image. A compressed file is decompressed into an unnamed temporary file in `scratch`, with holes where there
/// are zeros, and both of its digests are computed on the way.
pub fn open(path: &Path, scratch: &Path) -> Result<Opened, OpenError> {
    let name = path.display().to_string();
    let read = |source| OpenError::Read { path: name.clone(), source };
    let file = File::open(path).map_err(read)?;
    let mut view = FileView::whole(file.try_clone().map_err(read)?).map_err(read)?;
    let (mut compression, mut digests) = (None, None);
    if let FileKind::Compressed(how) = FileKind::of_view(&view).map_err(read)? {
        let failed = |source| OpenError::Compressed { path: name.clone(), compression: how, source };
        let (content, wire, inner) = decompress(file, how, scratch).map_err(failed)?;
        (compression, digests) = (Some(how), Some((wire, inner)));
        view = FileView::whole(content).map_err(read)?;
    }
    let (disk, container, member) = container(&view, &name)?;
    Ok(Opened {
        disk,
        container,
        member,
        compression,
        sha256: digests.map(|(wire, _)| wire),
        content_sha256: digests.map(|(_, inner)| inner),
    })
}

type Found = (Box<dyn GuestDisk>, Container, Option<String>);

fn container(view: &FileView, name: &str) -> Result<Found, OpenError> {
    let unknown = || OpenError::Unknown { path: name.to_owned() };
    let failed = |container| move |source| OpenError::Container { path: name.to_owned(), container, source };
    let kind = FileKind::of_view(view);
    let container = match kind.map_err(|source| OpenError::Read { path: name.to_owned(), source })? {
        FileKind::Image(container) => container,
        FileKind::Archive => return member(view, name),
        FileKind::Compressed(_) | FileKind::Other => return Err(unknown()),
    };
    let disk: Box<dyn GuestDisk> = match container {
        Container::Qcow2 => Box::new(Qcow2Disk::open(view.clone()).map_err(failed(container))?),
        Container::Vmdk => Box::new(VmdkDisk::open(view.clone()).map_err(failed(container))?),
        Container::Vhd => Box::new(vhd::open(view).map_err(failed(container))?),
        Container::Raw => Box::new(RawDisk::new(view.clone())),
    };
    Ok((disk, container, None))
}

/// The disk in an archive: `disk.raw`, or the first that is called a disk.
fn member(view: &FileView, name: &str) -> Result<Found, OpenError> {
    let failed = |source| OpenError::Container { path: name.to_owned(), container: Container::Raw, source };
    for member in tar::members(view).map_err(failed)? {
        let base = member.name.rsplit('/').next().unwrap_or(&member.name).to_owned();
        if let (Some((size, pieces)), "disk.raw") = (&member.sparse, base.as_str()) {
            let disk = tar::SparseMember::new(member.data, *size, pieces);
            return Ok((Box::new(disk), Container::Raw, Some(base)));
        }
        if base == "disk.raw" || base.rsplit('.').next().is_some_and(|e| e == "vmdk" || e == "raw") {
            let (disk, container, _) = container_of_member(&member.data, name)?;
            return Ok((disk, container, Some(base)));
        }
    }
    Err(OpenError::Unknown { path: name.to_owned() })
}

/// Archives in archives are no images.
fn container_of_member(view: &FileView, name: &str) -> Result<Found, OpenError> {
    match FileKind::of_view(view) {
        Ok(FileKind::Archive) => Err(OpenError::Unknown { path: name.to_owned() }),
        _ => container(view, name),
    }
}

/// Decompresses to the true end of the file; what stands behind the first stream is read too, and must be another one.
fn decompress(
    file: File,
    compression: Compression,
    scratch: &Path,
) -> io::Result<(File, Sha256Hex, Sha256Hex)> {
    let mut content = tempfile::tempfile_in(scratch)?;
    let mut wire = Hashing { inner: file, hasher: Sha256::new() };
    let (send, receive) = mpsc::sync_channel::<Vec<u8>>(WAITING);
    let inner = std::thread::scope(|scope| -> io::Result<Sha256Hex> {
        let hasher = scope.spawn(move || {
            let mut hasher = Sha256::new();
            for chunk in receive {
                hasher.update(&chunk);
            }
            Sha256Hex::finish(hasher)
        });
        let buffered = BufReader::with_capacity(CHUNK, &mut wire);
        let mut decoder: Box<dyn Read + '_> = match compression {
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered)),
            Compression::Xz => Box::new(XzStreams { decoder: Some(XzStreams::begin(buffered)?) }),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(buffered)?),
        };
        let mut size = 0_u64;
        loop {
            let mut chunk = Vec::with_capacity(CHUNK);
            let got = (&mut decoder).take(CHUNK as u64).read_to_end(&mut chunk)?;
            if got == 0 {
                break;
            }
            size += got as u64;
            if size > LARGEST_CONTENT {
                return Err(io::Error::other("it holds more than 1 TiB"));
            }
            if chunk.iter().all(|b| *b == 0) {
                content.seek(SeekFrom::Current(i64::try_from(got).unwrap_or(0)))?;
            } else {
                content.write_all(&chunk)?;
            }
            if send.send(chunk).is_err() {
                return Err(io::Error::other("the hasher stopped"));
            }
        }
        content.set_len(size)?;
        drop(send);
        hasher.join().map_err(|_| io::Error::other("the hasher stopped"))
    })?;
    io::copy(&mut wire, &mut io::sink())?;
    Ok((content, Sha256Hex::finish(wire.hasher), inner))
}

/// Streams of xz, one behind the other; blocks of each are decompressed on all cores.
struct XzStreams<R: BufRead> {
    decoder: Option<XzDecoder<R>>,
}

impl<R: BufRead> XzStreams<R> {
    /// Beyond this, fewer threads are used: `xz -9` needs 64 MiB for each, and its block.
    const MEMORY_OF_THREADS: u64 = 384 << 20;
    /// Beyond this a file is refused.
    const MEMORY: u64 = 1 << 30;

    fn begin(input: R) -> io::Result<XzDecoder<R>> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let stream = MtStreamBuilder::new()
            .threads(u32::try_from(threads).unwrap_or(1))
            .memlimit_threading(Self::MEMORY_OF_THREADS)
            .memlimit_stop(Self::MEMORY)
            .decoder()?;
        Ok(XzDecoder::new_stream(input, stream))
    }
}

impl<R: BufRead> Read for XzStreams<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(mut decoder) = self.decoder.take() {
            let got = decoder.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                self.decoder = Some(decoder);
                return Ok(got);
            }
            let mut input = decoder.into_inner();
            loop {
                let bytes = input.fill_buf()?;
                let padding = bytes.iter().take_while(|byte| **byte == 0).count();
                match (bytes.is_empty(), padding) {
                    (true, _) => return Ok(0),
                    (false, 0) => break,
                    (false, padding) => input.consume(padding),
                }
            }
            self.decoder = Some(Self::begin(input)?);
        }
        Ok(0)
    }
}

/// Hashes what is read.
struct Hashing {
    inner: File,
    hasher: Sha256,
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..got).unwrap_or_default());
        Ok(got)
    }
}
