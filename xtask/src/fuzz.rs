//! `cargo xtask fuzz`: libFuzzer on the targets in `fuzz/`, with the stable toolchain.

use std::process::Command;

use anyhow::{Context as _, bail};

use crate::run::root;

/// The targets, each a parser of foreign bytes.
const TARGETS: [&str; 5] = ["metadata", "slots", "edit", "stamp", "container"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The target; all of them where none is named
    target: Option<String>,
    /// How long each runs
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

pub(crate) fn run(arguments: &Args) -> anyhow::Result<()> {
    // What cargo-fuzz passes on, without the sanitizers that need a nightly toolchain.
    let flags = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
                 -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks";
    let folder = root().join("fuzz");
    // With a target named, the flags are for the fuzzed code alone and not for build scripts.
    let host = host()?;
    let built = Command::new("cargo")
        .args(["build", "--release", "--bins", "--target", &host])
        .env("RUSTFLAGS", flags)
        .current_dir(&folder)
        .status()?;
    if !built.success() {
        bail!("the fuzz targets do not build; they need a C++ compiler: apt-get install g++");
    }
    let wanted: Vec<&str> = match arguments.target.as_deref() {
        None => TARGETS.to_vec(),
        Some(name) => {
            vec![*TARGETS.iter().find(|t| **t == name).with_context(|| format!("no target {name}"))?]
        }
    };
    for target in wanted {
        let corpus = folder.join("corpus").join(target);
        let artifacts = folder.join("artifacts").join(target);
        std::fs::create_dir_all(&corpus)?;
        std::fs::create_dir_all(&artifacts)?;
        println!("fuzzing {target} for {} seconds", arguments.seconds);
        let status = Command::new(folder.join("target").join(&host).join("release").join(target))
            .arg(&corpus)
            .arg(folder.join("seeds"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .arg(format!("-max_total_time={}", arguments.seconds))
            .args(["-rss_limit_mb=1024", "-timeout=10", "-max_len=16384", "-print_final_stats=1"])
            .status()?;
        if !status.success() {
            bail!("{target}: something was found; see {}", artifacts.display());
        }
    }
    Ok(())
}

fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc tells no host")?;
    Ok(host.to_owned())
}
