//! Structures on disk: superblock, group descriptors, inodes, extents, and their checksums.

use super::Ext4Error;
use crate::gpt::{u16_at, u32_at};

/// Incompatible and read-only features that are known and harmless for what is done here.
mod feature {
    pub(super) const FILETYPE: u32 = 0x2;
    pub(super) const RECOVER: u32 = 0x4;
    pub(super) const EXTENTS: u32 = 0x40;
    pub(super) const BIT64: u32 = 0x80;
    pub(super) const FLEX_BG: u32 = 0x200;
    pub(super) const EA_INODE: u32 = 0x400;
    pub(super) const CSUM_SEED: u32 = 0x2000;
    pub(super) const LARGE_DIR: u32 = 0x4000;
    pub(super) const INCOMPATIBLE_KNOWN: u32 =
        FILETYPE | RECOVER | EXTENTS | BIT64 | FLEX_BG | EA_INODE | CSUM_SEED | LARGE_DIR;
    pub(super) const GDT_CSUM: u32 = 0x10;
    pub(super) const QUOTA: u32 = 0x100;
    pub(super) const METADATA_CSUM: u32 = 0x400;
    pub(super) const PROJECT: u32 = 0x2000;
    pub(super) const VERITY: u32 = 0x8000;
    pub(super) const ORPHANS: u32 = 0x1_0000;
    /// `sparse_super`, `large_file`, `btree_dir`, `huge_file`, `gdt_csum`, `dir_nlink`, `extra_isize`, quota,
    /// `metadata_csum`, project, verity, orphans.
    pub(super) const READ_ONLY_KNOWN: u32 =
        0x1 | 0x2 | 0x4 | 0x8 | GDT_CSUM | 0x20 | 0x40 | QUOTA | METADATA_CSUM | PROJECT | VERITY | ORPHANS;
}

/// How checksums are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksums {
    /// CRC-32C over everything, from this seed.
    Metadata { seed: u32 },
    /// CRC-16 over group descriptors.
    Groups,
    /// None.
    None,
}

#[derive(Debug, Clone)]
pub(crate) struct Features {
    incompatible: u32,
    read_only: u32,
    pub(crate) checksums: Checksums,
}

/// What the superblock tells.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) block_size: u64,
    pub(crate) blocks: u64,
    pub(crate) first_data_block: u64,
    pub(crate) blocks_per_group: u32,
    pub(crate) inodes: u32,
    pub(crate) inodes_per_group: u32,
    pub(crate) inode_size: usize,
    pub(crate) group_size: usize,
    pub(crate) label: String,
    pub(crate) features: Features,
    state: u16,
    last_orphan: u32,
    uuid: [u8; 16],
}

impl Layout {
    pub(crate) fn read(sb: &[u8]) -> Result<Self, Ext4Error> {
        if u16_at(sb, 0x38) != 0xef53 {
            return Err(Ext4Error::NotExt4);
        }
        let damaged = |what| Ext4Error::Damaged(what);
        let log = u32_at(sb, 0x18);
        if log > 6 {
            return Err(damaged("its block size"));
        }
        let block_size = 1024_u64 << log;
        let (incompatible, read_only) = (u32_at(sb, 0x60), u32_at(sb, 0x64));
        let wide = incompatible & feature::BIT64 != 0;
        let mut uuid = [0; 16];
        uuid.copy_from_slice(sb.get(0x68..0x78).ok_or(damaged("its superblock"))?);
        let checksums = if read_only & feature::METADATA_CSUM != 0 {
            if sb.get(0x175) != Some(&1) {
                return Err(Ext4Error::Unsupported("checksums of another kind than CRC-32C".to_owned()));
            }
            let seed =
                if incompatible & feature::CSUM_SEED == 0 { crc32c(!0, &uuid) } else { u32_at(sb, 0x270) };
            Checksums::Metadata { seed }
        } else if read_only & feature::GDT_CSUM != 0 {
            Checksums::Groups
        } else {
            Checksums::None
        };
        let label: Vec<u8> =
            sb.get(0x78..0x88).unwrap_or_default().iter().copied().take_while(|b| *b != 0).collect();
        let high = if wide { u64::from(u32_at(sb, 0x150)) << 32 } else { 0 };
        let layout = Self {
            block_size,
            blocks: high | u64::from(u32_at(sb, 0x4)),
            first_data_block: u64::from(u32_at(sb, 0x14)),
            blocks_per_group: u32_at(sb, 0x20),
            inodes: u32_at(sb, 0),
            inodes_per_group: u32_at(sb, 0x28),
            inode_size: if u32_at(sb, 0x4c) == 0 { 128 } else { usize::from(u16_at(sb, 0x58)) },
            group_size: if wide { usize::from(u16_at(sb, 0xfe)) } else { 32 },
            label: String::from_utf8_lossy(&label).into_owned(),
            features: Features { incompatible, read_only, checksums },
            state: u16_at(sb, 0x3a),
            last_orphan: u32_at(sb, 0xe8),
            uuid,
        };
        let sizes = (128..=4096).contains(&layout.inode_size)
            && layout.inode_size.is_power_of_two()
            && (32..=1024).contains(&layout.group_size)
            && layout.group_size.is_power_of_two();
        if !sizes || layout.blocks_per_group == 0 || layout.inodes_per_group == 0 {
            return Err(damaged("the sizes in its superblock"));
        }
        if u64::from(layout.blocks_per_group) > 8 * block_size {
            return Err(damaged("the size of its groups"));
        }
        let unknown = incompatible & !feature::INCOMPATIBLE_KNOWN;
        if unknown != 0 {
            return Err(Ext4Error::Unsupported(format!("features {unknown:#x}")));
        }
        Ok(layout)
    }

