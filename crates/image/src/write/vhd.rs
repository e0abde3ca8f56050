//! Fixed VHD: the disk, then a footer (Microsoft "Virtual Hard Disk Image Format Specification"). The creator is QEMU's
//! word for "believe the size and not the geometry", and the size is a whole number of MiB: Azure refuses others.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt as _;

use sha2::{Digest as _, Sha256};

use super::{Format, WriteError, raw};
use crate::disk::{GuestDisk, read_vec};

pub(super) fn to_file(disk: &dyn GuestDisk, file: &File) -> Result<(), WriteError> {
    let size = Format::Vhd.size_of(disk.size());
    raw::to_file(disk, size, file)?;
    Ok(file.write_all_at(&footer(disk, size)?, size)?)
}

pub(super) fn to_pipe(disk: &dyn GuestDisk, output: &mut dyn Write) -> Result<(), WriteError> {
    let size = Format::Vhd.size_of(disk.size());
    raw::to_pipe(disk, size, output)?;
    Ok(output.write_all(&footer(disk, size)?)?)
}

fn footer(disk: &dyn GuestDisk, size: u64) -> Result<Vec<u8>, WriteError> {
    let mut footer = Vec::with_capacity(512);
    footer.extend(b"conectix");
    footer.extend(2_u32.to_be_bytes()); // features: the reserved bit
    footer.extend(0x0001_0000_u32.to_be_bytes()); // version
    footer.extend(u64::MAX.to_be_bytes()); // no next structure
    footer.extend(0_u32.to_be_bytes()); // the time, which would differ on every run
    footer.extend(b"qem2");
    footer.extend(0x0005_0003_u32.to_be_bytes());
    footer.extend(b"Wi2k");
    footer.extend(size.to_be_bytes());
    footer.extend(size.to_be_bytes());
    footer.extend(65535_u16.to_be_bytes()); // the largest geometry
    footer.extend([16, 255]);
    footer.extend(2_u32.to_be_bytes()); // fixed
    footer.extend(0_u32.to_be_bytes()); // checksum, below
    footer.extend(identity(disk, size)?);
    footer.resize(512, 0);
    let sum = !footer.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    if let Some(checksum) = footer.get_mut(64..68) {
        checksum.copy_from_slice(&sum.to_be_bytes());
    }
    Ok(footer)
}

/// An id that is the same on every run: a UUID of version 8 from the size and the first MiB, where partition ids stand.
fn identity(disk: &dyn GuestDisk, size: u64) -> Result<Vec<u8>, WriteError> {
    let length = usize::try_from(disk.size().min(1 << 20)).unwrap_or(0);
    let digest =
        Sha256::new().chain_update(size.to_be_bytes()).chain_update(read_vec(disk, 0, length)?).finalize();
    let mut id: Vec<u8> = digest.iter().take(16).copied().collect();
    if let Some([version, _, variant]) = id.get_mut(6..9) {
        *version = *version & 0x0f | 0x80;
        *variant = *variant & 0x3f | 0x80;
    }
    Ok(id)
}
