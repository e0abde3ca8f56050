//! The plan as others script against it: stable, documented by a JSON Schema. Enums are open: readers accept new words.

use std::collections::BTreeMap;
use std::sync::Arc;

use machines::{ObjectId, Slot};
use serde::Serialize;
use serde_json::Value;

use crate::change::FileChange;
use crate::reason::{FindingReason, Reason};

/// The version of the output format.
pub const API_VERSION: &str = "output.bootwright.dev/v1alpha1";

/// What should be done about every slot, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// `output.bootwright.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Plan`.
    pub kind: &'static str,
    /// One decision for each slot, in the order of the manifests.
    pub decisions: Vec<Decision>,
    /// What else should be known.
    pub findings: Vec<Finding>,
    /// Numbers over all decisions.
    pub summary: Summary,
}

/// What is done about a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Action {
    /// The reference is changed.
    Update,
    /// Nothing: the word `managed` is resolved when a machine is made.
    Resolve,
    /// Nothing: the image is the right one.
    Current,
    /// Nothing: it must not be touched.
    Leave,
    /// Nothing yet: something is missing.
    Wait,
    /// Nothing: the change would break a rule.
    Refuse,
}

impl Action {
    /// The word in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Resolve => "resolve",
            Self::Current => "current",
            Self::Leave => "leave",
            Self::Wait => "wait",
            Self::Refuse => "refuse",
        }
    }
}

/// The decision about one slot.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The machine set.
    pub object: ObjectView,
    /// The place in it.
    pub slot: SlotView,
    /// What is done.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// The image as it is.
    pub from: ReferenceView,
    /// The image as it should be.
    pub to: ReferenceView,
    /// JSON Patch (RFC 6902) for `object`, guarded by the old value. It is carried out with action `update` alone; with
    /// reason `WouldReplaceMachines` it shows what would be.
    pub patch: Vec<PatchOp>,
    /// Objects to create before the patch: a new template in the place of an immutable one.
    pub creates: Vec<Value>,
    /// The artifacts that belong into the private store, where that is what is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactView>,
    /// The distance between boot image and release.
    pub skew: SkewView,
    /// One sentence with the numbers.
    pub message: String,
    /// The next step, where there is one.
    pub next: Option<String>,
    /// What `apply` writes into files.
    #[serde(skip)]
    #[cfg_attr(feature = "schemars", schemars(skip))]
    pub changes: Vec<FileChange>,
}

/// A machine set, as it is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ObjectView {
    /// `machine.openshift.io/v1beta1`.
    pub api_version: String,
    /// `MachineSet`.
    pub kind: String,
    /// Namespace; empty where the manifest names none.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The file; none for a live object.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub file: Option<Arc<str>>,
    /// The number of the document in the file, from 0.
    pub document: usize,
    /// The line of the reference, from 1.
    pub line: usize,
}

impl From<&ObjectId> for ObjectView {
    fn from(id: &ObjectId) -> Self {
        Self {
            api_version: id.api_version.clone(),
            kind: id.kind.clone(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            file: id.file.clone(),
            document: id.document,
            line: id.line,
        }
    }
}

/// The place of the reference, with the facts by which its image is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlotView {
    /// JSON pointer in the object.
    pub pointer: String,
    /// The platform.
    pub platform: String,
    /// The region, where images are regional.
    pub region: Option<String>,
    /// The architecture; none where it is unknown.
    pub architecture: Option<String>,
    /// The OS stream; none for a stream without a name.
    pub os_stream: Option<String>,
    /// The template through which the object is given its image: `AWSMachineTemplate/NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

impl From<&Slot> for SlotView {
    fn from(slot: &Slot) -> Self {
        Self {
            pointer: slot.pointer.clone(),
            platform: slot.platform.to_string(),
            region: slot.region.clone(),
            architecture: None,
            os_stream: slot.os_stream.clone(),
            template: slot.template.as_ref().map(|t| format!("{}/{}", t.id.kind, t.id.name)),
        }
    }
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReferenceView {
    /// What a person would search for: an AMI id, an image path, a name, `publisher/offer/sku/version`.
    pub reference: Option<String>,
    /// Its OS version.
    pub version: Option<String>,
}

/// One operation of a JSON Patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct PatchOp {
    /// `test`, `replace`, `add`.
    pub op: &'static str,
    /// JSON pointer.
    pub path: String,
    /// The value.
    pub value: Value,
}

/// A file that belongs into a private store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ArtifactView {
    /// The platform, as the metadata names it.
    pub platform: String,
    /// The format: `qcow2.gz`, `ova`.
    pub format: String,
    /// Where it is published.
    pub location: String,
    /// Digest of the file as it is downloaded.
    pub sha256: Option<String>,
    /// Digest of the content once decompressed.
    pub uncompressed_sha256: Option<String>,
    /// Size of the file as it is downloaded, in bytes.
    pub size: Option<u64>,
}

