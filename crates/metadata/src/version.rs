//! OS versions of all generations of CoreOS, and a partial order over them.
//!
//! Four schemes are alive in clusters (coreos-assembler build ids; `openshift/os` release branches):
//!
//! | scheme | example | meaning |
//! |---|---|---|
//! | OpenShift, RHEL major | `410.8.20190520.0` | OpenShift **4.1**, its first ten builds; RHEL 8 |
//! | OpenShift, RHEL minor | `48.84.202109241901-0`, `410.84.202110140201-0` | OpenShift 4.8 and **4.10**, RHEL 8.4 |
//! | RHEL | `9.6.20250826-1` | since OpenShift 4.19 the RHEL version leads |
//! | Fedora | `44.20260707.3.1` | Fedora major, date, stream number, revision |
//!
//! Azure marketplace images have a fifth: `419.6.20250523` or `9.6.20251015` or `4.18.2025031114`, without a build number.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The version of an operating system build, as parsed from its build id.
///
/// Equality is that of the text; order is [`OsVersion::compare`], which is partial.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OsVersion {
    text: String,
    scheme: Scheme,
    date: u32,
    time: u32,
    build: u32,
}

/// How a version is written, and what its leading numbers mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// The OpenShift version leads (RHCOS up to 4.18, some builds of 4.19).
    OpenShift {
        /// The minor of OpenShift 4.
        minor: u32,
        /// RHEL major.
        rhel_major: u32,
        /// RHEL minor; `None` in the builds of 2019 that name only the major.
        rhel_minor: Option<u32>,
    },
    /// The RHEL version leads (RHCOS since 4.19; CentOS Stream CoreOS with minor 0).
    Rhel {
        /// RHEL or CentOS Stream major.
        major: u32,
        /// RHEL minor; 0 for CentOS Stream.
        minor: u32,
    },
    /// Fedora CoreOS.
    Fedora {
        /// Fedora major.
        major: u32,
        /// 1 next, 2 testing, 3 stable, 10 and above for development streams; `None` in the first builds of 2019.
        stream: Option<u32>,
    },
    /// An Azure marketplace image that names the OpenShift version alone: `4.18.2025031114`.
    Marketplace {
        /// The minor of OpenShift 4.
        minor: u32,
    },
}

/// A text that is not an OS version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an OS version: expected a build id like 418.94.202602022246-0, 9.6.20260217-1 or 44.20260707.3.1"
)]
pub struct VersionError {
    text: String,
}

impl OsVersion {
    /// The text as it was found.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How it is written.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The OpenShift 4 minor that the text itself tells; `None` where only the release metadata around it could.
    pub fn openshift_minor(&self) -> Option<u32> {
        match self.scheme {
            Scheme::OpenShift { minor, .. } | Scheme::Marketplace { minor } => Some(minor),
            Scheme::Rhel { .. } | Scheme::Fedora { .. } => None,
        }
    }

    /// The RHEL version (major, minor) that the text tells. CentOS Stream has no minor and says 0.
    pub fn rhel(&self) -> Option<(u32, Option<u32>)> {
        match self.scheme {
            Scheme::OpenShift { rhel_major, rhel_minor, .. } => Some((rhel_major, rhel_minor)),
            Scheme::Rhel { major, minor } => Some((major, Some(minor))),
            Scheme::Fedora { .. } | Scheme::Marketplace { .. } => None,
        }
    }

    /// The RHEL version as text: `8`, `8.4`, `9.6`.
    pub fn rhel_text(&self) -> Option<String> {
        self.rhel().map(|(major, minor)| match minor {
            Some(minor) => format!("{major}.{minor}"),
            None => major.to_string(),
        })
    }

    /// The date of the build: year, month, day.
    pub fn date(&self) -> (u32, u32, u32) {
        (self.date / 10_000, self.date / 100 % 100, self.date % 100)
    }

    /// The time of the build, hour and minute (UTC), where the text tells it.
    pub fn time(&self) -> Option<(u32, u32)> {
        let (hour, minute) = (self.time / 100, self.time % 100);
        (self.time != 0 && hour < 24 && minute < 60).then_some((hour, minute))
    }

