//! Builders and oracles for tests. Everything here may panic: it runs in tests alone.

pub mod disk;

use std::path::Path;
use std::process::Command;

/// Runs a program that tests need, and gives its output; fails with the command that installs it.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let (ok, output) = try_run(program, arguments);
    assert!(ok, "`{program} {}` failed: {output}", arguments.join(" "));
    output
}

/// The same, and tells whether the program was content.
pub fn try_run(program: &str, arguments: &[&str]) -> (bool, String) {
    let package = match program {
        "mke2fs" | "debugfs" | "e2fsck" => "e2fsprogs",
        "qemu-img" | "qemu-io" => "qemu-utils",
        "xz" => "xz-utils",
        "sgdisk" => "gdisk",
        other => other,
    };
    // Filesystem tools are not on every user's path.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program).args(arguments).env("PATH", path).env("LC_ALL", "C").output();
    let output = output.unwrap_or_else(|e| panic!("`{program}` is missing ({e}): apt-get install {package}"));
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// A path as an argument.
pub fn word(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}
