//! `cargo xtask corpus`: real metadata and manifests, and 30 cases with answers that were looked up by other means.
//!
//! The corpus lies beside the checkout (`../shared/data`), or where `BOOTWRIGHT_CORPUS` says. Without it there is
//! nothing to run, which is said.

mod cases;
mod sweep;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::run::{binary, root};

/// Where things are.
pub(crate) struct Corpus {
    pub(crate) data: PathBuf,
    pub(crate) binary: PathBuf,
}

pub(crate) fn run() -> anyhow::Result<()> {
    let data =
        std::env::var_os("BOOTWRIGHT_CORPUS").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let expected = data.join("expected.json");
    if !expected.is_file() {
        println!("corpus: {} is absent, so no case was run", data.display());
        println!("corpus: 0 passed, 0 failed");
        return Ok(());
    }
    let text = std::fs::read_to_string(&expected).with_context(|| expected.display().to_string())?;
    let expected: Value = serde_json::from_str(&text)?;
    let corpus = Corpus { data, binary: binary("dev")? };
    let mut passed = 0;
    let mut failed = 0;
    for case in expected["cases"].as_array().context("no cases")? {
        let id = case["id"].as_str().unwrap_or("?");
        match cases::run(&corpus, case) {
            Ok(()) => passed += 1,
            Err(error) => {
                failed += 1;
                println!("{id}: {} FAILED: {error:#}", case["title"].as_str().unwrap_or_default());
            }
        }
    }
    sweep::run(&corpus)?;
    println!("corpus: {passed} passed, {failed} failed");
    if failed > 0 {
        bail!("{failed} cases of the corpus failed");
    }
    Ok(())
}

impl Corpus {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.data.join(name)
    }

    /// Runs the binary, and reads its answer as JSON.
    pub(crate) fn json(&self, arguments: &[String]) -> anyhow::Result<Value> {
        let output = self.output(arguments)?;
        let (stdout, stderr) = crate::run::text(&output);
        serde_json::from_str(&stdout)
            .with_context(|| format!("`bootwright {}` gave no JSON: {stderr}", arguments.join(" ")))
    }

    /// Runs the binary; a status that no command documents is a crash.
    pub(crate) fn output(&self, arguments: &[String]) -> anyhow::Result<std::process::Output> {
        let output = std::process::Command::new("timeout")
            .arg("60")
            .arg(&self.binary)
            .args(arguments)
            .output()
            .context("the binary cannot be run")?;
        let (_, stderr) = crate::run::text(&output);
        if !matches!(output.status.code(), Some(0 | 1 | 3 | 4)) || stderr.contains("panicked") {
            bail!("`bootwright {}` ended with {}: {stderr}", arguments.join(" "), output.status);
        }
        Ok(output)
    }
}

/// A path as an argument.
pub(crate) fn word(path: &Path) -> String {
    path.display().to_string()
}
