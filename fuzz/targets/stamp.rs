//! Partition table, ext4 and boot entries of a miniature with some bytes changed: no panic; what is stamped can be looked
//! at again and is the platform's.
#![no_main]

use std::sync::LazyLock;

use image::{Delta, DiskError, Extent, ExtentKind, GuestDisk, StampOptions, Stamped, inspect, stamp};
use libfuzzer_sys::fuzz_target;
use testkit::disk::{Spec, build, structured_sectors};

struct Memory(Vec<u8>);

impl GuestDisk for Memory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn extents(&self) -> Result<Vec<Extent>, DiskError> {
        Ok(vec![Extent { start: 0, length: self.size(), kind: ExtentKind::Data }])
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        let end = offset.saturating_add(buffer.len() as u64);
        let piece = usize::try_from(offset).ok().and_then(|start| self.0.get(start..start.checked_add(buffer.len())?));
        buffer.copy_from_slice(piece.ok_or(DiskError::OutOfRange { offset, end, size: self.size() })?);
        Ok(())
    }
}

/// Miniatures with and without checksums, and their sectors that hold anything but file content.
static BASES: LazyLock<Vec<(Vec<u8>, Vec<usize>)>> = LazyLock::new(|| {
    let features = ["^metadata_csum,^64bit", "metadata_csum_seed", "^metadata_csum,^64bit,^extent,^flex_bg"];
    let base = |features| {
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec { features, boot_mib: 8, root_mib: 1, noise_mib: 0, ..Spec::default() };
        let disk = std::fs::read(build(folder.path(), &spec).path).unwrap();
        let sectors = structured_sectors(&disk);
        (disk, sectors)
    };
    features.into_iter().map(base).collect()
});

fuzz_target!(|input: &[u8]| {
    let Some((first, patches)) = input.split_first() else { return };
    let (base, sectors) = &BASES[usize::from(*first) % BASES.len()];
    let mut bytes = base.clone();
    for patch in patches.chunks_exact(5).take(16) {
        let sector = sectors[usize::from(u16::from_le_bytes([patch[0], patch[1]])) % sectors.len()];
        let at = sector + usize::from(u16::from_le_bytes([patch[2], patch[3]])) % 512;
        bytes[at] = patch[4];
    }
    let disk = Memory(bytes);
    let _ = inspect(&disk);
    let options = StampOptions { platform: "openstack".into(), restamp: true, ..StampOptions::default() };
    if let Ok(delta) = stamp(&disk, &options) {
        let stamped = Stamped::new(&disk, &delta, None);
        let found = inspect(&stamped).unwrap();
        assert_eq!(found.platform.as_deref(), Some("openstack"));
        let again = stamp(&stamped, &options).unwrap();
        assert_eq!(again, Delta::default(), "stamping twice is stamping once");
    }
});
