//! GUID partition tables, read only: nothing here repairs, moves or randomises (UEFI specification, chapter 5).

use serde::Serialize;

use crate::disk::{DiskError, GuestDisk, read_vec};

/// The GUID of a disk that no machine has booted yet: the first boot replaces it
/// (coreos-assembler `src/osbuild-manifests`).
pub(crate) const UNINITIALISED: &str = "00000000-0000-4000-a000-000000000001";

/// A table with more entries than any tool writes is a lie.
const MOST_ENTRIES: u32 = 1024;

/// Why a partition table could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GptError {
    /// There is none with 512 or with 4096-byte sectors.
    #[error("no GUID partition table: expected one at byte 512 or 4096 of the disk")]
    Missing,
    /// It is damaged.
    #[error("the GUID partition table is damaged: {0}")]
    Damaged(&'static str),
    /// The disk could not be read.
    #[error("the disk cannot be read")]
    Disk(#[from] DiskError),
}

/// A partition table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionTable {
    /// Bytes of a sector: 512 or 4096.
    pub sector_size: u32,
    /// GUID of the disk.
    pub disk_guid: String,
    /// The partitions, in the order of their numbers.
    pub partitions: Vec<Partition>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Partition {
    /// Number, from 1.
    pub number: u32,
    /// Name.
    pub name: String,
    /// GUID of its type.
    pub type_guid: String,
    /// First byte.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
}

impl PartitionTable {
    /// Reads the primary table of a disk.
    pub fn read(disk: &dyn GuestDisk) -> Result<Self, GptError> {
        for sector_size in [512_u32, 4096] {
            let at = u64::from(sector_size);
            if disk.size() < at + 512 {
                break;
            }
            let header = read_vec(disk, at, 512)?;
            if header.starts_with(b"EFI PART") {
                return parse(disk, sector_size, &header);
            }
        }
        Err(GptError::Missing)
    }

    /// The partition of a name.
    pub fn named(&self, name: &str) -> Option<&Partition> {
        self.partitions.iter().find(|p| p.name == name)
    }
}

fn parse(disk: &dyn GuestDisk, sector_size: u32, header: &[u8]) -> Result<PartitionTable, GptError> {
    let bad = GptError::Damaged;
    let size = usize::try_from(u32_at(header, 12)).unwrap_or(usize::MAX);
    let mut checked =
        header.get(..size).filter(|_| size >= 92).ok_or(bad("its header has no such size"))?.to_vec();
    if let Some(crc) = checked.get_mut(16..20) {
        crc.fill(0);
    }
    if crc32(&checked) != u32_at(header, 16) {
        return Err(bad("the checksum of its header"));
    }
    let (entries_lba, count, entry_size) = (u64_at(header, 72), u32_at(header, 80), u32_at(header, 84));
    if count > MOST_ENTRIES || !(128..=4096).contains(&entry_size) {
        return Err(bad("the number or size of its entries"));
    }
    let length = usize::try_from(u64::from(count) * u64::from(entry_size)).unwrap_or(usize::MAX);
    let at = entries_lba.checked_mul(u64::from(sector_size)).ok_or(bad("the place of its entries"))?;
    let entries = read_vec(disk, at, length)?;
    if crc32(&entries) != u32_at(header, 88) {
        return Err(bad("the checksum of its entries"));
    }
    let mut partitions = Vec::new();
    for (number, entry) in (1..).zip(entries.chunks(usize::try_from(entry_size).unwrap_or(128))) {
        let kind = guid(entry.get(..16).unwrap_or_default());
        if kind == "00000000-0000-0000-0000-000000000000" {
            continue;
        }
        let (first, last) = (u64_at(entry, 32), u64_at(entry, 40));
        let sectors =
            last.checked_sub(first).and_then(|n| n.checked_add(1)).ok_or(bad("the end of a partition"))?;
        let bytes = |sectors: u64| sectors.checked_mul(u64::from(sector_size));
        let (start, length) = bytes(first).zip(bytes(sectors)).ok_or(bad("the place of a partition"))?;
        let name: Vec<u16> = entry
            .get(56..128)
            .unwrap_or_default()
            .chunks(2)
            .map(|c| u16::from_le_bytes([c.first().copied().unwrap_or(0), c.get(1).copied().unwrap_or(0)]))
            .take_while(|unit| *unit != 0)
            .collect();
        partitions.push(Partition {
            number,
            name: String::from_utf16_lossy(&name),
            type_guid: kind,
            start,
            length,
        });
    }
    Ok(PartitionTable { sector_size, disk_guid: guid(header.get(56..72).unwrap_or_default()), partitions })
}

/// Mixed-endian, as the specification has it; in lower case.
fn guid(bytes: &[u8]) -> String {
    let hex = |order: &[usize]| {
        crate::hash::hex(&order.iter().map(|n| bytes.get(*n).copied().unwrap_or(0)).collect::<Vec<_>>())
    };
    let parts =
        [hex(&[3, 2, 1, 0]), hex(&[5, 4]), hex(&[7, 6]), hex(&[8, 9]), hex(&[10, 11, 12, 13, 14, 15])];
    parts.join("-")
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let piece = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>());
    piece.map_or(0, |b| u16::from_le_bytes(*b))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let piece = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    piece.map_or(0, |b| u32::from_le_bytes(*b))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let piece = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
    piece.map_or(0, |b| u64::from_le_bytes(*b))
}

/// CRC-32 of ISO-HDLC, as UEFI uses it; headers are small.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
