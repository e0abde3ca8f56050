//! The image commands, as a user runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use testkit::disk::{Disk, KERNEL, Spec, boot_of, build};
use testkit::{run, try_run, word};

fn bootwright(folder: &Path, arguments: &[&str]) -> Output {
    let line = ["image"].iter().chain(arguments);
    Command::new(env!("CARGO_BIN_EXE_bootwright")).args(line).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = bootwright(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = bootwright(folder, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output.stdout));
    text(&output.stderr)
}

fn miniature() -> (TempDir, Disk) {
    let folder = tempfile::tempdir().unwrap();
    let disk = build(folder.path(), &Spec::default());
    (folder, disk)
}

fn inspected(folder: &Path, image: &str) -> Value {
    serde_json::from_str(&done(folder, &["inspect", image, "-o", "json"])).unwrap()
}

/// Everything on the boot filesystem but the entries and the console block.
fn kernel(folder: &Path, image: &str, disk: &Disk) -> Vec<u8> {
    let raw = folder.join("kernel.raw");
    done(folder, &["convert", image, "-o", word(&raw)]);
    let boot = boot_of(&raw, disk.boot_start, disk.boot_length);
    run("e2fsck", &["-fn", word(boot.path())]);
    let out = folder.join("kernel");
    run("debugfs", &["-R", &format!("dump {KERNEL} {}", word(&out)), word(boot.path())]);
    fs::read(out).unwrap()
}

#[test]
fn one_image_becomes_that_of_every_platform() {
    let (folder, disk) = miniature();
    let folder = folder.path();
    for (platform, file, format) in [
        ("openstack", "openstack.qcow2", "qcow2"),
        ("aws", "aws.vmdk", "vmdk"),
        ("azure", "azure.vhd", "vpc"),
        ("vmware", "vmware.vmdk", "vmdk"),
        ("nutanix", "nutanix.qcow2", "qcow2"),
        ("metal", "metal.raw", "raw"),
        ("gcp", "gcp.tar.gz", ""),
    ] {
        let told = done(folder, &["convert", "disk.raw", "-o", file, "--platform", platform]);
        assert!(told.starts_with(&format!("{file}: {platform}, ")), "{told}");
        assert_eq!(inspected(folder, file)["disk"]["platform"], platform);
        assert!(kernel(folder, file, &disk) == disk.kernel, "{platform}: the kernel is not what it was");
        if matches!(format, "qcow2" | "vmdk") {
            run("qemu-img", &["check", "-f", format, file_of(folder, file).to_str().unwrap()]);
        }
    }
    // Without a word about the format, the platform tells it.
    done(folder, &["convert", "disk.raw", "-o", "image", "--platform", "ibmcloud"]);
    let info: Value =
        serde_json::from_str(&run("qemu-img", &["info", "--output=json", word(&folder.join("image"))]))
            .unwrap();
    assert_eq!((&info["format"], &info["virtual-size"]), (&"qcow2".into(), &(100_u64 << 30).into()));
}

fn file_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}

