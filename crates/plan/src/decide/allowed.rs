//! Whether the policy and the order of versions allow a move.

use std::cmp::Ordering;

use machines::Platform;

use super::wanted::Wanted;
use super::{Decider, Verdict};
use crate::known::Recognised;
use crate::reason::Reason;
use crate::skew;

impl Decider<'_, '_> {
    /// Whether the policy allows machines to boot the image at all.
    pub(super) fn allowed_by_policy(&self, wanted: &Wanted) -> Result<(), Verdict> {
        let policy = self.planner.inputs.policy;
        if let Some(to) = &self.planner.inputs.facts.updating_to {
            let message =
                format!("the cluster is on its way to {to}; new machines of now still run what was before");
            return Err(
                Verdict::new(Reason::ClusterUpdating, message).next("plan again when the update is complete")
            );
        }
        if let Some((release, stamped)) = &wanted.mid_update {
            let message =
                format!("the metadata is of {release}, the cluster's operators are at {stamped} still");
            return Err(
                Verdict::new(Reason::ClusterUpdating, message).next("plan again when the update is complete")
            );
        }
        if let Some(version) = &wanted.version
            && policy.deny.iter().any(|denied| denied == version.as_str())
        {
            return Err(Verdict::new(Reason::Denied, format!("the policy denies {version}")));
        }
        let Some(minimum) = policy.minimum_age_hours() else { return Ok(()) };
        let Some(age) = wanted.version.as_ref().and_then(|v| skew::hours_since(v, self.planner.inputs.now))
        else {
            let message =
                format!("nothing tells the age of {}, the policy asks for {minimum} hours", wanted.label());
            return Err(Verdict::new(Reason::TooYoung, message));
        };
        if age < i64::from(minimum) {
            let message = format!("{} is {age} hours old, the policy asks for {minimum}", wanted.label());
            return Err(Verdict::new(Reason::TooYoung, message)
                .next(format!("in {} hours", i64::from(minimum) - age)));
        }
        Ok(())
    }

    /// Whether the order of versions allows the move, and what it is called.
    pub(super) fn allowed(&self, wanted: &Wanted) -> Result<Reason, Verdict> {
        self.allowed_by_policy(wanted)?;
        let policy = self.planner.inputs.policy;
        let change = self.boot.distribution.zip(wanted.distribution).filter(|(from, to)| from != to);
        if let Some((from, to)) = change.filter(|_| !policy.allow_distribution_change) {
            let message = format!("the image is {}, the release's is {}", from.label(), to.label());
            return Err(Verdict::new(Reason::DistributionChange, message)
                .next("set allowDistributionChange in the policy"));
        }
        if self.planner.pin.is_some() {
            return Ok(Reason::Pinned);
        }
        // The image of the day of the installation is older than any release that followed; for an adopted one the
        // user's word stands.
        let by_word = matches!(self.recognised, Recognised::Installer | Recognised::Adopted);
        if change.is_none() && !by_word {
            self.not_backwards(wanted)?;
        }
        Ok(match self.recognised {
            _ if self.in_wrong_place() => Reason::WrongPlace,
            Recognised::Installer => Reason::InstallerImage,
            Recognised::Adopted => Reason::Adopted,
            _ => Reason::NewerImage,
        })
    }

    fn not_backwards(&self, wanted: &Wanted) -> Result<(), Verdict> {
        if self.planner.inputs.policy.allow_downgrade {
            return Ok(());
        }
        let own = self.slot.reference.text().unwrap_or_default();
        let (Some(from), Some(to)) = (&self.boot.version, &wanted.version) else {
            let which = if self.boot.version.is_none() { &own } else { &wanted.text };
            let message =
                format!("the version of `{which}` is unknown, so nothing tells whether it is older");
            return Err(Verdict::new(Reason::CannotCompare, message)
                .next("set allowDowngrade in the policy, or pin the release"));
        };
        match from.compare(to) {
            Some(Ordering::Less) => Ok(()),
            Some(Ordering::Equal) if self.in_wrong_place() || self.slot.platform == Platform::Azure => Ok(()),
            Some(Ordering::Equal) => {
                let message = format!("{to} is published as `{own}` and as `{}` for one place", wanted.text);
                Err(Verdict::new(Reason::SameVersionOtherImage, message)
                    .next("compare the metadata with `release lint`"))
            }
            Some(Ordering::Greater) => {
                let (from_date, to_date) = (from.date_text(), to.date_text());
                let message =
                    format!("the set boots {from} ({from_date}), the release's {to} ({to_date}) is older");
                Err(Verdict::new(Reason::WouldDowngrade, message)
                    .next("pin the release in the policy to roll back"))
            }
            None => {
                let message = format!("nothing tells which of {from} and {to} is newer");
                Err(Verdict::new(Reason::CannotCompare, message)
                    .next("set allowDowngrade in the policy, or pin the release"))
            }
        }
    }
}