    pub(crate) fn check_writable(&self) -> Result<(), Ext4Error> {
        let features = &self.features;
        if features.incompatible & feature::RECOVER != 0 {
            return Err(Ext4Error::Dirty("its journal must be played back"));
        }
        if self.state & 1 == 0 || self.state & 2 != 0 {
            return Err(Ext4Error::Dirty("it was not unmounted, or has errors"));
        }
        if features.read_only & feature::ORPHANS != 0 || self.last_orphan != 0 {
            return Err(Ext4Error::Dirty("it has deleted files that were open"));
        }
        let unknown = features.read_only & !feature::READ_ONLY_KNOWN;
        if unknown != 0 {
            return Err(Ext4Error::Unsupported(format!("features {unknown:#x}")));
        }
        Ok(())
    }

    /// Whether the number of blocks of a file may change: quotas would have to change with it.
    pub(crate) fn check_allocates(&self) -> Result<(), Ext4Error> {
        if self.features.read_only & (feature::QUOTA | feature::PROJECT) != 0 {
            return Err(Ext4Error::Unsupported(
                "quotas, which would have to change with the file".to_owned(),
            ));
        }
        Ok(())
    }

    /// The block that holds a group descriptor, and the byte in it.
    pub(crate) fn group_place(&self, number: u32) -> (u64, usize) {
        let byte = u64::from(number) * self.group_size as u64;
        let block = self.first_data_block + 1 + byte / self.block_size;
        (block, usize::try_from(byte % self.block_size).unwrap_or(0))
    }

    /// The group of a block, and its bit in the group's bitmap.
    pub(crate) fn group_of(&self, block: u64) -> Option<(u32, u32)> {
        let index = block.checked_sub(self.first_data_block)?;
        let per_group = u64::from(self.blocks_per_group);
        Some((u32::try_from(index / per_group).ok()?, u32::try_from(index % per_group).ok()?))
    }

    pub(crate) fn groups(&self) -> u32 {
        let blocks = self.blocks.saturating_sub(self.first_data_block);
        u32::try_from(blocks.div_ceil(u64::from(self.blocks_per_group))).unwrap_or(u32::MAX)
    }

    /// The block that holds the superblock, and the byte in it.
    pub(crate) fn superblock_place(&self) -> (u64, usize) {
        if self.block_size == 1024 { (1, 0) } else { (0, 1024) }
    }

    /// Puts the checksum of a superblock right.
    pub(crate) fn seal_superblock(&self, sb: &mut [u8]) {
        if let Checksums::Metadata { .. } = self.features.checksums {
            let sum = crc32c(!0, sb.get(..0x3fc).unwrap_or_default());
            put(sb, 0x3fc, &sum.to_le_bytes());
        }
    }

    /// Puts the checksum of a group descriptor right.
    pub(crate) fn seal_group(&self, group: &mut Group) {
        let number = group.number.to_le_bytes();
        put(&mut group.bytes, 0x1e, &[0, 0]);
        let sum = match self.features.checksums {
            Checksums::Metadata { seed } => crc32c(crc32c(seed, &number), &group.bytes) & 0xffff,
            Checksums::Groups => {
                let crc = crc16(crc16(!0, &self.uuid), &number);
                let crc = crc16(crc, group.bytes.get(..0x1e).unwrap_or_default());
                u32::from(crc16(crc, group.bytes.get(0x20..).unwrap_or_default()))
            }
            Checksums::None => 0,
        };
        let sum = u16::try_from(sum).unwrap_or(0);
        put(&mut group.bytes, 0x1e, &sum.to_le_bytes());
    }

