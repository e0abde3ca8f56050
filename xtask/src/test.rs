//! `cargo xtask test`: everything, as CI runs it.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::run::{root, shown};
use crate::{corpus, generate, tools};

const CARGO_DENY: &str = "0.20.2";

pub(crate) fn run() -> anyhow::Result<()> {
    tools::install()?;
    shown("cargo fmt --all --check")?;
    shown("cargo clippy --workspace --all-targets --quiet -- --deny warnings")?;
    deny()?;
    generate::run(true)?;
    corpus::run()?;
    tests()
}

/// All tests, with one closing line for all of their binaries.
fn tests() -> anyhow::Result<()> {
    let line = ["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"];
    println!("+ cargo {}", line.join(" "));
    let mut child = Command::new("cargo").args(line).current_dir(root()).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("no pipe")?;
    let (mut passed, mut failed) = (0, 0);
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        if let Some(result) = line.strip_prefix("test result: ") {
            let count = |word: &str| {
                let before = result.split(word).next().unwrap_or_default();
                before.rsplit(' ').next().and_then(|n| n.parse::<usize>().ok()).unwrap_or_default()
            };
            passed += count(" passed");
            failed += count(" failed");
        }
    }
    let status = child.wait()?;
    println!("{passed} passed, {failed} failed");
    ensure!(status.success() && passed > 0, "the tests failed: {status}");
    Ok(())
}

/// Licences, duplicates and origins of dependencies. The program is built once and kept in the user's cache.
fn deny() -> anyhow::Result<()> {
    let home = std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
    let root = home.join(".cache/bootwright");
    let program = root.join("bin/cargo-deny");
    let version = Command::new(&program).arg("--version").output();
    let present = version.is_ok_and(|v| String::from_utf8_lossy(&v.stdout).contains(CARGO_DENY));
    if !present {
        let root = root.display();
        shown(&format!("cargo install --quiet --locked --root {root} cargo-deny@{CARGO_DENY}"))?;
    }
    shown(&format!("{} --log-level error check bans licenses sources", program.display()))
}
