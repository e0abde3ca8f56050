//! One slot, from facts to decision. The order of the questions is the order of the functions in [`Decider::verdict`].

mod allowed;
mod distance;
mod private;
mod wanted;

use std::cmp::Ordering;

use machines::{ApiAuthority, DeclaredArchitecture, Platform, Reference, Slot, SlotKind, Strategy};
use metadata::{Architecture, Distribution, OsVersion};

use crate::change::{self, Change};
use crate::facts::ClusterArchitecture;
use crate::known::{Boot, Recognised};
use crate::output::{
    Action, ArtifactView, Decision, Finding, ObjectView, ReferenceView, Severity, SkewState, SlotView,
};
use crate::planner::Planner;
use crate::planner::Untargeted;
use crate::policy::Mode;
use crate::reason::{FindingReason, Reason};
use crate::release::Target;
use crate::skew;
use crate::trail::Trail;

use wanted::Wanted;

/// A reason with its sentence and the next step.
pub(crate) struct Verdict {
    reason: Reason,
    message: String,
    next: Option<String>,
}

impl Verdict {
    fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), next: None }
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// Decides about one slot.
pub(crate) struct Decider<'a, 's> {
    planner: &'s Planner<'a>,
    slot: &'s Slot,
    trail: Trail,
    findings: Vec<Finding>,
    recognised: Recognised<'a>,
    boot: Boot,
    architecture: Option<Architecture>,
    region: Option<String>,
    target: Result<Target<'s, 'a>, Untargeted>,
    to: ReferenceView,
    to_release: Option<String>,
    change: Change,
    artifacts: Vec<ArtifactView>,
}

impl<'a, 's> Decider<'a, 's> {
    pub(crate) fn new(planner: &'s Planner<'a>, slot: &'s Slot, trail: Trail) -> Self {
        let inputs = &planner.inputs;
        let recognised = planner.known.recognise(slot, inputs.facts, &inputs.policy.adopt);
        let boot = recognised.boot(slot);
        let own_region = inputs.facts.own_region.as_ref().filter(|_| slot.kind != SlotKind::Template);
        // An image of one region boots in no other, so it tells more than a default for objects that tell none.
        let told = [boot.region.as_ref(), inputs.facts.region.as_ref(), own_region];
        let region = slot.region.as_ref().or_else(|| told.into_iter().flatten().next()).cloned();
        Self {
            planner,
            slot,
            trail,
            findings: Vec::new(),
            boot,
            recognised,
            architecture: None,
            region,
            target: planner.target(asked_stream(planner, slot)),
            to: ReferenceView::default(),
            to_release: None,
            change: Change::default(),
            artifacts: Vec::new(),
        }
    }

    /// The decision, with what else was found on the way.
    pub(crate) fn decide(mut self) -> (Decision, Vec<Finding>, Trail) {
        self.find_architecture();
        self.note_facts();
        let verdict = match self.verdict() {
            Ok(verdict) | Err(verdict) => verdict,
        };
        let verdict = self.under_policy(verdict);
        let action = verdict.reason.action();
        self.trail.note("decision", || {
            format!("{} ({}): {}", action.as_str(), verdict.reason.as_str(), verdict.message)
        });
        let skew = self.skew(&verdict);
        if skew.state == SkewState::Violation {
            let limit = skew.limit.clone().unwrap_or_default();
            let boot = skew.boot.clone().unwrap_or_else(|| "an unknown version".to_owned());
            self.find(
                FindingReason::SkewViolation,
                Severity::Warning,
                format!("boots {boot}, outside the limit: {limit}"),
            );
        }
        let mut slot = SlotView::from(self.slot);
        slot.architecture = self.architecture.as_ref().map(ToString::to_string);
        slot.region.clone_from(&self.region);
        if slot.os_stream.is_none() {
            slot.os_stream = self.target.as_ref().ok().and_then(|t| t.stream.name.clone());
        }
        let version = self.boot.version.as_ref().map(ToString::to_string);
        let decision = Decision {
            object: ObjectView::from(&self.slot.object),
            slot,
            action,
            reason: verdict.reason,
            from: ReferenceView { reference: self.slot.reference.text(), version },
            to: self.to,
            patch: self.change.patch,
            creates: self.change.creates,
            changes: if action == Action::Update { self.change.files } else { Vec::new() },
            artifacts: self.artifacts,
            skew,
            message: verdict.message,
            next: verdict.next,
        };
        (decision, self.findings, self.trail)
    }

