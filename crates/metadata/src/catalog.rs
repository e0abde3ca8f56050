//! What one or more metadata documents say, normalised.

use std::sync::Arc;

use serde::Serialize;

use crate::document::{Document, Format};
use crate::{Architecture, ImageReference, OsVersion, Scheme, read};

/// Names of platforms as release metadata spells them; any other name is kept as it is.
pub mod platform {
    /// Amazon EC2.
    pub const AWS: &str = "aws";
    /// Amazon EC2, Windows with its licence included: another image for the same region.
    pub const AWS_WINLI: &str = "aws-winli";
    /// Google Compute Engine.
    pub const GCP: &str = "gcp";
    /// Microsoft Azure.
    pub const AZURE: &str = "azure";
    /// VMware vSphere.
    pub const VMWARE: &str = "vmware";
    /// OpenStack.
    pub const OPENSTACK: &str = "openstack";
    /// Nutanix AHV.
    pub const NUTANIX: &str = "nutanix";
    /// IBM Power Virtual Server.
    pub const POWERVS: &str = "powervs";
    /// IBM Cloud.
    pub const IBMCLOUD: &str = "ibmcloud";
    /// Alibaba Cloud.
    pub const ALIYUN: &str = "aliyun";
    /// KubeVirt.
    pub const KUBEVIRT: &str = "kubevirt";
    /// Bare metal, also network boot.
    pub const METAL: &str = "metal";
}

/// The distribution that a build belongs to. Versions of two distributions are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Distribution {
    /// Red Hat Enterprise Linux CoreOS.
    Rhcos,
    /// CentOS Stream CoreOS (OKD).
    Scos,
    /// Fedora CoreOS.
    Fcos,
    /// The metadata does not tell.
    Unknown,
}

impl Distribution {
    /// The short name that users know: `RHCOS`, `SCOS`, `FCOS`, CoreOS.
    pub fn label(self) -> &'static str {
        match self {
            Self::Rhcos => "RHCOS",
            Self::Scos => "SCOS",
            Self::Fcos => "FCOS",
            Self::Unknown => "CoreOS",
        }
    }

    /// Told by how a version is written where that is decisive, else by the document that names it.
    pub fn of(version: Option<&OsVersion>, source: Option<&Source>) -> Self {
        match version.map(OsVersion::scheme) {
            Some(Scheme::Fedora { .. }) => Self::Fcos,
            Some(Scheme::OpenShift { .. } | Scheme::Marketplace { .. }) => Self::Rhcos,
            _ => source.map_or(Self::Unknown, |s| s.distribution),
        }
    }

    /// Reads the lower-case word of the published index.
    pub fn from_word(word: &str) -> Self {
        match word {
            "rhcos" => Self::Rhcos,
            "scos" => Self::Scos,
            "fcos" => Self::Fcos,
            _ => Self::Unknown,
        }
    }

    /// The lower-case word of the published index.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rhcos => "rhcos",
            Self::Scos => "scos",
            Self::Fcos => "fcos",
            Self::Unknown => "unknown",
        }
    }
}

/// Which of a catalog's sources an entry came from: an index into [`Catalog::sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub(crate) u32);

impl SourceId {
    /// The index into [`Catalog::sources`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One metadata document, or one stream of a document that holds several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The name that the caller gave, for messages; of a stream inside a ConfigMap with its key.
    pub name: Arc<str>,
    /// The format that its content has.
    pub format: Format,
    /// What the document calls its stream. Not trustworthy as a release: it was left at an old minor in real files.
    pub stream: Option<String>,
    /// The OS stream that machine sets may ask for by label: the key in the ConfigMap (`rhel-9`), else told by the
    /// RHEL major of the content.
    pub os_stream: Option<String>,
    /// The version of the OpenShift release that carries the document (`releaseVersion` of the ConfigMap).
    pub release_version: Option<String>,
    /// The release that the cluster's operators had when they stamped the ConfigMap (`MCOReleaseImageVersion`).
    pub stamped_release: Option<String>,
    /// When the document was last changed, as it says.
    pub last_modified: Option<String>,
    /// The distribution that its builds belong to.
    pub distribution: Distribution,
    /// Whether this is the stream for machine sets that name none.
    pub default: bool,
}

