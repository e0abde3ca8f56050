//! What release metadata publishes for a platform: the thing that a cloud can boot, or the object to import there.

use serde::{Deserialize, Serialize};

/// One published image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ImageReference {
    /// An id that the cloud gave: an AMI, an Alibaba image.
    Id {
        /// `ami-…`, `m-…`.
        id: String,
    },
    /// A Google Compute image. Before OpenShift 4.6 there is no public one: `project` is absent, `url` names the
    /// archive from which each cluster made its own.
    Gcp {
        /// The project that publishes it.
        project: Option<String>,
        /// The image name.
        name: String,
        /// The image family (Fedora only).
        family: Option<String>,
        /// The archive that the image was made from (installer files up to 4.9).
        url: Option<String>,
    },
    /// An image of the Azure marketplace.
    Marketplace(MarketplaceImage),
    /// A blob to import: Azure's `azure-disk`.
    Blob {
        /// Where it lies.
        url: String,
    },
    /// An object in a regional bucket to import: IBM Cloud, Power VS.
    Object {
        /// The object's name.
        object: Option<String>,
        /// The bucket.
        bucket: Option<String>,
        /// Where it lies.
        url: String,
    },
    /// A container disk of KubeVirt.
    Container {
        /// The reference with its floating tag.
        image: String,
        /// The reference with the digest, which pins it.
        digest_ref: Option<String>,
    },
}

/// An image of the Azure marketplace (`rhel-coreos-extensions.marketplace.azure`, stream-metadata-go).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MarketplaceImage {
    /// The purchase plan as the metadata names it: `no-purchase-plan`, `ocp`, `opp`, `oke`, each also `-emea`.
    pub plan: String,
    /// The Hyper-V generation, 1 or 2.
    pub generation: u8,
    /// Publisher.
    pub publisher: String,
    /// Offer.
    pub offer: String,
    /// SKU.
    pub sku: String,
    /// Version; it trails that of the release.
    pub version: String,
}

impl MarketplaceImage {
    /// `publisher/offer/sku/version`, as users search for it.
    pub fn path(&self) -> String {
        format!("{}/{}/{}/{}", self.publisher, self.offer, self.sku, self.version)
    }
}

impl ImageReference {
    /// The string that a person would search for; also the key of [`Catalog::identify`](crate::Catalog::identify).
    pub fn text(&self) -> String {
        match self {
            Self::Id { id } => id.clone(),
            Self::Gcp { project: Some(project), name, .. } => {
                format!("projects/{project}/global/images/{name}")
            }
            Self::Gcp { name, .. } => name.clone(),
            Self::Marketplace(image) => image.path(),
            Self::Object { object: Some(object), .. } => object.clone(),
            Self::Blob { url } | Self::Object { url, .. } => url.clone(),
            Self::Container { digest_ref: Some(digest), .. } => digest.clone(),
            Self::Container { image, .. } => image.clone(),
        }
    }
}
