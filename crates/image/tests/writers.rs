//! Every writer's file is read back by QEMU and by us, and is the disk that it was made from.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use image::{
    ClusterCompression, Container, Delta, ExtentKind, Format, GuestDisk, StampOptions, Stamped, WriteError,
    open, stamp, write_file, write_pipe,
};
use testkit::disk::{Spec, build, noise};
use testkit::{run, word};

const FORMATS: [(&str, &str, Format); 7] = [
    ("raw", "raw", Format::Raw),
    ("qcow2", "qcow2", Format::Qcow2(ClusterCompression::None)),
    ("zlib.qcow2", "qcow2", Format::Qcow2(ClusterCompression::Zlib)),
    ("zstd.qcow2", "qcow2", Format::Qcow2(ClusterCompression::Zstd)),
    ("vmdk", "vmdk", Format::Vmdk),
    ("vhd", "vpc", Format::Vhd),
    ("tar.gz", "raw", Format::Gcp),
];

fn write(disk: &dyn GuestDisk, format: Format, path: &Path) {
    write_file::<WriteError>(disk, format, path, || Ok(())).unwrap();
}

fn content(disk: &dyn GuestDisk, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(length).unwrap()];
    disk.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Whether a disk has a size, begins with some bytes and then holds nothing.
fn is(disk: &dyn GuestDisk, size: u64, expected: &[u8]) -> bool {
    let end = expected.len() as u64;
    let nothing = disk.extents().unwrap().iter().all(|e| e.kind != ExtentKind::Data || e.start <= end);
    disk.size() == size && nothing && content(disk, end) == expected
}

/// A miniature with all that containers tell apart: noise, text, zeros that were written, holes, an odd end.
fn disk(folder: &Path) -> std::path::PathBuf {
    let path = build(folder, &Spec::default()).path;
    let file = File::options().write(true).open(&path).unwrap();
    let end = file.metadata().unwrap().len();
    file.set_len(end + (24 << 20) + 512).unwrap();
    file.write_all_at(&noise(300_000, 7), end + 12_345).unwrap();
    file.write_all_at("a boot image, again and again. ".repeat(20_000).as_bytes(), end + (9 << 20)).unwrap();
    file.write_all_at(&vec![0; 3 << 20], end + (16 << 20)).unwrap();
    file.write_all_at(b"the end", end + (24 << 20) + 505).unwrap();
    path
}

/// The guest disk in a file, as another program reads it; in a raw file.
fn raw_by_another(path: &Path, format: &str, folder: &Path) -> std::path::PathBuf {
    if path.to_str().unwrap().ends_with("tar.gz") {
        run("tar", &["-xSzf", word(path), "-C", word(folder)]);
        return folder.join("disk.raw");
    }
    let out = folder.join("by-qemu.raw");
    run("qemu-img", &["convert", "-f", format, "-O", "raw", word(path), word(&out)]);
    out
}

#[test]
fn every_format_is_the_source_disk_with_its_delta() {
    let folder = tempfile::tempdir().unwrap();
    let source = disk(folder.path());
    let opened = open(&source, folder.path()).unwrap();
    let options = StampOptions { platform: "openstack".into(), ..StampOptions::default() };
    for delta in [Delta::default(), stamp(&*opened.disk, &options).unwrap()] {
        let stamped = Stamped::new(&*opened.disk, &delta, None);
        let expected = content(&stamped, stamped.size());
        for (name, qemu, format) in FORMATS {
            let path = folder.path().join(format!("out.{name}"));
            write(&stamped, format, &path);
            let size = format.size_of(stamped.size());
            let raw = open(&raw_by_another(&path, qemu, folder.path()), folder.path()).unwrap();
            let read = content(&*raw.disk, raw.disk.size().min(expected.len() as u64));
            assert!(read == expected && raw.disk.size() == size, "{name} read by another program");
            if matches!(qemu, "qcow2" | "vmdk") {
                run("qemu-img", &["check", "-f", qemu, word(&path)]);
            }
            let again = open(&path, folder.path()).unwrap();
            assert!(is(&*again.disk, size, &expected), "{name} read by ourselves");
            // The same bytes on every run, and to a pipe as to a file.
            let bytes = fs::read(&path).unwrap();
            write(&stamped, format, &path);
            assert!(fs::read(&path).unwrap() == bytes, "{name} twice");
            let mut piped = Vec::new();
            match write_pipe(&stamped, format, &mut piped) {
                Ok(()) => assert!(piped == bytes, "{name} to a pipe"),
                Err(error) => assert!(matches!(error, WriteError::NotSeekable) && !format.streams()),
            }
        }
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_str().unwrap().contains("partial")), "{left:?}");
}

