//! Readers: one a format, each adds what a document says to a catalog.

mod configmap;
mod fields;
mod marketplace;
mod meta;
mod release;
mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Catalog, Distribution, Source, SourceId};
use crate::document::{Document, Format};
use crate::{Architecture, OsVersion, Scheme};

pub(crate) fn add(catalog: &mut Catalog, document: &Document, architecture: Option<&Architecture>) {
    let name = document.name();
    for part in document.parts() {
        let value = &part.value;
        match part.format {
            Format::Stream => stream::add(catalog, name, value),
            Format::Meta | Format::InstallerRhcos => {
                meta::add(catalog, name, part.format, value, architecture);
            }
            Format::Marketplace => marketplace::add(catalog, name, value),
            Format::Release => release::add(catalog, name, value),
            Format::ReleaseIndex => release::add_index(catalog, name, value),
            Format::ConfigMap => configmap::add(catalog, name, value),
            // The graph names versions without an image, and an index is read from its own text.
            Format::Updates | Format::Index => {
                catalog.add_source(source(name, part.format));
            }
        }
    }
}

fn source(name: &Arc<str>, format: Format) -> Source {
    Source {
        name: Arc::clone(name),
        format,
        stream: None,
        os_stream: None,
        release_version: None,
        stamped_release: None,
        last_modified: None,
        distribution: Distribution::Unknown,
        default: true,
    }
}

/// Tells distribution and OS stream of a source from its content, once that is read.
fn conclude(catalog: &mut Catalog, id: SourceId) {
    let mut distribution = Distribution::Unknown;
    for text in catalog
        .artifacts
        .iter()
        .filter(|a| a.source == id)
        .map(|a| a.file_name().to_owned())
        .chain(catalog.images.iter().filter(|i| i.source == id).map(|i| i.reference.text()))
    {
        distribution = distribution_in(&text);
        if distribution != Distribution::Unknown {
            break;
        }
    }
    let versions = || {
        let artifacts =
            catalog.artifacts.iter().filter(|a| a.source == id).filter_map(|a| a.version.as_ref());
        artifacts.chain(catalog.images.iter().filter(|i| i.source == id).filter_map(|i| i.version.as_ref()))
    };
    if distribution == Distribution::Unknown {
        distribution = match versions().next().map(|v| v.scheme()) {
            Some(Scheme::Fedora { .. }) => Distribution::Fcos,
            // CentOS Stream has minor 0 alone; RHEL-led versions began with 9.6.
            Some(Scheme::Rhel { minor: 0, .. }) => Distribution::Scos,
            Some(Scheme::OpenShift { .. } | Scheme::Rhel { .. }) => Distribution::Rhcos,
            _ => Distribution::Unknown,
        };
    }
    // One foreign build in a document (a region that lags, a container that runs ahead) does not move its stream.
    let mut majors: BTreeMap<u32, usize> = BTreeMap::new();
    for (major, _) in versions().filter_map(|v| v.rhel()) {
        *majors.entry(major).or_default() += 1;
    }
    let rhel = majors.into_iter().max_by_key(|(major, count)| (*count, *major)).map(|(major, _)| major);
    if let Some(source) = catalog.sources.get_mut(id.0 as usize) {
        source.distribution = distribution;
        if source.os_stream.is_none() && distribution == Distribution::Rhcos {
            source.os_stream = rhel.map(|major| format!("rhel-{major}"));
        }
    }
}

/// Artifacts and images carry the build's name in front: `rhcos-…`, `scos-…`, `fedora-coreos-…`.
fn distribution_in(text: &str) -> Distribution {
    let name = text.rsplit('/').next().unwrap_or(text);
    if name.starts_with("rhcos-") || text.contains("/ocp-v4.0-art-dev:rhel-") {
        Distribution::Rhcos
    } else if name.starts_with("scos-") || name.starts_with("centos-") {
        Distribution::Scos
    } else if name.starts_with("fedora-coreos-") {
        Distribution::Fcos
    } else {
        Distribution::Unknown
    }
}

/// A version, shared between neighbours that say the same; a text that is none becomes a problem of the caller's.
fn version(text: Option<&str>, last: &mut Option<Arc<OsVersion>>) -> Option<Arc<OsVersion>> {
    let text = text?;
    if let Some(version) = last.as_ref().filter(|v| v.as_str() == text) {
        return Some(Arc::clone(version));
    }
    let parsed: Arc<OsVersion> = Arc::new(text.parse().ok()?);
    *last = Some(Arc::clone(&parsed));
    Some(parsed)
}
