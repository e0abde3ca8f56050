//! What changed between two releases.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::catalog::Catalog;
use crate::document::Document;

/// What kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The OS version of a platform's images or artifacts.
    Version,
    /// An architecture or platform that only the new release has.
    Gained,
    /// An architecture or platform that only the old release has.
    Lost,
    /// Regions that only the new release has.
    RegionsGained,
    /// Regions that only the old release has.
    RegionsLost,
    /// The same version with another digest.
    Digest,
    /// A package.
    Package,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What kind.
    pub kind: ChangeKind,
    /// Where: `x86_64 images aws`, `x86_64 artifacts openstack qcow2.gz`, a package name.
    pub place: String,
    /// Before.
    pub from: Option<String>,
    /// After.
    pub to: Option<String>,
}

#[derive(Default)]
struct Place {
    versions: BTreeSet<String>,
    regions: BTreeSet<String>,
    digests: BTreeSet<String>,
}

impl Place {
    fn versions(&self) -> String {
        self.versions.iter().cloned().collect::<Vec<_>>().join(", ")
    }
}

/// Compares two catalogs, place by place.
pub fn diff(old: &Catalog, new: &Catalog) -> Vec<Change> {
    let (old, new) = (places(old), places(new));
    let mut changes = Vec::new();
    for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        let mut push = |kind, from: Option<String>, to: Option<String>| {
            changes.push(Change { kind, place: name.clone(), from, to });
        };
        match (old.get(name), new.get(name)) {
            (Some(a), Some(b)) => {
                if a.versions == b.versions {
                    if a.digests != b.digests {
                        push(ChangeKind::Digest, Some(list(&a.digests)), Some(list(&b.digests)));
                    }
                } else {
                    push(ChangeKind::Version, Some(a.versions()), Some(b.versions()));
                }
                let lost: BTreeSet<_> = a.regions.difference(&b.regions).cloned().collect();
                let gained: BTreeSet<_> = b.regions.difference(&a.regions).cloned().collect();
                if !lost.is_empty() {
                    push(ChangeKind::RegionsLost, Some(list(&lost)), None);
                }
                if !gained.is_empty() {
                    push(ChangeKind::RegionsGained, None, Some(list(&gained)));
                }
            }
            (Some(a), None) => push(ChangeKind::Lost, Some(a.versions()), None),
            (None, Some(b)) => push(ChangeKind::Gained, None, Some(b.versions())),
            (None, None) => {}
        }
    }
    changes
}

/// The package changes that a coreos-assembler `meta.json` lists (`pkgdiff`: name, kind, packages).
pub fn package_changes(document: &Document) -> Vec<Change> {
    let diffs = document.parts().iter().filter_map(|p| p.value.get("pkgdiff")?.as_array());
    let mut changes = Vec::new();
    for change in diffs.flatten() {
        let version = |which: &str| {
            let package = change.get(2)?.get(which)?;
            package.get(1).and_then(Value::as_str).map(str::to_owned)
        };
        if let Some(name) = change.get(0).and_then(Value::as_str) {
            let (from, to) = (version("PreviousPackage"), version("NewPackage"));
            changes.push(Change { kind: ChangeKind::Package, place: name.to_owned(), from, to });
        }
    }
    changes
}

fn places(catalog: &Catalog) -> BTreeMap<String, Place> {
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    let arch = |a: &Option<crate::Architecture>| a.as_ref().map_or("unknown", |a| a.as_str()).to_owned();
    for image in &catalog.images {
        let place =
            places.entry(format!("{} images {}", arch(&image.architecture), image.platform)).or_default();
        place.versions.extend(image.version.as_ref().map(ToString::to_string));
        place.regions.extend(image.region.as_ref().map(ToString::to_string));
        if image.region.is_none() {
            place.digests.insert(image.reference.text());
        }
    }
    for artifact in &catalog.artifacts {
        let name =
            format!("{} artifacts {} {}", arch(&artifact.architecture), artifact.platform, artifact.format);
        let place = places.entry(name).or_default();
        place.versions.extend(artifact.version.as_ref().map(ToString::to_string));
        place.digests.extend(artifact.sha256.clone());
    }
    places
}

fn list(items: &BTreeSet<String>) -> String {
    items.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
