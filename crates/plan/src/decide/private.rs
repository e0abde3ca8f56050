//! Platforms whose images lie in a private store: OpenStack, vSphere, Nutanix, Power VS, IBM Cloud, bare metal.

use machines::{Platform, Reference, Role};
use metadata::{Architecture, Artifact, Distribution, Image, ImageReference};

use super::wanted::Wanted;
use super::{Decider, Verdict};
use crate::known::Recognised;
use crate::output::{ArtifactView, ReferenceView};
use crate::reason::Reason;
use crate::release::{Missing, Target};

impl Decider<'_, '_> {
    /// The store's image, where its name was given; else the artifact that belongs there.
    pub(super) fn private_image(&mut self) -> Result<Verdict, Verdict> {
        let architecture = self.architecture()?;
        let target = self.target()?;
        let platform = self.slot.platform;
        let artifacts: Vec<&Artifact> = target
            .artifacts(self.artifact_platform(), &architecture)
            .into_iter()
            .filter(|a| &*a.part == "disk" && self.is_fit(a))
            .collect();
        let first = artifacts.first().copied();
        let object = self.regional_object(&target, &architecture)?;
        let version =
            first.and_then(|a| a.version.as_deref()).or_else(|| object.and_then(|o| o.version.as_deref()));
        let source = first.map(|a| a.source).or_else(|| object.map(|o| o.source));
        let source = source.and_then(|id| target.release.catalog.source(id));
        let mut views: Vec<ArtifactView> = artifacts.into_iter().map(ArtifactView::of).collect();
        views.splice(0..0, object.and_then(object_view));
        if views.is_empty() {
            let message = format!("the release publishes no {architecture} artifact for {platform}");
            return Err(Verdict::new(Reason::NoImageForPlatform, message));
        }
        let wanted = Wanted::new(String::new(), version.cloned(), source, Vec::new());
        let name = self.planner.inputs.facts.image_names.get(&platform);
        let name = name.or_else(|| self.planner.inputs.policy.image_names.get(platform.as_str()));
        // Once the cluster's name is known, a custom image is told from the installer's before anything is uploaded.
        let foreign = self.planner.inputs.facts.infrastructure_name.is_some()
            && matches!(self.recognised, Recognised::Unknown)
            && self.slot.reference != Reference::Managed;
        let Some(name) = name.cloned() else {
            if foreign {
                return Err(self.unknown_image());
            }
            return Err(self.not_in_store(views, &wanted));
        };
        let known = matches!(self.recognised, Recognised::Installer | Recognised::Adopted);
        if self.slot.reference != Reference::Managed
            && !known
            && self.slot.reference.text().as_deref() != Some(name.as_str())
        {
            return Err(self.unknown_image());
        }
        let values = vec![(Role::Image, name.clone()), (Role::Repeated, name.clone())];
        self.follow(&Wanted { text: name, values, ..wanted })
    }

    fn not_in_store(&mut self, views: Vec<ArtifactView>, wanted: &Wanted) -> Verdict {
        let label = wanted.distribution.map_or("CoreOS", Distribution::label);
        let what = wanted.version.as_ref().map_or_else(|| label.to_owned(), |v| format!("{label} {v}"));
        let location = views.first().map(|v| v.location.clone()).unwrap_or_default();
        self.to =
            ReferenceView { reference: None, version: wanted.version.as_ref().map(ToString::to_string) };
        self.artifacts = views;
        let platform = self.slot.platform;
        Verdict::new(Reason::ImageNotInStore, format!("{what} must lie in the store first: {location}"))
            .next(format!("upload it, then give its name with --image-name {platform}=NAME"))
    }

    fn artifact_platform(&self) -> &'static str {
        match self.slot.platform {
            // Hosts of 4.9 and older are written from the OpenStack image.
            Platform::BareMetal if self.wants_qcow2() => metadata::platform::OPENSTACK,
            Platform::BareMetal => metadata::platform::METAL,
            platform => platform.in_metadata(),
        }
    }

    fn wants_qcow2(&self) -> bool {
        self.slot.reference.text().is_some_and(|url| url.contains(".qcow2"))
    }

    /// Of bare metal's artifacts, the disk with 512-byte sectors.
    fn is_fit(&self, artifact: &Artifact) -> bool {
        self.slot.platform != Platform::BareMetal || self.wants_qcow2() || artifact.format.starts_with("raw")
    }

    /// Power VS and IBM Cloud import from an object in a bucket of the region.
    fn regional_object<'r>(
        &self,
        target: &Target<'_, 'r>,
        architecture: &Architecture,
    ) -> Result<Option<&'r Image>, Verdict> {
        let platform = self.slot.platform;
        if !matches!(platform, Platform::PowerVs | Platform::IbmCloud) {
            return Ok(None);
        }
        let region = self.region.as_deref();
        let in_region = |i: &Image| i.region.as_deref() == region;
        match target.image(platform.in_metadata(), architecture, |_| true, in_region) {
            Ok(image) => Ok(Some(image)),
            // Where there is an artifact too, it serves.
            Err(Missing::Region { .. })
                if region.is_none() && target.artifacts(platform.in_metadata(), architecture).is_empty() =>
            {
                Err(Verdict::new(
                    Reason::RegionUnknown,
                    "the image is imported from a bucket of the region, and nothing tells the region",
                )
                .next("give --region"))
            }
            Err(Missing::Ambiguous { one, other }) => {
                Err(self.missing(&Missing::Ambiguous { one, other }, architecture))
            }
            Err(_) => Ok(None),
        }
    }
}

fn object_view(image: &Image) -> Option<ArtifactView> {
    let ImageReference::Object { url, .. } = &image.reference else { return None };
    let file = url.rsplit('/').next().unwrap_or(url);
    let format =
        ["ova.gz", "qcow2.gz", "qcow2.xz", "qcow2"].into_iter().find(|f| file.ends_with(f)).unwrap_or("ova");
    Some(ArtifactView {
        platform: image.platform.to_string(),
        format: format.to_owned(),
        location: url.clone(),
        sha256: None,
        uncompressed_sha256: None,
        size: None,
    })
}