    /// The date of the build as `2026-02-17`.
    pub fn date_text(&self) -> String {
        let (year, month, day) = self.date();
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// The newest of several versions; of those that cannot be compared, the first.
    pub fn newest<'a>(versions: impl IntoIterator<Item = &'a Self>) -> Option<&'a Self> {
        versions.into_iter().reduce(|a, b| if a.compare(b) == Some(Ordering::Less) { b } else { a })
    }

    /// Compares two builds of one distribution; `None` where nothing that is written tells which is the newer.
    ///
    /// - Inside a scheme: OpenShift minor and RHEL version together, then date and build number.
    /// - OpenShift against RHEL: the switch of schemes went one way, so the former is older unless its RHEL is newer.
    /// - Fedora: major and date; two streams of one day cannot be compared.
    /// - Fedora against any other: never.
    ///
    /// The relation is transitive, so that a sort by it has a meaning.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        let moment = |v: &Self| (v.date, v.time, v.build);
        match (self.scheme, other.scheme) {
            (Scheme::OpenShift { minor: a, .. }, Scheme::OpenShift { minor: b, .. }) => {
                match (a.cmp(&b), self.rhel_order().cmp(&other.rhel_order())) {
                    (Ordering::Equal, Ordering::Equal) => Some(moment(self).cmp(&moment(other))),
                    (Ordering::Equal, order) | (order, Ordering::Equal) => Some(order),
                    (a, b) if a == b => Some(a),
                    _ => None,
                }
            }
            (Scheme::Rhel { .. }, Scheme::Rhel { .. }) => {
                Some((self.rhel_order(), moment(self)).cmp(&(other.rhel_order(), moment(other))))
            }
            (Scheme::OpenShift { .. }, Scheme::Rhel { .. }) => {
                (self.rhel_order() <= other.rhel_order()).then_some(Ordering::Less)
            }
            (Scheme::Rhel { .. }, Scheme::OpenShift { .. }) => other.compare(self).map(Ordering::reverse),
            (Scheme::Fedora { major: a, stream: s }, Scheme::Fedora { major: b, stream: t }) => {
                match (a, self.date).cmp(&(b, other.date)) {
                    Ordering::Equal if s == t => Some(self.build.cmp(&other.build)),
                    Ordering::Equal => None,
                    order => Some(order),
                }
            }
            (Scheme::Marketplace { minor: a }, Scheme::Marketplace { minor: b }) => {
                Some((a, moment(self)).cmp(&(b, moment(other))))
            }
            // Both name the minor; within one, nothing tells.
            (
                Scheme::OpenShift { minor: a, .. } | Scheme::Marketplace { minor: a },
                Scheme::OpenShift { minor: b, .. } | Scheme::Marketplace { minor: b },
            ) => Some(a.cmp(&b)).filter(|order| order.is_ne()),
            _ => None,
        }
    }

    fn rhel_order(&self) -> (u32, u32) {
        self.rhel().map_or((0, 0), |(major, minor)| (major, minor.unwrap_or(0)))
    }
}

impl fmt::Display for OsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for OsVersion {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| VersionError { text: text.chars().take(80).collect() })
    }
}

fn parse(text: &str) -> Option<OsVersion> {
    if text.len() > 64 {
        return None;
    }
    let (main, dashed) = match text.split_once('-') {
        Some((main, build)) => (main, Some(number(build)?)),
        None => (text, None),
    };
    let mut parts = main.split('.');
    let lead = parts.next()?;
    let second = parts.next()?;
    let rest: Vec<&str> = parts.collect();

    // Fedora: MAJOR.DATE[.STREAM].REVISION
    if let Some(date) = date8(second) {
        let (stream, build) = match rest.as_slice() {
            [revision] => (None, number(revision)?),
            [stream, revision] => (Some(number(stream)?), number(revision)?),
            _ => return None,
        };
        let scheme = Scheme::Fedora { major: number(lead)?, stream };
        return dashed.is_none().then(|| OsVersion { text: text.to_owned(), scheme, date, time: 0, build });
    }

    let [moment, revision @ ..] = rest.as_slice() else { return None };
    let build = match (dashed, revision) {
        (Some(build), []) => Some(build),
        (None, [build]) => Some(number(build)?),
        (None, []) => None,
        _ => return None,
    };
    let (date, time) = date_and_time(moment)?;
    // Architecture or branch words may stand behind the lead: 42s390x.81, 44devel.81.
    let digits = lead.bytes().take_while(u8::is_ascii_digit).count();
    let lead = number(lead.get(..digits)?)?;
    let second = number(second)?;
    let scheme = match (lead, build) {
        // The build number tells a build id from a marketplace version: 4.18.2025031114 has none.
        (4, None) if time != 0 => Scheme::Marketplace { minor: second },
        (40..=999, _) => openshift(lead, second, build.is_none())?,
        (8..=39, _) => Scheme::Rhel { major: lead, minor: second },
        _ => return None,
    };
    Some(OsVersion { text: text.to_owned(), scheme, date, time, build: build.unwrap_or(0) })
}

/// `48.84`, `418.94`; `410.8` and `420.8` of 2019, where the third digit counts and the minor is one digit;
/// `419.6` of the Azure marketplace, where the second number is the RHEL 9 minor.
fn openshift(lead: u32, second: u32, marketplace: bool) -> Option<Scheme> {
    let minor = match (lead, second) {
        (410 | 420, 8) => lead / 10 - 40,
        (40..=49, _) => lead - 40,
        (400..=499, _) => lead - 400,
        _ => return None,
    };
    Some(match second {
        80..=999 => Scheme::OpenShift { minor, rhel_major: second / 10, rhel_minor: Some(second % 10) },
        _ if marketplace => Scheme::OpenShift { minor, rhel_major: 9, rhel_minor: Some(second) },
        _ => Scheme::OpenShift { minor, rhel_major: second, rhel_minor: None },
    })
}