    fn note_facts(&mut self) {
        let Self { planner, slot, boot, region, target, trail, .. } = self;
        let sources = &planner.inputs.release.sources;
        trail.note("release", || {
            let names: Vec<_> = sources.iter().map(|s| format!("{} ({})", s.name, s.format)).collect();
            names.join(", ")
        });
        trail.note("reference", || {
            let text = slot.reference.text().unwrap_or_else(|| "nothing".to_owned());
            match &slot.template {
                Some(t) => format!("{text} at {} of {} {}", t.pointer, t.id.kind, t.id.name),
                None => format!("{text} at {}", slot.pointer),
            }
        });
        trail.note("boot image", || match (&boot.version, &boot.source) {
            (Some(version), Some(source)) => {
                format!(
                    "{} {version}, known from {source}",
                    boot.distribution.map_or("CoreOS", Distribution::label)
                )
            }
            (Some(version), None) => format!("{version}, by the reference itself"),
            (None, Some(source)) => format!("known from {source}, without a version"),
            (None, None) => "unknown to all metadata that was given".to_owned(),
        });
        trail.note("region", || region.clone().unwrap_or_else(|| "none".to_owned()));
        trail.note("OS stream", || match target.as_ref().map(|t| t.stream.name.as_ref()) {
            Ok(Some(name)) if slot.os_stream.is_some() => format!("{name}, by label"),
            Ok(Some(name)) => format!("{name}, the metadata's default"),
            Ok(None) => "the metadata's only one".to_owned(),
            Err(_) => "not in the metadata".to_owned(),
        });
        trail.note("policy", || {
            let policy = planner.inputs.policy;
            let pin = planner.pin.map(|p| format!(", pinned to {}", p.release)).unwrap_or_default();
            format!("mode {:?}{pin}", policy.mode)
        });
    }

    /// From the strongest proof to the weakest: what the set declares, what its image is, what the cluster is, what the
    /// policy says. Never the machine that this program runs on.
    fn find_architecture(&mut self) {
        let inputs = &self.planner.inputs;
        let (architecture, proof) =
            match (&self.slot.architecture, &self.boot.architecture, &inputs.facts.architecture) {
                (DeclaredArchitecture::Declared(declared), ..) => {
                    (Some(declared.clone()), "declared by the set")
                }
                (DeclaredArchitecture::Invalid(_), ..) => (None, "declared, but not one that exists"),
                (_, Some(boots), _) => (Some(boots.clone()), "that of the current image"),
                _ if self.slot.platform == Platform::PowerVs => {
                    (Some(Architecture::Ppc64le), "the only one of the platform")
                }
                (_, _, Some(ClusterArchitecture::Single(cluster))) => {
                    (Some(cluster.clone()), "that of the cluster")
                }
                _ => {
                    let default = inputs.policy.default_architecture.as_deref().and_then(Architecture::known);
                    (default, "the policy's default")
                }
            };
        self.trail.note("architecture", || match &architecture {
            Some(architecture) => format!("{architecture}, {proof}"),
            None => "unknown".to_owned(),
        });
        self.architecture = architecture;
    }

    fn verdict(&mut self) -> Result<Verdict, Verdict> {
        self.read_only()?;
        self.not_ours_to_manage()?;
        self.reference_kind()?;
        if self.slot.platform.has_private_images() && !matches!(self.recognised, Recognised::Artifact(..)) {
            return self.private_image();
        }
        self.published_or_ours()?;
        self.note_wrong_place();
        let wanted = self.wanted()?;
        self.follow(&wanted)
    }

