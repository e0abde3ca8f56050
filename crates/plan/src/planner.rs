//! The planner: holds what is asked over and over, and decides slot by slot.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use machines::Slot;
use metadata::Catalog;

use crate::change::FileChange;
use crate::decide::Decider;
use crate::facts::Facts;
use crate::known::Known;
use crate::output::{API_VERSION, Action, Decision, Finding, Plan, Severity, Summary};
use crate::policy::{Pin, Policy};
use crate::reason::{FindingReason, Reason};
use crate::release::Release;
use crate::skew;
use crate::trail::{Step, Trail};

/// All that a plan is made from, beside the slots.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The release that the cluster runs.
    pub release: &'a Catalog,
    /// Older metadata, by which current images are recognised as ours.
    pub known: &'a Catalog,
    /// What the administrator allows and demands.
    pub policy: &'a Policy,
    /// What the manifests do not hold.
    pub facts: &'a Facts,
    /// The time.
    pub now: Timestamp,
}

/// Decides about slots.
pub struct Planner<'a> {
    pub(crate) inputs: Inputs<'a>,
    pub(crate) release: Release<'a>,
    /// The history, where a pin may name a release in it.
    pub(crate) history: Option<Release<'a>>,
    pub(crate) known: Known<'a>,
    /// The pin, while it lasts.
    pub(crate) pin: Option<&'a Pin>,
}

impl<'a> Planner<'a> {
    /// Prepares for any number of slots.
    pub fn new(inputs: Inputs<'a>) -> Self {
        let pin = inputs.policy.pin.as_ref().filter(|pin| pin.until.is_none_or(|until| inputs.now < until));
        Self {
            inputs,
            release: Release::new(inputs.release),
            history: pin.map(|_| Release::new(inputs.known)),
            known: Known::new(&[inputs.release, inputs.known]),
            pin,
        }
    }

    /// Decides about every slot.
    pub fn plan(&self, slots: &[Slot]) -> Plan {
        let mut findings = self.findings();
        let mut decisions: Vec<Decision> = slots
            .iter()
            .map(|slot| {
                let (decision, found, _) = Decider::new(self, slot, Trail::default()).decide();
                findings.extend(found);
                decision
            })
            .collect();
        refuse_shared(&mut decisions);
        let summary = summarise(&decisions);
        Plan { api_version: API_VERSION, kind: "Plan", decisions, findings, summary }
    }

    /// Decides about one slot, and tells how.
    pub fn explain(&self, slot: &Slot) -> (Decision, Vec<Step>) {
        let (decision, _, trail) = Decider::new(self, slot, Trail::recording()).decide();
        (decision, trail.into_steps())
    }

    fn findings(&self) -> Vec<Finding> {
        let finding = |reason, message| Finding {
            file: None,
            line: 0,
            column: 0,
            severity: Severity::Warning,
            reason,
            object: None,
            message,
        };
        let mut findings = Vec::new();
        if let (Some(pin), None) = (&self.inputs.policy.pin, self.pin) {
            let until = pin.until.map(|t| t.to_string()).unwrap_or_default();
            let message =
                format!("the pin to {} ended {until}; the newest image is followed again", pin.release);
            findings.push(finding(FindingReason::PinExpired, message));
        }
        for problem in &self.inputs.release.problems {
            let message = format!("{}: {}: {}", problem.source, problem.path, problem.message);
            findings.push(finding(FindingReason::UnreadableMetadata, message));
        }
        findings
    }
}

/// Bytes under an anchor may change only where all places that read them change alike.
fn refuse_shared(decisions: &mut [Decision]) {
    // By file and bytes: which decisions write there, and what.
    type Readers = HashMap<(Arc<str>, Range<usize>), Vec<(usize, String)>>;
    let mut readers = Readers::new();
    for (n, decision) in decisions.iter().enumerate() {
        for change in &decision.changes {
            if let FileChange::Edit { file, edit, uses } = change
                && *uses > 1
            {
                let key = (Arc::clone(file), edit.range.clone());
                readers.entry(key).or_default().push((n, edit.text.clone()));
            }
        }
    }
    let uses_of = |decision: &Decision, range: &Range<usize>| {
        decision.changes.iter().find_map(|change| match change {
            FileChange::Edit { edit, uses, .. } if edit.range == *range => Some(*uses),
            _ => None,
        })
    };
    for ((_, range), who) in readers {
        let alike = who.iter().all(|(_, text)| who.first().is_some_and(|(_, first)| first == text));
        for (n, _) in &who {
            let Some(decision) = decisions.get_mut(*n) else { continue };
            if alike && uses_of(decision, &range) == Some(who.len()) {
                continue;
            }
            decision.action = Action::Refuse;
            decision.reason = Reason::SharedByAnchor;
            decision.message =
                "a YAML anchor shares the reference with places that must stay as they are".into();
            decision.next = Some("write the reference out in the place of the alias".into());
            decision.skew.after = decision.skew.state;
            decision.patch.clear();
            decision.creates.clear();
            decision.changes.clear();
        }
    }
}

fn summarise(decisions: &[Decision]) -> Summary {
    let mut actions = BTreeMap::new();
    let mut reasons = BTreeMap::new();
    for decision in decisions {
        *actions.entry(decision.action.as_str()).or_default() += 1;
        *reasons.entry(decision.reason.as_str()).or_default() += 1;
    }
    Summary {
        slots: decisions.len(),
        actions,
        reasons,
        needs_human: decisions.iter().filter(|d| d.needs_human()).count(),
        skew: skew::summarise(decisions),
    }
}
