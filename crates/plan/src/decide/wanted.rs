//! The image that a slot should have, on platforms whose images are published.

use machines::{AzureImage, Platform, Reference, Role};
use metadata::{Architecture, Distribution, Image, ImageReference, MarketplaceImage, OsVersion};

use super::{Decider, Verdict};
use crate::known::Recognised;
use crate::output::{ArtifactView, ReferenceView};
use crate::reason::Reason;
use crate::release::{Missing, Release, StreamChoice};

/// The image that a slot should have.
pub(crate) struct Wanted {
    /// The reference as it is written into the manifest.
    pub(super) text: String,
    pub(super) version: Option<OsVersion>,
    pub(super) distribution: Option<Distribution>,
    /// The newest version that other regions of the release have.
    pub(super) newest: Option<OsVersion>,
    /// The new values of the fields.
    pub(super) values: Vec<(Role, String)>,
}

impl Wanted {
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
        let (release, stream) = self.target()?;
        let found = match self.slot.platform {
            Platform::Aws => {
                let region = self.region()?;
                release.image(
                    &stream,
                    metadata::platform::AWS,
                    &architecture,
                    |_| true,
                    |i| i.region.as_deref() == Some(&*region),
                )
            }
            Platform::Azure => self.marketplace(release, &stream, &architecture)?,
            platform => release.image(&stream, platform.in_metadata(), &architecture, |_| true, |_| true),
        };
        let image = found.map_err(|missing| self.missing(&missing, &architecture))?;
        self.trail.note("release image", || image.reference.text());
        self.of_image(release, &stream, image, &architecture)
    }

    /// The release that is followed, or the pinned one.
    pub(super) fn target(&self) -> Result<(&'s Release<'a>, StreamChoice), Verdict> {
        let planner = self.planner;
        let Some(pin) = planner.pin else {
            let architecture = self.architecture.clone().unwrap_or(Architecture::Other(String::new()));
            let stream = self.stream.clone().map_err(|missing| self.missing(&missing, &architecture))?;
            return Ok((&planner.release, stream));
        };
        let releases = [Some(&planner.release), planner.history.as_ref()];
        for release in releases.into_iter().flatten() {
            if let Some(stream) = release.pinned(&pin.release) {
                return Ok((release, stream));
            }
        }
        let message = format!("the policy pins {}, which no metadata that was given holds", pin.release);
        Err(Verdict::new(Reason::PinnedReleaseUnknown, message)
            .next("give that release's metadata with --known"))
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
        release: &Release<'a>,
        stream: &StreamChoice,
        architecture: &Architecture,
    ) -> Result<Result<&'a Image, Missing>, Verdict> {
        let none = AzureImage::default();
        let own = match &self.slot.reference {
            Reference::Azure(image) => image,
            _ => &none,
        };
        let plan = self.planner.known.plan_of(&own.publisher, &own.offer).unwrap_or("no-purchase-plan");
        let generation = self.generation(own, plan, architecture);
        let market = |image: &Image| match &image.reference {
            ImageReference::Marketplace(m) => Some((m.plan.clone(), m.generation)),
            _ => None,
        };
        let found = release.image(
            stream,
            metadata::platform::AZURE,
            architecture,
            |i| market(i).is_some(),
            |i| market(i).is_some_and(|(p, g)| p == plan && g == generation),
        );
        if let Err(Missing::Region { .. }) = found {
            let message =
                format!("the release has no {architecture} image of generation {generation}, plan {plan}");
            return Err(Verdict::new(Reason::NoImageForGeneration, message));
        }
        if found == Err(Missing::Platform) {
            return Err(self.azure_disk(release, stream, architecture));
        }
        Ok(found)
    }

    /// Hyper-V generation: of a known image its own; else as the installer and the marketplace name it. Arm is always 2.
    fn generation(&self, own: &AzureImage, plan: &str, architecture: &Architecture) -> u8 {
        if let Recognised::Published(known) = &self.recognised
            && let ImageReference::Marketplace(market) = &known.image.reference
        {
            return market.generation;
        }
        let second = if *architecture == Architecture::Aarch64 {
            true
        } else if !own.resource_id.is_empty() {
            own.resource_id.contains("gen2")
        } else if plan == "no-purchase-plan" {
            own.sku.contains("v2")
        } else {
            !own.sku.contains("gen1")
        };
        if second { 2 } else { 1 }
    }

    /// Releases before 4.20 have no marketplace images; each cluster uploads the disk.
    fn azure_disk(
        &mut self,
        release: &Release<'a>,
        stream: &StreamChoice,
        architecture: &Architecture,
    ) -> Verdict {
        let disk = release.artifacts(stream, "azure", architecture).find(|a| &*a.part == "disk");
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
        release: &Release<'a>,
        stream: &StreamChoice,
        image: &'a Image,
        architecture: &Architecture,
    ) -> Result<Wanted, Verdict> {
        let source = release.catalog.source(image.source);
        let distribution = source.map(|s| s.distribution).filter(|d| *d != Distribution::Unknown);
        let regional = image.region.is_some();
        let newest =
            regional.then(|| release.newest(stream, &image.platform, architecture)).flatten().cloned();
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
        Ok(Wanted { text, version: image.version.as_deref().cloned(), distribution, newest, values })
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
    fn wanted_artifact(&mut self, current: &metadata::Artifact) -> Result<Wanted, Verdict> {
        let architecture = current.architecture.clone().map_or_else(|| self.architecture(), Ok)?;
        let (release, stream) = self.target()?;
        let mut same =
            release.artifacts(&stream, &current.platform, &architecture).filter(|a| a.part == current.part);
        // gz became xz, and names changed: what counts is what comes out.
        let kind = |format: &str| format.split('.').next().unwrap_or(format).to_owned();
        let found = same.find(|a| kind(&a.format) == kind(&current.format));
        let Some(artifact) = found else {
            let message =
                format!("the release has no {architecture} {} {}", current.platform, current.format);
            return Err(Verdict::new(Reason::NoImageForPlatform, message));
        };
        let distribution = release.catalog.source(artifact.source).map(|s| s.distribution);
        let own = self.slot.reference.text().unwrap_or_default();
        let checksum = artifact.uncompressed_sha256.clone().or_else(|| artifact.sha256.clone());
        let text = match (own.split_once("?sha256="), &checksum) {
            (Some(_), Some(checksum)) => format!("{}?sha256={checksum}", artifact.location),
            _ => artifact.location.clone(),
        };
        let mut values = vec![(Role::Image, text.clone())];
        values.extend(checksum.map(|checksum| (Role::Checksum, checksum)));
        Ok(Wanted { text, version: artifact.version.as_deref().cloned(), distribution, newest: None, values })
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
                    .next("copy the image into the region, and name it under `adopt` in the policy")
            }
            Missing::Ambiguous { one, other } => {
                let message = format!("the metadata names {one} and {other} for the same place");
                Verdict::new(Reason::AmbiguousRelease, message)
                    .next("give one release with --release, older ones with --known")
            }
        }
    }
}

