//! Skew: the distance between a boot image and the release, and the limits on it.

use std::cmp::Ordering;

use jiff::Timestamp;
use jiff::civil::Date;
use metadata::{Architecture, OsVersion, Scheme};

use crate::known::Boot;
use crate::output::{Decision, SkewState, SkewSummary};
use crate::policy::{SkewLimits, VersionLimit, parse_openshift, parse_pair};

/// The first OpenShift minor whose builds carry the RHEL version in front.
const FIRST_RHEL_LED_MINOR: u32 = 19;

/// What the limits say of a boot image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Inside.
    Within,
    /// Outside; the sentence names the limit.
    Outside(String),
    /// The limit that nothing can be compared with.
    Undecided(String),
}

/// Checks a boot image against the limits.
pub(crate) fn against(limits: &SkewLimits, boot: &Boot, architecture: Option<&Architecture>) -> Verdict {
    let Some(version) = &boot.version else {
        return match (&limits.minimum, &limits.maximum) {
            (None, None) if limits.known_bad.is_empty() => Verdict::Within,
            (minimum, maximum) => {
                let limit =
                    minimum.as_ref().or(maximum.as_ref()).map_or("known-bad ranges".to_owned(), limit_text);
                Verdict::Undecided(limit)
            }
        };
    };
    for bad in &limits.known_bad {
        let concerned = bad.architectures.is_empty()
            || architecture.is_some_and(|a| {
                bad.architectures.iter().any(|b| Architecture::known(b).as_ref() == Some(a))
            });
        let bound = |text: &Option<String>, inside: Ordering| {
            let Some(bound) = text.as_ref().and_then(|t| t.parse::<OsVersion>().ok()) else { return true };
            version.compare(&bound).is_some_and(|order| order == inside || order == Ordering::Equal)
        };
        if concerned && bound(&bad.from, Ordering::Greater) && bound(&bad.to, Ordering::Less) {
            return Verdict::Outside(format!("known to fail: {}", bad.reason));
        }
    }
    let mut undecided = None;
    for (limit, wrong, word) in
        [(&limits.minimum, Ordering::Less, "minimum"), (&limits.maximum, Ordering::Greater, "maximum")]
    {
        let Some(limit) = limit else { continue };
        let orders = compare_all(version, boot.release_version.as_deref(), limit);
        if orders.contains(&Some(wrong)) {
            return Verdict::Outside(format!("{word} {}", limit_text(limit)));
        }
        // Every way that is given must hold, but the one that is known proves the build where another is not written.
        if orders.iter().all(Option::is_none) {
            undecided = Some(format!("{word} {}", limit_text(limit)));
        }
    }
    undecided.map_or(Verdict::Within, Verdict::Undecided)
}

/// The order of a version against each part of a limit that is given.
fn compare_all(version: &OsVersion, release: Option<&str>, limit: &VersionLimit) -> Vec<Option<Ordering>> {
    let mut orders = Vec::new();
    if let Some((minor, patch)) = limit.openshift.as_deref().and_then(parse_openshift) {
        let own = release.and_then(parse_openshift);
        orders.push(match (own, version.openshift_minor(), version.scheme()) {
            (Some(own), _, _) => Some(own.cmp(&(minor, patch))),
            // The text tells the minor alone: inside it, it is taken as not older.
            (None, Some(own), _) => Some(own.cmp(&minor)),
            (None, None, Scheme::Rhel { .. }) if minor < FIRST_RHEL_LED_MINOR => Some(Ordering::Greater),
            _ => None,
        });
    }
    if let Some(rhel) = limit.rhel.as_deref().and_then(parse_pair) {
        orders.push(match version.rhel() {
            Some((major, Some(minor))) => Some((major, minor).cmp(&rhel)),
            Some((major, None)) if major != rhel.0 => Some(major.cmp(&rhel.0)),
            _ => None,
        });
    }
    if let Some(other) = limit.version.as_deref().and_then(|v| v.parse::<OsVersion>().ok()) {
        orders.push(version.compare(&other));
    }
    orders
}

fn limit_text(limit: &VersionLimit) -> String {
    let openshift = limit.openshift.as_ref().map(|v| format!("OpenShift {v}"));
    let rhel = limit.rhel.as_ref().map(|v| format!("RHEL {v}"));
    let parts: Vec<String> = [openshift, rhel, limit.version.clone()].into_iter().flatten().collect();
    parts.join(" and ")
}

