//! Which release, architecture and region is this image? Answers from a catalog and from the name itself.

use serde::Serialize;

use crate::catalog::{Artifact, Catalog, Distribution, Image, Source};
use crate::{Architecture, ImageReference, OsVersion};

/// Why an entry matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Match {
    /// The image's id, name, path or URL.
    Reference,
    /// The digest of a file as it is downloaded.
    Sha256,
    /// The digest of a file's decompressed content.
    UncompressedSha256,
    /// The name or URL of a file.
    Location,
    /// The OS version.
    Version,
}

/// What an image is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// Why it matched.
    pub matched: Match,
    /// The distribution.
    pub distribution: Distribution,
    /// The OS version; none where the metadata gives none.
    pub version: Option<String>,
    /// The OpenShift version: told by the OS version, or by the release that carried the metadata.
    pub openshift: Option<String>,
    /// The RHEL version that the OS version tells.
    pub rhel: Option<String>,
    /// The date of the build.
    pub built: Option<String>,
    /// The platform.
    pub platform: Option<String>,
    /// The region, where images are regional.
    pub region: Option<String>,
    /// The architecture.
    pub architecture: Option<Architecture>,
    /// The image's reference, or the file's location.
    pub reference: String,
    /// The document that says so.
    pub source: Option<String>,
}

impl Identity {
    fn of(source: Option<&Source>, version: Option<&OsVersion>, matched: Match, reference: String) -> Self {
        let carried = source.and_then(|s| s.release_version.clone());
        Self {
            matched,
            distribution: Distribution::of(version, source),
            version: version.map(ToString::to_string),
            openshift: version
                .and_then(OsVersion::openshift_minor)
                .map(|minor| format!("4.{minor}"))
                .or(carried),
            rhel: version.and_then(OsVersion::rhel_text),
            built: version.map(OsVersion::date_text),
            platform: None,
            region: None,
            architecture: None,
            reference,
            source: source.map(|s| s.name.to_string()),
        }
    }

    fn of_image(catalog: &Catalog, image: &Image, matched: Match) -> Self {
        Self {
            platform: Some(image.platform.to_string()),
            region: image.region.as_ref().map(ToString::to_string),
            architecture: image.architecture.clone(),
            ..Self::of(
                catalog.source(image.source),
                image.version.as_deref(),
                matched,
                image.reference.text(),
            )
        }
    }

    fn of_artifact(catalog: &Catalog, artifact: &Artifact, matched: Match) -> Self {
        Self {
            platform: Some(artifact.platform.to_string()),
            architecture: artifact.architecture.clone(),
            ..Self::of(
                catalog.source(artifact.source),
                artifact.version.as_deref(),
                matched,
                artifact.location.clone(),
            )
        }
    }
}

impl Catalog {
    /// Everything in the catalog that `what` names: an image id, name or path, a digest, a file name or URL, an OS
    /// version. Entries that say the same of the same image are given once.
    pub fn identify(&self, what: &str) -> Vec<Identity> {
        let what = what.trim();
        // Azure's own tools write an image of the marketplace with colons.
        let urn = (what.matches(':').count() == 3 && !what.contains('/')).then(|| what.replace(':', "/"));
        let what = urn.as_deref().unwrap_or(what);
        let digest = digest_of(what);
        let mut found: Vec<Identity> = Vec::new();
        let mut push = |identity: Identity| {
            let same = |other: &Identity| {
                Identity { source: None, openshift: None, ..other.clone() }
                    == Identity { source: None, openshift: None, ..identity.clone() }
            };
            if !found.iter().any(same) {
                found.push(identity);
            }
        };
        for image in &self.images {
            if names_image(&image.reference, what) {
                push(Identity::of_image(self, image, Match::Reference));
            }
        }
        for artifact in &self.artifacts {
            let matched = if digest.is_some() && artifact.sha256.as_deref() == digest.as_deref() {
                Match::Sha256
            } else if digest.is_some() && artifact.uncompressed_sha256.as_deref() == digest.as_deref() {
                Match::UncompressedSha256
            } else if artifact.location == what || artifact.file_name() == what {
                Match::Location
            } else {
                continue;
            };
            push(Identity::of_artifact(self, artifact, matched));
        }
        if found.is_empty()
            && let Ok(version) = what.parse::<OsVersion>()
        {
            let source =
                self.images.iter().find(|i| i.version.as_deref() == Some(&version)).map(|i| i.source);
            let source = source.or_else(|| {
                self.artifacts.iter().find(|a| a.version.as_deref() == Some(&version)).map(|a| a.source)
            });
            let source = source.and_then(|id| self.source(id));
            found.push(Identity::of(source, Some(&version), Match::Version, what.to_owned()));
        }
        found
    }
}

/// Whether a text names an image, in any of the forms that manifests use for it.
fn names_image(reference: &ImageReference, what: &str) -> bool {
    match reference {
        ImageReference::Id { id } => id == what,
        ImageReference::Gcp { project, name, url, .. } => {
            // The path may stand behind the API's own address.
            let path = what.find("projects/").and_then(|start| what.get(start..));
            name == what
                || url.as_deref() == Some(what)
                || (project.is_some() && path == Some(&reference.text()))
        }
        ImageReference::Container { image, digest_ref } => {
            image == what
                || digest_ref.as_deref().is_some_and(|d| {
                    d == what || (what.starts_with("sha256:") && d.rsplit('@').next() == Some(what))
                })
        }
        ImageReference::Object { object, url, .. } => url == what || object.as_deref() == Some(what),
        ImageReference::Blob { url } => url == what || url.rsplit('/').next() == Some(what),
        ImageReference::Marketplace(image) => image.path() == what,
    }
}

/// A sha256 in lower-case hex, with or without its prefix.
fn digest_of(what: &str) -> Option<String> {
    let hex = what.strip_prefix("sha256:").unwrap_or(what);
    (hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit())).then(|| hex.to_ascii_lowercase())
}