/// A published image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Platform, as in the metadata (see [`platform`]).
    pub platform: Arc<str>,
    /// Architecture; `None` where neither the document nor its name tells.
    pub architecture: Option<Architecture>,
    /// Region, on platforms whose images are regional.
    pub region: Option<Arc<str>>,
    /// The image's own OS version: inside one document they may differ.
    pub version: Option<Arc<OsVersion>>,
    /// The image.
    pub reference: ImageReference,
    /// Where this is said.
    pub source: SourceId,
}

/// A file with digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Platform, as in the metadata.
    pub platform: Arc<str>,
    /// Architecture; `None` where neither the document nor its name tells.
    pub architecture: Option<Architecture>,
    /// Format, as in stream metadata: `qcow2.gz`, `ova`, `pxe`, `4k.raw.gz`.
    pub format: Arc<str>,
    /// `disk`, or `kernel`, `initramfs`, `rootfs` of a network boot set.
    pub part: Arc<str>,
    /// OS version.
    pub version: Option<Arc<OsVersion>>,
    /// Where it lies: a URL, or in a bare meta.json a path beside it.
    pub location: String,
    /// Where its detached signature lies.
    pub signature: Option<String>,
    /// Digest of the file as it is downloaded.
    pub sha256: Option<String>,
    /// Size of the file as it is downloaded, in bytes.
    pub size: Option<u64>,
    /// Digest of the content once decompressed.
    pub uncompressed_sha256: Option<String>,
    /// Size of the content once decompressed, in bytes.
    pub uncompressed_size: Option<u64>,
    /// Where this is said.
    pub source: SourceId,
}

impl Artifact {
    /// Whether the location is a URL that something can be fetched from.
    pub fn has_usable_location(&self) -> bool {
        self.location.strip_prefix("https://").or_else(|| self.location.strip_prefix("http://")).is_some_and(
            |rest| {
                !rest.is_empty()
                    && !rest.starts_with('/')
                    && !rest.contains(|c: char| c.is_whitespace() || c == '<')
            },
        )
    }

    /// The last part of the location.
    pub fn file_name(&self) -> &str {
        self.location.rsplit('/').next().unwrap_or(&self.location)
    }
}

/// Something in a document that could not be understood and was passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The document.
    pub source: String,
    /// The place in it, in dots.
    pub path: String,
    /// What was found and what was expected.
    pub message: String,
}

/// What one or more metadata documents say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The documents, in the order in which they were added.
    pub sources: Vec<Source>,
    /// Every image.
    pub images: Vec<Image>,
    /// Every artifact.
    pub artifacts: Vec<Artifact>,
    /// What could not be understood.
    pub problems: Vec<Problem>,
}

impl Catalog {
    /// An empty catalog.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all that a document says. `architecture` stands in where an old document does not tell its own.
    pub fn add(&mut self, document: &Document, architecture: Option<&Architecture>) {
        read::add(self, document, architecture);
    }

    /// Appends another catalog, entry by entry.
    pub fn append(&mut self, other: Self) {
        let shift = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
        let moved = |id: SourceId| SourceId(id.0.saturating_add(shift));
        self.sources.extend(other.sources);
        self.images.extend(other.images.into_iter().map(|i| Image { source: moved(i.source), ..i }));
        self.artifacts.extend(other.artifacts.into_iter().map(|a| Artifact { source: moved(a.source), ..a }));
        self.problems.extend(other.problems);
    }

    /// The source of an entry.
    pub fn source(&self, id: SourceId) -> Option<&Source> {
        self.sources.get(id.0 as usize)
    }

    pub(crate) fn add_source(&mut self, source: Source) -> SourceId {
        self.sources.push(source);
        SourceId(u32::try_from(self.sources.len() - 1).unwrap_or(u32::MAX))
    }

    /// The distribution of a build: told by how its version is written where that is decisive, else by its document.
    pub fn distribution(&self, source: SourceId, version: Option<&OsVersion>) -> Distribution {
        Distribution::of(version, self.source(source))
    }

    /// Every OS version that is named, each once, in the order of first appearance.
    pub fn versions(&self) -> Vec<Arc<OsVersion>> {
        let mut seen: Vec<Arc<OsVersion>> = Vec::new();
        let named = self.artifacts.iter().map(|a| &a.version).chain(self.images.iter().map(|i| &i.version));
        for version in named.flatten() {
            if seen.last() != Some(version) && !seen.contains(version) {
                seen.push(Arc::clone(version));
            }
        }
        seen
    }

    /// The names of the OS streams that the catalog holds, each once.
    pub fn os_streams(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.sources.iter().filter_map(|s| s.os_stream.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