    /// Puts the checksum of a block bitmap into its group.
    pub(crate) fn seal_bitmap(&self, group: &mut Group, bitmap: &[u8]) {
        if let Checksums::Metadata { seed } = self.features.checksums {
            let covered = usize::try_from(self.blocks_per_group / 8).unwrap_or(0);
            let sum = crc32c(seed, bitmap.get(..covered).unwrap_or_default()).to_le_bytes();
            put(&mut group.bytes, 0x18, sum.get(..2).unwrap_or_default());
            if group.bytes.len() >= 64 {
                put(&mut group.bytes, 0x38, sum.get(2..).unwrap_or_default());
            }
        }
    }

    /// Puts the checksum of an inode right.
    pub(crate) fn seal_inode(&self, inode: &mut Inode) {
        let Checksums::Metadata { seed } = self.features.checksums else { return };
        let high = inode.bytes.len() > 128 && u16_at(&inode.bytes, 0x80) >= 4;
        put(&mut inode.bytes, 0x7c, &[0, 0]);
        if high {
            put(&mut inode.bytes, 0x82, &[0, 0]);
        }
        let crc = crc32c(seed, &inode.number.to_le_bytes());
        let crc = crc32c(crc, inode.bytes.get(0x64..0x68).unwrap_or_default());
        let sum = crc32c(crc, &inode.bytes).to_le_bytes();
        put(&mut inode.bytes, 0x7c, sum.get(..2).unwrap_or_default());
        if high {
            put(&mut inode.bytes, 0x82, sum.get(2..).unwrap_or_default());
        }
    }
}

/// A group descriptor.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) number: u32,
    pub(crate) bytes: Vec<u8>,
}

impl Group {
    pub(crate) fn new(number: u32, bytes: Vec<u8>) -> Self {
        Self { number, bytes }
    }

    fn wide(&self, low: usize, high: usize) -> u64 {
        let high = if self.bytes.len() >= 64 { u64::from(u32_at(&self.bytes, high)) << 32 } else { 0 };
        high | u64::from(u32_at(&self.bytes, low))
    }

    pub(crate) fn block_bitmap(&self) -> u64 {
        self.wide(0, 0x20)
    }

    pub(crate) fn inode_table(&self) -> u64 {
        self.wide(8, 0x28)
    }

    /// Whether the bitmap on disk means something.
    pub(crate) fn has_block_bitmap(&self) -> bool {
        u16_at(&self.bytes, 0x12) & 2 == 0
    }

    pub(crate) fn free_blocks(&self) -> u32 {
        let high = if self.bytes.len() >= 64 { u32::from(u16_at(&self.bytes, 0x2c)) << 16 } else { 0 };
        high | u32::from(u16_at(&self.bytes, 0xc))
    }

    pub(crate) fn set_free_blocks(&mut self, free: u32) {
        let bytes = free.to_le_bytes();
        put(&mut self.bytes, 0xc, bytes.get(..2).unwrap_or_default());
        if self.bytes.len() >= 64 {
            put(&mut self.bytes, 0x2c, bytes.get(2..).unwrap_or_default());
        }
    }
}

/// An inode.
#[derive(Debug, Clone)]
pub(crate) struct Inode {
    pub(crate) number: u32,
    pub(crate) bytes: Vec<u8>,
}

impl Inode {
    pub(crate) fn new(number: u32, bytes: Vec<u8>) -> Self {
        Self { number, bytes }
    }

    fn kind(&self) -> u16 {
        u16_at(&self.bytes, 0) & 0xf000
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind() == 0x4000
    }

    pub(crate) fn is_symlink(&self) -> bool {
        self.kind() == 0xa000
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind() == 0x8000
    }

    fn flags(&self) -> u32 {
        u32_at(&self.bytes, 0x20)
    }

    pub(crate) fn has_extents(&self) -> bool {
        self.flags() & 0x8_0000 != 0
    }

