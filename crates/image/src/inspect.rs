//! What an image is, without booting it.

use serde::Serialize;

use crate::disk::{ExtentKind, GuestDisk};
use crate::gpt::{PartitionTable, UNINITIALISED};
use crate::stamp::{self, Options, StampError};

/// What an image is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// Size of the guest disk in bytes.
    pub virtual_size: u64,
    /// Bytes of data on the guest disk: neither zeros nor holes.
    pub data: u64,
    /// Bytes that the container holds for the disk, where it tells.
    pub allocated: Option<u64>,
    /// The partition table; none where there is none that can be read.
    pub partitions: Option<PartitionTable>,
    /// Whether no machine has booted the disk yet, by its GUID.
    pub pristine: bool,
    /// Filesystems by partition number: their kind and label.
    pub filesystems: Vec<Filesystem>,
    /// The boot entries.
    pub entries: Vec<BootEntry>,
    /// The platform id that all entries have.
    pub platform: Option<String>,
    /// The architecture, by the name of the kernel.
    pub architecture: Option<String>,
    /// Where the consoles of platforms are from.
    pub consoles: Option<&'static str>,
    /// What stands against stamping; none where nothing does.
    pub not_stampable: Option<String>,
    /// What could not be told, and why.
    pub notes: Vec<String>,
}

/// A filesystem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Filesystem {
    /// The number of its partition.
    pub partition: u32,
    /// `ext4`, `xfs`, `vfat`.
    pub kind: &'static str,
    /// Its label.
    pub label: String,
}

/// A boot entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BootEntry {
    /// Name of its file.
    pub name: String,
    /// The platform id.
    pub platform: Option<String>,
    /// The console arguments.
    pub consoles: Vec<String>,
    /// The whole line of options.
    pub options: String,
}

/// Looks at an image.
pub fn inspect(disk: &dyn GuestDisk) -> Result<Inspection, crate::disk::DiskError> {
    let extents = disk.extents()?;
    let data = extents.iter().filter(|e| e.kind == ExtentKind::Data).map(|e| e.length).sum();
    let mut found = Inspection {
        virtual_size: disk.size(),
        data,
        allocated: disk.allocated(),
        partitions: None,
        pristine: false,
        filesystems: Vec::new(),
        entries: Vec::new(),
        platform: None,
        architecture: None,
        consoles: None,
        not_stampable: None,
        notes: Vec::new(),
    };
    match PartitionTable::read(disk) {
        Ok(table) => {
            found.pristine = table.disk_guid == UNINITIALISED;
            for partition in &table.partitions {
                found.filesystems.extend(filesystem(disk, partition.number, partition.start));
            }
            if let Err(error) = found.boot(disk, &table) {
                found.not_stampable = Some(chain(&error));
            }
            found.partitions = Some(table);
            found.notes.push(
                "the OS version stands in the aleph on the root filesystem (xfs), which is not read"
                    .to_owned(),
            );
        }
        Err(error) => found.not_stampable = Some(chain(&error)),
    }
    Ok(found)
}

impl Inspection {
    fn boot(&mut self, disk: &dyn GuestDisk, table: &PartitionTable) -> Result<(), StampError> {
        let boot = stamp::boot_filesystem(disk, table)?;
        for name in stamp::entry_names(&boot)? {
            let path = format!("loader/entries/{name}");
            let entry = Options::read(&path, &boot.read_file(&path)?)?;
            self.architecture = self.architecture.take().or_else(|| entry.architecture());
            let consoles = entry.words().iter().filter(|w| w.starts_with("console=")).cloned().collect();
            let platform = entry.platform().map(str::to_owned);
            self.entries.push(BootEntry { name, platform, consoles, options: entry.words().join(" ") });
        }
        let first = self.entries.first().ok_or(StampError::NoEntry)?.platform.clone();
        self.platform = first.filter(|p| self.entries.iter().all(|e| e.platform.as_ref() == Some(p)));
        self.consoles = Some(stamp::consoles(&boot, self.architecture.as_deref())?.source);
        stamp::check_sealed(table)?;
        stamp::check_loader(&boot, table)?;
        Ok(boot.check_writable()?)
    }
}

/// The kind and label of the filesystem at an offset, by its magic.
fn filesystem(disk: &dyn GuestDisk, partition: u32, start: u64) -> Option<Filesystem> {
    if let Ok(ext4) = crate::ext4::Ext4::open(disk, start) {
        return Some(Filesystem { partition, kind: "ext4", label: ext4.label().to_owned() });
    }
    let head = crate::disk::read_vec(disk, start, 512).ok()?;
    let text = |range: std::ops::Range<usize>| {
        let bytes = head.get(range).unwrap_or_default();
        String::from_utf8_lossy(bytes).trim_end_matches(['\0', ' ']).to_owned()
    };
    if head.starts_with(b"XFSB") {
        return Some(Filesystem { partition, kind: "xfs", label: text(108..120) });
    }
    for (magic, label) in [(54, 43..54), (82, 71..82)] {
        if head.get(magic..magic + 3) == Some(b"FAT") {
            return Some(Filesystem { partition, kind: "vfat", label: text(label) });
        }
    }
    None
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