/// The state of a boot image against the release's version, before limits.
pub(crate) fn state(boot: Option<&OsVersion>, release: Option<&OsVersion>) -> SkewState {
    match (boot, release) {
        (Some(boot), Some(release)) => match boot.compare(release) {
            Some(Ordering::Less) => SkewState::Behind,
            Some(Ordering::Equal) => SkewState::Current,
            Some(Ordering::Greater) => SkewState::Ahead,
            None => SkewState::Unknown,
        },
        _ => SkewState::Unknown,
    }
}

/// The age of a build in days.
pub(crate) fn age_days(version: &OsVersion, now: Timestamp) -> Option<i64> {
    Some(hours_since(version, now)? / 24)
}

/// The hours since the day of a build began (UTC).
pub(crate) fn hours_since(version: &OsVersion, now: Timestamp) -> Option<i64> {
    let (year, month, day) = version.date();
    let date =
        Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let start = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    Some((now.as_second() - start.as_second()) / 3600)
}

/// The skew of the whole: the worst of all that count; unknown is never fine.
pub(crate) fn summarise(decisions: &[Decision]) -> SkewSummary {
    let counted: Vec<&Decision> = decisions.iter().filter(|d| d.skew.counts).collect();
    let worst = |state: fn(&Decision) -> SkewState| {
        counted.iter().map(|d| state(d)).max().unwrap_or(SkewState::Unknown)
    };
    let mut oldest: Option<OsVersion> = None;
    let mut comparable = true;
    for decision in &counted {
        let boot = decision.skew.boot.as_deref().and_then(|b| b.parse::<OsVersion>().ok());
        match (boot, &oldest) {
            (None, _) => comparable = false,
            (Some(boot), None) => oldest = Some(boot),
            (Some(boot), Some(other)) => match boot.compare(other) {
                Some(Ordering::Less) => oldest = Some(boot),
                Some(_) => {}
                None => comparable = false,
            },
        }
    }
    SkewSummary {
        state: worst(|d| d.skew.state),
        after: worst(|d| d.skew.after),
        oldest: oldest.filter(|_| comparable).map(|v| v.to_string()),
        counted: counted.len(),
        unknown: counted.iter().filter(|d| d.skew.boot.is_none()).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::KnownBad;

    fn boot(version: &str) -> Boot {
        Boot { version: version.parse().ok(), ..Boot::default() }
    }

    fn limits() -> SkewLimits {
        let minimum =
            VersionLimit { openshift: Some("4.13.0".into()), rhel: Some("9.2".into()), version: None };
        SkewLimits { minimum: Some(minimum), ..SkewLimits::default() }
    }

    #[test]
    fn the_incumbents_limits_are_checked_on_every_generation() {
        let inside = ["413.92.202402131523-0", "9.6.20260217-1", "418.94.202602022246-0"];
        // The incumbent takes the last two for RHEL 42.80 and 410.8 and lets them pass (formats.md, "Version strings").
        let outside =
            ["46.82.202011260640-0", "412.86.202402272018-0", "42.80.20190725.1", "410.8.20190520.0"];
        for version in inside {
            assert_eq!(against(&limits(), &boot(version), None), Verdict::Within, "{version}");
        }
        for version in outside {
            assert!(matches!(against(&limits(), &boot(version), None), Verdict::Outside(_)), "{version}");
        }
    }

    #[test]
    fn what_cannot_be_compared_is_undecided_and_never_fine() {
        assert!(matches!(against(&limits(), &Boot::default(), None), Verdict::Undecided(_)));
        assert!(matches!(against(&limits(), &boot("39.20231101.3.0"), None), Verdict::Undecided(_)));
        assert_eq!(against(&SkewLimits::default(), &Boot::default(), None), Verdict::Within);
    }

    #[test]
    fn known_bad_ranges_name_architectures() {
        let bad = KnownBad {
            from: None,
            to: Some("34.20210904.2.0".into()),
            architectures: vec!["arm64".into()],
            reason: "kernels 6.2 and later do not boot".into(),
        };
        let limits = SkewLimits { known_bad: vec![bad], ..SkewLimits::default() };
        let old = boot("34.20210808.3.0");
        assert!(matches!(against(&limits, &old, Some(&Architecture::Aarch64)), Verdict::Outside(_)));
        assert_eq!(against(&limits, &old, Some(&Architecture::X86_64)), Verdict::Within);
        assert_eq!(against(&limits, &boot("35.20220101.3.0"), Some(&Architecture::Aarch64)), Verdict::Within);
    }
}
