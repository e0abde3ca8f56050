//! What is known of published images: by this, and by nothing else, a machine set's current image is ours.

use std::borrow::Cow;
use std::collections::HashMap;

use machines::{Platform, Reference, Slot};
use metadata::{Architecture, Artifact, Catalog, Distribution, Image, ImageReference, OsVersion, Source};

use crate::facts::Facts;

/// A published image, with the catalog that says so.
#[derive(Clone, Copy)]
pub(crate) struct KnownImage<'a> {
    pub(crate) image: &'a Image,
    pub(crate) source: Option<&'a Source>,
    /// Whether the string is a tag that moves: it names a family of images, and no one of them.
    pub(crate) floating: bool,
}

/// Published images of the release and of its history, by the strings that manifests use for them.
pub(crate) struct Known<'a> {
    images: HashMap<Cow<'a, str>, Vec<KnownImage<'a>>>,
    artifacts: HashMap<&'a str, (&'a Artifact, Option<&'a Source>)>,
    /// The purchase plan of each marketplace offer: publisher, offer.
    offers: HashMap<(&'a str, &'a str), &'a str>,
}

/// What a slot's current image is.
pub(crate) enum Recognised<'a> {
    /// A published image. Of several that share the string, one of the set's own region; what they disagree on, the
    /// string does not prove.
    Published(KnownImage<'a>, Boot),
    /// A published artifact: a URL of bare metal.
    Artifact(&'a Artifact, Option<&'a Source>),
    /// An image of a marketplace offer that the metadata knows in other versions.
    Offer,
    /// The image that the installer made for this cluster.
    Installer,
    /// An image that the user adopted by name.
    Adopted,
    /// Nothing that is ours.
    Unknown,
}

/// The boot image of a slot, as far as it is known.
#[derive(Clone, Default)]
pub(crate) struct Boot {
    pub(crate) version: Option<OsVersion>,
    pub(crate) architecture: Option<Architecture>,
    pub(crate) region: Option<String>,
    pub(crate) distribution: Option<Distribution>,
    /// The OpenShift version that the metadata's release tells.
    pub(crate) release_version: Option<String>,
    pub(crate) source: Option<String>,
}

impl Boot {
    fn of(source: Option<&Source>, version: Option<&OsVersion>) -> Self {
        Self {
            version: version.cloned(),
            distribution: Some(Distribution::of(version, source)).filter(|d| *d != Distribution::Unknown),
            release_version: source.and_then(|s| s.release_version.clone()),
            source: source.map(|s| s.name.to_string()),
            ..Self::default()
        }
    }
}

impl<'a> Known<'a> {
    pub(crate) fn new(catalogs: &[&'a Catalog]) -> Self {
        let size = catalogs.iter().map(|c| c.images.len()).sum();
        let mut known =
            Self { images: HashMap::with_capacity(size), artifacts: HashMap::new(), offers: HashMap::new() };
        for catalog in catalogs {
            for image in &catalog.images {
                let source = catalog.source(image.source);
                let mut add = |key: Cow<'a, str>, floating| {
                    known.images.entry(key).or_default().push(KnownImage { image, source, floating });
                };
                match &image.reference {
                    ImageReference::Id { id } => add(Cow::Borrowed(id), false),
                    ImageReference::Container { image, digest_ref } => {
                        add(Cow::Borrowed(image), digest_ref.is_some());
                        if let Some(digest) = digest_ref {
                            add(Cow::Borrowed(digest), false);
                        }
                    }
                    ImageReference::Marketplace(market) => {
                        add(Cow::Owned(market.path()), false);
                        known.offers.insert((&market.publisher, &market.offer), &market.plan);
                    }
                    // Each cluster made its own image of that name, in its own project.
                    ImageReference::Gcp { project: None, .. } => {}
                    reference => add(Cow::Owned(reference.text()), false),
                }
            }
            for artifact in &catalog.artifacts {
                known
                    .artifacts
                    .entry(artifact.location.as_str())
                    .or_insert((artifact, catalog.source(artifact.source)));
            }
        }
        known
    }

