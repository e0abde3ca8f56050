//! Containers with some bytes changed: no panic, no reading past the end, no memory beyond what the file can hold.
#![no_main]

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use image::{ClusterCompression, Format, WriteError, open, write_file};
use libfuzzer_sys::fuzz_target;
use testkit::disk::{Spec, build, structured_sectors};

struct Base {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Offsets of headers and tables: what holds few different bytes.
    sectors: Vec<usize>,
}

static SCRATCH: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir_in("/dev/shm").unwrap());
static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let folder = SCRATCH.path();
    let spec = Spec { boot_mib: 8, root_mib: 1, noise_mib: 0, ..Spec::default() };
    let disk = build(folder, &spec).path;
    let opened = open(&disk, folder).unwrap();
    let mut paths = Vec::new();
    for (n, format) in [
        Format::Qcow2(ClusterCompression::None),
        Format::Qcow2(ClusterCompression::Zlib),
        Format::Qcow2(ClusterCompression::Zstd),
        Format::Vmdk,
        Format::Vhd,
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.join(format!("base-{n}"));
        write_file::<WriteError>(&*opened.disk, format, &path, || Ok(())).unwrap();
        paths.push(path);
    }
    for (n, dialect) in ["--format=oldgnu", "--format=ustar", "--format=pax"].into_iter().enumerate() {
        let path = folder.join(format!("base-tar-{n}"));
        fs::rename(&disk, folder.join("disk.raw")).unwrap();
        let sparse = if n == 1 { "--no-seek" } else { "-S" };
        let words = ["-c", sparse, dialect, "-f", path.to_str().unwrap(), "-C", folder.to_str().unwrap(), "disk.raw"];
        testkit::run("tar", &words);
        paths.push(path);
    }
    let base = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        let sectors = structured_sectors(&bytes);
        Base { path, bytes, sectors }
    };
    paths.into_iter().map(base).collect()
});

fuzz_target!(|input: &[u8]| {
    let Some((first, patches)) = input.split_first() else { return };
    let base = &BASES[usize::from(*first) % BASES.len()];
    let file = File::options().write(true).open(&base.path).unwrap();
    let mut touched = Vec::new();
    for patch in patches.chunks_exact(5).take(16) {
        // The first and last sectors, where headers are, every second time.
        let choice = usize::from(u16::from_le_bytes([patch[0], patch[1]]));
        let sector = match choice % 4 {
            0 => 0,
            1 => base.bytes.len().saturating_sub(512 + 512 * (choice / 4 % 3)),
            _ => base.sectors[choice / 4 % base.sectors.len()],
        };
        let at = sector + usize::from(u16::from_le_bytes([patch[2], patch[3]])) % 512;
        if at < base.bytes.len() {
            file.write_all_at(&patch[4..], at as u64).unwrap();
            touched.push(at);
        }
    }
    if let Ok(opened) = open(&base.path, SCRATCH.path()) {
        let size = opened.disk.size();
        if let Ok(extents) = opened.disk.extents() {
            assert_eq!(extents.iter().map(|e| e.length).sum::<u64>(), size, "without gaps");
        }
        let mut buffer = vec![0; 1 << 16];
        for at in [0, size / 2, size.saturating_sub(1 << 16)] {
            let length = usize::try_from(size - at).unwrap_or(usize::MAX).min(buffer.len());
            let _ = opened.disk.read_at(at, &mut buffer[..length]);
            let _ = opened.disk.place(at, length as u64);
        }
        assert!(opened.disk.read_at(size, &mut buffer[..1]).is_err());
    }
    for at in touched {
        file.write_all_at(&base.bytes[at..=at], at as u64).unwrap();
    }
});