    /// What exists already, or is not used.
    fn read_only(&self) -> Result<(), Verdict> {
        let slot = self.slot;
        if slot.kind == SlotKind::Machine {
            let message = "a machine keeps the image that it was made from";
            return Err(Verdict::new(Reason::ReadOnly, message)
                .next("change the machine set that makes its successors"));
        }
        if slot.kind == SlotKind::Host && slot.provisioned {
            return Err(Verdict::new(
                Reason::ReadOnly,
                "the host is provisioned: a change would install it anew",
            ));
        }
        let region = slot.region.as_ref().filter(|region| region.contains("${"));
        let placeholder = match &slot.reference {
            Reference::Placeholder(text) => Some(text),
            _ => region,
        };
        if let Some(text) = placeholder {
            return Err(Verdict::new(
                Reason::Placeholder,
                format!("`{text}` is filled in before the manifest is used"),
            ));
        }
        let template = slot.template.as_deref();
        if template.is_some_and(|t| t.repoint.is_none()) {
            return Err(Verdict::new(
                Reason::TemplateUnreferenced,
                "no machine set in the input uses the template",
            ));
        }
        Ok(())
    }

    /// What somebody else manages.
    fn not_ours_to_manage(&self) -> Result<(), Verdict> {
        let slot = self.slot;
        let policy = self.planner.inputs.policy;
        if slot.windows {
            return Err(Verdict::new(Reason::NotCoreOS, "the machines run Windows"));
        }
        if let Some(owner) = slot.owners.first() {
            let message = format!("{} {} owns the set and would undo a change", owner.kind, owner.name);
            return Err(Verdict::new(Reason::OwnedByController, message)
                .next(format!("change {} {}", owner.kind, owner.name)));
        }
        if slot.paused {
            return Err(Verdict::new(
                Reason::Paused,
                "the set is paused, so its own controller leaves it alone",
            ));
        }
        if slot.authority == ApiAuthority::Other {
            let message = "Cluster API is authoritative for this set; its copy there must be changed";
            return Err(Verdict::new(Reason::NotAuthoritative, message));
        }
        if slot.template.as_deref().is_some_and(|t| t.topology) {
            return Err(Verdict::new(Reason::ManagedByTopology, "the cluster's topology manages the set")
                .next("change the template of the ClusterClass"));
        }
        if policy.selector.as_ref().is_some_and(|selector| !selector.matches(&slot.labels)) {
            return Err(Verdict::new(
                Reason::NotSelected,
                "the policy's selector does not match the set's labels",
            ));
        }
        if policy.mode == Mode::Paused {
            return Err(Verdict::new(Reason::PolicyPaused, "the policy is paused"));
        }
        Ok(())
    }

    /// References that name no image.
    fn reference_kind(&self) -> Result<(), Verdict> {
        let slot = self.slot;
        if slot.platform == Platform::Unknown {
            let message = format!("the provider {} is not known", slot.provider);
            return Err(Verdict::new(Reason::UnsupportedPlatform, message));
        }
        if let Some(kind) = slot.security_type.as_deref().filter(|kind| !kind.is_empty()) {
            let message = format!("{kind} machines need an image that the release does not publish");
            return Err(Verdict::new(Reason::SecurityType, message).next("keep the image current by hand"));
        }
        match &slot.reference {
            Reference::InRelease => Err(Verdict::new(
                Reason::ImageInRelease,
                "machines are installed from what the release itself carries",
            )),
            Reference::Lookup(rule) => {
                let message = format!("the image is chosen by `{rule}`, not by id");
                Err(Verdict::new(Reason::NoImageId, message).next("name the image by id to have it followed"))
            }
            Reference::Unresolved(sentence) => Err(Verdict::new(Reason::TemplateMissing, sentence.clone())
                .next("give the file that holds the one template of that name")),
            Reference::Absent => Err(Verdict::new(Reason::NoReference, "no image is named")),
            Reference::Managed if slot.kind == SlotKind::ControlPlane => {
                let message = "a control plane set cannot say `managed`: its machines are compared with it";
                Err(Verdict::new(Reason::ManagedNotAllowed, message).next("name the image by id"))
            }
            _ => match &slot.architecture {
                DeclaredArchitecture::Invalid(name) => {
                    let message = format!("the set declares the architecture `{name}`, which does not exist");
                    Err(Verdict::new(Reason::ArchitectureInvalid, message).next(
                        "correct kubernetes.io/arch in the annotation capacity.cluster-autoscaler.kubernetes.io/labels",
                    ))
                }
                _ => Ok(()),
            },
        }
    }

