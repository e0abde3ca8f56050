//! Reason codes: closed lists, each with what it means. The documentation is generated from here.

use serde::{Deserialize, Serialize};

/// Declares reasons with their action, whether a human is needed, and what they mean.
macro_rules! reasons {
    ($($action:ident $human:literal $name:ident $meaning:literal;)*) => {
        /// Why a decision is what it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
        #[non_exhaustive]
        pub enum Reason {
            $(#[doc = $meaning] $name,)*
        }

        impl Reason {
            /// Every reason, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The action that it goes with.
            pub fn action(self) -> crate::Action {
                match self { $(Self::$name => crate::Action::$action,)* }
            }

            /// Whether a human has to look: exit status 4.
            pub fn needs_human(self) -> bool {
                match self { $(Self::$name => $human,)* }
            }

            /// What it means.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }
        }
    };
}

reasons! {
    Update false NewerImage "The release has a newer image for the same place.";
    Update false InstallerImage "The image is the one that the installer made for this cluster; the release has a published one.";
    Update false Pinned "The policy pins a release, and the image is of another.";
    Update false Adopted "The policy adopts the image by name; the release has another.";
    Update false WrongPlace "The image is of another region or architecture; the release has the right one.";
    Update false ImageFieldsDiffer "The image is the release's, but a field beside it is not as the platform needs it.";
    Resolve false Managed "The reference is the word `managed`: the image is resolved when a machine is made.";
    Current false UpToDate "The image is the release's.";
    Current true RegionBehind "The image is the release's newest in this region; other regions hold a newer one.";
    Current false ImageInRelease "Machines are installed from what the release itself carries; there is no image to follow.";
    Leave true UnknownImage "No metadata that was given knows the image: it may be custom, from a marketplace, or foreign.";
    Leave true NoImageId "The image is chosen by a rule (filters, an ARN, a custom method) and not by id.";
    Leave true TemplateMissing "The template that should hold the image is not in the input, or several have its name.";
    Leave true NoReference "No image is named where the platform expects one.";
    Leave true SecurityType "Confidential and trusted-launch machines need an image that the release does not publish.";
    Leave true UnsupportedPlatform "The provider is not known.";
    Leave true NoImageForPlatform "The release publishes no image for the platform.";
    Leave true NoImageForArchitecture "The release publishes no image of the platform for the architecture.";
    Leave true NoImageForRegion "The release publishes no image in the region. Another region's image is never used.";
    Leave true NoImageForGeneration "The release publishes no image for the Hyper-V generation and purchase plan.";
    Leave true StreamNotInRelease "The set asks for an OS stream that the metadata does not hold.";
    Leave false OwnedByController "Another controller owns the set and would undo a change.";
    Leave false Paused "The set is paused: its own controller leaves it alone.";
    Leave false NotAuthoritative "The other machine API is authoritative for the set.";
    Leave false ManagedByTopology "A ClusterClass or a topology manages the set.";
    Leave false TemplateUnreferenced "No machine set in the input makes machines from the template.";
    Leave false NotCoreOS "The machines do not run CoreOS.";
    Leave false ReadOnly "The machine exists already: a change of its image would have no effect.";
    Leave false Placeholder "The reference is a placeholder that is filled in before the manifest is used.";
    Leave false NotSelected "The policy's selector does not match the set.";
    Leave false PolicyPaused "The policy is paused.";
    Leave true PolicyObserves "The policy only observes; in mode Managed the change would be made.";
    Wait true ArchitectureUnknown "Nothing tells the architecture of the machines, and none is assumed.";
    Wait true RegionUnknown "Nothing tells the region of the machines, and none is assumed.";
    Wait true GenerationUnknown "Nothing tells the Hyper-V generation of the machines, and none is assumed.";
    Wait false ClusterUpdating "The cluster is on its way to the release; its image is for machines of after the update.";
    Wait true StreamUnknown "The metadata holds several OS streams, and nothing tells which one the set is of.";
    Wait true ImageNotInStore "The image must lie in a private store first; the artifact that belongs there is named.";
    Wait true PinnedReleaseUnknown "The policy pins a release for which no metadata was given.";
    Wait false TooYoung "The build is younger than the policy's minimum age.";
    Refuse true WouldDowngrade "The release's image is older than the set's.";
    Refuse true CannotCompare "Nothing tells which of the two images is newer.";
    Refuse true DistributionChange "The release's image is of another distribution.";
    Refuse true WouldReplaceMachines "The change would replace machines that run.";
    Refuse true Denied "The policy denies the release's image.";
    Refuse true SameVersionOtherImage "Two images of one version are published for the same place.";
    Refuse true AmbiguousRelease "The metadata names two images for the same place.";
    Refuse true ArchitectureInvalid "The set declares an architecture that does not exist.";
    Refuse true ManagedNotAllowed "The word `managed` has no meaning here.";
    Refuse true SharedByAnchor "The bytes of the reference are shared by a YAML anchor with places that must stay.";
    Refuse true NotEditable "The manifest is written in a way in which the reference cannot be changed alone.";
}

/// Why a finding is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum FindingReason {
    /// The set's image is of another region: it cannot boot there.
    ImageOfOtherRegion,
    /// The set's image is of another architecture than the set declares.
    ImageOfOtherArchitecture,
    /// Other regions hold a newer image than the set's region.
    RegionBehind,
    /// The change replaces machines that run, and the policy allows it.
    ReplacesMachines,
    /// The policy's pin has expired and is no longer followed.
    PinExpired,
    /// The Machine Config Operator manages the same sets: two would change one reference.
    ManagedByMachineConfigOperator,
    /// The boot image is outside the limits of the policy.
    SkewViolation,
    /// A manifest does not parse.
    UnparsableManifest,
    /// A file could not be read.
    UnreadableFile,
    /// Something in the release metadata could not be understood.
    UnreadableMetadata,
}

impl FindingReason {
    /// Every reason with its meaning, in the order of the documentation.
    pub const ALL: &[(Self, &str)] = &[
        (Self::ImageOfOtherRegion, "The set's image is of another region: it cannot boot there."),
        (Self::ImageOfOtherArchitecture, "The set's image is of another architecture than the set declares."),
        (Self::RegionBehind, "Other regions hold a newer image than the set's region."),
        (Self::ReplacesMachines, "The change replaces machines that run, and the policy allows it."),
        (Self::PinExpired, "The policy's pin has expired and is no longer followed."),
        (
            Self::ManagedByMachineConfigOperator,
            "The Machine Config Operator manages the same sets: two would change one reference.",
        ),
        (Self::SkewViolation, "The boot image is outside the limits of the policy."),
        (Self::UnparsableManifest, "A manifest does not parse; the others are planned."),
        (Self::UnreadableFile, "A file could not be read; the others are planned."),
        (
            Self::UnreadableMetadata,
            "Something in the release metadata could not be understood and was passed over.",
        ),
    ];
}
