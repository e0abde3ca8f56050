//! qcow2 version 3 (QEMU `docs/interop/qcow2.txt`), tables first, clusters in guest order.
//!
//! Compressed clusters lie byte after byte. Deflate is raw with a window of 4 KiB, since QEMU reads no larger one. What a
//! source holds in clusters of the same size and compression is taken over as it is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use flate2::{Compress, Compression, FlushCompress, Status};
use zstd::bulk::Compressor;

use super::pipeline::{self, Run};
use super::{ClusterCompression, Format, WriteError};
use crate::disk::{Codec, ExtentKind, GuestDisk};

const BITS: u32 = 16;
const CLUSTER: u64 = 1 << BITS;
/// Entries of a table: of 8 bytes, in a cluster.
const ENTRIES: u64 = CLUSTER / 8;
/// Reference counts of a block: of 2 bytes.
const COUNTS: u64 = CLUSTER / 2;
const COPIED: u64 = 1 << 63;
const COMPRESSED: u64 = 1 << 62;
const ZERO: u64 = 1;
/// The sectors of a compressed cluster begin at this bit of its entry.
const SECTORS_AT: u32 = 62 - (BITS - 8);
/// Beyond this no boot image is.
const LARGEST: u64 = 64 << 40;
/// As qemu-img has it.
const ZLIB_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// A cluster, ready to be written.
enum Encoded {
    Zero,
    Plain(Vec<u8>),
    Packed(Vec<u8>),
}

pub(super) fn to_file(
    disk: &dyn GuestDisk,
    compression: ClusterCompression,
    file: &File,
) -> Result<(), WriteError> {
    let size = Format::Qcow2(compression).size_of(disk.size());
    if size > LARGEST {
        return Err(WriteError::TooLarge { size, format: "qcow2", largest: LARGEST });
    }
    let runs = pipeline::runs(disk, CLUSTER)?;
    let layout = Layout::of(size, &runs);
    let mut image = Image { file, layout, at: layout.data, tables: BTreeMap::new(), counts: BTreeMap::new() };
    for run in runs.iter().filter(|run| run.kind == ExtentKind::Zero) {
        (run.first..run.first + run.count).for_each(|number| image.set(number, ZERO));
    }
    let data: Vec<Run> = runs.into_iter().filter(|run| run.kind == ExtentKind::Data).collect();
    let pieces = pipeline::pieces(&data, 16);
    pipeline::in_order(
        &pieces,
        || Encoder::new(disk, compression),
        Encoder::piece,
        |piece, clusters| {
            (piece.first..).zip(clusters).try_for_each(|(number, cluster)| image.put(number, &cluster))
        },
    )?;
    image.finish(size, compression)
}

/// Where the tables lie, in bytes. There is room for the reference counts of the largest file that may come out.
#[derive(Debug, Clone, Copy)]
struct Layout {
    l1_entries: u64,
    l2: u64,
    count_table: u64,
    count_blocks: u64,
    data: u64,
}

impl Layout {
    fn of(size: u64, runs: &[Run]) -> Self {
        let l1_entries = size.div_ceil(CLUSTER * ENTRIES);
        let mut tables = 0;
        let mut last = None;
        for run in runs.iter().filter(|run| run.kind != ExtentKind::Hole) {
            let (first, end) = (run.first / ENTRIES, (run.first + run.count - 1) / ENTRIES);
            tables += end - first + u64::from(last != Some(first));
            last = Some(end);
        }
        let clusters: u64 = runs.iter().filter(|r| r.kind == ExtentKind::Data).map(|r| r.count).sum();
        let l2 = CLUSTER + (l1_entries * 8).next_multiple_of(CLUSTER);
        let count_table = l2 + tables * CLUSTER;
        // A plain cluster begins at a multiple, so that a compressed one before it may waste the rest of its own.
        let others = count_table / CLUSTER + 2 * clusters + 1;
        let mut blocks = others.div_ceil(COUNTS);
        let mut table = 1;
        loop {
            let next = (others + blocks + table).div_ceil(COUNTS);
            let next_table = (next * 8).div_ceil(CLUSTER).max(1);
            if (next, next_table) == (blocks, table) {
                break;
            }
            (blocks, table) = (next.max(blocks), next_table.max(table));
        }
        let count_blocks = count_table + table * CLUSTER;
        Self { l1_entries, l2, count_table, count_blocks, data: count_blocks + blocks * CLUSTER }
    }
}