    /// A reference is ours only by proof.
    fn published_or_ours(&self) -> Result<(), Verdict> {
        let rule = match (&self.recognised, &self.slot.reference) {
            (Recognised::Published(known, _), Reference::Value(tag)) if known.floating => Some(tag),
            (Recognised::Offer, Reference::Azure(image)) if image.version == "latest" => Some(&image.version),
            _ => None,
        };
        if let Some(rule) = rule {
            let message =
                format!("`{rule}` names whatever is newest, so the image is chosen when a machine is made");
            return Err(Verdict::new(Reason::NoImageId, message).next("name one image to have it followed"));
        }
        if self.slot.reference == Reference::Managed || !matches!(self.recognised, Recognised::Unknown) {
            return Ok(());
        }
        Err(self.unknown_image())
    }

    fn unknown_image(&self) -> Verdict {
        let text = self.slot.reference.text().unwrap_or_default();
        let next = match self.slot.platform {
            Platform::Aws => {
                "give older metadata with --known, or name it under `adopt` in the policy if it is yours"
            }
            _ => {
                "give older metadata with --known, the cluster's name with --infrastructure-name, or name it under \
                 `adopt` in the policy if it is yours"
            }
        };
        Verdict::new(Reason::UnknownImage, format!("no metadata that was given knows `{text}`")).next(next)
    }

    /// An image that cannot boot where it stands is told whatever is decided.
    fn note_wrong_place(&mut self) {
        let text = self.slot.reference.text().unwrap_or_default();
        if let (Some(boots), Some(own)) = (&self.boot.architecture, &self.architecture)
            && boots != own
        {
            let message = format!("{text} is {boots}, the set is {own}");
            self.find(FindingReason::ImageOfOtherArchitecture, Severity::Error, message);
        }
        if let (Some(boots), Some(own)) = (&self.boot.region, &self.region)
            && boots != own
        {
            let message = format!("{text} is the image of {boots}, the set is in {own}");
            self.find(FindingReason::ImageOfOtherRegion, Severity::Error, message);
        }
    }

    fn in_wrong_place(&self) -> bool {
        let differs = |a: Option<&str>, b: Option<&str>| a.zip(b).is_some_and(|(a, b)| a != b);
        differs(self.boot.region.as_deref(), self.region.as_deref())
            || differs(
                self.boot.architecture.as_ref().map(Architecture::as_str),
                self.architecture.as_ref().map(Architecture::as_str),
            )
    }

    /// From the current image to the wanted one, if nothing stands against it.
    fn follow(&mut self, wanted: &Wanted) -> Result<Verdict, Verdict> {
        self.to = wanted.view();
        self.to_release.clone_from(&wanted.release_version);
        let behind = wanted
            .newest
            .as_ref()
            .filter(|newest| wanted.version.as_ref().and_then(|v| v.compare(newest)) == Some(Ordering::Less));
        if let (Some(newest), Some(version)) = (behind, &wanted.version) {
            let region = self.region.as_deref().unwrap_or("the region");
            let message = format!("the release's image in {region} is {version}, elsewhere {newest}");
            self.find(FindingReason::RegionBehind, Severity::Warning, message);
        }
        if self.slot.reference == Reference::Managed {
            self.allowed_by_policy(wanted)?;
            let message = format!("a new machine would boot {}", wanted.label());
            return Ok(Verdict::new(Reason::Managed, message));
        }
        if self.slot.reference.text().as_deref() == Some(&wanted.text) || self.is_same_image(wanted) {
            return self.already(wanted, behind.is_some());
        }
        let reason = self.allowed(wanted)?;
        let message = self.change_message(wanted);
        self.make(wanted)?;
        self.replaces_machines(&message)?;
        Ok(Verdict::new(reason, message))
    }

    /// The same image under another form of its name: a full URL, a tag instead of a digest.
    fn is_same_image(&self, wanted: &Wanted) -> bool {
        match &self.recognised {
            Recognised::Published(known, _) => {
                known.image.reference.text() == wanted.text && !known.floating && !self.in_wrong_place()
            }
            _ => false,
        }
    }