#[test]
fn stamping_there_and_back_gives_the_same_disk() {
    let (folder, disk) = miniature();
    let folder = folder.path();
    let pristine = fs::read(&disk.path).unwrap();
    done(folder, &["stamp", "disk.raw", "--platform", "openstack", "-o", "new.raw"]);
    assert_eq!(fs::read(&disk.path).unwrap(), pristine, "the source is as it was");
    done(folder, &["stamp", "disk.raw", "--platform", "openstack", "--delta", "delta.json"]);
    done(folder, &["stamp", "disk.raw", "--platform", "openstack", "--in-place"]);
    let stamped = fs::read(&disk.path).unwrap();
    assert_eq!(stamped, fs::read(folder.join("new.raw")).unwrap());
    // The delta is what was done.
    let delta: Value = serde_json::from_slice(&fs::read(folder.join("delta.json")).unwrap()).unwrap();
    let mut patched = pristine.clone();
    for piece in delta["pieces"].as_array().unwrap() {
        let at = usize::try_from(piece["offset"].as_u64().unwrap()).unwrap();
        let hex = piece["bytes"].as_str().unwrap();
        for n in 0..hex.len() / 2 {
            patched[at + n] = u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap();
        }
    }
    assert_eq!(patched, stamped);
    let told = done(folder, &["stamp", "disk.raw", "--platform", "openstack", "--in-place"]);
    assert!(told.contains("openstack already"), "{told}");
    // Another platform's image is stamped only when asked.
    let error = refused(folder, &["stamp", "disk.raw", "--platform", "aws", "--in-place"]);
    assert!(error.contains("stamped for openstack already") && error.contains("--restamp"), "{error}");
    assert_eq!(fs::read(&disk.path).unwrap(), stamped);
    done(folder, &["stamp", "disk.raw", "--platform", "metal", "--in-place", "--restamp"]);
    assert_eq!(inspected(folder, "disk.raw")["disk"]["platform"], "metal");
    // qcow2 stays qcow2, compressed as it was.
    done(folder, &["convert", "disk.raw", "-o", "disk.qcow2", "--compress", "zstd"]);
    done(folder, &["stamp", "disk.qcow2", "--platform", "qemu", "-o", "qemu.qcow2"]);
    run("qemu-img", &["check", word(&folder.join("qemu.qcow2"))]);
    let info = run("qemu-img", &["info", word(&folder.join("qemu.qcow2"))]);
    assert!(info.contains("compression type: zstd"), "{info}");
}

#[test]
fn an_image_is_proven_before_it_appears() {
    let (folder, disk) = miniature();
    let folder = folder.path();
    run("gzip", &["-k", word(&disk.path)]);
    let sha =
        |file: &str| run("sha256sum", &[word(&folder.join(file))]).split(' ').next().unwrap().to_owned();
    let (wire, content) = (sha("disk.raw.gz"), sha("disk.raw"));
    for (image, digest) in [("disk.raw.gz", &wire), ("disk.raw.gz", &content), ("disk.raw", &content)] {
        done(folder, &["convert", image, "-o", "out.qcow2", "--sha256", digest]);
        fs::remove_file(folder.join("out.qcow2")).unwrap();
    }
    let other = wire.replace(|c: char| c.is_ascii_digit(), "0");
    for image in ["disk.raw", "disk.raw.gz"] {
        let error = refused(folder, &["convert", image, "-o", "out.qcow2", "--sha256", &other]);
        assert!(error.contains("its sha256 is"), "{error}");
        assert!(!folder.join("out.qcow2").exists());
    }
    let stream = serde_json::json!({"stream": "s", "architectures": {"x86_64": {"images": {}, "artifacts": {"metal":
        {"release": "9.6.20260217-1", "formats": {"raw.gz": {"disk": {"location": "https://example.com/rhcos-9.6.20260217-1-metal.x86_64.raw.gz",
        "sha256": wire, "uncompressed-sha256": content}}}}}}}});
    fs::write(folder.join("stream.json"), stream.to_string()).unwrap();
    let told = done(folder, &["convert", "disk.raw.gz", "-o", "out.raw", "--release", "stream.json"]);
    assert!(told.contains("9.6.20260217-1"), "{told}");
    fs::write(
        folder.join("stream.json"),
        stream.to_string().replace(&wire, &other).replace(&content, &other),
    )
    .unwrap();
    let error = refused(folder, &["convert", "disk.raw.gz", "-o", "o.raw", "--release", "stream.json"]);
    assert!(error.contains("none that stream.json names"), "{error}");
}

