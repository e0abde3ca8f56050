//! `cargo xtask bench`: each work against the tool that a user would pick instead, on the same input, in pairs in one
//! run. Ratios of medians are printed, with both commands.

mod image;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::run::{binary, root};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What is measured [default: both]
    #[arg(value_enum)]
    what: Option<What>,
    /// How many machine sets
    #[arg(long, default_value_t = 10_000)]
    sets: usize,
    /// How many of them the rival's loop is given; its time is extrapolated
    #[arg(long, default_value_t = 100)]
    sample: usize,
    /// How many pairs are run
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Release metadata: a whole stream makes the work real [default: the examples' part of one]
    #[arg(long)]
    release: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    Plan,
    Image,
}

pub(crate) fn run(arguments: &Args) -> anyhow::Result<()> {
    if arguments.what != Some(What::Image) {
        plan(arguments)?;
    }
    if arguments.what != Some(What::Plan) {
        image::run(arguments.rounds)?;
    }
    Ok(())
}

fn plan(arguments: &Args) -> anyhow::Result<()> {
    for (tool, install) in
        [("jq", "apt-get install jq"), ("yq", "go install github.com/mikefarah/yq/v4@latest")]
    {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        ensure!(found.is_ok_and(|s| s.success()), "the rival needs `{tool}`: {install}");
    }
    let program = binary("release")?;
    let folder = tempfile::tempdir()?;
    let example = || root().join("examples/release/rhcos-4.20.json");
    let release = arguments.release.clone().unwrap_or_else(example);
    println!("plan: {} MachineSets, one file each, against {}", arguments.sets, release.display());
    let tree = folder.path().join("tree");
    write_tree(&tree, arguments.sets)?;

    let mut ours = Vec::new();
    let mut rivals = Vec::new();
    let mut peak = 0;
    let plan =
        ["plan", &tree.display().to_string(), "--release", &release.display().to_string()].map(str::to_owned);
    let known = [
        "--known".to_owned(),
        root().join("examples/known").display().to_string(),
        "-o".into(),
        "json".into(),
    ];
    let script = rival(&tree, &release, arguments.sample);
    for round in 0..arguments.rounds {
        let (time, memory) = measured(Command::new(&program).args(&plan).args(&known))?;
        peak = peak.max(memory);
        let (rival, _) = measured(Command::new("bash").arg("-c").arg(&script))?;
        let scale = u32::try_from(arguments.sets / arguments.sample.max(1))?;
        println!(
            "  round {}: {time:.2?} against {:.2?} ({rival:.2?} for {})",
            round + 1,
            rival * scale,
            arguments.sample
        );
        ours.push(time);
        rivals.push(rival * scale);
    }
    let ratio = median(&mut rivals).as_secs_f64() / median(&mut ours).as_secs_f64();
    println!("  bootwright {} {}", plan.join(" "), known.join(" "));
    println!(
        "  rival: for each file `yq` reads region, architecture and AMI, `jq` looks the image up, bash compares"
    );
    println!("  ratio of medians {ratio:.0}, peak memory {} MiB", peak / 1024);

    println!("plan: time by number of sets");
    for sets in [arguments.sets / 10, arguments.sets, arguments.sets * 4] {
        let tree = folder.path().join(format!("tree-{sets}"));
        write_tree(&tree, sets)?;
        let mut plan = plan.clone();
        plan[1] = tree.display().to_string();
        let mut times = Vec::new();
        let mut peak = 0;
        for _ in 0..3 {
            let (time, memory) = measured(Command::new(&program).args(&plan).args(&known))?;
            times.push(time);
            peak = peak.max(memory);
        }
        let time = median(&mut times);
        let each = time.as_secs_f64() * 1e6 / f64::from(u32::try_from(sets)?);
        println!("  {sets:>6} sets: {time:.2?}, {each:.0} us a set, peak {} MiB", peak / 1024);
    }
    Ok(())
}

/// Runs a command to its end, and tells its time and the peak of its memory in KiB (the kernel's own count).
fn measured(command: &mut Command) -> anyhow::Result<(Duration, u64)> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot be run")?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Ok(text) = fs::read_to_string(&status) {
            let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or_default();
            peak = peak.max(line.trim().trim_end_matches(" kB").parse().unwrap_or(0));
        }
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("ended with {status}");
            }
            return Ok((start.elapsed(), peak));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn write_tree(folder: &Path, sets: usize) -> anyhow::Result<()> {
    let template = fs::read_to_string(root().join("examples/fleet/aws.yaml"))?;
    let template = template.split("\n---\n").next().context("no document")?;
    for n in 0..sets {
        let sub = folder.join(format!("cluster-{:03}", n / 100));
        if n % 100 == 0 {
            fs::create_dir_all(&sub)?;
        }
        let text = template.replace("harbor-x4k7q-worker-us-east-1a", &format!("harbor-x4k7q-worker-{n:06}"));
        // Real sets carry labels, block devices, tags and taints: about twice the text.
        let mut text = text + "\n";
        for line in 0..24 {
            let _ = writeln!(
                text,
                "# {line:02} labels, tags, taints and subnets of a real set take about this much room"
            );
        }
        fs::write(sub.join(format!("set-{n:06}.yaml")), text)?;
    }
    Ok(())
}

/// The loop that an administrator would write.
fn rival(tree: &Path, release: &Path, sample: usize) -> String {
    let spec = ".spec.template.spec.providerSpec.value";
    format!(
        r#"set -eu
find {tree} -name '*.yaml' | sort | head -n {sample} | while read -r file; do
  read -r region ami < <(yq '{spec}.placement.region + " " + {spec}.ami.id' "$file")
  arch=$(yq '.metadata.annotations."capacity.cluster-autoscaler.kubernetes.io/labels"' "$file" | sed -n 's,.*kubernetes.io/arch=\([a-z0-9]*\).*,\1,p')
  case "$arch" in amd64) arch=x86_64 ;; arm64) arch=aarch64 ;; esac
  want=$(jq -r --arg a "$arch" --arg r "$region" '.architectures[$a].images.aws.regions[$r].image' {release})
  [ "$ami" = "$want" ] || echo "$file $ami $want"
done"#,
        tree = tree.display(),
        release = release.display(),
    )
}
