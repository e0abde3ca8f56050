//! Stamping: a pristine image becomes a platform's. What changes is the platform id and the console arguments on the
//! `options` line of every boot entry, and the console commands of GRUB; everything else stays to the byte.
//!
//! The order on the line is that of the published images: platform id, then console arguments, at the end
//! (coreos-assembler `src/gf-set-platform`, osbuild `org.osbuild.coreos.platform`).

mod entry;
mod grub;

use crate::console::{Consoles, PlatformConsole};
use crate::delta::{Delta, Stamped};
use crate::disk::{DiskError, GuestDisk};
use crate::ext4::{Ext4, Ext4Error};
use crate::gpt::{GptError, PartitionTable};

pub(crate) use entry::Options;

/// Why an image cannot be stamped; it is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StampError {
    /// The partition table cannot be read.
    #[error("no disk image of CoreOS")]
    Partitions(#[from] GptError),
    /// No boot filesystem.
    #[error("no boot filesystem: expected a partition called `boot` with an ext4 filesystem labelled `boot`")]
    NoBoot,
    /// The boot filesystem cannot be read or changed.
    #[error("the boot filesystem cannot be stamped")]
    Boot(#[from] Ext4Error),
    /// The boot chain is sealed.
    #[error(
        "the image is sealed ({0}): its command line is signed or hashed, use the published image of the platform"
    )]
    Sealed(&'static str),
    /// IBM Z.
    #[error(
        "an s390x image boots what zipl wrote, and zipl runs on s390x alone: use the published image of the platform"
    )]
    Zipl,
    /// No boot entry.
    #[error("no boot entry in loader/entries")]
    NoEntry,
    /// A boot entry that is not as expected.
    #[error("{entry}: {count} lines of options, expected one")]
    Options {
        /// The entry.
        entry: String,
        /// How many there are.
        count: usize,
    },
    /// It is another platform's already.
    #[error(
        "the image is stamped for {platform} already: start from the metal image, or allow it with --restamp"
    )]
    Stamped {
        /// The platform.
        platform: String,
    },
    /// Two entries say different things.
    #[error("boot entries are stamped for {one} and for {other}")]
    Mixed {
        /// One platform.
        one: String,
        /// The other.
        other: String,
    },
    /// What was written does not read back.
    #[error(
        "the boot filesystem is damaged: what is written in one place shows in another; check it with `e2fsck -fn`"
    )]
    Damaged,
    /// GRUB's configuration has no place for console commands.
    #[error(
        "{0} has no lines CONSOLE-SETTINGS-START and CONSOLE-SETTINGS-END, where console commands belong"
    )]
    NoConsoleBlock(&'static str),
    /// A platform id, or an argument, that cannot stand on a command line.
    #[error("`{0}` cannot stand on a kernel command line")]
    Word(String),
    /// The disk could not be read.
    #[error("the disk cannot be read")]
    Disk(#[from] DiskError),
}

/// What to stamp.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StampOptions {
    /// The platform id: `openstack`, `aws`, `metal`.
    pub platform: String,
    /// Consoles of the user's own, in the place of the platform's: `ttyS0,115200n8`.
    pub consoles: Vec<String>,
    /// Further kernel arguments.
    pub arguments: Vec<String>,
    /// Whether an image of another platform may be stamped.
    pub restamp: bool,
}

/// What stamping an image for a platform changes. Nothing is written; the same image and options give the same delta.
pub fn stamp(disk: &dyn GuestDisk, options: &StampOptions) -> Result<Delta, StampError> {
    for word in std::iter::once(&options.platform).chain(&options.consoles).chain(&options.arguments) {
        // A quoted argument may hold a space, which is for the user to get right; a line end never may.
        if word.is_empty() || word.contains(|c: char| c.is_control()) || options.platform.contains(' ') {
            return Err(StampError::Word(word.clone()));
        }
    }
    let table = PartitionTable::read(disk)?;
    check_sealed(&table)?;
    let mut boot = boot_filesystem(disk, &table)?;
    boot.check_writable()?;
    check_loader(&boot, &table)?;

    let mut entries = Vec::new();
    for entry in entry_names(&boot)? {
        let path = format!("loader/entries/{entry}");
        let text = boot.read_file(&path)?;
        entries.push((path.clone(), Options::read(&path, &text)?));
    }
    let (_, first) = entries.first().ok_or(StampError::NoEntry)?;
    let current = first.platform().map(str::to_owned);
    for (_, entry) in &entries {
        if entry.platform() != current.as_deref() {
            let word = |p: Option<&str>| p.unwrap_or("no platform").to_owned();
            return Err(StampError::Mixed { one: word(current.as_deref()), other: word(entry.platform()) });
        }
    }
    let pristine = current.as_deref().is_none_or(|p| p == "metal" || p == options.platform);
    if let Some(platform) = current.as_ref().filter(|_| !pristine && !options.restamp) {
        return Err(StampError::Stamped { platform: platform.clone() });
    }
    let architecture = first.architecture();
    let consoles = consoles(&boot, architecture.as_deref())?;
    let old = current.as_deref().map(|p| consoles.of(p)).unwrap_or_default();
    let new = if options.consoles.is_empty() {
        consoles.of(&options.platform)
    } else {
        PlatformConsole::custom(&options.consoles)
    };
    let mut written = Vec::new();
    for (path, mut entry) in entries {
        entry.restamp(&options.platform, &old.kernel_arguments, &new.kernel_arguments, &options.arguments);
        let text = entry.text();
        boot.replace_file(&path, &text)?;
        written.push((path, text));
    }
    grub::restamp(&mut boot, &new.grub_commands)?;
    let delta = boot.delta();
    prove(&Stamped::new(disk, &delta, None), &table, &written)?;
    Ok(delta)
}

