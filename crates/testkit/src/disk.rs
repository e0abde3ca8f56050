//! Miniature CoreOS disks, faithful in what a stamp looks at: partition table, boot filesystem with its features, boot
//! entries, consoles, labels. No root, no mounts.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::{run, word};

/// The options of a pristine entry.
pub const OPTIONS: &str = "rw $ignition_firstboot mitigations=auto,nosmt ostree=/ostree/boot.1/rhcos/0a1b2c/0 ignition.platform.id=metal";

/// What kind of disk.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Block size of the boot filesystem.
    pub block_size: u32,
    /// Further features for mke2fs: `^metadata_csum_seed,orphan_file`.
    pub features: &'static str,
    /// Sector size of the disk.
    pub sector_size: u32,
    /// Whether boot is the first partition, as before October 2020.
    pub boot_first: bool,
    /// The options of each boot entry.
    pub entries: Vec<String>,
    /// Whether the image carries its table of consoles.
    pub platforms_json: bool,
    /// Whether the console block stands in grub.cfg, as in older images.
    pub old_grub: bool,
    /// Type GUID of the boot partition.
    pub boot_type: &'static str,
    /// Further partitions by name, of 1 MiB.
    pub further: Vec<&'static str>,
    /// Size of the boot filesystem in MiB.
    pub boot_mib: u64,
    /// Size of the root partition in MiB.
    pub root_mib: u64,
    /// How many MiB of noise it begins with; the rest is a hole.
    pub noise_mib: u64,
}

/// The type of the boot partition since December 2025 (XBOOTLDR), and before.
pub const XBOOTLDR: &str = "bc13c2ff-59e6-4262-a352-b275fd6f7172";
/// Linux filesystem data.
pub const LINUX: &str = "0fc63daf-8483-4772-8e79-3d69d8477de4";

impl Default for Spec {
    fn default() -> Self {
        Self {
            block_size: 1024,
            features: "metadata_csum_seed",
            sector_size: 512,
            boot_first: false,
            entries: vec![OPTIONS.to_owned()],
            platforms_json: true,
            old_grub: false,
            boot_type: XBOOTLDR,
            further: Vec::new(),
            boot_mib: 12,
            root_mib: 6,
            noise_mib: 2,
        }
    }
}

/// A disk that was built.
pub struct Disk {
    /// The raw image.
    pub path: PathBuf,
    /// Where the boot filesystem begins, in bytes.
    pub boot_start: u64,
    /// How long it is, in bytes.
    pub boot_length: u64,
    /// Where the root filesystem begins, in bytes.
    pub root_start: u64,
    /// The kernel's bytes.
    pub kernel: Vec<u8>,
}

/// The path of the kernel on the boot filesystem.
pub const KERNEL: &str = "/ostree/rhcos-0a1b2c/vmlinuz-5.14.0-427.el9.x86_64";
const MIB: u64 = 1 << 20;

/// Builds a disk in a folder.
pub fn build(folder: &Path, spec: &Spec) -> Disk {
    let kernel = noise(300_000, 7);
    let boot = folder.join("boot.img");
    let _ = fs::remove_file(&boot);
    filesystem(folder, &boot, spec, &kernel);

    // BIOS-BOOT and EFI-SYSTEM, or what stood there before.
    let mut layout: Vec<(&str, &str, u64)> = vec![
        ("BIOS-BOOT", "21686148-6449-6e6f-744e-656564454649", MIB),
        ("EFI-SYSTEM", "c12a7328-f81f-11d2-ba4b-00a0c93ec93b", MIB),
    ];
    let place = if spec.boot_first { 0 } else { 2 };
    layout.insert(place, ("boot", spec.boot_type, spec.boot_mib * MIB));
    layout.extend(spec.further.iter().map(|name| (*name, LINUX, MIB)));
    layout.push(("root", "4f68bce3-e8cd-4db1-96e7-fbcaf984b709", spec.root_mib * MIB));

    let mut at = MIB;
    let mut partitions = Vec::new();
    for (name, kind, length) in layout {
        partitions.push((name, kind, at, length));
        at += length;
    }
    let size = at + MIB;
    let path = folder.join("disk.raw");
    let file = File::create(&path).unwrap();
    file.set_len(size).unwrap();
    write_gpt(&file, size, u64::from(spec.sector_size), &partitions);
    let place = |wanted: &str| partitions.iter().find(|(name, ..)| *name == wanted).unwrap();
    let (_, _, boot_start, boot_length) = *place("boot");
    file.write_all_at(&fs::read(&boot).unwrap(), boot_start).unwrap();
    let (_, _, root_start, _) = *place("root");
    file.write_all_at(&noise(usize::try_from(spec.noise_mib * MIB).unwrap(), 11), root_start).unwrap();
    Disk { path, boot_start, boot_length, root_start, kernel }
}

