//! qcow2, versions 2 and 3 (QEMU `docs/interop/qcow2.txt`), read only.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex};

use super::FileView;
use crate::disk::{Codec, DiskError, Extent, ExtentKind, GuestDisk, copy_from, push_extent, read_by_unit};

/// Guest disks of more than this are no boot images.
const LARGEST_DISK: u64 = 64 << 40;
/// Level 2 tables that are kept in memory.
const CACHED_TABLES: usize = 64;

/// A qcow2 disk.
pub(crate) struct Qcow2Disk {
    view: FileView,
    size: u64,
    cluster_bits: u32,
    codec: Codec,
    version: u32,
    l1: Vec<u64>,
    tables: Mutex<HashMap<u64, Arc<Vec<u64>>>>,
}

/// What a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cluster {
    Hole,
    Zero,
    /// At this offset of the file.
    Plain(u64),
    /// The same, and other clusters or snapshots may refer to it.
    Shared(u64),
    /// At this offset of the file, in at most so many bytes.
    Compressed(u64, u64),
}

impl Qcow2Disk {
    pub(crate) fn open(view: FileView) -> Result<Self, DiskError> {
        let header = view.read_up_to(0, 112)?;
        let u32_at = |at: usize| big(&header, at, 4);
        let damaged = |offset: u64, expected: &str| DiskError::Damaged {
            what: "the qcow2 header",
            offset,
            expected: expected.to_owned(),
        };
        let version = u32::try_from(u32_at(4)).unwrap_or(0);
        if !(2..=3).contains(&version) {
            return Err(damaged(4, "version 2 or 3"));
        }
        if big(&header, 8, 8) != 0 {
            return Err(damaged(8, "no backing file: flatten the image first, with `qemu-img convert`"));
        }
        let cluster_bits = u32::try_from(u32_at(20)).unwrap_or(0);
        if !(9..=21).contains(&cluster_bits) {
            return Err(damaged(20, "clusters of 512 bytes to 2 MiB"));
        }
        let size = big(&header, 24, 8);
        if size > LARGEST_DISK {
            return Err(damaged(24, "a disk of at most 64 TiB"));
        }
        if u32_at(32) != 0 {
            return Err(damaged(32, "no encryption"));
        }
        let incompatible = if version == 3 { big(&header, 72, 8) } else { 0 };
        for (bit, expected) in [
            (1, "a disk that is not marked as corrupt"),
            (2, "no external data file"),
            (4, "no extended level 2 entries"),
        ] {
            if incompatible >> bit & 1 == 1 {
                return Err(damaged(72, expected));
            }
        }
        if incompatible & !0b1_1111 != 0 {
            return Err(damaged(72, "no features that are not known here"));
        }
        let codec = match (incompatible >> 3 & 1, header.get(104)) {
            (0, _) | (1, Some(0)) => Codec::Deflate,
            (1, Some(1)) => Codec::Zstd,
            _ => return Err(damaged(104, "compression by deflate or Zstandard")),
        };
        let (entries, at) = (u32_at(36), big(&header, 40, 8));
        let per_table = 1_u64 << (cluster_bits - 3);
        let needed = size.div_ceil(per_table << cluster_bits);
        if entries < needed || entries.saturating_mul(8) > view.len() || entries > 1 << 25 {
            return Err(damaged(36, "a level 1 table that spans the disk and lies in the file"));
        }
        let needed = usize::try_from(needed).unwrap_or(0);
        let bytes = view.read_up_to(at, needed * 8)?;
        if bytes.len() < needed * 8 {
            return Err(damaged(40, "a level 1 table that lies in the file"));
        }
        let l1 = bytes.chunks(8).map(|entry| big(entry, 0, 8)).collect();
        Ok(Self { view, size, cluster_bits, codec, version, l1, tables: Mutex::new(HashMap::new()) })
    }

    fn cluster_size(&self) -> u64 {
        1 << self.cluster_bits
    }

    fn table(&self, index: u64) -> Result<Option<Arc<Vec<u64>>>, DiskError> {
        const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
        let entry = usize::try_from(index).ok().and_then(|i| self.l1.get(i)).copied().unwrap_or(0) & OFFSET;
        if entry == 0 {
            return Ok(None);
        }
        if let Ok(tables) = self.tables.lock()
            && let Some(table) = tables.get(&entry)
        {
            return Ok(Some(Arc::clone(table)));
        }
        let length = usize::try_from(self.cluster_size()).unwrap_or(0);
        let mut bytes = vec![0; length];
        self.view.read_exact_at(&mut bytes, entry)?;
        let table: Arc<Vec<u64>> = Arc::new(bytes.chunks(8).map(|e| big(e, 0, 8)).collect());
        if let Ok(mut tables) = self.tables.lock() {
            if tables.len() >= CACHED_TABLES {
                tables.clear();
            }
            tables.insert(entry, Arc::clone(&table));
        }
        Ok(Some(table))
    }

    /// What stands in a guest cluster.
    pub(crate) fn cluster(&self, number: u64) -> Result<Cluster, DiskError> {
        let per_table = self.cluster_size() / 8;
        let Some(table) = self.table(number / per_table)? else { return Ok(Cluster::Hole) };
        let entry = table.get(usize::try_from(number % per_table).unwrap_or(0)).copied().unwrap_or(0);
        if entry >> 62 & 1 == 1 {
            let split = 62 - (self.cluster_bits - 8);
            let offset = entry & ((1 << split) - 1);
            let sectors = entry >> split & ((1 << (62 - split)) - 1);
            return Ok(Cluster::Compressed(offset, (sectors + 1) * 512 - (offset & 511)));
        }
        let offset = entry & 0x00ff_ffff_ffff_fe00;
        Ok(match (offset, self.version >= 3 && entry & 1 == 1) {
            (_, true) => Cluster::Zero,
            (0, false) => Cluster::Hole,
            (offset, false) if entry >> 63 == 1 => Cluster::Plain(offset),
            (offset, false) => Cluster::Shared(offset),
        })
    }

