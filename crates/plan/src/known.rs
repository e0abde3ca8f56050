//! What is known of published images: by this, and by nothing else, a machine set's current image is ours.

use std::borrow::Cow;
use std::collections::HashMap;

use machines::{Platform, Reference, Slot};
use metadata::{Architecture, Artifact, Catalog, Distribution, Image, ImageReference, OsVersion, Source};

/// A published image, with the catalog that says so.
#[derive(Clone, Copy)]
pub(crate) struct KnownImage<'a> {
    pub(crate) image: &'a Image,
    pub(crate) source: Option<&'a Source>,
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
    /// A published image.
    Published(KnownImage<'a>),
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

impl<'a> Known<'a> {
    pub(crate) fn new(catalogs: &[&'a Catalog]) -> Self {
        let size = catalogs.iter().map(|c| c.images.len()).sum();
        let mut known =
            Self { images: HashMap::with_capacity(size), artifacts: HashMap::new(), offers: HashMap::new() };
        for catalog in catalogs {
            for image in &catalog.images {
                let entry = KnownImage { image, source: catalog.source(image.source) };
                let mut add = |key: Cow<'a, str>| known.images.entry(key).or_default().push(entry);
                match &image.reference {
                    ImageReference::Id { id } => add(Cow::Borrowed(id)),
                    ImageReference::Container { image, digest_ref } => {
                        add(Cow::Borrowed(image));
                        if let Some(digest) = digest_ref {
                            add(Cow::Borrowed(digest));
                        }
                    }
                    ImageReference::Marketplace(market) => {
                        add(Cow::Owned(market.path()));
                        known.offers.insert((&market.publisher, &market.offer), &market.plan);
                    }
                    reference => add(Cow::Owned(reference.text())),
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
    pub(crate) fn recognise(
        &self,
        slot: &Slot,
        infrastructure: Option<&str>,
        adopt: &[String],
    ) -> Recognised<'a> {
        let Some(text) = slot.reference.text() else { return Recognised::Unknown };
        if let Some(found) = self.published(slot, &text) {
            return Recognised::Published(found);
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
        if infrastructure.is_some_and(|name| is_installers(slot, &text, name)) {
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

    fn published(&self, slot: &Slot, text: &str) -> Option<KnownImage<'a>> {
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
        all.iter().find(in_region).or(all.first()).copied()
    }

    /// The purchase plan of a marketplace offer.
    pub(crate) fn plan_of(&self, publisher: &str, offer: &str) -> Option<&'a str> {
        self.offers.get(&(publisher, offer)).copied()
    }
}

impl Recognised<'_> {
    /// The facts of the boot image.
    pub(crate) fn boot(&self, slot: &Slot) -> Boot {
        let of_source = |source: Option<&Source>| Boot {
            distribution: source.map(|s| s.distribution).filter(|d| *d != Distribution::Unknown),
            release_version: source.and_then(|s| s.release_version.clone()),
            source: source.map(|s| s.name.to_string()),
            ..Boot::default()
        };
        match self {
            Self::Published(known) => Boot {
                version: known.image.version.as_deref().cloned(),
                architecture: known.image.architecture.clone(),
                region: known.image.region.as_deref().map(str::to_owned),
                ..of_source(known.source)
            },
            Self::Artifact(artifact, source) => Boot {
                version: artifact.version.as_deref().cloned(),
                architecture: artifact.architecture.clone(),
                ..of_source(*source)
            },
            Self::Offer => match &slot.reference {
                Reference::Azure(image) => Boot { version: image.version.parse().ok(), ..Boot::default() },
                _ => Boot::default(),
            },
            Self::Installer | Self::Adopted | Self::Unknown => Boot::default(),
        }
    }
}

/// The names that the installer gives to images it makes (openshift/installer, by platform).
fn is_installers(slot: &Slot, text: &str, infrastructure: &str) -> bool {
    match slot.platform {
        Platform::Azure => {
            // Resource groups and resource ids compare without case.
            let id = text.to_ascii_lowercase();
            let name = infrastructure.to_ascii_lowercase();
            let Some((_, rest)) = id.split_once("/resourcegroups/") else { return false };
            let Some((group, rest)) = rest.split_once("/providers/microsoft.compute/") else { return false };
            let gallery = format!("galleries/gallery_{}/images/", name.replace('-', "_"));
            let image = rest.strip_prefix("images/").or_else(|| rest.strip_prefix(gallery.as_str()));
            let image = image.and_then(|image| image.split('/').next());
            group == format!("{name}-rg")
                && image.is_some_and(|image| image == name || image == format!("{name}-gen2"))
        }
        // 4.2 to 4.5: the cluster's own project, from the archive that rhcos.json named.
        Platform::Gcp => text.rsplit('/').next() == Some(&format!("{infrastructure}-rhcos-image")),
        Platform::VSphere => {
            // Since failure domains: one template for each, `<name>-rhcos-<region>-<zone>`.
            let name = text.rsplit('/').next().unwrap_or(text);
            let rest = name.strip_prefix(infrastructure).and_then(|rest| rest.strip_prefix("-rhcos"));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        }
        Platform::PowerVs => text == format!("rhcos-{infrastructure}"),
        Platform::OpenStack | Platform::Nutanix | Platform::IbmCloud => {
            text == format!("{infrastructure}-rhcos")
        }
        _ => false,
    }
}
