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
    let mut undecided = None;
    for bad in &limits.known_bad {
        // A range of one distribution's versions is not about another's.
        let fedora = |v: &OsVersion| matches!(v.scheme(), Scheme::Fedora { .. });
        let bounds = [&bad.from, &bad.to].into_iter().flatten().filter_map(|t| t.parse::<OsVersion>().ok());
        if bounds.into_iter().any(|bound| fedora(&bound) != fedora(version)) {
            continue;
        }
        // The order against each end that is given; none where the two cannot be compared.
        let inside = |bound: &Option<String>, side: Ordering| {
            let Some(bound) = bound.as_ref().and_then(|t| t.parse::<OsVersion>().ok()) else {
                return Some(true);
            };
            version.compare(&bound).map(|order| order == side || order == Ordering::Equal)
        };
        let in_range = match (inside(&bad.from, Ordering::Greater), inside(&bad.to, Ordering::Less)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
        let concerned = match architecture {
            _ if bad.architectures.is_empty() => Some(true),
            Some(own) => Some(bad.architectures.iter().any(|b| Architecture::known(b).as_ref() == Some(own))),
            None => None,
        };
        let sentence = format!("known to fail: {}", bad.reason);
        match (in_range, concerned) {
            (Some(true), Some(true)) => return Verdict::Outside(sentence),
            (Some(false), _) | (_, Some(false)) => {}
            _ => undecided = Some(sentence),
        }
    }
    for (limit, wrong, word) in
        [(&limits.minimum, Ordering::Less, "minimum"), (&limits.maximum, Ordering::Greater, "maximum")]
    {
        let Some(limit) = limit else { continue };
        let orders = compare_all(version, boot.release_version.as_deref(), limit);
        if orders.contains(&Some(wrong)) {
            return Verdict::Outside(format!("{word} {}", limit_text(limit)));
        }
        // Every way that is given must hold; one that cannot be checked is not fine.
        if orders.contains(&None) {
            undecided = Some(format!("{word} {}", limit_text(limit)));
        }
    }
    undecided.map_or(Verdict::Within, Verdict::Undecided)
}

/// The order of a version against each part of a limit that is given.
fn compare_all(version: &OsVersion, release: Option<&str>, limit: &VersionLimit) -> Vec<Option<Ordering>> {
    let mut orders = Vec::new();
    if let Some(wanted) = limit.openshift.as_deref().and_then(parse_openshift) {
        let (major, minor, patch) = wanted;
        let own = release.and_then(parse_openshift);
        orders.push(match (own, version.openshift_minor(), version.scheme()) {
            (Some(own), _, _) => Some(own.cmp(&wanted)),
            // The text tells the minor alone: nothing about a patch inside it.
            (None, Some(own), _) => match (4, own).cmp(&(major, minor)) {
                Ordering::Equal if patch > 0 => None,
                order => Some(order),
            },
            (None, None, Scheme::Rhel { .. }) if (major, minor) < (4, FIRST_RHEL_LED_MINOR) => {
                Some(Ordering::Greater)
            }
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
    Some((now.as_second() - day_of(version)?).div_euclid(24 * 3600))
}

/// The hours since a build (UTC); since the end of its day where the text tells no time.
pub(crate) fn hours_since(version: &OsVersion, now: Timestamp) -> Option<i64> {
    let start = day_of(version)?;
    let built = match version.time() {
        Some((hour, minute)) => start + i64::from(hour) * 3600 + i64::from(minute) * 60,
        None => start + 24 * 3600,
    };
    Some((now.as_second() - built).div_euclid(3600))
}

/// The beginning of the day of a build, in seconds since 1970.
fn day_of(version: &OsVersion) -> Option<i64> {
    let (year, month, day) = version.date();
    let date =
        Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    Some(date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
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
            // What the release itself carries has no boot image to be old.
            (None, _) if decision.skew.state == SkewState::Current => {}
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
        unknown: counted.iter().filter(|d| d.skew.state == SkewState::Unknown).count(),
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
    fn a_part_of_a_limit_that_cannot_be_checked_is_not_met() {
        let minimum = |openshift: &str| SkewLimits {
            minimum: Some(VersionLimit {
                openshift: Some(openshift.into()),
                rhel: Some("9.2".into()),
                version: None,
            }),
            ..SkewLimits::default()
        };
        assert!(matches!(against(&minimum("4.21.0"), &boot("9.6.20260217-1"), None), Verdict::Undecided(_)));
        assert!(matches!(
            against(&minimum("4.18.30"), &boot("418.94.202602022246-0"), None),
            Verdict::Undecided(_)
        ));
        let told = Boot { release_version: Some("5.0.0-ec.2".into()), ..boot("9.8.20260403-0") };
        assert_eq!(against(&minimum("5.0.0"), &told, None), Verdict::Within);
        let early = "2026-02-03T00:10:00Z".parse().unwrap();
        assert_eq!(hours_since(&"418.94.202602022246-0".parse().unwrap(), early), Some(1));
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
