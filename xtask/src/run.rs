//! Running programs.

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context as _, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// Runs a command line in the root, with its output shown, and fails with it.
pub(crate) fn shown(line: &str) -> anyhow::Result<()> {
    println!("+ {line}");
    let mut words = line.split_whitespace();
    let program = words.next().context("an empty command")?;
    let status = Command::new(program).args(words).current_dir(root()).status();
    let status = status.with_context(|| format!("`{program}` cannot be run"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// Builds the binary with a profile (`dev`, `release`) and tells where it is.
pub(crate) fn binary(profile: &str) -> anyhow::Result<PathBuf> {
    shown(&format!("cargo build --quiet --package bootwright --profile {profile}"))?;
    let folder = if profile == "dev" { "debug" } else { profile };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join(folder).join("bootwright"))
}

/// The output of a finished program as text, whatever its status.
pub(crate) fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
