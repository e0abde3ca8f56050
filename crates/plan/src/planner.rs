//! The planner: holds what is asked over and over, and decides slot by slot.

use std::collections::BTreeMap;

use jiff::Timestamp;
use machines::Slot;
use metadata::Catalog;

use crate::decide::Decider;
use crate::facts::Facts;
use crate::known::Known;
use crate::output::{API_VERSION, Action, Decision, Finding, Plan, Severity, Summary};
use crate::policy::{Pin, Policy};
use crate::reason::FindingReason;
use crate::reconcile;
use crate::release::{Missing, Release, Target};
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

/// Why there is no release to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Untargeted {
    /// The OS stream is not in it.
    Missing(Missing),
    /// The pinned release is not known.
    Pin(String),
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

    /// The release that sets of an OS stream follow.
    pub(crate) fn target(&self, asked: Option<&str>) -> Result<Target<'_, 'a>, Untargeted> {
        let Some(pin) = self.pin else {
            let stream = self.release.stream(asked).map_err(Untargeted::Missing)?;
            return Ok(Target { release: &self.release, stream, build: None });
        };
        let found = self.pinned(asked).into_iter().next();
        found.ok_or_else(|| Untargeted::Pin(pin.release.clone()))?.map_err(Untargeted::Missing)
    }

    /// Every place that holds the pinned release: the release itself, then the history.
    pub(crate) fn pinned(&self, asked: Option<&str>) -> Vec<Result<Target<'_, 'a>, Missing>> {
        let Some(pin) = self.pin else { return Vec::new() };
        let releases = [Some(&self.release), self.history.as_ref()];
        releases.into_iter().flatten().filter_map(|release| release.pinned(&pin.release, asked)).collect()
    }

    /// Decides about every slot.
    pub fn plan(&self, slots: &[Slot]) -> Plan {
        let mut findings = self.findings();
        let (mut decisions, mut found): (Vec<Decision>, Vec<Vec<Finding>>) = slots
            .iter()
            .map(|slot| {
                let (decision, found, _) = Decider::new(self, slot, Trail::default()).decide();
                (decision, found)
            })
            .unzip();
        reconcile::shared_anchors(&mut decisions);
        reconcile::new_templates(&mut decisions, slots);
        for (decision, found) in decisions.iter().zip(&mut found) {
            // What was found about a change that is not made any more is not true any more.
            if decision.action != Action::Update {
                found.retain(|f| f.reason != FindingReason::ReplacesMachines);
            }
        }
        findings.extend(found.into_iter().flatten());
        let summary = summarise(&decisions);
        Plan { api_version: API_VERSION, kind: "Plan", decisions, findings, summary }
    }

    /// The decision about one slot, among all of them, and how it was found.
    pub fn explain(&self, slots: &[Slot], which: usize) -> Option<(Decision, Vec<Step>)> {
        let (alone, _, mut trail) = Decider::new(self, slots.get(which)?, Trail::recording()).decide();
        let decision = self.plan(slots).decisions.into_iter().nth(which)?;
        if decision.reason != alone.reason {
            trail.note("beside others", || {
                format!("{} ({}): {}", decision.action.as_str(), decision.reason.as_str(), decision.message)
            });
        }
        Some((decision, trail.into_steps()))
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
        for (resource, mode) in &self.inputs.facts.managed_boot_images {
            let message = format!(
                "MachineConfiguration has the Machine Config Operator manage boot images of {resource} (mode {mode}): set \
                 it to None for what is managed here"
            );
            findings.push(finding(FindingReason::ManagedByMachineConfigOperator, message));
        }
        for problem in &self.inputs.release.problems {
            let message = format!("{}: {}: {}", problem.source, problem.path, problem.message);
            findings.push(finding(FindingReason::UnreadableMetadata, message));
        }
        findings
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