fn filesystem(folder: &Path, image: &Path, spec: &Spec, kernel: &[u8]) {
    let tree = folder.join("tree");
    let _ = fs::remove_dir_all(&tree);
    let make = |path: &str| fs::create_dir_all(tree.join(path)).unwrap();
    for path in ["loader.1/entries", "grub2", "coreos", "ostree/rhcos-0a1b2c", "efi"] {
        make(path);
    }
    symlink("loader.1", tree.join("loader")).unwrap();
    symlink(".", tree.join("boot")).unwrap();
    let file = |path: &str, text: &[u8], mode: u32| {
        let path = tree.join(path);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (n, options) in spec.entries.iter().enumerate() {
        let text = format!(
            "title Red Hat Enterprise Linux CoreOS 9.6 (ostree:{n})\nversion {n}\noptions {options}\nlinux {KERNEL}\ninitrd /ostree/rhcos-0a1b2c/initramfs-5.14.0-427.el9.x86_64.img\n"
        );
        file(&format!("loader.1/entries/ostree-{}.conf", n + 1), text.as_bytes(), 0o600);
    }
    let block = "# CONSOLE-SETTINGS-START\n# CONSOLE-SETTINGS-END\n";
    if spec.old_grub {
        file("grub2/grub.cfg", format!("set pager=1\n{block}blscfg\n").as_bytes(), 0o600);
    } else {
        file("grub2/grub.cfg", b"set pager=1\nsource $prefix/console.cfg\nblscfg\n", 0o600);
        file("grub2/console.cfg", block.as_bytes(), 0o600);
    }
    fs::set_permissions(tree.join("grub2"), fs::Permissions::from_mode(0o700)).unwrap();
    if spec.platforms_json {
        file("coreos/platforms.json", PLATFORMS.as_bytes(), 0o644);
    }
    file("ignition.firstboot", b"", 0o644);
    file(KERNEL.trim_start_matches('/'), kernel, 0o755);
    file("ostree/rhcos-0a1b2c/initramfs-5.14.0-427.el9.x86_64.img", &noise(500_000, 9), 0o600);
    let block_size = spec.block_size.to_string();
    let size = format!("{}M", spec.boot_mib);
    run(
        "mke2fs",
        &[
            "-q",
            "-F",
            "-t",
            "ext4",
            "-L",
            "boot",
            "-U",
            "96d15588-3596-4b3c-adca-a2ff7279ea63",
            "-b",
            &block_size,
            "-O",
            spec.features,
            "-d",
            word(&tree),
            word(image),
            &size,
        ],
    );
    for n in 1..=spec.entries.len() {
        let set =
            format!("ea_set /loader.1/entries/ostree-{n}.conf security.selinux system_u:object_r:boot_t:s0");
        run("debugfs", &["-w", "-R", &set, word(image)]);
    }
}

/// Offsets of the sectors that hold tables, headers or text: few different bytes. Content that is packed, as kernels are,
/// has most byte values in a sector, and a change in it reaches no parser.
pub fn structured_sectors(bytes: &[u8]) -> Vec<usize> {
    let structured = |sector: &[u8]| {
        let mut seen = [false; 256];
        for byte in sector {
            if let Some(seen) = seen.get_mut(usize::from(*byte)) {
                *seen = true;
            }
        }
        (2..150).contains(&seen.iter().filter(|seen| **seen).count())
    };
    bytes.chunks(512).enumerate().filter(|(_, sector)| structured(sector)).map(|(n, _)| n * 512).collect()
}

/// What images of `x86_64` carry.
pub const PLATFORMS: &str = r#"{
  "aws": {"grub_commands": ["serial --speed=115200", "terminal_input serial console", "terminal_output serial console"], "kernel_arguments": ["console=tty0", "console=ttyS0,115200n8"]},
  "azure": {"kernel_arguments": ["console=tty0", "console=ttyS0,115200n8"]},
  "gcp": {"grub_commands": ["serial --speed=115200", "terminal_input serial console", "terminal_output serial console"], "kernel_arguments": ["console=tty0", "console=ttyS0,115200n8"]},
  "kubevirt": {"kernel_arguments": ["console=ttyS0,115200n8", "console=tty0"]},
  "openstack": {"kernel_arguments": ["console=ttyS0,115200n8", "console=tty0"]},
  "qemu": {"grub_commands": ["serial --speed=115200", "terminal_input serial console", "terminal_output serial console"], "kernel_arguments": ["console=tty0", "console=ttyS0,115200n8"]},
  "vmware": {"kernel_arguments": ["console=ttyS0,115200n8", "console=tty0"]}
}
"#;