/// The file as far as it is written.
struct Image<'f> {
    file: &'f File,
    layout: Layout,
    /// Where the next cluster may begin.
    at: u64,
    /// Level 2 tables by their number.
    tables: BTreeMap<u64, Vec<u64>>,
    /// Clusters of the file that several compressed clusters share.
    counts: BTreeMap<u64, Vec<u16>>,
}

impl Image<'_> {
    fn set(&mut self, number: u64, value: u64) {
        let length = usize::try_from(ENTRIES).unwrap_or(0);
        let table = self.tables.entry(number / ENTRIES).or_insert_with(|| vec![0; length]);
        if let Some(entry) = usize::try_from(number % ENTRIES).ok().and_then(|n| table.get_mut(n)) {
            *entry = value;
        }
    }

    /// Counts a reference to every cluster that a range touches.
    fn count(&mut self, start: u64, end: u64) {
        let length = usize::try_from(COUNTS).unwrap_or(0);
        for cluster in start / CLUSTER..end.div_ceil(CLUSTER) {
            let block = self.counts.entry(cluster / COUNTS).or_insert_with(|| vec![0; length]);
            if let Some(count) = usize::try_from(cluster % COUNTS).ok().and_then(|n| block.get_mut(n)) {
                *count = count.saturating_add(1);
            }
        }
    }

    fn put(&mut self, number: u64, cluster: &Encoded) -> Result<(), WriteError> {
        match cluster {
            Encoded::Zero => self.set(number, ZERO),
            Encoded::Plain(bytes) => {
                let at = self.at.next_multiple_of(CLUSTER);
                self.file.write_all_at(bytes, at)?;
                self.set(number, at | COPIED);
                self.at = at + CLUSTER;
                self.count(at, self.at);
            }
            Encoded::Packed(bytes) => {
                let (at, length) = (self.at, bytes.len() as u64);
                self.file.write_all_at(bytes, at)?;
                let sectors = ((at & 511) + length - 1) / 512;
                self.set(number, COMPRESSED | sectors << SECTORS_AT | at);
                self.at = at + length;
                // The reader takes whole sectors, and QEMU counts what they touch.
                self.count(at, (at & !511) + (sectors + 1) * 512);
            }
        }
        Ok(())
    }

    fn finish(mut self, size: u64, compression: ClusterCompression) -> Result<(), WriteError> {
        let layout = self.layout;
        self.file.set_len(self.at.next_multiple_of(CLUSTER))?;
        let big = |entries: &[u64]| entries.iter().flat_map(|e| e.to_be_bytes()).collect::<Vec<u8>>();
        let mut l1 = vec![0_u64; usize::try_from(layout.l1_entries).unwrap_or(0)];
        let mut at = layout.l2;
        for (number, table) in &self.tables {
            self.file.write_all_at(&big(table), at)?;
            if let Some(entry) = usize::try_from(*number).ok().and_then(|n| l1.get_mut(n)) {
                *entry = at | COPIED;
            }
            at += CLUSTER;
        }
        self.file.write_all_at(&big(&l1), CLUSTER)?;
        self.count(0, layout.data);
        let blocks = (layout.data - layout.count_blocks) / CLUSTER;
        let table: Vec<u64> = (0..blocks).map(|n| layout.count_blocks + n * CLUSTER).collect();
        self.file.write_all_at(&big(&table), layout.count_table)?;
        for (number, block) in &self.counts {
            let bytes: Vec<u8> = block.iter().flat_map(|count| count.to_be_bytes()).collect();
            self.file.write_all_at(&bytes, layout.count_blocks + number * CLUSTER)?;
        }
        Ok(self.file.write_all_at(&header(size, layout, compression), 0)?)
    }
}

