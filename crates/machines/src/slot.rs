//! The slot: the place in one machine set where the reference to its boot image stands, with all facts around it.

use std::fmt;
use std::sync::Arc;

use metadata::Architecture;
use serde::{Deserialize, Serialize};

use crate::edit::Site;

/// The infrastructure that a machine set makes machines on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Platform {
    /// Amazon EC2.
    Aws,
    /// Microsoft Azure.
    Azure,
    /// Bare metal.
    BareMetal,
    /// Google Compute Engine.
    Gcp,
    /// IBM Cloud VPC.
    IbmCloud,
    /// KubeVirt.
    KubeVirt,
    /// Nutanix AHV.
    Nutanix,
    /// OpenStack.
    OpenStack,
    /// IBM Power Virtual Server.
    PowerVs,
    /// VMware vSphere.
    VSphere,
    /// A provider that this version does not know.
    Unknown,
}

impl Platform {
    /// All platforms that a name can stand for.
    pub const ALL: [Self; 10] = [
        Self::Aws,
        Self::Azure,
        Self::BareMetal,
        Self::Gcp,
        Self::IbmCloud,
        Self::KubeVirt,
        Self::Nutanix,
        Self::OpenStack,
        Self::PowerVs,
        Self::VSphere,
    ];

    /// The name in plans and policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::BareMetal => "baremetal",
            Self::Gcp => "gcp",
            Self::IbmCloud => "ibmcloud",
            Self::KubeVirt => "kubevirt",
            Self::Nutanix => "nutanix",
            Self::OpenStack => "openstack",
            Self::PowerVs => "powervs",
            Self::VSphere => "vsphere",
            Self::Unknown => "unknown",
        }
    }

    /// The name that release metadata uses for the platform's images and artifacts.
    pub fn in_metadata(self) -> &'static str {
        match self {
            Self::VSphere => metadata::platform::VMWARE,
            Self::BareMetal => metadata::platform::METAL,
            other => other.as_str(),
        }
    }

    /// Whether machines start from an image in the user's own account or store, never from a published one.
    pub fn has_private_images(self) -> bool {
        matches!(
            self,
            Self::BareMetal
                | Self::IbmCloud
                | Self::Nutanix
                | Self::OpenStack
                | Self::PowerVs
                | Self::VSphere
        )
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an object is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectId {
    /// `machine.openshift.io/v1beta1`.
    pub api_version: String,
    /// `MachineSet`.
    pub kind: String,
    /// Namespace; empty where the manifest names none.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The file it stands in; none for a live object.
    pub file: Option<Arc<str>>,
    /// The number of its document in the file, from 0.
    pub document: usize,
    /// The line where the reference stands, from 1.
    pub line: usize,
    /// The column there, in characters, from 1.
    pub column: usize,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// What kind of object holds the slot, as far as decisions differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum SlotKind {
    /// Makes new machines only: a Machine API MachineSet.
    MachineSet,
    /// A ControlPlaneMachineSet.
    ControlPlane,
    /// A Cluster API infrastructure machine template: immutable, replaced by a new one.
    Template,
    /// The image that bare metal hosts are installed from, for the whole cluster.
    Provisioning,
    /// A bare metal host.
    Host,
    /// A machine that exists: read-only.
    Machine,
}

/// The reference as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reference {
    /// An id, name, path or URL.
    Value(String),
    /// An Azure image object.
    Azure(AzureImage),
    /// A rule by which the platform finds the image when a machine is made: `ami.filters`, `ami.arn`.
    Lookup(String),
    /// The word `managed`.
    Managed,
    /// A placeholder of clusterctl, to be filled in before the manifest is used.
    Placeholder(String),
    /// The template that should hold it is not in the input, or there are several: the sentence tells.
    Unresolved(String),
    /// The image that the release itself carries (bare metal `install_coreos`).
    InRelease,
    /// Nothing stands there.
    Absent,
}

impl Reference {
    /// Tells the word `managed` and placeholders from values.
    pub(crate) fn of_text(text: Option<&str>) -> Self {
        match text {
            None | Some("") => Self::Absent,
            Some("managed") => Self::Managed,
            Some(text) if text.contains("${") => Self::Placeholder(text.to_owned()),
            Some(text) => Self::Value(text.to_owned()),
        }
    }

    /// The string that a person would search for.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Value(text) | Self::Lookup(text) | Self::Placeholder(text) => Some(text.clone()),
            Self::Azure(image) => image.text(),
            Self::Managed => Some("managed".to_owned()),
            Self::Unresolved(_) | Self::InRelease | Self::Absent => None,
        }
    }
}