/// Bytes that do not compress, the same every time (xorshift).
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Copies the boot filesystem out of a raw disk.
pub fn boot_of(disk: &Path, start: u64, length: u64) -> tempfile::NamedTempFile {
    let mut bytes = vec![0; usize::try_from(length).unwrap()];
    File::open(disk).unwrap().read_exact_at(&mut bytes, start).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes).unwrap();
    file
}

/// Writes a primary and a backup table (UEFI specification, chapter 5).
fn write_gpt(file: &File, size: u64, sector: u64, partitions: &[(&str, &str, u64, u64)]) {
    let mut entries = vec![0_u8; 128 * 128];
    for (n, (name, kind, start, length)) in partitions.iter().enumerate() {
        let entry = &mut entries[n * 128..(n + 1) * 128];
        entry[..16].copy_from_slice(&guid(kind));
        entry[16..32].copy_from_slice(&guid(&format!("00000000-0000-4000-a000-0000000001{n:02}")));
        entry[32..40].copy_from_slice(&(start / sector).to_le_bytes());
        entry[40..48].copy_from_slice(&((start + length) / sector - 1).to_le_bytes());
        for (c, unit) in name.encode_utf16().enumerate() {
            entry[56 + 2 * c..58 + 2 * c].copy_from_slice(&unit.to_le_bytes());
        }
    }
    let table = (entries.len() as u64).div_ceil(sector);
    let last = size / sector - 1;
    let header = |own: u64, other: u64, entries_at: u64| {
        let mut header = vec![0_u8; 92];
        header[..8].copy_from_slice(b"EFI PART");
        header[8..12].copy_from_slice(&0x1_0000_u32.to_le_bytes());
        header[12..16].copy_from_slice(&92_u32.to_le_bytes());
        for (at, value) in [(24, own), (32, other), (40, 2 + table), (48, last - table - 1), (72, entries_at)]
        {
            header[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        header[56..72].copy_from_slice(&guid("00000000-0000-4000-a000-000000000001"));
        header[80..84].copy_from_slice(&128_u32.to_le_bytes());
        header[84..88].copy_from_slice(&128_u32.to_le_bytes());
        header[88..92].copy_from_slice(&crc32(&entries).to_le_bytes());
        let sum = crc32(&header);
        header[16..20].copy_from_slice(&sum.to_le_bytes());
        header
    };
    let mut mbr = [0_u8; 512];
    mbr[446 + 4] = 0xee;
    mbr[446 + 8..446 + 12].copy_from_slice(&1_u32.to_le_bytes());
    mbr[446 + 12..446 + 16].copy_from_slice(&u32::try_from(last).unwrap_or(u32::MAX).to_le_bytes());
    mbr[510] = 0x55;
    mbr[511] = 0xaa;
    file.write_all_at(&mbr, 0).unwrap();
    file.write_all_at(&header(1, last, 2), sector).unwrap();
    file.write_all_at(&entries, 2 * sector).unwrap();
    file.write_all_at(&entries, (last - table) * sector).unwrap();
    file.write_all_at(&header(last, 1, last - table), last * sector).unwrap();
}

fn guid(text: &str) -> [u8; 16] {
    let hex: Vec<u8> = text
        .replace('-', "")
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let mut bytes = [0; 16];
    for (to, from) in [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].into_iter().enumerate() {
        bytes[to] = hex[from];
    }
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xedb8_8320 },
        )
    })
}
