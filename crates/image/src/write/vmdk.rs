//! `streamOptimized` VMDK (VMware "Virtual Disk Format 5.0"): grains in zlib, each with its place, tables behind what they
//! are about, so that it can be written to a pipe. Grains of zeros are left out.

use std::io::Write;

use libdeflater::{CompressionLvl, Compressor};

use super::pipeline::{self, Run};
use super::{Format, WriteError};
use crate::disk::{ExtentKind, GuestDisk};

const SECTOR: u64 = 512;
const GRAIN: u64 = 64 << 10;
const GRAIN_SECTORS: u64 = GRAIN / SECTOR;
/// Grains of a table.
const TABLE: u64 = 512;
/// Header and descriptor end here, in sectors: the first grain begins.
const OVERHEAD: u64 = 128;
/// Sector numbers have 32 bits, and zlib may need a little more than a grain.
const LARGEST: u64 = 1 << 40;
/// Has a newline test, compressed grains and markers.
const FLAGS: u32 = 0x3_0001;
/// As qemu-img and ovftool have it; a higher one costs far more time than it saves bytes.
const LEVEL: i32 = 6;

/// Counts what it writes.
struct Output<'o> {
    inner: &'o mut dyn Write,
    sectors: u64,
}

impl Output<'_> {
    /// Writes bytes, and zeros up to the next sector.
    fn sectors(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.inner.write_all(bytes)?;
        let rest = bytes.len().next_multiple_of(512) - bytes.len();
        self.inner.write_all([0; 512].get(..rest).unwrap_or_default())?;
        self.sectors += (bytes.len() as u64).div_ceil(SECTOR);
        Ok(())
    }

    /// A marker: what follows is so many sectors of metadata of a type.
    fn marker(&mut self, sectors: u64, kind: u32) -> Result<(), WriteError> {
        let mut marker = sectors.to_le_bytes().to_vec();
        marker.extend(0_u32.to_le_bytes());
        marker.extend(kind.to_le_bytes());
        self.sectors(&marker)
    }

    fn entries(&mut self, entries: &[u32], kind: u32) -> Result<u32, WriteError> {
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        self.marker((bytes.len() as u64).div_ceil(SECTOR), kind)?;
        let at = self.sector()?;
        self.sectors(&bytes)?;
        Ok(at)
    }

    fn sector(&self) -> Result<u32, WriteError> {
        let too_large =
            |_| WriteError::TooLarge { size: self.sectors * SECTOR, format: "vmdk", largest: LARGEST };
        u32::try_from(self.sectors).map_err(too_large)
    }
}

pub(super) fn to_pipe(disk: &dyn GuestDisk, output: &mut dyn Write) -> Result<(), WriteError> {
    let size = Format::Vmdk.size_of(disk.size());
    if size > LARGEST {
        return Err(WriteError::TooLarge { size, format: "vmdk", largest: LARGEST });
    }
    let mut output = Output { inner: output, sectors: 0 };
    output.sectors(&header(size, u64::MAX))?;
    output.sectors(descriptor(size).as_bytes())?;
    let space = usize::try_from((OVERHEAD - output.sectors) * SECTOR).unwrap_or(0);
    output.sectors(&vec![0; space])?;

    let mut runs = pipeline::runs(disk, GRAIN)?;
    runs.retain(|run| run.kind == ExtentKind::Data);
    let count = size.div_ceil(GRAIN);
    let mut directory = vec![0_u32; usize::try_from(count.div_ceil(TABLE)).unwrap_or(0)];
    let mut tables = Tables { directory: &mut directory, current: 0, entries: Vec::new() };
    pipeline::in_order(
        &pipeline::pieces(&runs, 16),
        || State::new(disk),
        State::grains,
        |piece, grains| {
            for (number, grain) in (piece.first..).zip(grains) {
                if let Some(grain) = grain {
                    tables.turn(number / TABLE, &mut output)?;
                    let at = output.sector()?;
                    tables.set(number, at);
                    output.sectors(&grain)?;
                }
            }
            Ok(())
        },
    )?;
    tables.turn(u64::MAX, &mut output)?;
    let at = output.entries(&directory, 2)?;
    output.marker(1, 3)?;
    output.sectors(&header(size, u64::from(at)))?;
    output.marker(0, 0)
}

/// The table that is being filled; it is written behind its grains.
struct Tables<'d> {
    directory: &'d mut [u32],
    current: u64,
    entries: Vec<u32>,
}

