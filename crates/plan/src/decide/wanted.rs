//! The image that a slot should have, on platforms whose images are published.

use machines::{AzureImage, Platform, Reference, Role};
use metadata::{
    Architecture, Artifact, Distribution, Image, ImageReference, MarketplaceImage, OsVersion, Source,
};

use super::{Decider, Verdict, asked_stream};
use crate::known::{Recognised, azure_image};
use crate::output::{ArtifactView, ReferenceView};
use crate::planner::Untargeted;
use crate::reason::Reason;
use crate::release::{Missing, Target};

/// The image that a slot should have.
pub(crate) struct Wanted {
    /// The reference as it is written into the manifest.
    pub(super) text: String,
    pub(super) version: Option<OsVersion>,
    pub(super) distribution: Option<Distribution>,
    /// The newest version that other regions of the release have.
    pub(super) newest: Option<OsVersion>,
    /// The OpenShift version of the release that says so.
    pub(super) release_version: Option<String>,
    /// That version and the one that the cluster's operators have, where they differ.
    pub(super) mid_update: Option<(String, String)>,
    /// The new values of the fields.
    pub(super) values: Vec<(Role, String)>,
}

impl Wanted {
    pub(super) fn new(
        text: String,
        version: Option<OsVersion>,
        source: Option<&Source>,
        values: Vec<(Role, String)>,
    ) -> Self {
        let distribution = Distribution::of(version.as_ref(), source);
        let release_version = source.and_then(|s| s.release_version.clone());
        let stamped = source.and_then(|s| s.stamped_release.clone());
        let mid_update = release_version.clone().zip(stamped).filter(|(release, stamped)| release != stamped);
        let distribution = Some(distribution).filter(|d| *d != Distribution::Unknown);
        Self { text, version, distribution, newest: None, release_version, mid_update, values }
    }

    pub(super) fn view(&self) -> ReferenceView {
        ReferenceView {
            reference: Some(self.text.clone()),
            version: self.version.as_ref().map(ToString::to_string),
        }
    }

    /// `RHCOS 9.6.20260217-1`, or the reference where there is no version.
    pub(super) fn label(&self) -> String {
        match (&self.version, self.distribution) {
            (Some(version), Some(distribution)) => format!("{} {version}", distribution.label()),
            (Some(version), None) => version.to_string(),
            (None, _) => format!("`{}`", self.text),
        }
    }
}

impl<'a, 's> Decider<'a, 's> {
    /// Finds the image, or says why there is none.
    pub(super) fn wanted(&mut self) -> Result<Wanted, Verdict> {
        if let Recognised::Artifact(artifact, _) = self.recognised {
            return self.wanted_artifact(artifact);
        }
        let architecture = self.architecture()?;
        let target = self.target()?;
        let first = self.wanted_of(&target, &architecture);
        if first.is_ok() || self.planner.pin.is_none() {
            return first;
        }
        // A build may be published in one region of the newest metadata, and everywhere in that of its own day.
        let others = self.planner.pinned(asked_stream(self.planner, self.slot)).into_iter().skip(1).flatten();
        let found = others.map(|target| self.wanted_of(&target, &architecture)).find(Result::is_ok);
        found.unwrap_or(first)
    }

    fn wanted_of(&mut self, target: &Target<'s, 'a>, architecture: &Architecture) -> Result<Wanted, Verdict> {
        let found = match self.slot.platform {
            Platform::Aws => {
                let region = self.region()?;
                // Images with the Windows licence included are another kind for the same region.
                let platform = match &self.recognised {
                    Recognised::Published(known, _) => &*known.image.platform,
                    _ => metadata::platform::AWS,
                };
                target.image(platform, architecture, |_| true, |i| i.region.as_deref() == Some(&*region))
            }
            Platform::Azure => self.marketplace(target, architecture)?,
            platform => target.image(platform.in_metadata(), architecture, |_| true, |_| true),
        };
        let image = found.map_err(|missing| self.missing(&missing, architecture))?;
        self.trail.note("release image", || image.reference.text());
        self.of_image(target, image, architecture)
    }

    /// The release that is followed, or the pinned one.
    pub(super) fn target(&self) -> Result<Target<'s, 'a>, Verdict> {
        let nowhere = Architecture::Other(String::new());
        self.target.clone().map_err(|untargeted| match untargeted {
            Untargeted::Missing(missing) => self.missing(&missing, &nowhere),
            Untargeted::Pin(pin) => {
                let message = format!("the policy pins {pin}, which no metadata that was given holds");
                Verdict::new(Reason::PinnedReleaseUnknown, message)
                    .next("give that release's metadata with --known")
            }
        })
    }

    pub(super) fn architecture(&self) -> Result<Architecture, Verdict> {
        self.architecture.clone().ok_or_else(|| {
            Verdict::new(Reason::ArchitectureUnknown, "nothing tells the architecture of the machines").next(
                "add kubernetes.io/arch to the annotation capacity.cluster-autoscaler.kubernetes.io/labels, or give \
                 --cluster-arch",
            )
        })
    }