/// Reads the stamped disk as a machine would. Where a damaged filesystem without checksums has two files in one block, or
/// a file where its own tables are, the stamp has hit more than it was to.
fn prove(
    stamped: &dyn GuestDisk,
    table: &PartitionTable,
    entries: &[(String, Vec<u8>)],
) -> Result<(), StampError> {
    let damaged = |_| StampError::Damaged;
    let boot = boot_filesystem(stamped, table).map_err(damaged)?;
    boot.check_writable().map_err(|_| StampError::Damaged)?;
    let names = entry_names(&boot).map_err(damaged)?;
    let whole = entries.iter().all(|(path, text)| boot.read_file(path).is_ok_and(|now| now == *text));
    let same = PartitionTable::read(stamped).is_ok_and(|now| now == *table);
    if whole && same && names.len() == entries.len() { Ok(()) } else { Err(StampError::Damaged) }
}

/// Partitions that exist where the boot chain is under dm-verity, or under a sealed Secure Execution image.
pub(crate) fn check_sealed(table: &PartitionTable) -> Result<(), StampError> {
    for (name, what) in [("se", "IBM Secure Execution"), ("boothash", "dm-verity"), ("roothash", "dm-verity")]
    {
        if table.named(name).is_some() {
            return Err(StampError::Sealed(what));
        }
    }
    Ok(())
}

/// Found by name and label, never by number: it was the first partition once, and is the third now.
pub(crate) fn boot_filesystem<'d>(
    disk: &'d dyn GuestDisk,
    table: &PartitionTable,
) -> Result<Ext4<'d>, StampError> {
    let partition = table.named("boot").ok_or(StampError::NoBoot)?;
    match Ext4::open(disk, partition.start) {
        Ok(ext4) if ext4.label() == "boot" => Ok(ext4),
        Ok(_) | Err(Ext4Error::NotExt4) => Err(StampError::NoBoot),
        Err(error) => Err(error.into()),
    }
}

/// GRUB reads boot entries when it boots; what zipl wrote is read by nobody.
pub(crate) fn check_loader(ext4: &Ext4<'_>, table: &PartitionTable) -> Result<(), StampError> {
    // Root partition of s390x in the Discoverable Partitions Specification.
    const S390X_ROOT: &str = "5eead9a9-fe09-4a1e-a1d7-520d00531306";
    let zipl = table.partitions.iter().any(|p| p.type_guid == S390X_ROOT) || ext4.exists("bootmap")?;
    if zipl { Err(StampError::Zipl) } else { Ok(()) }
}

/// The names of the boot entries, in order.
pub(crate) fn entry_names(ext4: &Ext4<'_>) -> Result<Vec<String>, StampError> {
    let entries = match ext4.read_dir("loader/entries") {
        Ok(entries) => entries,
        Err(Ext4Error::NoFile(_)) => return Err(StampError::NoEntry),
        Err(error) => return Err(error.into()),
    };
    // GRUB's blscfg compares the case.
    let is_entry = |name: &String| name.strip_suffix(".conf").is_some();
    Ok(entries.into_iter().map(|e| e.name).filter(is_entry).collect())
}

/// The image's own table of consoles, else the built-in one.
pub(crate) fn consoles(ext4: &Ext4<'_>, architecture: Option<&str>) -> Result<Consoles, StampError> {
    match ext4.read_file("coreos/platforms.json") {
        Ok(text) => {
            Ok(Consoles::read(&text).unwrap_or_else(|| Consoles::built_in(architecture.unwrap_or("x86_64"))))
        }
        Err(Ext4Error::NoFile(_)) => Ok(Consoles::built_in(architecture.unwrap_or_default())),
        Err(error) => Err(error.into()),
    }
}
