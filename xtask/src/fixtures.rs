//! `cargo xtask fixtures`: miniature disk images to try commands and benchmarks on.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use testkit::disk::{Spec, build};

use crate::tools;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder for disk.raw
    folder: PathBuf,
    /// Size of the root partition in MiB
    #[arg(long, default_value_t = 64)]
    root: u64,
    /// How many MiB of it are filled with files
    #[arg(long, default_value_t = 32)]
    data: u64,
    /// Where the files are taken from: programs and libraries compress as those of an image do
    #[arg(long, default_value = "/usr/lib")]
    from: PathBuf,
}

pub(crate) fn run(arguments: &Args) -> anyhow::Result<()> {
    tools::install()?;
    fs::create_dir_all(&arguments.folder)?;
    println!("{}", image(&arguments.folder, arguments.root, arguments.data, &arguments.from)?.display());
    Ok(())
}

/// Builds one, its root partition filled with files.
pub(crate) fn image(folder: &Path, root: u64, data: u64, from: &Path) -> anyhow::Result<PathBuf> {
    let spec = Spec { boot_mib: 128, block_size: 4096, root_mib: root, noise_mib: 0, ..Spec::default() };
    let disk = build(folder, &spec);
    for left in ["boot.img", "tree"] {
        let left = folder.join(left);
        if left.is_dir() { fs::remove_dir_all(left)? } else { fs::remove_file(left)? }
    }
    let file = File::options().write(true).open(&disk.path)?;
    let (mut at, end) = (disk.root_start, disk.root_start + (data.min(root) << 20));
    fill(&file, &mut at, end, from)?;
    Ok(disk.path)
}

fn fill(file: &File, at: &mut u64, end: u64, folder: &Path) -> anyhow::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .flatten()
        .map(|e| e.path())
        .collect();
    entries.sort();
    for path in entries {
        if *at >= end || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            fill(file, at, end, &path)?;
        } else if let Ok(bytes) = fs::read(&path) {
            let length = usize::try_from(end - *at)?.min(bytes.len());
            file.write_all_at(bytes.get(..length).unwrap_or_default(), *at)?;
            *at += (length as u64).next_multiple_of(4096);
        }
    }
    Ok(())
}
