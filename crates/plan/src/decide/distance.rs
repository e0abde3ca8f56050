//! The distance between the boot image and the release, now and once the decision is carried out.

use machines::{Platform, Reference};
use metadata::OsVersion;

use super::{Decider, Verdict};
use crate::known::Boot;
use crate::output::{Action, SkewState, SkewView};
use crate::reason::Reason;
use crate::skew;

impl Decider<'_, '_> {
    pub(super) fn skew(&self, verdict: &Verdict) -> SkewView {
        let limits = &self.planner.inputs.policy.skew;
        let reason = verdict.reason;
        let in_release = reason == Reason::ImageInRelease;
        let newest =
            self.target.as_ref().ok().zip(self.architecture.as_ref()).and_then(|(target, architecture)| {
                target.newest(self.slot.platform.in_metadata(), architecture)
            });
        let wanted = self.to.version.as_deref().and_then(|v| v.parse::<OsVersion>().ok());
        // A marketplace's versions are compared with the marketplace's, and a pinned build with itself.
        let own_scale = self.slot.platform == Platform::Azure || self.planner.pin.is_some();
        let release = if own_scale { wanted.as_ref() } else { newest.or(wanted.as_ref()) };
        let limited =
            |boot: &Boot, state: SkewState| match skew::against(limits, boot, self.architecture.as_ref()) {
                skew::Verdict::Outside(limit) => (SkewState::Violation, Some(limit)),
                skew::Verdict::Undecided(limit) => (SkewState::Unknown, Some(limit)),
                skew::Verdict::Within => (state, None),
            };
        let follows = reason == Reason::DistributionChange;
        let managed = self.slot.reference == Reference::Managed && reason == Reason::Managed;
        let release_version = self.to_release.clone();
        let booted = Boot { version: wanted.clone(), release_version, ..Boot::default() };
        let (state, limit) = match (in_release, managed) {
            (true, _) => (SkewState::Current, None),
            (_, true) => limited(&booted, skew::state(wanted.as_ref(), release)),
            _ => {
                // Versions of two distributions are never compared.
                let release = release.filter(|_| !follows);
                let mut state = skew::state(self.boot.version.as_ref(), release);
                // Without a version, being the release's own image still is proof.
                if state == SkewState::Unknown && reason.action() == Action::Current {
                    state = SkewState::Current;
                }
                limited(&self.boot, state)
            }
        };
        let after = match reason.action() {
            Action::Update => limited(&booted, skew::state(wanted.as_ref(), release)).0,
            _ => state,
        };
        let not_counted =
            [Reason::ReadOnly, Reason::NotCoreOS, Reason::TemplateUnreferenced, Reason::Placeholder];
        SkewView {
            state,
            after,
            counts: !not_counted.contains(&reason),
            boot: if managed {
                self.to.version.clone()
            } else {
                self.boot.version.as_ref().map(ToString::to_string)
            },
            release: release.map(ToString::to_string),
            age_days: self.boot.version.as_ref().and_then(|v| skew::age_days(v, self.planner.inputs.now)),
            limit,
        }
    }
}