    pub(super) fn region(&self) -> Result<String, Verdict> {
        self.region.clone().ok_or_else(|| {
            Verdict::new(Reason::RegionUnknown, "nothing tells the region of the machines")
                .next("name it in the manifest, or give --region")
        })
    }

    /// The marketplace image of the plan and generation that the set has.
    fn marketplace(
        &mut self,
        target: &Target<'s, 'a>,
        architecture: &Architecture,
    ) -> Result<Result<&'a Image, Missing>, Verdict> {
        let none = AzureImage::default();
        let own = match &self.slot.reference {
            Reference::Azure(image) => image,
            _ => &none,
        };
        let plan = self.planner.known.plan_of(&own.publisher, &own.offer).unwrap_or("no-purchase-plan");
        let generation = self.generation(own, plan, architecture)?;
        let market = |image: &Image| match &image.reference {
            ImageReference::Marketplace(m) => Some((m.plan.clone(), m.generation)),
            _ => None,
        };
        let found = target.image(
            metadata::platform::AZURE,
            architecture,
            |i| market(i).is_some(),
            |i| market(i).is_some_and(|(p, g)| p == plan && g == generation),
        );
        match found {
            Err(Missing::Region { .. }) => {
                let message = format!(
                    "the release has no {architecture} image of generation {generation}, plan {plan}"
                );
                Err(Verdict::new(Reason::NoImageForGeneration, message))
            }
            Err(Missing::Platform) => Err(self.azure_disk(target, architecture)),
            found => Ok(found),
        }
    }

    /// Hyper-V generation: of a known image its own; else as the installer and the marketplace name theirs. Arm is
    /// always 2. Of any other image nothing tells it.
    fn generation(&self, own: &AzureImage, plan: &str, architecture: &Architecture) -> Result<u8, Verdict> {
        let market = match &self.recognised {
            Recognised::Published(known, _) => match &known.image.reference {
                ImageReference::Marketplace(market) => Some(market.generation),
                _ => None,
            },
            _ => None,
        };
        let second = match (&self.recognised, market) {
            (_, Some(generation)) => return Ok(generation),
            _ if *architecture == Architecture::Aarch64 => true,
            (Recognised::Installer, _) => azure_image(&own.resource_id)
                .is_some_and(|(_, image)| image.split("/images/").last().unwrap_or(&image).contains("-gen2")),
            (Recognised::Offer, _) if plan == "no-purchase-plan" => own.sku.contains("v2"),
            (Recognised::Offer, _) => !own.sku.contains("gen1"),
            _ => {
                let message = "nothing tells the Hyper-V generation of the machines";
                return Err(Verdict::new(Reason::GenerationUnknown, message).next(
                    "name the marketplace image of the right generation once; it is followed from then on",
                ));
            }
        };
        Ok(if second { 2 } else { 1 })
    }

    /// Releases before 4.20 have no marketplace images; each cluster uploads the disk.
    fn azure_disk(&mut self, target: &Target<'s, 'a>, architecture: &Architecture) -> Verdict {
        let disk = target.artifacts("azure", architecture).into_iter().find(|a| &*a.part == "disk");
        self.artifacts = disk.map(ArtifactView::of).into_iter().collect();
        match disk {
            Some(disk) => Verdict::new(
                Reason::ImageNotInStore,
                format!("the release publishes no marketplace image; its disk is {}", disk.location),
            )
            .next("upload the disk as an image of the same generation, and name it in the set"),
            None => Verdict::new(
                Reason::NoImageForPlatform,
                format!("the release publishes no Azure marketplace image for {architecture}"),
            ),
        }
    }

    fn of_image(
        &mut self,
        target: &Target<'s, 'a>,
        image: &'a Image,
        architecture: &Architecture,
    ) -> Result<Wanted, Verdict> {
        let text = match &image.reference {
            ImageReference::Gcp { project: None, url, .. } => {
                let url = url.clone().unwrap_or_default();
                let message =
                    format!("the release publishes no Google image; clusters made their own from {url}");
                self.artifacts = vec![archive(&url)];
                return Err(Verdict::new(Reason::ImageNotInStore, message)
                    .next("make an image from the archive, and name it in the set"));
            }
            reference => self.written(&reference.text()),
        };
        let values = match &image.reference {
            ImageReference::Marketplace(market) => azure_values(market),
            _ => vec![(Role::Image, text.clone())],
        };
        let source = target.release.catalog.source(image.source);
        let mut wanted = Wanted::new(text, image.version.as_deref().cloned(), source, values);
        if image.region.is_some() && target.build.is_none() {
            wanted.newest = target.newest(&image.platform, architecture).cloned();
        }
        Ok(wanted)
    }

    /// A Google path keeps the address that stands in front of it.
    fn written(&self, path: &str) -> String {
        let own = self.slot.reference.text().unwrap_or_default();
        match own.find("projects/") {
            Some(start) if self.slot.platform == Platform::Gcp => {
                format!("{}{path}", own.get(..start).unwrap_or_default())
            }
            _ => path.to_owned(),
        }
    }

    /// The release's artifact in the place of an older one at the vendor's own address (`provisioningOSDownloadURL`).
    fn wanted_artifact(&mut self, current: &Artifact) -> Result<Wanted, Verdict> {
        let architecture = current.architecture.clone().map_or_else(|| self.architecture(), Ok)?;
        let target = self.target()?;
        let all = target.artifacts(&current.platform, &architecture);
        // gz became xz, and names changed: what counts is what comes out.
        let kind = |format: &str| format.split('.').next().unwrap_or(format).to_owned();
        let found =
            all.into_iter().find(|a| a.part == current.part && kind(&a.format) == kind(&current.format));
        let Some(artifact) = found else {
            let message =
                format!("the release has no {architecture} {} {}", current.platform, current.format);
            return Err(Verdict::new(Reason::NoImageForPlatform, message));
        };
        let own = self.slot.reference.text().unwrap_or_default();
        // The checksum stays of the kind that it is: of the file, or of what is in it.
        let same_kind = |old: &str| {
            if current.uncompressed_sha256.as_deref() == Some(old) {
                artifact.uncompressed_sha256.clone()
            } else if current.sha256.as_deref() == Some(old) {
                artifact.sha256.clone()
            } else {
                None
            }
        };
        let foreign = || {
            Verdict::new(
                Reason::NotEditable,
                "the checksum beside the URL is of a kind that no metadata gives",
            )
            .next("give the checksum as the sha256 that the release metadata has")
        };
        let text = match own.split_once(['?', '#']) {
            Some((_, query)) => {
                let old = query.strip_prefix("sha256=").and_then(same_kind).ok_or_else(foreign)?;
                format!("{}?sha256={old}", artifact.location)
            }
            None => artifact.location.clone(),
        };
        let mut values = vec![(Role::Image, text.clone())];
        if let Some(field) = self.slot.fields.iter().find(|f| f.role == Role::Checksum) {
            let checksum = field.value.as_deref().and_then(same_kind).ok_or_else(foreign)?;
            values.extend([(Role::Checksum, checksum), (Role::ChecksumType, "sha256".to_owned())]);
        }
        let source = target.release.catalog.source(artifact.source);
        Ok(Wanted::new(text, artifact.version.as_deref().cloned(), source, values))
    }

    pub(super) fn missing(&self, missing: &Missing, architecture: &Architecture) -> Verdict {
        let platform = self.slot.platform;
        match missing {
            Missing::Stream { asked, have } => {
                let message =
                    format!("the set asks for the OS stream {asked}, the metadata has {}", list(have));
                Verdict::new(Reason::StreamNotInRelease, message)
                    .next("give the metadata of that stream with --release")
            }
            Missing::StreamUnknown { have } => {
                let message = format!("the metadata has the OS streams {} and no default", list(have));
                Verdict::new(Reason::StreamUnknown, message).next(
                    "label the set with machineconfiguration.openshift.io/osstream, or set defaultOsStream",
                )
            }
            Missing::Platform => {
                Verdict::new(Reason::NoImageForPlatform, format!("the release publishes no {platform} image"))
            }
            Missing::Architecture { have } => {
                let message = format!(
                    "the release publishes {platform} images for {}, none for {architecture}",
                    list(have)
                );
                Verdict::new(Reason::NoImageForArchitecture, message)
            }
            Missing::Region { have } => {
                let region = self.region.as_deref().unwrap_or_default();
                let message = format!(
                    "the release publishes {architecture} images in {have} regions, none in {region}"
                );
                Verdict::new(Reason::NoImageForRegion, message)
                    .next("import the release's disk in the region yourself, and name that image in the set")
            }
            Missing::Ambiguous { one, other } => {
                let message = format!("the metadata names {one} and {other} for the same place");
                Verdict::new(Reason::AmbiguousRelease, message)
                    .next("give one release with --release, older ones with --known")
            }
        }
    }
}

fn azure_values(market: &MarketplaceImage) -> Vec<(Role, String)> {
    let kind = if market.plan == "no-purchase-plan" { "MarketplaceNoPlan" } else { "MarketplaceWithPlan" };
    vec![
        (Role::Publisher, market.publisher.clone()),
        (Role::Offer, market.offer.clone()),
        (Role::Sku, market.sku.clone()),
        (Role::Version, market.version.clone()),
        (Role::ResourceId, String::new()),
        (Role::ImageType, kind.to_owned()),
    ]
}

fn archive(url: &str) -> ArtifactView {
    ArtifactView {
        platform: metadata::platform::GCP.to_owned(),
        format: "tar.gz".to_owned(),
        location: url.to_owned(),
        sha256: None,
        uncompressed_sha256: None,
        size: None,
    }
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none by name".to_owned() } else { items.join(", ") }
}
