//! From arguments to what the planner takes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use jiff::Timestamp;
use machines::{Platform, Slot};
use metadata::{Architecture, Catalog};
use plan::{ClusterArchitecture, Facts, Finding, FindingReason, Inputs, Plan, Planner, Policy, Severity};
use sources::manifests::Found;

use crate::cli::InputArgs;
use crate::printer::Printer;

/// Everything that was read.
pub(crate) struct Loaded {
    pub(crate) release: Catalog,
    pub(crate) known: Catalog,
    pub(crate) policy: Policy,
    pub(crate) facts: Facts,
    pub(crate) now: Timestamp,
    pub(crate) slots: Vec<Slot>,
    pub(crate) found: Found,
}

impl Loaded {
    /// Reads metadata, policy and manifests.
    pub(crate) fn read(paths: &[PathBuf], arguments: &InputArgs) -> anyhow::Result<Self> {
        let arch = arguments.arch.as_deref().map(architecture).transpose()?;
        let release = strict(sources::load(&arguments.release, arch.as_ref())?).context("--release")?.catalog;
        if release.images.is_empty() && release.artifacts.is_empty() {
            bail!("--release: {} names no image and no artifact", arguments.release.join(", "));
        }
        let known = strict(sources::load(&arguments.known, arch.as_ref())?).context("--known")?.catalog;
        let policy = match &arguments.policy {
            Some(path) => read_policy(path)?,
            None => Policy::managed(),
        };
        let now = match &arguments.at {
            Some(text) => {
                text.parse().with_context(|| format!("--at: `{text}` is not a time as in RFC 3339"))?
            }
            None => Timestamp::now(),
        };
        let mut facts = facts(arguments)?;
        let files = sources::manifests::list(paths)?;
        let bar = Printer::progress("reading manifests", files.len());
        let mut found = sources::manifests::read(&files, |done| bar.set_position(done as u64));
        bar.finish_and_clear();
        let inventory = std::mem::take(&mut found.inventory);
        facts.complete(inventory.cluster_facts());
        Ok(Self { release, known, policy, facts, now, slots: inventory.finish(), found })
    }

    /// The same as the planner takes it.
    pub(crate) fn inputs(&self) -> Inputs<'_> {
        let Self { release, known, policy, facts, now, .. } = self;
        Inputs { release, known, policy, facts, now: *now }
    }

    /// Plans, checks the plan, and adds what could not be read to the findings.
    pub(crate) fn plan(&self) -> anyhow::Result<Plan> {
        let inputs = self.inputs();
        let mut plan = Planner::new(inputs).plan(&self.slots);
        if let Some(broken) = plan::check(&plan, &self.slots, &inputs).first() {
            bail!("the plan breaks a rule of its own, nothing is done; please report this: {broken}");
        }
        plan.findings.extend(self.found.unread.iter().map(|unread| Finding {
            file: Some(unread.file.clone()),
            line: unread.line,
            column: unread.column,
            severity: Severity::Error,
            reason: if unread.line == 0 {
                FindingReason::UnreadableFile
            } else {
                FindingReason::UnparsableManifest
            },
            object: None,
            message: unread.message.clone(),
        }));
        Ok(plan)
    }
}

/// Metadata is whole or it is not used: half of a release would be followed as if it were all of it.
pub(crate) fn strict(loaded: sources::Loaded) -> anyhow::Result<sources::Loaded> {
    match loaded.unread.first() {
        Some((_, error)) => bail!("{error}"),
        None => Ok(loaded),
    }
}

/// An architecture in either spelling.
pub(crate) fn architecture(name: &str) -> anyhow::Result<Architecture> {
    Architecture::known(name)
        .ok_or_else(|| anyhow!("`{name}` is not an architecture: expected x86_64, aarch64, ppc64le or s390x"))
}

fn facts(arguments: &InputArgs) -> anyhow::Result<Facts> {
    let cluster = match arguments.cluster_arch.as_deref() {
        Some(name) if name.eq_ignore_ascii_case("multi") => Some(ClusterArchitecture::Multi),
        Some(name) => Some(ClusterArchitecture::Single(architecture(name).context("--cluster-arch")?)),
        None => None,
    };
    let mut image_names = BTreeMap::new();
    for word in &arguments.image_name {
        let (platforms, name) = match word.split_once('=') {
            Some((platform, name)) => (vec![platform_of(platform)?], name),
            None => (Platform::ALL.into_iter().filter(|p| p.has_private_images()).collect(), word.as_str()),
        };
        if name.is_empty() {
            bail!("--image-name: `{word}` names no image");
        }
        image_names.extend(platforms.into_iter().map(|platform| (platform, name.to_owned())));
    }
    Ok(Facts {
        architecture: cluster,
        infrastructure_name: arguments.infrastructure_name.clone(),
        region: arguments.region.clone(),
        image_names,
        ..Facts::default()
    })
}

fn platform_of(name: &str) -> anyhow::Result<Platform> {
    let found = Platform::ALL.into_iter().find(|p| p.as_str() == name).filter(|p| p.has_private_images());
    found.ok_or_else(|| {
        let names: Vec<_> =
            Platform::ALL.into_iter().filter(|p| p.has_private_images()).map(Platform::as_str).collect();
        anyhow!("--image-name: `{name}` is no platform with private images: expected {}", names.join(", "))
    })
}

fn read_policy(path: &Path) -> anyhow::Result<Policy> {
    let text = fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let value: serde_json::Value =
        serde_saphyr::from_str(&text).with_context(|| format!("{}: not valid YAML", path.display()))?;
    Policy::read(&value).with_context(|| path.display().to_string())
}