impl ArtifactView {
    pub(crate) fn of(artifact: &metadata::Artifact) -> Self {
        Self {
            platform: artifact.platform.to_string(),
            format: artifact.format.to_string(),
            location: artifact.location.clone(),
            sha256: artifact.sha256.clone(),
            uncompressed_sha256: artifact.uncompressed_sha256.clone(),
            size: artifact.size,
        }
    }
}

/// How far a boot image is from the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SkewState {
    /// It is the release's.
    Current,
    /// It is newer.
    Ahead,
    /// It is older.
    Behind,
    /// Nothing tells. Never counted as fine.
    Unknown,
    /// It is outside the limits of the policy.
    Violation,
}

impl SkewState {
    /// The word in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Ahead => "ahead",
            Self::Behind => "behind",
            Self::Unknown => "unknown",
            Self::Violation => "violation",
        }
    }
}

/// The distance between one slot's boot image and the release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SkewView {
    /// Now.
    pub state: SkewState,
    /// Once the decision is carried out.
    pub after: SkewState,
    /// Whether the slot counts for the whole: not where its machines are not CoreOS, or exist already.
    pub counts: bool,
    /// The OS version of the boot image.
    pub boot: Option<String>,
    /// The OS version of the release for this slot.
    pub release: Option<String>,
    /// The age of the boot image's build in days.
    pub age_days: Option<i64>,
    /// The limit that is broken, or that could not be checked.
    pub limit: Option<String>,
}

/// Something that should be known beside the decisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The file.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub file: Option<Arc<str>>,
    /// Line, from 1; 0 where it is about the whole file.
    pub line: usize,
    /// Column, from 1; 0 where it is about the whole file.
    pub column: usize,
    /// How grave.
    pub severity: Severity,
    /// Why.
    pub reason: FindingReason,
    /// The object that it is about.
    pub object: Option<String>,
    /// One sentence.
    pub message: String,
}

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// To be known.
    Warning,
    /// Something is broken; the exit status is 1 where an input could not be read.
    Error,
}

/// Numbers over all decisions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// All slots.
    pub slots: usize,
    /// Slots by action.
    pub actions: BTreeMap<&'static str, usize>,
    /// Slots by reason.
    pub reasons: BTreeMap<&'static str, usize>,
    /// Slots where a human has to look.
    pub needs_human: usize,
    /// The skew of the whole.
    pub skew: SkewSummary,
}

/// The skew of the whole: the worst counts, and unknown is never fine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SkewSummary {
    /// The worst state of all that count.
    pub state: SkewState,
    /// The worst state once the plan is carried out.
    pub after: SkewState,
    /// The oldest boot image of all that count; none where one is unknown or two cannot be compared.
    pub oldest: Option<String>,
    /// How many slots count.
    pub counted: usize,
    /// How many of these are unknown.
    pub unknown: usize,
}

impl Default for SkewSummary {
    fn default() -> Self {
        Self { state: SkewState::Current, after: SkewState::Current, oldest: None, counted: 0, unknown: 0 }
    }
}