fn number(text: &str) -> Option<u32> {
    (!text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn date8(text: &str) -> Option<u32> {
    let date = number(text).filter(|_| text.len() == 8)?;
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    ((2018..2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)).then_some(date)
}

/// `20260217`, `202602022246` or the marketplace's `2025031114`.
fn date_and_time(text: &str) -> Option<(u32, u32)> {
    let date = date8(text.get(..8)?)?;
    match text.get(8..)? {
        "" => Some((date, 0)),
        time if time.len() == 4 => Some((date, number(time)?)),
        hour if hour.len() == 2 => Some((date, number(hour)? * 100 + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> OsVersion {
        text.parse().unwrap()
    }

    #[test]
    fn every_generation_is_understood() {
        let cases = [
            ("410.8.20190520.0", Some(1), Some("8")),
            ("420.8.20190624.0", Some(2), Some("8")),
            ("42.80.20191002.0", Some(2), Some("8.0")),
            ("42s390x.81.20191224.0", Some(2), Some("8.1")),
            ("43.82.202008010953.0", Some(3), Some("8.2")),
            ("44devel.81.202001151926.0", Some(4), Some("8.1")),
            ("410.84.202210040010-0", Some(10), Some("8.4")),
            ("418.94.202602022246-0", Some(18), Some("9.4")),
            ("9.6.20260217-1", None, Some("9.6")),
            ("10.2.20260405-0", None, Some("10.2")),
            ("39.20231101.3.0", None, None),
            ("30.20190715.0", None, None),
            ("419.6.20250523", Some(19), Some("9.6")),
            ("9.6.20251015", None, Some("9.6")),
            ("4.18.2025031114", Some(18), None),
        ];
        for (text, openshift, rhel) in cases {
            let parsed = version(text);
            assert_eq!(parsed.openshift_minor(), openshift, "{text}");
            assert_eq!(parsed.rhel_text().as_deref(), rhel, "{text}");
        }
        assert_eq!(version("418.94.202602022246-0").date_text(), "2026-02-02");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in [
            "",
            "4.16.3",
            "latest",
            "9.6",
            "1.2.3.4",
            "9.6.20269999-1",
            "9.6.20260217-1-2",
            "-",
            "..-",
            "999.8.1",
        ] {
            assert!(text.parse::<OsVersion>().is_err(), "{text}");
        }
    }

    #[test]
    fn generations_are_ordered_over_every_scheme() {
        let ascending = [
            "410.8.20190520.0",
            "420.8.20190624.0",
            "42.80.20191002.0",
            "43.82.202008010953.0",
            "48.84.202208021106-0",
            "410.84.202210040010-0",
            "412.86.202402272018-0",
            "418.94.202602022246-0",
            "9.6.20251212-1",
            "9.6.20260112-0",
            "9.6.20260217-1",
            "10.2.20260405-0",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(version(a).compare(&version(b)), Some(i.cmp(&j)), "{a} against {b}");
            }
        }
    }

    #[test]
    fn what_cannot_be_compared_is_not() {
        for (a, b) in [
            ("39.20231101.3.0", "9.0.20250510-0"),
            ("39.20231101.3.0", "39.20231101.2.1"),
            ("414.92.202407091253-0", "8.6.20240101-0"),
            ("4.18.2025031114", "9.6.20251015"),
        ] {
            assert_eq!(version(a).compare(&version(b)), None, "{a} against {b}");
            assert_eq!(version(b).compare(&version(a)), None, "{b} against {a}");
        }
    }

    mod laws {
        use super::*;
        use proptest::prelude::*;

        fn any_version() -> impl Strategy<Value = OsVersion> {
            prop_oneof![
                (6u32..22, prop::sample::select(vec![82u32, 84, 86, 92, 94, 96]), 1u32..13, 0u32..3)
                    .prop_map(|(m, r, month, n)| format!("4{m}.{r}.2024{month:02}010000-{n}")),
                (9u32..11, 0u32..9, 1u32..13, 0u32..3)
                    .prop_map(|(a, b, m, n)| format!("{a}.{b}.2025{m:02}01-{n}")),
                (33u32..36, 1u32..13, 1u32..4, 0u32..2)
                    .prop_map(|(a, m, s, n)| format!("{a}.2021{m:02}01.{s}.{n}")),
            ]
            .prop_map(|text| version(&text))
        }

        proptest! {
            #[test]
            fn order_is_antisymmetric_and_transitive(a in any_version(), b in any_version(), c in any_version()) {
                prop_assert_eq!(a.compare(&b), b.compare(&a).map(Ordering::reverse));
                if a.compare(&b) == Some(Ordering::Less) && b.compare(&c) == Some(Ordering::Less) {
                    prop_assert_eq!(a.compare(&c), Some(Ordering::Less));
                }
            }

            #[test]
            fn no_text_panics(text in "[0-9a-z.\\-]{0,40}") {
                let _ = text.parse::<OsVersion>();
            }
        }
    }
}
