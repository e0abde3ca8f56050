//! The programs that the tests take as oracles: installed where they are missing.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::bail;

use crate::run::shown;

/// A program, and the Debian package that has it.
const TOOLS: [(&str, &str); 11] = [
    ("mke2fs", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
    ("debugfs", "e2fsprogs"),
    ("sgdisk", "gdisk"),
    ("qemu-img", "qemu-utils"),
    ("qemu-io", "qemu-utils"),
    ("gzip", "gzip"),
    ("xz", "xz-utils"),
    ("zstd", "zstd"),
    ("tar", "tar"),
    ("git", "git"),
];

/// Installs the packages of the programs that are not there; where that is not possible, fails with the command.
pub(crate) fn install() -> anyhow::Result<()> {
    let mut packages: Vec<_> = TOOLS.iter().filter(|(tool, _)| !present(tool)).map(|t| t.1).collect();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    let install = format!("apt-get install --yes --no-install-recommends {}", packages.join(" "));
    let quiet = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    let sudo = if root {
        "env DEBIAN_FRONTEND=noninteractive"
    } else if quiet("sudo", &["-n", "true"]).is_ok_and(|status| status.success()) {
        "sudo -n"
    } else {
        bail!("the tests need programs that are missing; install them: {install}");
    };
    shown(&format!("{sudo} apt-get update --quiet"))?;
    shown(&format!("{sudo} {install}"))
}

/// Filesystem tools are not on every user's path.
pub(crate) fn present(tool: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':').any(|folder| Path::new(folder).join(tool).is_file())
}