impl Tables<'_> {
    fn turn(&mut self, table: u64, output: &mut Output<'_>) -> Result<(), WriteError> {
        if table != self.current && !self.entries.is_empty() {
            let at = output.entries(&self.entries, 1)?;
            if let Some(entry) = usize::try_from(self.current).ok().and_then(|n| self.directory.get_mut(n)) {
                *entry = at;
            }
            self.entries.clear();
        }
        self.current = table;
        Ok(())
    }

    fn set(&mut self, number: u64, sector: u32) {
        self.entries.resize(usize::try_from(TABLE).unwrap_or(0), 0);
        if let Some(entry) = usize::try_from(number % TABLE).ok().and_then(|n| self.entries.get_mut(n)) {
            *entry = sector;
        }
    }
}

/// A thread's own.
struct State<'d> {
    disk: &'d dyn GuestDisk,
    encoder: Compressor,
    buffer: Vec<u8>,
}

impl<'d> State<'d> {
    fn new(disk: &'d dyn GuestDisk) -> Self {
        Self {
            disk,
            encoder: Compressor::new(CompressionLvl::new(LEVEL).unwrap_or_default()),
            buffer: Vec::new(),
        }
    }

    /// The grains of a piece, each behind its marker; none where there are only zeros.
    fn grains(&mut self, piece: Run) -> Result<Vec<Option<Vec<u8>>>, WriteError> {
        pipeline::read(self.disk, piece, GRAIN, &mut self.buffer)?;
        let unit = usize::try_from(GRAIN).unwrap_or(1);
        let mut grains = Vec::new();
        for (number, grain) in (piece.first..).zip(self.buffer.chunks(unit)) {
            if pipeline::is_zero(grain) {
                grains.push(None);
                continue;
            }
            let mut bytes = Vec::with_capacity(grain.len() + 1024);
            bytes.extend((number * GRAIN_SECTORS).to_le_bytes());
            bytes.extend([0; 4]);
            let room = self.encoder.zlib_compress_bound(grain.len());
            bytes.resize(12 + room, 0);
            let space = bytes.get_mut(12..).unwrap_or_default();
            let length = self.encoder.zlib_compress(grain, space).map_err(std::io::Error::other)?;
            bytes.truncate(12 + length);
            let length = u32::try_from(bytes.len().saturating_sub(12)).unwrap_or(0);
            if let Some(place) = bytes.get_mut(8..12) {
                place.copy_from_slice(&length.to_le_bytes());
            }
            grains.push(Some(bytes));
        }
        Ok(grains)
    }
}

/// The header; in front without the place of the directory, at the end with it.
fn header(size: u64, directory: u64) -> Vec<u8> {
    let mut header = b"KDMV".to_vec();
    header.extend(3_u32.to_le_bytes());
    header.extend(FLAGS.to_le_bytes());
    header.extend((size / SECTOR).to_le_bytes());
    header.extend(GRAIN_SECTORS.to_le_bytes());
    header.extend(1_u64.to_le_bytes()); // the descriptor's sector
    header.extend(20_u64.to_le_bytes()); // its sectors
    header.extend(512_u32.to_le_bytes());
    header.extend(0_u64.to_le_bytes()); // no redundant directory
    header.extend(directory.to_le_bytes());
    header.extend(OVERHEAD.to_le_bytes());
    header.push(0); // no unclean shutdown
    header.extend(b"\n \r\n");
    header.extend(1_u16.to_le_bytes()); // deflate
    header.resize(512, 0);
    header
}

/// What the disk is, as VMware and QEMU write it for a disk of one file and no parent.
fn descriptor(size: u64) -> String {
    let sectors = size / SECTOR;
    let cylinders = sectors.div_ceil(255 * 63);
    let text = format!(
        "# Disk DescriptorFile\nversion=1\nCID=b007b007\nparentCID=ffffffff\ncreateType=\"streamOptimized\"\n\n\
         # Extent description\nRW {sectors} SPARSE \"disk.vmdk\"\n\n# The Disk Data Base\n#DDB\n\n\
         ddb.virtualHWVersion = \"6\"\nddb.geometry.cylinders = \"{cylinders}\"\nddb.geometry.heads = \"255\"\n\
         ddb.geometry.sectors = \"63\"\nddb.adapterType = \"lsilogic\"\nddb.toolsVersion = \"2147483647\"\n"
    );
    format!("{text:\0<10240}")
}
