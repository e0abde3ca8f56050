//! Stamping over many layouts, judged by e2fsprogs and by another reader of ext4.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use image::{Delta, StampError, StampOptions, inspect, open, stamp};
use testkit::disk::{Disk, KERNEL, LINUX, OPTIONS, Spec, boot_of, build};
use testkit::{run, try_run, word};

fn options(platform: &str) -> StampOptions {
    StampOptions { platform: platform.to_owned(), ..StampOptions::default() }
}

fn delta(path: &Path, options: &StampOptions) -> Result<Delta, StampError> {
    let opened = open(path, path.parent().unwrap()).unwrap();
    stamp(&*opened.disk, options)
}

/// Writes a delta into a raw disk, after comparing what stood there.
fn apply(path: &Path, delta: &Delta) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    for piece in &delta.pieces {
        let mut before = vec![0; piece.before.len()];
        file.read_exact_at(&mut before, piece.offset).unwrap();
        assert_eq!(before, piece.before);
        file.write_all_at(&piece.bytes, piece.offset).unwrap();
    }
}

struct Boot(tempfile::NamedTempFile);

impl Boot {
    fn of(disk: &Disk) -> Self {
        Self(boot_of(&disk.path, disk.boot_start, disk.boot_length))
    }

    fn debugfs(&self, command: &str) -> String {
        let text = run("debugfs", &["-R", command, word(self.0.path())]);
        // The first line names the program.
        text.split_inclusive('\n').filter(|l| !l.starts_with("debugfs ")).collect()
    }

    fn read(&self, path: &str) -> Vec<u8> {
        let ext4 = ext4_view::Ext4::load(Box::new(fs::read(self.0.path()).unwrap())).unwrap();
        ext4.read(path).unwrap()
    }

    fn text(&self, path: &str) -> String {
        String::from_utf8(self.read(path)).unwrap()
    }

    fn assert_clean(&self, what: &str) {
        let (ok, text) = try_run("e2fsck", &["-fn", word(self.0.path())]);
        assert!(ok, "{what}: {text}");
    }

    /// All that must stay: mode, owner, times, inode number, attributes.
    fn identity(&self, path: &str) -> String {
        let stat = self.debugfs(&format!("stat {path}"));
        let label = self.debugfs(&format!("ea_get {path} security.selinux"));
        let keep = ["Inode:", "User:", "ctime:", "atime:", "mtime:", "crtime:", "Links:", "Generation:"];
        let kept: Vec<String> = stat
            .lines()
            .filter(|l| keep.iter().any(|k| l.contains(k)))
            // Size and count of blocks may change.
            .map(|l| {
                l.split("Size:")
                    .next()
                    .unwrap_or(l)
                    .split("Blockcount:")
                    .next()
                    .unwrap_or(l)
                    .trim()
                    .to_owned()
            })
            .collect();
        format!("{kept:?} {label}")
    }
}

const ENTRY: &str = "/loader.1/entries/ostree-1.conf";

fn options_line(boot: &Boot, path: &str) -> String {
    let text = boot.text(path);
    text.lines().find_map(|l| l.strip_prefix("options ")).unwrap().to_owned()
}

fn layouts() -> Vec<(&'static str, Spec)> {
    let base = Spec::default;
    let fill = |block: usize| {
        // An entry that fills its block: what a platform adds needs another one.
        let text = |options: &str| {
            format!(
                "title Red Hat Enterprise Linux CoreOS 9.6 (ostree:0)\nversion 0\noptions {options}\nlinux {KERNEL}\ninitrd /ostree/rhcos-0a1b2c/initramfs-5.14.0-427.el9.x86_64.img\n"
            )
        };
        let room = block - text(&format!("x= {OPTIONS}")).len();
        vec![format!("x={} {OPTIONS}", "y".repeat(room))]
    };
    vec![
        ("1 KiB blocks, as cosa builds", base()),
        ("4 KiB blocks", Spec { block_size: 4096, boot_mib: 24, ..base() }),
        ("without metadata_csum_seed", Spec { features: "^metadata_csum_seed", ..base() }),
        ("with orphan_file", Spec { features: "metadata_csum_seed,orphan_file", ..base() }),
        ("without 64bit", Spec { features: "^64bit,^metadata_csum_seed", ..base() }),
        ("without flex_bg", Spec { features: "^flex_bg", ..base() }),
        ("without any checksums", Spec { features: "^metadata_csum,^uninit_bg", ..base() }),
        ("with checksums of groups alone", Spec { features: "^metadata_csum,uninit_bg", ..base() }),
        ("boot as the first partition, old types", Spec { boot_first: true, boot_type: LINUX, ..base() }),
        ("4096-byte sectors", Spec { sector_size: 4096, block_size: 4096, boot_mib: 24, ..base() }),
        ("two entries", Spec { entries: vec![OPTIONS.to_owned(), OPTIONS.replace("/0 ", "/1 ")], ..base() }),
        ("an entry that fills its block", Spec { entries: fill(1024), ..base() }),
        (
            "an entry that fills its block of 4 KiB",
            Spec { entries: fill(4096), block_size: 4096, boot_mib: 24, ..base() },
        ),
        (
            "a full entry and checksums of groups",
            Spec { entries: fill(1024), features: "^metadata_csum,uninit_bg", ..base() },
        ),
        (
            "a full entry without checksums",
            Spec { entries: fill(2048), features: "^metadata_csum,^uninit_bg,^64bit", ..base() },
        ),
        ("no table of consoles", Spec { platforms_json: false, ..base() }),
        ("the console block in grub.cfg", Spec { old_grub: true, ..base() }),
    ]
}