    /// Whether the data lies in extents of plain blocks.
    pub(crate) fn check_plain(&self) -> Result<(), Ext4Error> {
        let refused = [
            (0x1000_0000, "files inside their inodes"),
            (0x800, "encrypted files"),
            (0x4, "compressed files"),
        ];
        for (flag, what) in refused {
            if self.flags() & flag != 0 {
                return Err(Ext4Error::Unsupported(what.to_owned()));
            }
        }
        if self.has_extents() {
            Ok(())
        } else {
            Err(Ext4Error::Unsupported("block maps instead of extents".to_owned()))
        }
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.flags() & 0x10_0000 != 0
    }

    pub(crate) fn size(&self) -> u64 {
        u64::from(u32_at(&self.bytes, 4)) | u64::from(u32_at(&self.bytes, 0x6c)) << 32
    }

    pub(crate) fn set_size(&mut self, size: u32) {
        put(&mut self.bytes, 4, &size.to_le_bytes());
        put(&mut self.bytes, 0x6c, &[0; 4]);
    }

    /// The 60 bytes that hold the root of the extent tree, or a short symbolic link.
    pub(crate) fn block_area(&self) -> &[u8] {
        self.bytes.get(0x28..0x64).unwrap_or_default()
    }

    pub(crate) fn set_block_area(&mut self, area: &[u8]) {
        put(&mut self.bytes, 0x28, area);
    }

    /// Changes the count of blocks by a number of filesystem blocks.
    pub(crate) fn add_blocks(&mut self, blocks: i64, block_size: u64) {
        // Counted in sectors of 512 bytes, unless the inode says filesystem blocks.
        let unit =
            if self.flags() & 0x4_0000 == 0 { i64::try_from(block_size / 512).unwrap_or(2) } else { 1 };
        let count = i64::from(u32_at(&self.bytes, 0x1c)) + blocks * unit;
        put(&mut self.bytes, 0x1c, &u32::try_from(count.max(0)).unwrap_or(u32::MAX).to_le_bytes());
    }
}

/// A run of blocks of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileExtent {
    pub(crate) logical: u32,
    pub(crate) length: u16,
    pub(crate) physical: u64,
    pub(crate) initialised: bool,
}

/// A node of an extent tree.
pub(crate) struct ExtentNode {
    pub(crate) depth: u16,
    pub(crate) leaves: Vec<FileExtent>,
    pub(crate) children: Vec<u64>,
}

impl ExtentNode {
    pub(crate) fn read(node: &[u8]) -> Result<Self, Ext4Error> {
        let (magic, entries, depth) = (u16_at(node, 0), usize::from(u16_at(node, 2)), u16_at(node, 6));
        if magic != 0xf30a || 12 + entries * 12 > node.len() || depth > 5 {
            return Err(Ext4Error::Damaged("an extent tree"));
        }
        let mut read = Self { depth, leaves: Vec::new(), children: Vec::new() };
        for entry in node.get(12..12 + entries * 12).unwrap_or_default().chunks(12) {
            if depth == 0 {
                let length = u16_at(entry, 4);
                let initialised = length <= 0x8000;
                read.leaves.push(FileExtent {
                    logical: u32_at(entry, 0),
                    length: if initialised { length } else { length - 0x8000 },
                    physical: u64::from(u32_at(entry, 8)) | u64::from(u16_at(entry, 6)) << 32,
                    initialised,
                });
            } else {
                read.children.push(u64::from(u32_at(entry, 4)) | u64::from(u16_at(entry, 8)) << 32);
            }
        }
        Ok(read)
    }
}

/// A tree of depth 0 with these extents, as an inode holds it.
pub(crate) fn leaf_root(old: &[u8], extents: &[FileExtent]) -> Option<Vec<u8>> {
    let mut area = vec![0; 60];
    put(&mut area, 0, old.get(..12)?);
    put(&mut area, 2, &u16::try_from(extents.len()).ok().filter(|n| *n <= 4)?.to_le_bytes());
    for (n, extent) in extents.iter().enumerate() {
        let at = 12 + n * 12;
        put(&mut area, at, &extent.logical.to_le_bytes());
        put(&mut area, at + 4, &extent.length.to_le_bytes());
        let physical = extent.physical.to_le_bytes();
        put(&mut area, at + 6, physical.get(4..6)?);
        put(&mut area, at + 8, physical.get(..4)?);
    }
    Some(area)
}

/// Writes bytes into a buffer; what would lie outside is not written.
pub(crate) fn put(buffer: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = buffer.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// CRC-32C as Linux continues it: without the inversions at both ends.
fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!seed, bytes)
}

/// CRC-16 (ANSI), as `lib/crc16.c` of Linux.
fn crc16(seed: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(seed, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xa001 })
    })
}