/// An Azure image object: either a resource, or an image of the marketplace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AzureImage {
    /// Resource id of an image or gallery image.
    pub resource_id: String,
    /// Publisher.
    pub publisher: String,
    /// Offer.
    pub offer: String,
    /// SKU.
    pub sku: String,
    /// Version.
    pub version: String,
    /// `ID`, `MarketplaceWithPlan`, `MarketplaceNoPlan`; empty in old objects.
    pub kind: String,
}

impl AzureImage {
    /// The resource id, or `publisher/offer/sku/version`.
    pub fn text(&self) -> Option<String> {
        if !self.resource_id.is_empty() {
            Some(self.resource_id.clone())
        } else if self.publisher.is_empty() {
            None
        } else {
            Some(format!("{}/{}/{}/{}", self.publisher, self.offer, self.sku, self.version))
        }
    }
}

/// The part that a field plays in a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The one field of most platforms.
    Image,
    /// A second place that repeats the first: OpenStack's `rootVolume.sourceUUID`.
    Repeated,
    /// The checksum beside a URL.
    Checksum,
    /// The kind of that checksum.
    ChecksumType,
    /// Azure.
    ResourceId,
    /// Azure.
    Publisher,
    /// Azure.
    Offer,
    /// Azure.
    Sku,
    /// Azure.
    Version,
    /// Azure.
    ImageType,
}

/// One field of a reference. A platform with several fields has them changed together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The part it plays.
    pub role: Role,
    /// JSON pointer in the object.
    pub pointer: String,
    /// The value; none where the field is absent or null.
    pub value: Option<String>,
    /// Whether the field exists: a patch replaces it, else adds it.
    pub exists: bool,
    /// Where a new value is written; none for a live object, and where the text cannot be edited safely.
    pub site: Option<Site>,
}

/// The architecture that the object itself declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeclaredArchitecture {
    /// By `kubernetes.io/arch` in the annotation of the cluster autoscaler.
    Declared(Architecture),
    /// The annotation names one that does not exist.
    Invalid(String),
    /// No annotation, or none that names an architecture.
    Absent,
}

/// A controller that owns the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// How a set replaces machines when its template changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// It makes new machines only.
    NewMachinesOnly,
    /// It replaces machines when their template changed.
    ReplacesMachines,
    /// It replaces a machine when somebody deletes it.
    OnDelete,
}

/// The API that is authoritative for the object while Machine API and Cluster API are kept in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiAuthority {
    /// This object's, or nothing is said.
    Own,
    /// The other API's object is; a change here would be overwritten.
    Other,
}

/// A Cluster API template: what must be known to replace it by a new one. The slot's own object and pointer are those
/// of the machine set that refers to the template; its fields are the template's.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// Which object the template is; the line is that of the reference.
    pub id: ObjectId,
    /// JSON pointer of the reference in the template.
    pub pointer: String,
    /// The whole object.
    pub object: serde_json::Value,
    /// The field of its name.
    pub name: Field,
    /// The bytes of its document in the file, where a copy of them is a document of the same meaning.
    pub document: Option<std::ops::Range<usize>>,
    /// The field of the machine set that names the template; none where no machine set in the input does.
    pub repoint: Option<Field>,
    /// Whether a ClusterClass or a topology manages the machine set.
    pub topology: bool,
}

/// The place in one machine set where the reference to its boot image stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// The object.
    pub object: ObjectId,
    /// What kind of object, as far as decisions differ.
    pub kind: SlotKind,
    /// JSON pointer of the reference.
    pub pointer: String,
    /// The platform.
    pub platform: Platform,
    /// What the object calls its provider, for messages.
    pub provider: String,
    /// The reference as it stands.
    pub reference: Reference,
    /// The fields that form it.
    pub fields: Vec<Field>,
    /// The region that the object names.
    pub region: Option<String>,
    /// The architecture that the object declares.
    pub architecture: DeclaredArchitecture,
    /// The OS stream that the object asks for by label.
    pub os_stream: Option<String>,
    /// The owners.
    pub owners: Vec<Owner>,
    /// Whether the machines are Windows.
    pub windows: bool,
    /// The Secret of the user data.
    pub user_data_secret: Option<String>,
    /// Azure: the security type (`ConfidentialVM`, `TrustedLaunch`).
    pub security_type: Option<String>,
    /// The instance type, for messages.
    pub instance_type: Option<String>,
    /// The authoritative API.
    pub authority: ApiAuthority,
    /// Whether the set is paused (`cluster.x-k8s.io/paused`).
    pub paused: bool,
    /// How machines follow a change.
    pub strategy: Strategy,
    /// Labels of the object, for selectors.
    pub labels: Vec<(String, String)>,
    /// Of a Cluster API template.
    pub template: Option<Box<Template>>,
    /// Of a bare metal host: whether it is provisioned.
    pub provisioned: bool,
}
