//! `cargo xtask test`: everything, as CI runs it.

use std::path::PathBuf;
use std::process::Command;

use crate::run::shown;
use crate::{corpus, generate};

const CARGO_DENY: &str = "0.20.2";

pub(crate) fn run() -> anyhow::Result<()> {
    shown("cargo fmt --all --check")?;
    shown("cargo clippy --workspace --all-targets --quiet -- --deny warnings")?;
    deny()?;
    generate::run(true)?;
    corpus::run()?;
    // Last, so that the closing lines of a run are those of its tests.
    shown("cargo test --workspace --quiet")
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
