//! The boot filesystem: read, and files replaced without a mount (Linux `Documentation/filesystems/ext4`).
//!
//! A replaced file keeps its inode, mode, owner, times and attributes: its data, its size and the checksums change, and
//! where it needs more or fewer blocks, the allocation with them. Nothing is written to the disk here: the changed
//! blocks are collected and become a delta.

mod layout;
mod replace;

use std::collections::BTreeMap;

use crate::delta::Delta;
use crate::disk::{DiskError, GuestDisk, read_vec};
use crate::gpt::{u16_at, u32_at};

use layout::{Group, Inode, Layout};

/// No file on a boot filesystem that is read whole is larger.
const LARGEST_FILE: u64 = 4 << 20;
/// Symbolic links that one path may follow.
const MOST_LINKS: u8 = 8;
/// The root directory's inode.
const ROOT: u32 = 2;

/// Why a filesystem could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ext4Error {
    /// It is another filesystem.
    #[error("no ext4 filesystem in the partition")]
    NotExt4,
    /// Its journal holds changes that are not yet in their place, or it was not cleanly unmounted.
    #[error(
        "the filesystem is not clean ({0}): mount it once, or run e2fsck, so that its journal is played back"
    )]
    Dirty(&'static str),
    /// It uses something that is not known here.
    #[error(
        "the filesystem uses {0}, which is not supported: stamp the image with another tool, or start from the published one"
    )]
    Unsupported(String),
    /// It is damaged.
    #[error("the filesystem is damaged: {0}")]
    Damaged(&'static str),
    /// There is no such file.
    #[error("no file {0} on the boot filesystem")]
    NoFile(String),
    /// There is no room.
    #[error("the filesystem is full: {0} needs another block")]
    Full(String),
    /// The disk could not be read.
    #[error("the disk cannot be read")]
    Disk(#[from] DiskError),
}

/// A filesystem on a disk, with the changes that were made to it in memory.
pub(crate) struct Ext4<'d> {
    disk: &'d dyn GuestDisk,
    /// The first byte of the partition.
    start: u64,
    layout: Layout,
    /// Blocks that changed: before and after.
    changed: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirEntry {
    pub(crate) name: String,
    pub(crate) inode: u32,
}

impl<'d> Ext4<'d> {
    /// Opens the filesystem that begins at a byte of the disk.
    pub(crate) fn open(disk: &'d dyn GuestDisk, start: u64) -> Result<Self, Ext4Error> {
        if disk.size() < start.saturating_add(2048) {
            return Err(Ext4Error::NotExt4);
        }
        let superblock = read_vec(disk, start + 1024, 1024)?;
        let layout = Layout::read(&superblock)?;
        Ok(Self { disk, start, layout, changed: BTreeMap::new() })
    }

    /// The label.
    pub(crate) fn label(&self) -> &str {
        &self.layout.label
    }

    pub(crate) fn block_size(&self) -> u64 {
        self.layout.block_size
    }

    /// Whether it may be changed: clean, and nothing in it that is not known here.
    pub(crate) fn check_writable(&self) -> Result<(), Ext4Error> {
        self.layout.check_writable()
    }

    /// What changed, on the guest disk.
    pub(crate) fn delta(&self) -> Delta {
        let mut delta = Delta::default();
        for (block, (before, after)) in &self.changed {
            delta.add_block(self.start + block * self.layout.block_size, before, after);
        }
        delta.sort();
        delta
    }

    /// A whole file.
    pub(crate) fn read_file(&self, path: &str) -> Result<Vec<u8>, Ext4Error> {
        let (_, inode) = self.lookup(path)?;
        self.content(&inode)
    }

    /// The entries of a directory, without `.` and `..`, in the order of their names.
    pub(crate) fn read_dir(&self, path: &str) -> Result<Vec<DirEntry>, Ext4Error> {
        let (_, inode) = self.lookup(path)?;
        let mut entries = self.entries(&inode)?;
        entries.retain(|e| e.name != "." && e.name != "..");
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Whether a path exists.
    pub(crate) fn exists(&self, path: &str) -> Result<bool, Ext4Error> {
        match self.lookup(path) {
            Ok(_) => Ok(true),
            Err(Ext4Error::NoFile(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn lookup(&self, path: &str) -> Result<(u32, Inode), Ext4Error> {
        let missing = || Ext4Error::NoFile(path.to_owned());
        let mut todo: Vec<String> =
            path.split('/').rev().filter(|p| !p.is_empty()).map(str::to_owned).collect();
        let mut directories = vec![ROOT];
        let mut links = 0;
        let mut found = (ROOT, self.inode(ROOT)?);
        while let Some(name) = todo.pop() {
            match name.as_str() {
                "." => continue,
                ".." => {
                    directories.truncate(directories.len().saturating_sub(1).max(1));
                    let up = directories.last().copied().unwrap_or(ROOT);
                    found = (up, self.inode(up)?);
                    continue;
                }
                _ => {}
            }
            let directory = self.inode(directories.last().copied().unwrap_or(ROOT))?;
            let entry = self.entries(&directory)?.into_iter().find(|e| e.name == name).ok_or_else(missing)?;
            let inode = self.inode(entry.inode)?;
            if inode.is_symlink() {
                links += 1;
                if links > MOST_LINKS {
                    return Err(missing());
                }
                let target = String::from_utf8_lossy(&self.content(&inode)?).into_owned();
                if target.starts_with('/') {
                    directories.truncate(1);
                }
                todo.extend(target.split('/').rev().filter(|p| !p.is_empty()).map(str::to_owned));
                let here = directories.last().copied().unwrap_or(ROOT);
                found = (here, self.inode(here)?);
                continue;
            }
            if inode.is_directory() {
                directories.push(entry.inode);
            } else if !todo.is_empty() {
                return Err(missing());
            }
            found = (entry.inode, inode);
        }
        Ok(found)
    }

    fn entries(&self, directory: &Inode) -> Result<Vec<DirEntry>, Ext4Error> {
        if !directory.is_directory() {
            return Err(Ext4Error::Damaged("a file stands where a directory is expected"));
        }
        let data = self.content(directory)?;
        let block = usize::try_from(self.layout.block_size).unwrap_or(1024);
        let mut entries = Vec::new();
        // The inner nodes of an indexed directory look like empty entries; its leaves are plain.
        for block in data.chunks(block) {
            let mut at = 0;
            while at + 8 <= block.len() {
                let length = usize::from(u16_at(block, at + 4));
                let name_length = usize::from(block.get(at + 6).copied().unwrap_or(0));
                if length < 8 {
                    return Err(Ext4Error::Damaged("an entry of a directory has no length"));
                }
                let inode = u32_at(block, at);
                if inode != 0 && name_length > 0 {
                    let name = block.get(at + 8..at + 8 + name_length).unwrap_or_default();
                    entries.push(DirEntry { name: String::from_utf8_lossy(name).into_owned(), inode });
                }
                at += length;
            }
        }
        Ok(entries)
    }

    fn content(&self, inode: &Inode) -> Result<Vec<u8>, Ext4Error> {
        let size = inode.size();
        if inode.is_symlink() && size < 60 && !inode.has_extents() {
            return Ok(inode
                .block_area()
                .get(..usize::try_from(size).unwrap_or(0))
                .unwrap_or_default()
                .to_vec());
        }
        if size > LARGEST_FILE {
            return Err(Ext4Error::Damaged("a small file is larger than any that is expected"));
        }
        let mut content = vec![0; usize::try_from(size).unwrap_or(0)];
        let block_size = usize::try_from(self.layout.block_size).unwrap_or(1024);
        for extent in self.extents(inode)?.into_iter().filter(|e| e.initialised) {
            for n in 0..u64::from(extent.length) {
                let logical = usize::try_from(u64::from(extent.logical) + n).unwrap_or(usize::MAX);
                let Some(at) = logical.checked_mul(block_size).filter(|at| *at < content.len()) else {
                    break;
                };
                let end = (at + block_size).min(content.len());
                let block = self.block(extent.physical + n)?;
                if let (Some(into), Some(from)) = (content.get_mut(at..end), block.get(..end - at)) {
                    into.copy_from_slice(from);
                }
            }
        }
        Ok(content)
    }

    fn extents(&self, inode: &Inode) -> Result<Vec<layout::FileExtent>, Ext4Error> {
        inode.check_plain()?;
        let mut extents = Vec::new();
        self.walk_extents(inode.block_area(), 5, &mut extents)?;
        Ok(extents)
    }

    fn walk_extents(
        &self,
        node: &[u8],
        depth: u8,
        into: &mut Vec<layout::FileExtent>,
    ) -> Result<(), Ext4Error> {
        let node = layout::ExtentNode::read(node)?;
        into.extend(node.leaves);
        if into.len() > 10_000 {
            return Err(Ext4Error::Damaged("a small file has too many extents"));
        }
        for child in node.children {
            let depth = depth.checked_sub(1).ok_or(Ext4Error::Damaged("an extent tree is too deep"))?;
            self.walk_extents(&self.block(child)?, depth, into)?;
        }
        Ok(())
    }

    fn inode(&self, number: u32) -> Result<Inode, Ext4Error> {
        let (block, at) = self.inode_place(number)?;
        let block = self.block(block)?;
        let bytes = block
            .get(at..at + self.layout.inode_size)
            .ok_or(Ext4Error::Damaged("an inode crosses its block"))?;
        Ok(Inode::new(number, bytes.to_vec()))
    }

    /// The block that holds an inode, and the byte in it.
    fn inode_place(&self, number: u32) -> Result<(u64, usize), Ext4Error> {
        let index = number.checked_sub(1).filter(|n| *n < self.layout.inodes);
        let index = index.ok_or(Ext4Error::Damaged("an inode number"))?;
        let group = self.group(index / self.layout.inodes_per_group)?;
        let byte = u64::from(index % self.layout.inodes_per_group) * self.layout.inode_size as u64;
        let block = group.inode_table() + byte / self.layout.block_size;
        Ok((block, usize::try_from(byte % self.layout.block_size).unwrap_or(0)))
    }

    fn group(&self, number: u32) -> Result<Group, Ext4Error> {
        let (block, at) = self.layout.group_place(number);
        let block = self.block(block)?;
        let bytes =
            block.get(at..at + self.layout.group_size).ok_or(Ext4Error::Damaged("a group descriptor"))?;
        Ok(Group::new(number, bytes.to_vec()))
    }

    /// A block as it is now, changes included.
    fn block(&self, number: u64) -> Result<Vec<u8>, Ext4Error> {
        if let Some((_, after)) = self.changed.get(&number) {
            return Ok(after.clone());
        }
        if number >= self.layout.blocks {
            return Err(Ext4Error::Damaged("a block number lies outside the filesystem"));
        }
        let size = usize::try_from(self.layout.block_size).unwrap_or(1024);
        Ok(read_vec(self.disk, self.start + number * self.layout.block_size, size)?)
    }

    /// Changes a block in memory.
    fn set_block(&mut self, number: u64, after: Vec<u8>) -> Result<(), Ext4Error> {
        let before = match self.changed.remove(&number) {
            Some((before, _)) => before,
            None => self.block(number)?,
        };
        self.changed.insert(number, (before, after));
        Ok(())
    }
}
