//! VMDK with one sparse extent: `monolithicSparse` and `streamOptimized` (VMware "Virtual Disk Format 5.0"), read only.

use std::io::Read as _;

use super::FileView;
use crate::disk::{DiskError, Extent, ExtentKind, GuestDisk, copy_from, push_extent, read_by_unit};
use crate::gpt::{u16_at, u32_at, u64_at};

const SECTOR: u64 = 512;
/// The grain directory is named in the footer.
const AT_END: u64 = u64::MAX;
/// Grain tables are kept in memory: this many entries span 1 TiB of 64 KiB grains.
const MOST_ENTRIES: u64 = 1 << 24;

/// A sparse VMDK disk.
pub(crate) struct VmdkDisk {
    view: FileView,
    size: u64,
    grain: u64,
    /// The sector of every grain; 0 a hole, 1 zeros.
    grains: Vec<u32>,
    compressed: bool,
}

impl VmdkDisk {
    pub(crate) fn open(view: FileView) -> Result<Self, DiskError> {
        let damaged = |offset: u64, expected: &str| DiskError::Damaged {
            what: "the vmdk header",
            offset,
            expected: expected.to_owned(),
        };
        let mut header = view.read_up_to(0, 512)?;
        if u64_at(&header, 56) == AT_END {
            let footer = view.len().checked_sub(1024).ok_or_else(|| damaged(56, "a footer"))?;
            header = view.read_up_to(footer, 512)?;
            if !header.starts_with(b"KDMV") {
                return Err(damaged(footer, "a footer"));
            }
        }
        let flags = u32_at(&header, 8);
        let compressed = flags >> 16 & 1 == 1;
        if compressed && u16_at(&header, 77) != 1 {
            return Err(damaged(77, "compression by deflate"));
        }
        let (capacity, grain) = (u64_at(&header, 12), u64_at(&header, 20));
        let per_table = u64::from(u32_at(&header, 44));
        if !(1..=4096).contains(&grain) || !grain.is_power_of_two() || !(1..=4096).contains(&per_table) {
            return Err(damaged(20, "grains of 512 bytes to 2 MiB, and tables of at most 4096 of them"));
        }
        let count = capacity.div_ceil(grain);
        if count > MOST_ENTRIES {
            return Err(damaged(12, "a disk of at most 16 million grains"));
        }
        let tables = count.div_ceil(per_table);
        let directory_at = u64_at(&header, 56).saturating_mul(SECTOR);
        let directory = view.read_up_to(directory_at, usize::try_from(tables * 4).unwrap_or(0))?;
        if (directory.len() as u64) < tables * 4 {
            return Err(damaged(56, "a grain directory that lies in the file"));
        }
        let mut grains = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        for table in directory.chunks(4) {
            let at = u64::from(u32_at(table, 0)) * SECTOR;
            let entries = usize::try_from(per_table.min(count - grains.len() as u64)).unwrap_or(0);
            if at == 0 {
                grains.resize(grains.len() + entries, 0);
                continue;
            }
            let mut bytes = vec![0; entries * 4];
            view.read_exact_at(&mut bytes, at)?;
            grains.extend(bytes.chunks(4).map(|e| u32_at(e, 0)));
        }
        Ok(Self { view, size: capacity * SECTOR, grain: grain * SECTOR, grains, compressed })
    }

    fn grain_at(&self, number: u64) -> u32 {
        usize::try_from(number).ok().and_then(|n| self.grains.get(n)).copied().unwrap_or(0)
    }

    fn decompress(&self, sector: u32, number: u64) -> Result<Vec<u8>, DiskError> {
        let offset = u64::from(sector) * SECTOR;
        let damaged =
            |expected: &str| DiskError::Damaged { what: "a grain", offset, expected: expected.to_owned() };
        let marker = self.view.read_up_to(offset, 12)?;
        if u64_at(&marker, 0).saturating_mul(SECTOR) != number.saturating_mul(self.grain) {
            return Err(damaged("a marker with the grain's own place"));
        }
        let length = usize::try_from(u32_at(&marker, 8)).unwrap_or(0);
        if length as u64 > 2 * self.grain + 1024 {
            return Err(damaged("a compressed size near that of a grain"));
        }
        let bytes = self.view.read_up_to(offset + 12, length)?;
        let mut grain = Vec::new();
        let read = flate2::read::ZlibDecoder::new(bytes.as_slice()).take(self.grain).read_to_end(&mut grain);
        if read.is_err() {
            return Err(damaged("zlib data"));
        }
        grain.resize(usize::try_from(self.grain).unwrap_or(0), 0);
        Ok(grain)
    }
}

impl GuestDisk for VmdkDisk {
    fn size(&self) -> u64 {
        self.size
    }

    fn extents(&self) -> Result<Vec<Extent>, DiskError> {
        let mut extents = Vec::new();
        for (number, sector) in (0..).zip(&self.grains) {
            let start = number * self.grain;
            let kind = match sector {
                0 => ExtentKind::Hole,
                1 => ExtentKind::Zero,
                _ => ExtentKind::Data,
            };
            let length = self.grain.min(self.size.saturating_sub(start));
            push_extent(&mut extents, Extent { start, length, kind });
        }
        Ok(extents)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        read_by_unit(self, offset, buffer, self.grain, |number, inside, now| {
            match self.grain_at(number) {
                0 | 1 => now.fill(0),
                sector if self.compressed => copy_from(&self.decompress(sector, number)?, inside, now),
                sector => self.view.read_exact_at(now, u64::from(sector) * SECTOR + inside)?,
            }
            Ok(())
        })
    }

    fn allocated(&self) -> Option<u64> {
        Some(self.view.len())
    }
}
