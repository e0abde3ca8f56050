//! Disk images as the commands take them: opened, proven, stamped.

use std::path::Path;

use anyhow::{Context as _, bail};
use image::{Delta, Opened, Sha256Hex, StampOptions};

use crate::cli::{KernelArgs, ProofArgs};
use crate::inputs::strict;
use crate::printer::Printer;

/// Opens an image. What an interrupted stamp left of it is put back first.
pub(crate) fn open(path: &Path, scratch: &Path, printer: &mut Printer) -> anyhow::Result<Opened> {
    if image::recover(path)? {
        printer.note(format!("{}: an interrupted stamp was taken back", path.display()));
    }
    Ok(image::open(path, scratch)?)
}

/// The folder in which temporary files for a new file belong: they may be as large as a disk.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What a platform's stamp changes.
pub(crate) fn stamp(
    opened: &Opened,
    path: &Path,
    platform: &str,
    kernel: &KernelArgs,
) -> anyhow::Result<Delta> {
    let options = StampOptions {
        platform: platform.to_owned(),
        consoles: kernel.console.clone(),
        arguments: kernel.karg.clone(),
        restamp: kernel.restamp,
    };
    image::stamp(&*opened.disk, &options).with_context(|| path.display().to_string())
}

/// What an image must be, told before it is looked at.
pub(crate) struct Proof {
    sha256: Option<String>,
    metadata: Option<(String, metadata::Catalog)>,
}

impl Proof {
    /// Reads what proves an image.
    pub(crate) fn read(arguments: &ProofArgs) -> anyhow::Result<Self> {
        let sha256 = arguments.sha256.as_ref().map(|text| text.to_ascii_lowercase());
        if let Some(text) = &sha256
            && (text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()))
        {
            bail!("--sha256: `{text}` is not a sha256: expected 64 hexadecimal digits");
        }
        let metadata = match arguments.release.as_slice() {
            [] => None,
            words => {
                let catalog = strict(sources::load(words, None)?).context("--release")?.catalog;
                Some((words.join(", "), catalog))
            }
        };
        Ok(Self { sha256, metadata })
    }

    /// Proves an image; what it is by the metadata, where that is asked. A file that was read as a whole is not read again.
    pub(crate) fn check(&self, opened: &Opened, path: &Path) -> anyhow::Result<Option<String>> {
        if self.sha256.is_none() && self.metadata.is_none() {
            return Ok(None);
        }
        let file = match opened.sha256 {
            Some(sha256) => sha256,
            None => {
                Sha256Hex::of_file(path).with_context(|| format!("{}: cannot be read", path.display()))?
            }
        };
        let digests: Vec<String> =
            std::iter::once(file).chain(opened.content_sha256).map(|digest| digest.to_string()).collect();
        let has = || digests.join(", decompressed ");
        if let Some(sha256) = self.sha256.as_ref().filter(|sha256| !digests.contains(sha256)) {
            bail!("{}: its sha256 is {}, not {sha256}: download it again", path.display(), has());
        }
        let Some((name, catalog)) = &self.metadata else { return Ok(None) };
        let identity = digests.iter().flat_map(|digest| catalog.identify(digest)).next();
        let Some(identity) = identity else {
            bail!("{}: its sha256 {} is none that {name} names", path.display(), has());
        };
        let version = identity.version.as_ref().map(ToString::to_string).unwrap_or_default();
        Ok(Some(format!("{} {version}", identity.distribution.label()).trim().to_owned()))
    }
}

/// A number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut unit, mut scale) = (0, 1_u64);
    while unit + 1 < UNITS.len() && bytes >= scale << 10 {
        unit += 1;
        scale <<= 10;
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    let tenths = u128::from(bytes) * 10 / u128::from(scale);
    if unit == 0 || tenths.is_multiple_of(10) {
        format!("{} {name}", tenths / 10)
    } else {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    }
}