    fn already(&mut self, wanted: &Wanted, behind: bool) -> Result<Verdict, Verdict> {
        let change = change::build(self.slot, &wanted.values).unwrap_or_default();
        let differs = self.slot.platform == Platform::Azure && !change.patch.is_empty();
        if differs {
            self.make(wanted)?;
            let message = format!(
                "{} is the release's image, its type is not set as the platform needs it",
                wanted.text
            );
            self.replaces_machines(&message)?;
            return Ok(Verdict::new(Reason::ImageFieldsDiffer, message));
        }
        if behind {
            let region = self.region.as_deref().unwrap_or("its region");
            let message = format!("{} is the newest in {region}; other regions are ahead", wanted.label());
            return Ok(Verdict::new(Reason::RegionBehind, message));
        }
        Ok(Verdict::new(Reason::UpToDate, format!("at {}", wanted.label())))
    }

    fn change_message(&self, wanted: &Wanted) -> String {
        let to = wanted.label();
        let Some(from) = &self.boot.version else {
            let from = self.slot.reference.text().unwrap_or_default();
            return format!("`{from}`, whose version is unknown, to {to}");
        };
        let age = |version: &OsVersion| skew::age_days(version, self.planner.inputs.now);
        let newer = age(from).zip(wanted.version.as_ref().and_then(age)).map(|(from, to)| from - to);
        let newer = newer.filter(|days| *days > 0).map(|days| format!(", {days} days newer"));
        format!("{from} of {} to {to}{}", from.date_text(), newer.unwrap_or_default())
    }

    fn make(&mut self, wanted: &Wanted) -> Result<(), Verdict> {
        match change::build(self.slot, &wanted.values) {
            Ok(change) if change.patch.is_empty() => {
                let message =
                    "nothing in the manifest would change, so the reference is not where it seems to be";
                Err(Verdict::new(Reason::NotEditable, message))
            }
            Ok(change) => {
                self.change = change;
                Ok(())
            }
            Err(error) => {
                let message = format!("the reference cannot be changed alone: {}", error.0);
                Err(Verdict::new(Reason::NotEditable, message).next(error.1))
            }
        }
    }

    /// The change itself is right, and would replace machines that run: that is for the policy to allow.
    fn replaces_machines(&mut self, message: &str) -> Result<(), Verdict> {
        if self.slot.strategy != Strategy::ReplacesMachines {
            return Ok(());
        }
        let who = match self.slot.kind {
            SlotKind::ControlPlane => "the control plane",
            _ => "the set's machines",
        };
        if !self.planner.inputs.policy.allow_replace_machines {
            let message = format!("{message}; the rolling update would replace {who}");
            return Err(Verdict::new(Reason::WouldReplaceMachines, message)
                .next("set allowReplaceMachines in the policy, or the set's strategy to OnDelete"));
        }
        self.find(FindingReason::ReplacesMachines, Severity::Warning, format!("the change replaces {who}"));
        Ok(())
    }

    /// In mode Observe a change becomes the news of it.
    fn under_policy(&mut self, verdict: Verdict) -> Verdict {
        if verdict.reason.action() == Action::Update && self.planner.inputs.policy.mode == Mode::Observe {
            self.change = Change::default();
            let message = format!("would change: {}", verdict.message);
            return Verdict::new(Reason::PolicyObserves, message).next("set the policy's mode to Managed");
        }
        if verdict.reason.action() != Action::Update && verdict.reason != Reason::WouldReplaceMachines {
            self.change = Change::default();
        }
        verdict
    }

    fn find(&mut self, reason: FindingReason, severity: Severity, message: String) {
        let id = &self.slot.object;
        self.findings.push(Finding {
            file: id.file.clone(),
            line: id.line,
            column: id.column,
            severity,
            reason,
            object: Some(id.to_string()),
            message,
        });
    }
}

/// The OS stream that a set asks for, else the one that the policy has for sets that ask for none.
fn asked_stream<'s>(planner: &'s Planner<'_>, slot: &'s Slot) -> Option<&'s str> {
    slot.os_stream.as_deref().or(planner.inputs.policy.default_os_stream.as_deref())
}

impl Decision {
    /// Whether a human has to look: the reason says so, or the boot image is outside the limits and stays there, or
    /// nothing tells whether it is.
    pub fn needs_human(&self) -> bool {
        let limited = self.skew.limit.is_some() && self.skew.after == SkewState::Unknown;
        self.reason.needs_human()
            || (self.skew.counts && (self.skew.after == SkewState::Violation || limited))
    }
}