#[test]
fn what_cannot_be_done_is_said() {
    let (folder, _disk) = miniature();
    let folder = folder.path();
    fs::write(folder.join("text"), "no image").unwrap();
    fs::write(folder.join("half.gz"), [0x1f, 0x8b, 8, 0, 0]).unwrap();
    for (arguments, message) in [
        (&["inspect", "text"][..], "no disk image"),
        (&["inspect", "half.gz"], "damaged Gzip data"),
        (&["inspect", "missing"], "missing: cannot be read"),
        (&["convert", "disk.raw", "-o", "-", "--format", "qcow2"], "needs a file"),
        (&["convert", "disk.raw", "-o", "x"], "tells no format"),
        (&["convert", "disk.raw", "-o", "x.vmdk", "--compress", "zlib"], "--compress is about qcow2"),
        (&["convert", "disk.raw", "-o", "x.raw", "--sha256", "abc"], "is not a sha256"),
        (&["convert", "disk.raw", "-o", "x.raw", "--size", "0"], "never cut"),
        (&["convert", "disk.raw", "-o", "none/x.raw"], "none/x.raw"),
        (&["convert", "disk.raw", "-o", "x.raw", "--karg", "quiet"], "--platform"),
        (&["stamp", "disk.raw", "--platform", "openstack"], "--in-place"),
        (&["stamp", "disk.raw", "--platform", "a b", "--in-place"], "cannot stand on a kernel command line"),
    ] {
        let error = refused(folder, arguments);
        assert!(error.contains(message) && !error.contains("panicked"), "{arguments:?}: {error}");
    }
    let left: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(
        left.iter().all(|name| !name.to_str().unwrap().contains("partial") && name != "x.raw"),
        "{left:?}"
    );
}

/// A kill leaves the old file or the new one, never half of one under the final name.
#[test]
fn a_kill_leaves_an_old_file_or_a_whole_one() {
    let (folder, disk) = miniature();
    let folder = folder.path();
    let pristine = fs::read(&disk.path).unwrap();
    done(folder, &["convert", "disk.raw", "-o", "whole.qcow2", "--compress", "zlib", "--platform", "aws"]);
    done(folder, &["stamp", "disk.raw", "--platform", "aws", "-o", "whole.raw"]);
    let whole = fs::read(folder.join("whole.qcow2")).unwrap();
    let stamped = fs::read(folder.join("whole.raw")).unwrap();
    for round in 0..40 {
        fs::write(folder.join("out.qcow2"), "old").unwrap();
        fs::write(&disk.path, &pristine).unwrap();
        for line in [
            &["convert", "whole.raw", "-o", "out.qcow2", "--compress", "zlib"][..],
            &["stamp", "disk.raw", "--platform", "aws", "--in-place"],
        ] {
            let mut child = Command::new(env!("CARGO_BIN_EXE_bootwright"))
                .arg("image")
                .args(line)
                .current_dir(folder)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_micros(700 * round));
            let _ = child.kill();
            child.wait().unwrap();
        }
        let out = fs::read(folder.join("out.qcow2")).unwrap();
        assert!(out == b"old" || out == whole, "round {round}");
        // The next command puts an interrupted stamp back.
        done(folder, &["inspect", "disk.raw"]);
        let now = fs::read(&disk.path).unwrap();
        assert!(now == pristine || now == stamped, "round {round}");
    }
}

/// The same bytes from one core as from all.
#[test]
fn the_number_of_threads_does_not_show() {
    let (folder, _disk) = miniature();
    let folder = folder.path();
    for format in ["qcow2", "vmdk", "gcp"] {
        let line = ["convert", "disk.raw", "--format", format, "-o"];
        done(folder, &[&line[..], &["all"]].concat());
        let (source, out) = (folder.join("disk.raw"), folder.join("one"));
        let program = env!("CARGO_BIN_EXE_bootwright");
        let one =
            ["-c", "0", program, "image", "convert", word(&source), "--format", format, "-o", word(&out)];
        let (ok, output) = try_run("taskset", &one);
        assert!(ok, "{output}");
        assert_eq!(fs::read(folder.join("all")).unwrap(), fs::read(folder.join("one")).unwrap(), "{format}");
    }
}