    fn decompress(&self, offset: u64, length: u64) -> Result<Vec<u8>, DiskError> {
        let size = usize::try_from(self.cluster_size()).unwrap_or(0);
        // The last cluster of a file may end before its last sector does.
        let bytes = self.view.read_up_to(offset, usize::try_from(length).unwrap_or(0))?;
        let mut cluster = Vec::with_capacity(size);
        let limit = self.cluster_size();
        let read = match self.codec {
            Codec::Deflate => {
                flate2::read::DeflateDecoder::new(bytes.as_slice()).take(limit).read_to_end(&mut cluster)
            }
            Codec::Zstd => zstd::stream::read::Decoder::with_buffer(bytes.as_slice())
                .map(zstd::stream::read::Decoder::single_frame)
                .and_then(|decoder| decoder.take(limit).read_to_end(&mut cluster)),
        };
        if read.is_err() || cluster.len() != size {
            let expected = "a compressed cluster".to_owned();
            return Err(DiskError::Damaged { what: "a cluster", offset, expected });
        }
        Ok(cluster)
    }
}

impl GuestDisk for Qcow2Disk {
    fn size(&self) -> u64 {
        self.size
    }

    fn extents(&self) -> Result<Vec<Extent>, DiskError> {
        let mut extents = Vec::new();
        let per_table = self.cluster_size() / 8;
        let mut number = 0;
        while number << self.cluster_bits < self.size {
            let start = number << self.cluster_bits;
            let (clusters, kind) =
                if number.is_multiple_of(per_table) && self.table(number / per_table)?.is_none() {
                    (per_table, ExtentKind::Hole)
                } else {
                    let kind = match self.cluster(number)? {
                        Cluster::Hole => ExtentKind::Hole,
                        Cluster::Zero => ExtentKind::Zero,
                        Cluster::Plain(_) | Cluster::Shared(_) | Cluster::Compressed(..) => ExtentKind::Data,
                    };
                    (1, kind)
                };
            let length = (clusters << self.cluster_bits).min(self.size - start);
            push_extent(&mut extents, Extent { start, length, kind });
            number += clusters;
        }
        Ok(extents)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        read_by_unit(self, offset, buffer, self.cluster_size(), |number, inside, now| {
            match self.cluster(number)? {
                Cluster::Hole | Cluster::Zero => now.fill(0),
                Cluster::Plain(host) | Cluster::Shared(host) => {
                    self.view.read_exact_at(now, host + inside)?;
                }
                Cluster::Compressed(host, bytes) => copy_from(&self.decompress(host, bytes)?, inside, now),
            }
            Ok(())
        })
    }

    fn packed(&self, offset: u64, length: u64, codec: Codec) -> Result<Option<Vec<u8>>, DiskError> {
        if (codec, length) != (self.codec, self.cluster_size()) || !offset.is_multiple_of(length) {
            return Ok(None);
        }
        let Cluster::Compressed(host, most) = self.cluster(offset >> self.cluster_bits)? else {
            return Ok(None);
        };
        let mut bytes = self.view.read_up_to(host, usize::try_from(most).unwrap_or(0))?;
        // The table tells the length in sectors alone; the data itself tells where it ends, and that it is whole.
        let mut cluster = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        let end = match codec {
            Codec::Deflate => {
                let mut decoder = flate2::Decompress::new(false);
                let status = decoder.decompress_vec(&bytes, &mut cluster, flate2::FlushDecompress::Finish);
                let whole = matches!(status, Ok(flate2::Status::StreamEnd)) && cluster.len() as u64 == length;
                whole.then(|| decoder.total_in())
            }
            Codec::Zstd => zstd::zstd_safe::find_frame_compressed_size(&bytes).ok().map(|n| n as u64),
        };
        // QEMU of old ended no stream; such a cluster is read and compressed again.
        let Some(end) = end.and_then(|end| usize::try_from(end).ok()).filter(|end| *end > 0) else {
            return Ok(None);
        };
        bytes.truncate(end);
        Ok(Some(bytes))
    }

    fn codec(&self) -> Option<Codec> {
        let clusters = self.size.div_ceil(self.cluster_size());
        let per_table = self.cluster_size() / 8;
        let mut tables = (0..clusters.div_ceil(per_table)).filter(|n| matches!(self.table(*n), Ok(Some(_))));
        let compressed = |n: u64| matches!(self.cluster(n), Ok(Cluster::Compressed(..)));
        let any = tables.any(|n| (n * per_table..((n + 1) * per_table).min(clusters)).any(compressed));
        any.then_some(self.codec)
    }

    fn place(&self, offset: u64, length: u64) -> Result<Option<u64>, DiskError> {
        let inside = offset & (self.cluster_size() - 1);
        if offset.saturating_add(length) > self.size || inside + length > self.cluster_size() {
            return Ok(None);
        }
        Ok(match self.cluster(offset >> self.cluster_bits)? {
            Cluster::Plain(host) => Some(host + inside),
            _ => None,
        })
    }

    fn allocated(&self) -> Option<u64> {
        Some(self.view.len())
    }
}

/// A big-endian number; what lies outside counts as zero.
pub(crate) fn big(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes.get(at..at + length).unwrap_or_default().iter().fold(0, |n, b| n << 8 | u64::from(*b))
}
