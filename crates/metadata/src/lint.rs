//! What is odd in release metadata, before anything is built on it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::catalog::{Catalog, Distribution, Source, SourceId, platform};
use crate::{Architecture, OsVersion};

/// A rule of the linter. The list is closed and documented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub enum LintRule {
    /// One version of one artifact has two digests, or one image place two images.
    SameVersionOtherDigest,
    /// One image id is named for two releases, regions or architectures.
    ImageIdReused,
    /// One document holds more than one build for one architecture.
    MixedBuilds,
    /// Architectures of one document are at different builds.
    ArchitectureBehind,
    /// A region holds an older image than the others.
    RegionBehind,
    /// A region, platform or architecture that another release has is missing.
    MissingAgainst,
    /// A location that nothing can be fetched from.
    UnusableLocation,
    /// An artifact without a digest.
    MissingChecksum,
    /// The document's stream name says another release than its content.
    StreamNameContradicts,
    /// A field that could not be understood.
    UnreadableField,
}

impl LintRule {
    /// Whether a user of the metadata can be hurt by it; the others are to be known.
    pub fn is_error(self) -> bool {
        matches!(self, Self::SameVersionOtherDigest | Self::ImageIdReused | Self::MissingChecksum)
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lint {
    /// The rule.
    pub rule: LintRule,
    /// The document.
    pub source: String,
    /// The sentence.
    pub message: String,
}

/// Lints a catalog; with `against`, also for what another release has and this one lacks.
pub fn lint(catalog: &Catalog, against: Option<&Catalog>) -> Vec<Lint> {
    let mut linter = Linter { catalog, found: BTreeSet::new() };
    linter.digests();
    linter.reused_ids();
    for id in (0..catalog.sources.len()).filter_map(|n| u32::try_from(n).ok().map(SourceId)) {
        linter.builds(id);
        linter.stream_name(id);
    }
    linter.regions();
    linter.files();
    if let Some(other) = against {
        linter.missing(other);
    }
    for problem in &catalog.problems {
        let message = format!("{}: {}", problem.path, problem.message);
        linter.found.insert(Lint {
            rule: LintRule::UnreadableField,
            source: problem.source.clone(),
            message,
        });
    }
    linter.found.into_iter().collect()
}

struct Linter<'a> {
    catalog: &'a Catalog,
    found: BTreeSet<Lint>,
}

impl<'a> Linter<'a> {
    fn report(&mut self, rule: LintRule, source: SourceId, message: String) {
        let source = self.catalog.source(source).map_or_else(String::new, |s| s.name.to_string());
        self.found.insert(Lint { rule, source, message });
    }

    fn digests(&mut self) {
        let mut files: BTreeMap<_, (&str, SourceId)> = BTreeMap::new();
        for artifact in &self.catalog.artifacts {
            let (Some(version), Some(sha256)) = (&artifact.version, artifact.sha256.as_deref()) else {
                continue;
            };
            let key = (
                version.as_str(),
                &artifact.architecture,
                &artifact.platform,
                &artifact.format,
                &artifact.part,
            );
            let (first, source) = *files.entry(key).or_insert((sha256, artifact.source));
            if first != sha256 {
                let other = self.catalog.source(source).map_or("", |s| &s.name);
                let message = format!(
                    "{} {} {} {version} has sha256 {sha256} here and {first} in {other}",
                    arch(artifact.architecture.as_ref()),
                    artifact.platform,
                    artifact.format
                );
                self.report(LintRule::SameVersionOtherDigest, artifact.source, message);
            }
        }
        let mut places: BTreeMap<_, (String, SourceId)> = BTreeMap::new();
        for image in self.catalog.images.iter().filter(|i| &*i.platform == platform::AWS) {
            let (Some(version), text) = (&image.version, image.reference.text()) else { continue };
            let key = (version.as_str(), &image.architecture, &image.region);
            let (first, source) = places.entry(key).or_insert_with(|| (text.clone(), image.source)).clone();
            if first != text {
                let other = self.catalog.source(source).map_or("", |s| &s.name);
                let message = format!(
                    "{} {} {version} is {text} here and {first} in {other}",
                    arch(image.architecture.as_ref()),
                    image.region.as_deref().unwrap_or("without region"),
                );
                self.report(LintRule::SameVersionOtherDigest, image.source, message);
            }
        }
    }

    fn reused_ids(&mut self) {
        let mut ids: BTreeMap<String, _> = BTreeMap::new();
        let aws = |p: &str| p == platform::AWS || p == platform::AWS_WINLI;
        for image in self.catalog.images.iter().filter(|i| aws(&i.platform)) {
            let place = (&image.platform, &image.region, &image.architecture, &image.version);
            let id = image.reference.text();
            let first = *ids.entry(id.clone()).or_insert(place);
            if first != place {
                let word =
                    |(platform, region, architecture, version): (_, &Option<_>, &Option<_>, &Option<_>)| {
                        format!(
                            "{platform} {} {} {}",
                            region.as_deref().unwrap_or("-"),
                            arch(architecture.as_ref()),
                            version.as_deref().map_or("-", OsVersion::as_str)
                        )
                    };
                let message = format!("{id} is named for {} and for {}", word(first), word(place));
                self.report(LintRule::ImageIdReused, image.source, message);
            }
        }
    }

