//! A linter for plans: the invariants of the design, asked again of a finished plan without the planner's help.

use std::collections::HashMap;

use machines::{ApiAuthority, Reference, Slot, SlotKind, Strategy};
use metadata::{Image, OsVersion};

use crate::output::{Action, Decision, Plan, SkewState};
use crate::planner::Inputs;
use crate::policy::Mode;
use crate::reason::Reason;

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {what}")]
pub struct Broken {
    /// The object of the decision.
    pub object: String,
    /// What is broken.
    pub what: &'static str,
}

/// Checks a plan against the inputs and slots that it was made from. An empty answer means that it may be applied.
pub fn check(plan: &Plan, slots: &[Slot], inputs: &Inputs<'_>) -> Vec<Broken> {
    let mut images: HashMap<String, Vec<&Image>> = HashMap::new();
    for image in inputs.release.images.iter().chain(&inputs.known.images) {
        images.entry(image.reference.text()).or_default().push(image);
    }
    let mut broken = Vec::new();
    if plan.decisions.len() != slots.len() {
        broken.push(Broken { object: "plan".to_owned(), what: "not one decision for each slot" });
    }
    for (decision, slot) in plan.decisions.iter().zip(slots) {
        let mut say = |what| broken.push(Broken { object: slot.object.to_string(), what });
        let rules = Rules { decision, slot, inputs, images: &images };
        rules.shape(&mut say);
        if decision.action == Action::Update {
            rules.update(&mut say);
            rules.place(&mut say);
        }
    }
    broken
}

struct Rules<'a> {
    decision: &'a Decision,
    slot: &'a Slot,
    inputs: &'a Inputs<'a>,
    images: &'a HashMap<String, Vec<&'a Image>>,
}

impl Rules<'_> {
    /// What holds for every decision.
    fn shape(&self, say: &mut impl FnMut(&'static str)) {
        let d = self.decision;
        if d.reason.action() != d.action {
            say("the reason belongs to another action");
        }
        if d.message.is_empty() {
            say("no sentence");
        }
        if d.action != Action::Update {
            if !d.changes.is_empty() {
                say("a file would change without an update");
            }
            if d.reason != Reason::WouldReplaceMachines && !(d.patch.is_empty() && d.creates.is_empty()) {
                say("a patch without an update");
            }
        }
        let proven = d.action == Action::Current || d.action == Action::Resolve;
        if d.skew.counts && d.skew.boot.is_none() && d.skew.state == SkewState::Current && !proven {
            say("an unknown boot image counts as fine");
        }
    }

    /// What holds for every change.
    fn update(&self, say: &mut impl FnMut(&'static str)) {
        let (d, slot, policy) = (self.decision, self.slot, self.inputs.policy);
        if d.patch.is_empty() {
            say("an update without a patch");
        }
        let guarded = |path: &str| d.patch.iter().any(|op| op.op == "test" && op.path == path);
        let beside = |path: &str| path.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
        for op in &d.patch {
            let ok = match op.op {
                "replace" => guarded(&op.path),
                // What is not there cannot be tested; what stands beside it can.
                "add" => d.patch.iter().any(|t| t.op == "test" && beside(&t.path) == beside(&op.path)),
                _ => true,
            };
            if !ok {
                say("a change that is not guarded by the old value");
            }
        }
        if let Some(to) = d.to.reference.as_deref()
            && !d.creates.iter().all(|object| holds(object, to))
        {
            say("a new object that does not hold the new image");
        }
        if policy.mode != Mode::Managed {
            say("a change although the policy does not manage");
        }
        if slot.kind == SlotKind::Machine || (slot.kind == SlotKind::Host && slot.provisioned) {
            say("a machine that exists is changed");
        }
        if slot.windows
            || slot.paused
            || slot.authority == ApiAuthority::Other
            || !slot.owners.is_empty()
            || slot.security_type.as_deref().is_some_and(|t| !t.is_empty())
        {
            say("a set that is not ours is changed");
        }
        if !matches!(slot.reference, Reference::Value(_) | Reference::Azure(_)) {
            say("a reference that names no image is changed");
        }
        if slot.strategy == Strategy::ReplacesMachines && !policy.allow_replace_machines {
            say("running machines would be replaced");
        }
        let parse = |v: &Option<String>| v.as_deref().and_then(|v| v.parse::<OsVersion>().ok());
        let unordered = d.from.version.is_none() && d.reason == Reason::NewerImage;
        if unordered && !policy.allow_downgrade && !self.changes_distribution() {
            say("a move between images whose order is unknown");
        }
        let backwards = parse(&d.from.version)
            .zip(parse(&d.to.version))
            .is_some_and(|(from, to)| from.compare(&to) == Some(std::cmp::Ordering::Greater));
        if backwards && !policy.allow_downgrade && d.reason != Reason::Pinned && !self.changes_distribution()
        {
            say("a downgrade");
        }
        if d.to.version.as_ref().is_some_and(|v| policy.deny.contains(v)) {
            say("a denied version");
        }
    }

    fn changes_distribution(&self) -> bool {
        self.inputs.policy.allow_distribution_change
    }

    /// The new image is published for exactly this platform, region and architecture, or named by the user.
    fn place(&self, say: &mut impl FnMut(&'static str)) {
        let (d, slot) = (self.decision, self.slot);
        let Some(to) = d.to.reference.as_deref() else { return say("an update to nothing") };
        if slot.platform.has_private_images() {
            return;
        }
        let key = to.find("projects/").and_then(|start| to.get(start..)).unwrap_or(to);
        let fits = |image: &&&Image| {
            image.platform.starts_with(slot.platform.in_metadata())
                && image.architecture.as_ref().map(metadata::Architecture::as_str)
                    == d.slot.architecture.as_deref()
                && image.region.as_ref().is_none_or(|region| Some(&**region) == d.slot.region.as_deref())
        };
        if self.images.get(key).and_then(|images| images.iter().find(fits)).is_none() {
            say("an image that is not published for this platform, region and architecture");
        }
    }
}

/// Whether a reference stands in an object: as one text, or in its parts (`publisher/offer/sku/version`).
fn holds(object: &serde_json::Value, reference: &str) -> bool {
    let text = object.to_string();
    let whole = text.contains(&serde_json::Value::from(reference).to_string());
    whole || reference.split('/').all(|part| text.contains(&serde_json::Value::from(part).to_string()))
}