#[test]
fn every_layout_is_clean_and_complete_after_a_stamp() {
    for (what, spec) in layouts() {
        let folder = tempfile::tempdir().unwrap();
        let disk = build(folder.path(), &spec);
        let before = Boot::of(&disk);
        before.assert_clean(what);
        let entries: Vec<String> =
            (1..=spec.entries.len()).map(|n| format!("/loader.1/entries/ostree-{n}.conf")).collect();
        let identities: Vec<String> = entries.iter().map(|e| before.identity(e)).collect();

        let aws = delta(&disk.path, &options("aws")).unwrap();
        assert_eq!(aws, delta(&disk.path, &options("aws")).unwrap(), "{what}: the same every time");
        assert!(aws.len() < 4096, "{what}: {} bytes change", aws.len());
        apply(&disk.path, &aws);
        let after = Boot::of(&disk);
        after.assert_clean(what);
        let console = if spec.old_grub { "/grub2/grub.cfg" } else { "/grub2/console.cfg" };
        for ((entry, old), was) in entries.iter().zip(&spec.entries).zip(&identities) {
            let expected = old.replace("=metal", "=aws console=tty0 console=ttyS0,115200n8");
            assert_eq!(&options_line(&after, entry), &expected, "{what}");
            assert!(
                after.debugfs(&format!("cat {entry}")).contains(&expected),
                "{what}: debugfs reads it too"
            );
            assert_eq!(&after.identity(entry), was, "{what}");
        }
        assert!(after.text(console).contains("START\nserial --speed=115200\nterminal_input serial console\nterminal_output serial console\n# CONSOLE"), "{what}");
        assert_eq!(after.read(KERNEL), disk.kernel, "{what}: the kernel is the same");

        // And back: the files are what they were.
        let metal = delta(&disk.path, &StampOptions { restamp: true, ..options("metal") }).unwrap();
        apply(&disk.path, &metal);
        let back = Boot::of(&disk);
        back.assert_clean(what);
        for entry in entries.iter().map(String::as_str).chain([console]) {
            assert_eq!(back.read(entry), before.read(entry), "{what}: {entry}");
        }
        if spec.sector_size == 512 {
            let (ok, text) = try_run("sgdisk", &["-v", word(&disk.path)]);
            assert!(ok && text.contains("No problems found"), "{what}: {text}");
        }
    }
}

/// What a published image of each platform has, by fedora-coreos-config `platforms.yaml`.
#[test]
fn every_platform_gets_its_own_line_and_console_block() {
    let serial = "serial --speed=115200\nterminal_input serial console\nterminal_output serial console\n";
    let cases = [
        ("openstack", " console=ttyS0,115200n8 console=tty0", ""),
        ("aws", " console=tty0 console=ttyS0,115200n8", serial),
        ("azure", " console=tty0 console=ttyS0,115200n8", ""),
        ("gcp", " console=tty0 console=ttyS0,115200n8", serial),
        ("vmware", " console=ttyS0,115200n8 console=tty0", ""),
        ("kubevirt", " console=ttyS0,115200n8 console=tty0", ""),
        ("nutanix", "", ""),
        ("qemu", " console=tty0 console=ttyS0,115200n8", serial),
        ("metal", "", ""),
    ];
    for platforms_json in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let disk = build(folder.path(), &Spec { platforms_json, ..Spec::default() });
        let pristine = fs::read(&disk.path).unwrap();
        for (platform, consoles, grub) in cases {
            fs::write(&disk.path, &pristine).unwrap();
            apply(&disk.path, &delta(&disk.path, &options(platform)).unwrap());
            let boot = Boot::of(&disk);
            let expected = OPTIONS.replace("=metal", &format!("={platform}{consoles}"));
            assert_eq!(options_line(&boot, ENTRY), expected);
            assert_eq!(
                boot.text("/grub2/console.cfg"),
                format!("# CONSOLE-SETTINGS-START\n{grub}# CONSOLE-SETTINGS-END\n")
            );
        }
        fs::write(&disk.path, &pristine).unwrap();
        assert!(delta(&disk.path, &options("metal")).unwrap().is_empty(), "nothing to do");
    }
}

#[test]
fn a_stamp_that_fits_changes_two_blocks_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let disk = build(folder.path(), &Spec::default());
    let delta = delta(&disk.path, &options("nutanix")).unwrap();
    let blocks: std::collections::BTreeSet<u64> =
        delta.pieces.iter().map(|p| (p.offset - disk.boot_start) / 1024).collect();
    assert_eq!(blocks.len(), 2, "the entry's data and its inode");
}