#[test]
fn what_qemu_writes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let source = disk(folder.path());
    let mut expected = fs::read(&source).unwrap();
    expected.resize(expected.len().next_multiple_of(512), 0);
    let variants: [(&str, Container, &[&str]); 11] = [
        ("qcow2", Container::Qcow2, &[]),
        ("qcow2", Container::Qcow2, &["-c"]),
        ("qcow2", Container::Qcow2, &["-o", "compat=0.10"]),
        ("qcow2", Container::Qcow2, &["-c", "-o", "compat=0.10"]),
        ("qcow2", Container::Qcow2, &["-c", "-o", "compression_type=zstd"]),
        ("qcow2", Container::Qcow2, &["-o", "cluster_size=512"]),
        ("qcow2", Container::Qcow2, &["-c", "-o", "cluster_size=2M"]),
        ("qcow2", Container::Qcow2, &["-o", "preallocation=metadata"]),
        ("vmdk", Container::Vmdk, &["-o", "subformat=streamOptimized,compat6,adapter_type=lsilogic"]),
        ("vmdk", Container::Vmdk, &["-o", "subformat=monolithicSparse"]),
        ("vpc", Container::Vhd, &["-o", "subformat=fixed,force_size"]),
    ];
    for (format, container, options) in variants {
        let path = folder.path().join("by-qemu");
        let mut line = vec!["convert", "-f", "raw", "-O", format];
        line.extend(options);
        line.extend([word(&source), word(&path)]);
        run("qemu-img", &line);
        for packed in [None, Some(("gzip", "gz")), Some(("xz", "xz")), Some(("zstd", "zst"))] {
            let mut file = path.clone();
            if let Some((program, ending)) = packed {
                run(program, &["-q", "-f", "-k", "-1", word(&path)]);
                file = folder.path().join(format!("by-qemu.{ending}"));
            }
            let opened = open(&file, folder.path()).unwrap();
            assert_eq!(opened.container, container, "{options:?}");
            assert!(
                content(&*opened.disk, opened.disk.size()) == expected,
                "{format} {options:?} {packed:?}"
            );
            // What QEMU compressed is taken over, and is still what it was.
            if packed.is_none() && format == "qcow2" {
                let ours = folder.path().join("ours");
                for compression in [ClusterCompression::Zlib, ClusterCompression::Zstd] {
                    write(&*opened.disk, Format::Qcow2(compression), &ours);
                    run("qemu-img", &["check", "-f", "qcow2", word(&ours)]);
                    run("qemu-img", &["compare", "-f", "qcow2", "-F", "raw", word(&ours), word(&source)]);
                }
            }
        }
    }
}

#[test]
fn a_written_zero_stays_one_where_the_format_can_say_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("zeros.qcow2");
    run("qemu-img", &["create", "-q", "-f", "qcow2", word(&source), "64M"]);
    run("qemu-io", &["-c", "write -q 0 64k", "-c", "write -q -z 1M 1M", word(&source)]);
    let opened = open(&source, folder.path());
    // No partition table stands in it, which is nothing to a writer.
    let opened = opened.unwrap();
    let path = folder.path().join("out.qcow2");
    write(&*opened.disk, Format::Qcow2(ClusterCompression::Zlib), &path);
    let again = open(&path, folder.path()).unwrap();
    let kinds: Vec<_> = again.disk.extents().unwrap().iter().map(|e| (e.start, e.kind)).collect();
    let (mib, kib) = (1 << 20, 1 << 10);
    let expected = [
        (0, ExtentKind::Data),
        (64 * kib, ExtentKind::Hole),
        (mib, ExtentKind::Zero),
        (2 * mib, ExtentKind::Hole),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_file_that_fails_its_check_does_not_appear() {
    let folder = tempfile::tempdir().unwrap();
    let source = disk(folder.path());
    let opened = open(&source, folder.path()).unwrap();
    let path = folder.path().join("out.raw");
    fs::write(&path, "old").unwrap();
    let files = || fs::read_dir(folder.path()).unwrap().count();
    let before = files();
    let refused = write_file::<WriteError>(&*opened.disk, Format::Raw, &path, || Err(WriteError::Stopped));
    assert!(refused.is_err());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(files(), before);
}

/// Streams one behind the other are one file; what is cut short, or followed by something else, is none.
#[test]
fn compressed_files_are_read_to_their_true_end() {
    let folder = tempfile::tempdir().unwrap();
    let source = disk(folder.path());
    let expected = fs::read(&source).unwrap();
    let (first, second) = expected.split_at(5_000_000);
    for (program, magic) in [("gzip", &b"\x1f\x8b"[..]), ("xz", b"\xfd7zXZ"), ("zstd", b"\x28\xb5\x2f\xfd")] {
        let packed = |bytes: &[u8]| {
            let file = folder.path().join("piece");
            fs::write(&file, bytes).unwrap();
            let out = folder.path().join("piece.out");
            run("bash", &["-c", &format!("{program} -1 -q -c {} > {}", word(&file), word(&out))]);
            fs::read(out).unwrap()
        };
        let both = [packed(first), packed(second)].concat();
        assert!(both.starts_with(magic));
        let path = folder.path().join("both");
        fs::write(&path, &both).unwrap();
        let opened = open(&path, folder.path()).unwrap();
        assert!(content(&*opened.disk, opened.disk.size()) == expected, "{program}");
        for broken in [&both[..both.len() - 9], &[&both[..], b"tail of something else"].concat()] {
            fs::write(&path, broken).unwrap();
            // What stands behind a gzip stream is passed over by no tool alike; a cut is an error everywhere.
            let cut = broken.len() < both.len();
            assert!(open(&path, folder.path()).is_err() || (program == "gzip" && !cut), "{program}");
        }
    }
}
