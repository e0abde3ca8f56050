//! Disk images: stamping in place, writing, and opening what is compressed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;

use super::{measured, median};
use crate::{fixtures, run::binary, tools};

pub(super) fn run(rounds: usize) -> anyhow::Result<()> {
    tools::install()?;
    for (tool, package) in [("pigz", "pigz"), ("sync", "coreutils")] {
        ensure!(tools::present(tool), "the rival needs `{tool}`: apt-get install {package}");
    }
    let program = binary("release")?.display().to_string();
    let folder = tempfile::tempdir()?;
    stamp(&program, folder.path(), rounds)?;
    let disk = fixtures::image(folder.path(), 2900, 1024, Path::new("/usr/lib"))?;
    let (size, disk) = (fs::metadata(&disk)?.len(), disk.display().to_string());
    println!(
        "convert: raw of {} MiB, 1024 MiB of files in it; both sides end on disk (`sync -f`)",
        size >> 20
    );
    let out = folder.path().join("ours").display().to_string();
    let rival_out = folder.path().join("rival").display().to_string();
    let qemu =
        |options: &str| format!("qemu-img convert {options} {disk} {rival_out} && sync -f {rival_out}");
    for (name, ours, rival) in [
        ("qcow2 zlib", "--format qcow2 --compress zlib", qemu("-c -m 16 -W -O qcow2")),
        (
            "qcow2 zstd",
            "--format qcow2 --compress zstd",
            qemu("-c -m 16 -W -O qcow2 -o compression_type=zstd"),
        ),
        (
            "streamOptimized vmdk",
            "--format vmdk",
            qemu("-m 16 -W -O vmdk -o subformat=streamOptimized,compat6"),
        ),
        ("plain qcow2", "--format qcow2", qemu("-m 16 -W -O qcow2")),
        ("fixed VHD", "--format vhd", qemu("-m 16 -W -O vpc -o subformat=fixed,force_size")),
        ("sparse raw", "--format raw", qemu("-m 16 -W -O raw")),
    ] {
        let ours = format!("{program} image convert {disk} -o {out} {ours}");
        pairs(name, rounds, &[&out, &rival_out], &ours, &rival)?;
        println!("    {} bytes against {}", fs::metadata(&out)?.len(), fs::metadata(&rival_out)?.len());
    }
    for (name, pack, ending, unpack) in [
        (".gz", "gzip -k -1", "gz", "pigz -dc"),
        (".xz", "xz -k -T0 -1", "xz", "xz -T0 -dc"),
        (".zst", "zstd -q -k -3", "zst", "zstd -q -dc"),
    ] {
        measured(Command::new("bash").arg("-c").arg(format!("{pack} {disk}")))?;
        let packed = format!("{disk}.{ending}");
        let digest = Command::new("sha256sum").arg(&packed).output()?.stdout;
        let digest = String::from_utf8_lossy(&digest).split(' ').next().unwrap_or_default().to_owned();
        let ours = format!("{program} image convert {packed} -o {out} --format raw --sha256 {digest}");
        let rival = format!(
            "echo '{digest}  {packed}' | sha256sum -c && {unpack} {packed} > {rival_out} && sha256sum {rival_out} && sync -f {rival_out}"
        );
        pairs(&format!("{name} to verified raw"), rounds, &[&out, &rival_out], &ours, &rival)?;
        fs::remove_file(packed)?;
    }
    Ok(())
}

/// In place, on disks of three sizes: the rival reads the entry and writes it back by `debugfs`, and loses its mode and
/// labels on the way.
fn stamp(program: &str, folder: &Path, rounds: usize) -> anyhow::Result<()> {
    for gib in [1, 16, 64] {
        let disk = fixtures::image(folder, gib << 10, 16, Path::new("/usr/lib"))?;
        let disk = disk.display().to_string();
        println!("stamp: raw of {gib} GiB, in place, to another platform and back");
        let there = |platform: &str| {
            format!("{program} image stamp {disk} --in-place --restamp --platform {platform}")
        };
        let ours = format!("{} && {}", there("openstack"), there("metal"));
        let entry = "/loader.1/entries/ostree-1.conf";
        let offset = 3 << 20;
        let text = folder.join("entry").display().to_string();
        let edit = |from: &str, to: &str| {
            format!(
                "debugfs -R 'cat {entry}' '{disk}?offset={offset}' 2>/dev/null | sed 's/platform.id={from}/platform.id={to}/' > {text} \
                 && printf 'rm {entry}\\nwrite {text} {entry}\\n' | debugfs -w -f - '{disk}?offset={offset}' && sync {disk}"
            )
        };
        let rival = format!("{} && {}", edit("metal", "openstack"), edit("openstack", "metal"));
        pairs("stamp in place", rounds * 2, &[], &ours, &rival)?;
    }
    Ok(())
}

/// Runs both in turn. Outputs are new files each time: to take an old one away costs as much as to write it.
fn pairs(name: &str, rounds: usize, outputs: &[&str], ours: &str, rival: &str) -> anyhow::Result<()> {
    let bash = |line: &str| measured(Command::new("bash").arg("-c").arg(format!("exec {line}")));
    let sides = |line: &str| {
        if line.contains("&&") { measured(Command::new("bash").arg("-c").arg(line)) } else { bash(line) }
    };
    let (mut mine, mut theirs, mut peak): (Vec<Duration>, Vec<Duration>, u64) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        for output in outputs {
            let _ = fs::remove_file(output);
        }
        let (time, memory) = sides(ours)?;
        mine.push(time);
        peak = peak.max(memory);
        theirs.push(sides(rival)?.0);
    }
    let (mine, theirs) = (median(&mut mine), median(&mut theirs));
    let ratio = theirs.as_secs_f64() / mine.as_secs_f64();
    println!(
        "  {name}: {mine:.2?} against {theirs:.2?}, ratio of medians {ratio:.2}, peak {} MiB",
        peak >> 10
    );
    println!("    ours:  {ours}\n    rival: {rival}");
    Ok(())
}