    /// What a slot's image is. Names are compared whole: a name that merely looks like ours is not.
    pub(crate) fn recognise(&self, slot: &Slot, facts: &Facts, adopt: &[String]) -> Recognised<'a> {
        let Some(text) = slot.reference.text() else { return Recognised::Unknown };
        if let Some(found) = self.published(slot, &text) {
            return found;
        }
        // A checksum may stand behind the URL (openshift/installer#2617).
        let url = text.split(['?', '#']).next().unwrap_or(&text);
        if slot.platform == Platform::BareMetal
            && let Some((artifact, source)) = self.artifacts.get(url)
        {
            return Recognised::Artifact(artifact, *source);
        }
        if adopt.contains(&text) {
            return Recognised::Adopted;
        }
        if facts.infrastructure_name.as_deref().is_some_and(|name| is_installers(slot, &text, name, facts)) {
            return Recognised::Installer;
        }
        match &slot.reference {
            Reference::Azure(image)
                if image.resource_id.is_empty() && self.plan_of(&image.publisher, &image.offer).is_some() =>
            {
                Recognised::Offer
            }
            _ => Recognised::Unknown,
        }
    }

    fn published(&self, slot: &Slot, text: &str) -> Option<Recognised<'a>> {
        // The API's address may stand in front of the path: https://www.googleapis.com/compute/v1/projects/…
        let key = match (slot.platform, text.find("projects/")) {
            (Platform::Gcp, Some(start)) => text.get(start..).unwrap_or(text),
            _ => text,
        };
        let own = |k: &&KnownImage<'a>| {
            let platform = &*k.image.platform;
            platform == slot.platform.in_metadata()
                || (slot.platform == Platform::Aws && platform == metadata::platform::AWS_WINLI)
        };
        let all: Vec<_> = self.images.get(key)?.iter().filter(own).copied().collect();
        let in_region = |k: &&KnownImage<'a>| k.image.region.as_deref() == slot.region.as_deref();
        let near: Vec<_> = all.iter().filter(in_region).copied().collect();
        let matches = if near.is_empty() { all } else { near };
        let first = *matches.first()?;
        let mut boot = Boot {
            architecture: first.image.architecture.clone(),
            region: first.image.region.as_deref().map(str::to_owned),
            ..Boot::of(first.source, first.image.version.as_deref())
        };
        if matches.iter().any(|m| m.image.architecture != first.image.architecture) {
            boot.architecture = None;
        }
        if first.floating || matches.iter().any(|m| m.image.version != first.image.version) {
            boot.version = None;
        }
        Some(Recognised::Published(first, boot))
    }

    /// The purchase plan of a marketplace offer.
    pub(crate) fn plan_of(&self, publisher: &str, offer: &str) -> Option<&'a str> {
        self.offers.get(&(publisher, offer)).copied()
    }
}

impl Recognised<'_> {
    /// The facts of the boot image.
    pub(crate) fn boot(&self, slot: &Slot) -> Boot {
        match self {
            Self::Published(_, boot) => boot.clone(),
            Self::Artifact(artifact, source) => Boot {
                architecture: artifact.architecture.clone(),
                ..Boot::of(*source, artifact.version.as_deref())
            },
            Self::Offer => match &slot.reference {
                Reference::Azure(image) => Boot {
                    architecture: image.sku.contains("arm").then_some(Architecture::Aarch64),
                    ..Boot::of(None, image.version.parse().ok().as_ref())
                },
                _ => Boot::default(),
            },
            Self::Installer | Self::Adopted | Self::Unknown => Boot::default(),
        }
    }
}

/// The names that the installer gives to images it makes (openshift/installer, by platform).
fn is_installers(slot: &Slot, text: &str, infrastructure: &str, facts: &Facts) -> bool {
    match slot.platform {
        Platform::Azure => azure_image(text).is_some_and(|(group, image)| {
            // Resource groups and resource ids compare without case.
            let name = infrastructure.to_ascii_lowercase();
            let own = facts
                .resource_group
                .as_ref()
                .map_or_else(|| format!("{name}-rg"), |g| g.to_ascii_lowercase());
            let gallery = format!("galleries/gallery_{}/images/", name.replace('-', "_"));
            let image = image.strip_prefix("images/").or_else(|| image.strip_prefix(gallery.as_str()));
            let image = image.and_then(|image| image.split('/').next());
            group == own && image.is_some_and(|image| image == name || image == format!("{name}-gen2"))
        }),
        // 4.2 to 4.5: in the cluster's own project, from the archive that rhcos.json named.
        Platform::Gcp => text == format!("{infrastructure}-rhcos-image"),
        Platform::VSphere => {
            // A template in another folder is somebody's own, whatever it is called (OCPBUGS-92182).
            let (folder, name) = text.rsplit_once('/').unwrap_or(("", text));
            let own_folder = folder.is_empty() || folder.rsplit('/').next() == Some(infrastructure);
            let Some(rest) = name.strip_prefix(infrastructure).and_then(|rest| rest.strip_prefix("-rhcos"))
            else {
                return false;
            };
            let domain = rest.strip_prefix('-');
            own_folder
                && (rest.is_empty()
                    || domain.is_some_and(|d| {
                        d == "generated-region-generated-zone" || facts.failure_domains.contains(d)
                    }))
        }
        Platform::PowerVs => text == format!("rhcos-{infrastructure}"),
        Platform::OpenStack | Platform::Nutanix | Platform::IbmCloud => {
            text == format!("{infrastructure}-rhcos")
        }
        _ => false,
    }
}

/// Resource group and image of an Azure resource id, in lower case: `images/NAME`, `galleries/G/images/NAME/versions/V`.
pub(crate) fn azure_image(id: &str) -> Option<(String, String)> {
    let id = id.to_ascii_lowercase();
    let (_, rest) = id.split_once("/resourcegroups/")?;
    let (group, image) = rest.split_once("/providers/microsoft.compute/")?;
    Some((group.to_owned(), image.to_owned()))
}