#[test]
fn consoles_and_arguments_of_the_users_own() {
    let folder = tempfile::tempdir().unwrap();
    let disk = build(folder.path(), &Spec::default());
    let own = StampOptions {
        consoles: vec!["ttyS1,9600n8".into()],
        arguments: vec!["quiet".into()],
        ..options("openstack")
    };
    apply(&disk.path, &delta(&disk.path, &own).unwrap());
    let boot = Boot::of(&disk);
    assert_eq!(
        options_line(&boot, ENTRY),
        OPTIONS.replace("=metal", "=openstack console=ttyS1,9600n8 quiet")
    );
    assert!(boot.text("/grub2/console.cfg").contains("serial --unit=1 --speed=9600\n"));
}

#[test]
fn what_must_not_be_stamped_is_refused_and_untouched() {
    let refused = |spec: Spec, spoil: &dyn Fn(&Disk), options: StampOptions| {
        let folder = tempfile::tempdir().unwrap();
        let disk = build(folder.path(), &spec);
        spoil(&disk);
        let before = fs::read(&disk.path).unwrap();
        let error = delta(&disk.path, &options).unwrap_err();
        assert_eq!(fs::read(&disk.path).unwrap(), before);
        error
    };
    let nothing = |_: &Disk| {};
    let at = |offset: u64, bytes: &'static [u8]| {
        move |disk: &Disk| {
            let file = OpenOptions::new().write(true).open(&disk.path).unwrap();
            file.write_all_at(bytes, disk.boot_start + offset).unwrap();
        }
    };
    let aws = || options("aws");
    let spec = Spec::default;
    // incompat RECOVER, in the superblock at 0x60: a journal that must be played back.
    let dirty = refused(spec(), &at(1024 + 0x60, &[0xc6]), aws());
    assert!(matches!(dirty, StampError::Boot(image::Ext4Error::Dirty(_))), "{dirty}");
    let unknown = refused(spec(), &at(1024 + 0x60 + 2, &[0x40]), aws());
    assert!(matches!(unknown, StampError::Boot(image::Ext4Error::Unsupported(_))), "{unknown}");
    let sealed = refused(Spec { further: vec!["boothash"], ..spec() }, &nothing, aws());
    assert!(matches!(sealed, StampError::Sealed(_)), "{sealed}");
    let two = refused(Spec { entries: vec![format!("{OPTIONS}\noptions again")], ..spec() }, &nothing, aws());
    assert!(matches!(two, StampError::Options { count: 2, .. }), "{two}");
    let none = refused(Spec { entries: vec![], ..spec() }, &nothing, aws());
    assert!(matches!(none, StampError::NoEntry), "{none}");
    let no_boot = refused(spec(), &at(1024 + 0x78, b"other"), aws());
    assert!(matches!(no_boot, StampError::NoBoot), "{no_boot}");
    let stamped = Spec { entries: vec![OPTIONS.replace("=metal", "=openstack")], ..spec() };
    let error = refused(stamped, &nothing, aws());
    assert!(matches!(error, StampError::Stamped { .. }), "{error}");
    let mixed = Spec { entries: vec![OPTIONS.to_owned(), OPTIONS.replace("=metal", "=gcp")], ..spec() };
    assert!(matches!(refused(mixed, &nothing, aws()), StampError::Mixed { .. }));
    assert!(matches!(refused(spec(), &nothing, options("a\nb")), StampError::Word(_)));
    let inline = Spec { features: "inline_data", ..spec() };
    assert!(matches!(refused(inline, &nothing, aws()), StampError::Boot(image::Ext4Error::Unsupported(_))));
}

/// Without checksums nothing tells that a bitmap is wrong: the block that an entry grows into is the superblock.
#[test]
fn a_stamp_that_would_hit_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, spec) = layouts().remove(14);
    let spec = Spec { block_size: 1024, ..spec };
    let disk = build(folder.path(), &spec);
    run("debugfs", &["-w", "-R", "freeb 1", &format!("{}?offset={}", word(&disk.path), disk.boot_start)]);
    let refused = delta(&disk.path, &options("openstack"));
    assert!(matches!(refused, Err(StampError::Damaged)), "{refused:?}");
}

#[test]
fn inspect_tells_what_the_image_is() {
    let folder = tempfile::tempdir().unwrap();
    let disk = build(folder.path(), &Spec::default());
    let opened = open(&disk.path, folder.path()).unwrap();
    let found = inspect(&*opened.disk).unwrap();
    assert!(found.pristine);
    assert_eq!(found.platform.as_deref(), Some("metal"));
    assert_eq!(found.architecture.as_deref(), Some("x86_64"));
    assert_eq!(found.not_stampable, None);
    assert_eq!(found.partitions.unwrap().partitions.len(), 4);
    assert_eq!((found.filesystems[0].kind, found.filesystems[0].label.as_str()), ("ext4", "boot"));
}