    fn builds(&mut self, id: SourceId) {
        let mut by_arch: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for artifact in self.catalog.artifacts.iter().filter(|a| a.source == id) {
            if let Some(version) = &artifact.version {
                by_arch.entry(arch(artifact.architecture.as_ref())).or_default().insert(version.as_str());
            }
        }
        for (arch, versions) in by_arch.iter().filter(|(_, versions)| versions.len() > 1) {
            let versions: Vec<_> = versions.iter().copied().collect();
            let message = format!("{arch} holds several builds: {}", versions.join(", "));
            self.report(LintRule::MixedBuilds, id, message);
        }
        let all: BTreeSet<&str> = by_arch.values().flatten().copied().collect();
        let all: Vec<OsVersion> = all.iter().filter_map(|v| v.parse().ok()).collect();
        let newest = OsVersion::newest(&all);
        for (arch, versions) in by_arch {
            if let Some(newest) = newest.filter(|n| !versions.contains(n.as_str())) {
                let own: Vec<_> = versions.into_iter().collect();
                let message =
                    format!("{arch} is at {}, the newest build in the document is {newest}", own.join(", "));
                self.report(LintRule::ArchitectureBehind, id, message);
            }
        }
    }

    /// `rhcos-4.16` says a minor; so do versions up to 4.18 and the release that carries the document.
    fn stream_name(&mut self, id: SourceId) {
        let Some(source) = self.catalog.source(id) else { return };
        let Some(name) = source.stream.as_deref() else { return };
        let says = name.strip_prefix("rhcos-4.").and_then(|minor| minor.parse::<u32>().ok());
        let holds = self.openshift_minor(id, source);
        if let (Some(says), Some(holds)) = (says, holds)
            && says != holds
        {
            let message = format!("the stream is called `{name}`, its content is of OpenShift 4.{holds}");
            self.report(LintRule::StreamNameContradicts, id, message);
        }
        let fedora = ["stable", "testing", "next", "testing-devel", "next-devel"].contains(&name);
        if fedora && source.distribution != Distribution::Fcos && source.distribution != Distribution::Unknown
        {
            let message =
                format!("the stream is called `{name}`, its content is {}", source.distribution.label());
            self.report(LintRule::StreamNameContradicts, id, message);
        }
        let number = match name {
            "next" => Some(1),
            "testing" => Some(2),
            "stable" => Some(3),
            _ => None,
        };
        let held = self.catalog.artifacts.iter().filter(|a| a.source == id).find_map(|a| {
            match a.version.as_deref()?.scheme() {
                crate::Scheme::Fedora { stream, .. } => stream,
                _ => None,
            }
        });
        if let (Some(number), Some(held)) = (number, held)
            && number != held
        {
            let message =
                format!("the stream is called `{name}` ({number}), its builds are of stream {held}");
            self.report(LintRule::StreamNameContradicts, id, message);
        }
    }

    fn openshift_minor(&self, id: SourceId, source: &Source) -> Option<u32> {
        let carried = source
            .release_version
            .as_deref()
            .and_then(|v| v.strip_prefix("4.")?.split('.').next()?.parse().ok());
        carried.or_else(|| {
            let mut own = self.catalog.artifacts.iter().filter(|a| a.source == id);
            own.find_map(|a| a.version.as_ref()?.openshift_minor())
        })
    }

    fn regions(&mut self) {
        type Place<'a> = (SourceId, &'a str, Option<&'a Architecture>);
        let mut places: BTreeMap<Place<'a>, Vec<(&str, &OsVersion)>> = BTreeMap::new();
        for image in &self.catalog.images {
            if let (Some(region), Some(version)) = (&image.region, &image.version) {
                let key = (image.source, &*image.platform, image.architecture.as_ref());
                places.entry(key).or_default().push((region, version));
            }
        }
        for ((source, platform, architecture), regions) in places {
            let newest = OsVersion::newest(regions.iter().map(|(_, version)| *version));
            for (region, version) in regions {
                if let Some(newest) = newest.filter(|n| version.compare(n) == Some(std::cmp::Ordering::Less))
                {
                    let message = format!(
                        "{} {platform} {region} holds {version}, others hold {newest}",
                        arch(architecture)
                    );
                    self.report(LintRule::RegionBehind, source, message);
                }
            }
        }
    }

    fn files(&mut self) {
        for artifact in &self.catalog.artifacts {
            let place = format!(
                "{} {} {} {}",
                arch(artifact.architecture.as_ref()),
                artifact.platform,
                artifact.format,
                artifact.part
            );
            if artifact.sha256.is_none() {
                self.report(LintRule::MissingChecksum, artifact.source, format!("{place} has no sha256"));
            }
            let format = self.catalog.source(artifact.source).map(|s| s.format);
            // A bare meta.json names paths beside itself.
            if format != Some(crate::Format::Meta) && !artifact.has_usable_location() {
                let message = format!("{place}: `{}` is not a URL", artifact.location);
                self.report(LintRule::UnusableLocation, artifact.source, message);
            }
        }
    }

    fn missing(&mut self, other: &Catalog) {
        let places = |catalog: &Catalog| -> BTreeSet<String> {
            let image = |i: &crate::Image| {
                let region = i.region.as_deref().map(|r| format!(" {r}")).unwrap_or_default();
                format!("{} images {}{region}", arch(i.architecture.as_ref()), i.platform)
            };
            let artifact = |a: &crate::Artifact| {
                format!("{} artifacts {} {}", arch(a.architecture.as_ref()), a.platform, a.format)
            };
            catalog.images.iter().map(image).chain(catalog.artifacts.iter().map(artifact)).collect()
        };
        let Some(first) = (!self.catalog.sources.is_empty()).then_some(SourceId(0)) else { return };
        let name = other.sources.first().map_or("the other release", |s| &s.name);
        for place in places(other).difference(&places(self.catalog)) {
            self.report(LintRule::MissingAgainst, first, format!("{name} has {place}, this release has not"));
        }
    }
}

fn arch(architecture: Option<&Architecture>) -> &str {
    architecture.map_or("unknown architecture", Architecture::as_str)
}