fn header(size: u64, layout: Layout, compression: ClusterCompression) -> Vec<u8> {
    let mut header = b"QFI\xfb".to_vec();
    let zstd = compression == ClusterCompression::Zstd;
    let table = (layout.count_blocks - layout.count_table) / CLUSTER;
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes();
    header.extend(3_u32.to_be_bytes());
    header.extend([0; 12]); // no backing file
    header.extend(BITS.to_be_bytes());
    header.extend(size.to_be_bytes());
    header.extend(0_u32.to_be_bytes()); // no encryption
    header.extend(number(layout.l1_entries));
    header.extend(CLUSTER.to_be_bytes());
    header.extend(layout.count_table.to_be_bytes());
    header.extend(number(table));
    header.extend([0; 12]); // no snapshots
    header.extend((u64::from(zstd) << 3).to_be_bytes()); // incompatible: another compression than deflate
    header.extend([0; 16]); // compatible, autoclear
    header.extend(4_u32.to_be_bytes()); // counts of 16 bits
    header.extend(112_u32.to_be_bytes()); // length of the header
    header.extend([u8::from(zstd), 0, 0, 0, 0, 0, 0, 0]);
    header.extend([0; 8]); // the end of the extensions
    header
}

/// A thread's own.
struct Encoder<'d> {
    disk: &'d dyn GuestDisk,
    packer: Packer,
    buffer: Vec<u8>,
}

enum Packer {
    None,
    Zlib(Compress),
    Zstd(Option<Compressor<'static>>),
}

impl<'d> Encoder<'d> {
    fn new(disk: &'d dyn GuestDisk, compression: ClusterCompression) -> Self {
        let packer = match compression {
            ClusterCompression::None => Packer::None,
            ClusterCompression::Zlib => {
                Packer::Zlib(Compress::new_with_window_bits(Compression::new(ZLIB_LEVEL), false, 12))
            }
            ClusterCompression::Zstd => Packer::Zstd(Compressor::new(ZSTD_LEVEL).ok()),
        };
        Self { disk, packer, buffer: Vec::new() }
    }

    fn piece(&mut self, piece: Run) -> Result<Vec<Encoded>, WriteError> {
        let codec = match self.packer {
            Packer::None => None,
            Packer::Zlib(_) => Some(Codec::Deflate),
            Packer::Zstd(_) => Some(Codec::Zstd),
        };
        let numbers = piece.first..piece.first + piece.count;
        if let Some(codec) = codec {
            let taken = numbers
                .map(|n| self.disk.packed(n * CLUSTER, CLUSTER, codec))
                .collect::<Result<Vec<_>, _>>()?;
            if taken.iter().any(Option::is_some) {
                let whole = taken.into_iter().zip(piece.first..).map(|(taken, first)| match taken {
                    Some(bytes) => Ok(Encoded::Packed(bytes)),
                    None => self.encode(Run { count: 1, first, ..piece }).map(|mut one| one.remove(0)),
                });
                return whole.collect();
            }
        }
        self.encode(piece)
    }

    fn encode(&mut self, piece: Run) -> Result<Vec<Encoded>, WriteError> {
        pipeline::read(self.disk, piece, CLUSTER, &mut self.buffer)?;
        let mut clusters = Vec::new();
        for cluster in self.buffer.chunks(usize::try_from(CLUSTER).unwrap_or(1)) {
            if pipeline::is_zero(cluster) {
                clusters.push(Encoded::Zero);
                continue;
            }
            let packed = self.packer.pack(cluster)?;
            clusters.push(packed.map_or_else(|| Encoded::Plain(cluster.to_vec()), Encoded::Packed));
        }
        Ok(clusters)
    }
}

impl Packer {
    /// Compresses a cluster; none where that does not make it smaller.
    fn pack(&mut self, cluster: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut packed = Vec::with_capacity(cluster.len() - 1);
        match self {
            Self::None => return Ok(None),
            Self::Zlib(encoder) => {
                encoder.reset();
                let status = encoder.compress_vec(cluster, &mut packed, FlushCompress::Finish);
                if status.map_err(io::Error::other)? != Status::StreamEnd {
                    return Ok(None);
                }
            }
            Self::Zstd(encoder) => {
                let encoder = encoder.as_mut().ok_or_else(|| io::Error::other("no Zstandard encoder"))?;
                packed = encoder.compress(cluster)?;
            }
        }
        Ok(Some(packed).filter(|packed| packed.len() < cluster.len()))
    }
}