impl Release<'_> {
    /// The sources that a pin names: by OS version, or by the OpenShift version of the release that carries them.
    fn pinned(&self, release: &str) -> Option<StreamChoice> {
        let catalog = self.catalog;
        let of_release = |s: &metadata::Source| s.release_version.as_deref() == Some(release);
        let versions = catalog.images.iter().map(|i| (&i.version, i.source));
        let versions = versions.chain(catalog.artifacts.iter().map(|a| (&a.version, a.source)));
        let holding: Vec<_> = versions
            .filter(|(v, _)| v.as_ref().is_some_and(|v| v.as_str() == release))
            .map(|(_, id)| id)
            .collect();
        let sources: Vec<bool> = catalog
            .sources
            .iter()
            .map(|s| {
                of_release(s)
                    || holding.iter().any(|id| catalog.source(*id).is_some_and(|h| std::ptr::eq(h, s)))
            })
            .collect();
        // What several documents say of one build is one build.
        let first = sources.iter().position(|held| *held)?;
        let sources = (0..sources.len()).map(|n| n == first).collect();
        Some(self.choice(first, sources))
    }

    fn choice(&self, first: usize, sources: Vec<bool>) -> StreamChoice {
        let name = self.catalog.sources.get(first).and_then(|s| s.os_stream.clone());
        StreamChoice::of(name, sources)
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
