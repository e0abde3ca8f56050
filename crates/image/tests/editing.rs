//! In place: whole or as it was, whatever happens in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use image::{EditError, GuestDisk, StampOptions, edit_in_place, open, recover, stamp};
use testkit::disk::{Spec, build};
use testkit::{run, word};

fn options() -> StampOptions {
    StampOptions { platform: "openstack".into(), ..StampOptions::default() }
}

fn content(disk: &dyn GuestDisk) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(disk.size()).unwrap()];
    disk.read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn raw_vhd_and_plain_qcow2_are_stamped_where_they_lie() {
    let folder = tempfile::tempdir().unwrap();
    let source = build(folder.path(), &Spec::default()).path;
    for (format, extra) in [("raw", &[][..]), ("vpc", &["-o", "subformat=fixed,force_size"]), ("qcow2", &[])]
    {
        let path = folder.path().join(format!("in-place.{format}"));
        let mut line = vec!["convert", "-f", "raw", "-O", format];
        line.extend(extra);
        line.extend([word(&source), word(&path)]);
        run("qemu-img", &line);
        let length = fs::metadata(&path).unwrap().len();
        let opened = open(&path, folder.path()).unwrap();
        let delta = stamp(&*opened.disk, &options()).unwrap();
        let expected = content(&image::Stamped::new(&*opened.disk, &delta, None));
        edit_in_place(&path, &*opened.disk, &delta).unwrap();
        assert!(content(&*open(&path, folder.path()).unwrap().disk) == expected, "{format}");
        assert_eq!(fs::metadata(&path).unwrap().len(), length);
        assert!(!recover(&path).unwrap(), "nothing is left to do");
    }
    run("qemu-img", &["check", word(&folder.path().join("in-place.qcow2"))]);
}

#[test]
fn what_is_compressed_or_shared_is_not_changed_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let source = build(folder.path(), &Spec::default()).path;
    let packed = folder.path().join("packed.qcow2");
    run("qemu-img", &["convert", "-c", "-O", "qcow2", word(&source), word(&packed)]);
    let shared = folder.path().join("shared.qcow2");
    run("qemu-img", &["convert", "-O", "qcow2", word(&source), word(&shared)]);
    run("qemu-img", &["snapshot", "-c", "one", word(&shared)]);
    for path in [packed, shared] {
        let before = fs::read(&path).unwrap();
        let opened = open(&path, folder.path()).unwrap();
        let delta = stamp(&*opened.disk, &options()).unwrap();
        let refused = edit_in_place(&path, &*opened.disk, &delta);
        assert!(matches!(refused, Err(EditError::NotInPlace { .. })), "{refused:?}");
        assert!(fs::read(&path).unwrap() == before);
    }
}

/// Every state that a kill can leave: the record, and any number of pieces, the last one half written.
#[test]
fn an_interrupted_change_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), &Spec::default()).path;
    let before = fs::read(&path).unwrap();
    let opened = open(&path, folder.path()).unwrap();
    let delta = stamp(&*opened.disk, &options()).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let record = folder.path().join(format!(".{name}.bootwright-undo"));
    let text = serde_json::json!({"length": before.len(), "delta": delta}).to_string();
    for written in 0..=delta.pieces.len() {
        fs::write(&record, &text).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        for piece in &delta.pieces[..written] {
            file.write_all_at(&piece.bytes, piece.offset).unwrap();
        }
        if let Some(half) = delta.pieces.get(written) {
            file.write_all_at(&half.bytes[..half.bytes.len() / 2], half.offset).unwrap();
        }
        assert!(recover(&path).unwrap());
        assert!(fs::read(&path).unwrap() == before && !record.exists(), "after {written} pieces");
    }
    // Bytes that are neither old nor new are somebody else's.
    fs::write(&record, &text).unwrap();
    let first = &delta.pieces[0];
    let foreign = first.bytes[0].max(first.before[0]).wrapping_add(1);
    File::options().write(true).open(&path).unwrap().write_all_at(&[foreign], first.offset).unwrap();
    assert!(matches!(recover(&path), Err(EditError::Record { .. })));
    fs::write(&record, "{").unwrap();
    assert!(matches!(recover(&path), Err(EditError::Record { .. })));
}
