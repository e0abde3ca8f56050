//! A file's content replaced, in memory.

use super::layout::{FileExtent, leaf_root, put};
use super::{Ext4, Ext4Error, layout};
use crate::gpt::u32_at;

impl Ext4<'_> {
    /// Replaces the content of a file. Inode, mode, owner, times and attributes stay as they are.
    pub(crate) fn replace_file(&mut self, path: &str, content: &[u8]) -> Result<(), Ext4Error> {
        let (number, mut inode) = self.lookup(path)?;
        if !inode.is_file() {
            return Err(Ext4Error::NoFile(path.to_owned()));
        }
        if inode.is_sealed() {
            return Err(Ext4Error::Unsupported("fs-verity, by which the boot entries are sealed".to_owned()));
        }
        let mut extents = self.extents(&inode)?;
        let whole = |extents: &[FileExtent]| extents.iter().map(|e| u64::from(e.length)).sum::<u64>();
        let (had, needs) = (whole(&extents), (content.len() as u64).div_ceil(self.block_size()));
        let mut next = 0;
        let dense = extents.iter().all(|e| {
            let follows = e.initialised && u64::from(e.logical) == next;
            next += u64::from(e.length);
            follows
        });
        if !dense {
            return Err(Ext4Error::Unsupported("holes in a boot entry".to_owned()));
        }
        if needs != had {
            self.layout.check_allocates()?;
            if layout::ExtentNode::read(inode.block_area())?.depth != 0 {
                return Err(Ext4Error::Unsupported("a deep extent tree in a boot entry".to_owned()));
            }
            while whole(&extents) < needs {
                self.allocate(&mut extents).map_err(|error| match error {
                    Ext4Error::Full(_) => Ext4Error::Full(path.to_owned()),
                    other => other,
                })?;
            }
            while whole(&extents) > needs {
                self.free_last(&mut extents)?;
            }
            let root =
                leaf_root(inode.block_area(), &extents).ok_or_else(|| Ext4Error::Full(path.to_owned()))?;
            inode.set_block_area(&root);
            let change = i64::try_from(needs).unwrap_or(0) - i64::try_from(had).unwrap_or(0);
            inode.add_blocks(change, self.block_size());
        }
        self.write_blocks(&extents, content)?;
        inode.set_size(u32::try_from(content.len()).map_err(|_| Ext4Error::Full(path.to_owned()))?);
        self.layout.seal_inode(&mut inode);
        let (block, at) = self.inode_place(number)?;
        let mut bytes = self.block(block)?;
        put(&mut bytes, at, &inode.bytes);
        self.set_block(block, bytes)
    }

    fn write_blocks(&mut self, extents: &[FileExtent], content: &[u8]) -> Result<(), Ext4Error> {
        let size = usize::try_from(self.block_size()).unwrap_or(1024);
        let physical = extents.iter().flat_map(|e| (0..u64::from(e.length)).map(|n| e.physical + n));
        for (block, piece) in physical.zip(content.chunks(size)) {
            // Behind the end of a file its last block holds zeros.
            let mut bytes = vec![0; size];
            put(&mut bytes, 0, piece);
            self.set_block(block, bytes)?;
        }
        Ok(())
    }

    /// Gives a file one more block: the next one if it is free, else the first free one of its group, else of any.
    fn allocate(&mut self, extents: &mut Vec<FileExtent>) -> Result<(), Ext4Error> {
        let last = extents.last().copied();
        let next = last.map(|e| e.physical + u64::from(e.length)).filter(|b| *b < self.layout.blocks);
        let logical = last.map_or(0, |e| e.logical + u32::from(e.length));
        if let Some(next) = next.filter(|_| last.is_some_and(|e| e.length < 0x7fff))
            && self.set_bit(next, true)?
        {
            if let Some(last) = extents.last_mut() {
                last.length += 1;
            }
            return Ok(());
        }
        let home = last.and_then(|e| self.layout.group_of(e.physical)).map_or(0, |(group, _)| group);
        for group in (home..self.layout.groups()).chain(0..home) {
            let Some(block) = self.first_free(group)? else { continue };
            if self.set_bit(block, true)? {
                extents.push(FileExtent { logical, length: 1, physical: block, initialised: true });
                return Ok(());
            }
        }
        Err(Ext4Error::Full(String::new()))
    }

    fn free_last(&mut self, extents: &mut Vec<FileExtent>) -> Result<(), Ext4Error> {
        let Some(last) = extents.last_mut() else { return Err(Ext4Error::Damaged("a file without blocks")) };
        last.length -= 1;
        let block = last.physical + u64::from(last.length);
        if last.length == 0 {
            extents.pop();
        }
        if self.set_bit(block, false)? {
            Ok(())
        } else {
            Err(Ext4Error::Damaged("a block of a file counts as free"))
        }
    }

    fn first_free(&self, number: u32) -> Result<Option<u64>, Ext4Error> {
        let group = self.group(number)?;
        if !group.has_block_bitmap() || group.free_blocks() == 0 {
            return Ok(None);
        }
        let bitmap = self.block(group.block_bitmap())?;
        let first =
            self.layout.first_data_block + u64::from(number) * u64::from(self.layout.blocks_per_group);
        let in_group = u64::from(self.layout.blocks_per_group).min(self.layout.blocks.saturating_sub(first));
        let free = (0..in_group).find(|bit| {
            let byte = bitmap.get(usize::try_from(bit / 8).unwrap_or(usize::MAX)).copied().unwrap_or(0xff);
            byte >> (bit % 8) & 1 == 0
        });
        Ok(free.map(|bit| first + bit))
    }

    /// Marks a block as used or free, with every count and checksum that depends on it. False where it is already so.
    fn set_bit(&mut self, block: u64, used: bool) -> Result<bool, Ext4Error> {
        let (number, bit) = self.layout.group_of(block).ok_or(Ext4Error::Damaged("a block number"))?;
        let mut group = self.group(number)?;
        if !group.has_block_bitmap() {
            return Ok(false);
        }
        let mut bitmap = self.block(group.block_bitmap())?;
        let mask = 1_u8 << (bit % 8);
        let byte = usize::try_from(bit / 8).ok().and_then(|at| bitmap.get_mut(at));
        let byte = byte.ok_or(Ext4Error::Damaged("the size of a bitmap"))?;
        if (*byte & mask != 0) == used {
            return Ok(false);
        }
        *byte ^= mask;
        let free = group.free_blocks();
        let free = if used { free.checked_sub(1) } else { free.checked_add(1) };
        group.set_free_blocks(free.ok_or(Ext4Error::Damaged("the count of free blocks"))?);
        self.layout.seal_bitmap(&mut group, &bitmap);
        self.set_block(group.block_bitmap(), bitmap)?;
        self.layout.seal_group(&mut group);
        let (place, at) = self.layout.group_place(number);
        let mut descriptors = self.block(place)?;
        put(&mut descriptors, at, &group.bytes);
        self.set_block(place, descriptors)?;

        let (place, at) = self.layout.superblock_place();
        let mut holder = self.block(place)?;
        let sb = holder.get_mut(at..at + 1024).ok_or(Ext4Error::Damaged("its superblock"))?;
        let count = u64::from(u32_at(sb, 0xc)) | u64::from(u32_at(sb, 0x158)) << 32;
        let count = if used { count.checked_sub(1) } else { count.checked_add(1) };
        let count = count.ok_or(Ext4Error::Damaged("the count of free blocks"))?.to_le_bytes();
        put(sb, 0xc, count.get(..4).unwrap_or_default());
        put(sb, 0x158, count.get(4..).unwrap_or_default());
        self.layout.seal_superblock(sb);
        self.set_block(place, holder)?;
        Ok(true)
    }
}
