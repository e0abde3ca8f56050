//! The policy: what an administrator allows and demands. The specification of the future `BootImagePolicy`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an administrator allows and demands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Policy {
    /// `Observe` (default) reports, `Managed` acts, `Paused` leaves all as it is.
    pub mode: Mode,
    /// Which machine sets the policy is for, by their labels; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// Holds machine sets at one release instead of the newest; an older one is a rollback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// OS versions that no machine set is moved to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// How old a build must be before machine sets are moved to it: `36h`, `14d`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_age: Option<String>,
    /// Limits of the distance between boot image and release.
    #[serde(skip_serializing_if = "SkewLimits::is_empty")]
    pub skew: SkewLimits,
    /// Allows to move to an older build, and between builds that cannot be compared.
    pub allow_downgrade: bool,
    /// Allows changes that replace machines which run: control plane sets, repointed Cluster API templates.
    pub allow_replace_machines: bool,
    /// Allows to move between Fedora, CentOS Stream and Red Hat CoreOS.
    pub allow_distribution_change: bool,
    /// Images that are ours although no metadata knows them, by id, name or path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adopt: Vec<String>,
    /// The architecture of machine sets that tell none and whose image tells none: `x86_64`, `aarch64`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_architecture: Option<String>,
    /// The OS stream of machine sets without the label: `rhel-9`, `rhel-10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_os_stream: Option<String>,
    /// The names under which the release's image lies in private stores, by platform: `openstack: rhcos-9.6`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub image_names: BTreeMap<String, String>,
}

/// Whether the policy acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum Mode {
    /// Report what would change.
    #[default]
    Observe,
    /// Change it.
    Managed,
    /// Leave all as it is.
    Paused,
}

/// A Kubernetes label selector.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selector {
    /// Labels that must have these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Requirement>,
}

/// One requirement of a selector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// The operator.
    pub operator: SelectorOperator,
    /// The values, for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// The operator of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum SelectorOperator {
    /// The label has one of the values.
    In,
    /// It has none of them, or is absent.
    NotIn,
    /// It is there.
    Exists,
    /// It is absent.
    DoesNotExist,
}

/// A release to stay at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pin {
    /// An OS version (`418.94.202602022246-0`), or the OpenShift version of a release whose ConfigMap is known.
    pub release: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When it ends: a time as in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub until: Option<Timestamp>,
}

/// Limits of the distance between boot image and release.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SkewLimits {
    /// The oldest boot image that is fine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<VersionLimit>,
    /// The newest boot image that is fine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<VersionLimit>,
    /// Boot images in between that are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known_bad: Vec<KnownBad>,
}

impl SkewLimits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A limit, in any of the ways in which a version is known; every one that is given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct VersionLimit {
    /// The OpenShift version: `4.13` or `4.13.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift: Option<String>,
    /// The RHEL version: `9.2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rhel: Option<String>,
    /// An OS version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A range of boot images that are known to fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnownBad {
    /// The first OS version of the range; open where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The last OS version of the range; open where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The architectures that it is about; all where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
    /// What fails.
    pub reason: String,
}

/// Why a policy is not usable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// It has not the shape of one.
    #[error("not a policy")]
    Shape(#[source] serde_json::Error),
    /// It is another object.
    #[error("expected a BootImagePolicy, or its spec alone; found a {kind}")]
    Kind {
        /// What it is.
        kind: String,
    },
    /// A field has a value that means nothing.
    #[error("{field}: `{value}` is not {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// What it says.
        value: String,
        /// What would have a meaning.
        expected: &'static str,
    },
}

impl Policy {
    /// The policy of a command line that was given none: everything that is safe is done.
    pub fn managed() -> Self {
        Self { mode: Mode::Managed, ..Self::default() }
    }

    /// Reads a policy: the whole object, or its `spec` alone. Unknown fields are errors, since a misspelt limit would
    /// be no limit.
    pub fn read(value: &Value) -> Result<Self, PolicyError> {
        let spec = match value.get("kind").and_then(Value::as_str) {
            Some("BootImagePolicy") => value.get("spec").unwrap_or(&Value::Null),
            Some(kind) => return Err(PolicyError::Kind { kind: kind.to_owned() }),
            None => value,
        };
        if !spec.is_object() {
            return Err(PolicyError::Kind { kind: "value that is no mapping".to_owned() });
        }
        let policy: Self = serde_json::from_value(spec.clone()).map_err(PolicyError::Shape)?;
        policy.validate()?;
        Ok(policy)
    }

    fn validate(&self) -> Result<(), PolicyError> {
        let error = |field, value: &str, expected| {
            Err(PolicyError::Value { field, value: value.to_owned(), expected })
        };
        if let Some(age) = &self.minimum_age
            && parse_age(age).is_none()
        {
            return error("minimumAge", age, "a duration like `36h` or `14d`");
        }
        if let Some(name) = &self.default_architecture
            && metadata::Architecture::known(name).is_none()
        {
            return error("defaultArchitecture", name, "an architecture like `x86_64` or `aarch64`");
        }
        for name in self.image_names.keys() {
            let private = machines::Platform::ALL.iter().filter(|p| p.has_private_images());
            if !private.clone().any(|p| p.as_str() == name) {
                return error(
                    "imageNames",
                    name,
                    "a platform with private images, like `openstack` or `vsphere`",
                );
            }
        }
        for requirement in self.selector.iter().flat_map(|s| &s.match_expressions) {
            let valued = matches!(requirement.operator, SelectorOperator::In | SelectorOperator::NotIn);
            if valued == requirement.values.is_empty() {
                return error(
                    "selector",
                    &requirement.key,
                    "a requirement with values for In and NotIn, and none otherwise",
                );
            }
        }
        let os_version = "an OS version like 418.94.202602022246-0";
        if let Some(pin) = &self.pin
            && pin.release.parse::<metadata::OsVersion>().is_err()
            && parse_openshift(&pin.release).is_none()
        {
            return error(
                "pin.release",
                &pin.release,
                "an OS version, or the version of an OpenShift release",
            );
        }
        for denied in &self.deny {
            if denied.parse::<metadata::OsVersion>().is_err() {
                return error("deny", denied, os_version);
            }
        }
        for limit in [&self.skew.minimum, &self.skew.maximum].into_iter().flatten() {
            if let Some(text) = &limit.openshift
                && parse_openshift(text).is_none()
            {
                return error("skew", text, "an OpenShift version like `4.13.0`");
            }
            if let Some(text) = &limit.rhel
                && parse_pair(text).is_none()
            {
                return error("skew", text, "a RHEL version like `9.2`");
            }
            if let Some(text) = &limit.version
                && text.parse::<metadata::OsVersion>().is_err()
            {
                return error("skew", text, os_version);
            }
        }
        for bad in &self.skew.known_bad {
            for name in &bad.architectures {
                if metadata::Architecture::known(name).is_none() {
                    return error("skew.knownBad", name, "an architecture like `x86_64` or `aarch64`");
                }
            }
            for text in [&bad.from, &bad.to].into_iter().flatten() {
                if text.parse::<metadata::OsVersion>().is_err() {
                    return error("skew.knownBad", text, os_version);
                }
            }
        }
        Ok(())
    }

    /// The minimum age in hours.
    pub(crate) fn minimum_age_hours(&self) -> Option<u32> {
        self.minimum_age.as_deref().and_then(parse_age)
    }
}

impl Selector {
    /// Whether an object with these labels is selected.
    pub(crate) fn matches(&self, labels: &[(String, String)]) -> bool {
        let label = |key: &str| labels.iter().find(|(k, _)| k == key).map(|(_, v)| v);
        self.match_labels.iter().all(|(key, value)| label(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| {
                let value = label(&requirement.key);
                let among = value.is_some_and(|v| requirement.values.contains(v));
                match requirement.operator {
                    SelectorOperator::In => among,
                    SelectorOperator::NotIn => !among,
                    SelectorOperator::Exists => value.is_some(),
                    SelectorOperator::DoesNotExist => value.is_none(),
                }
            })
    }
}

/// `36h` or `14d`, in hours.
fn parse_age(text: &str) -> Option<u32> {
    let (number, hours) = match (text.strip_suffix('h'), text.strip_suffix('d')) {
        (Some(number), _) => (number, 1),
        (_, Some(number)) => (number, 24),
        _ => return None,
    };
    number.parse::<u32>().ok()?.checked_mul(hours)
}

/// `4.13`, `4.13.0` or `5.0.0-ec.2`: major, minor and patch of OpenShift; the patch is 0 where it is not given.
pub(crate) fn parse_openshift(text: &str) -> Option<(u32, u32, u32)> {
    let release = text.split_once('-').map_or(text, |(release, _)| release);
    let mut parts = release.split('.');
    let (major, minor) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let patch = parts.next().map_or(Some(0), |patch| patch.parse().ok())?;
    parts.next().is_none().then_some((major, minor, patch))
}

/// `9.2`.
pub(crate) fn parse_pair(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_whole_object_and_its_spec_are_read() {
        let spec = json!({"mode": "Managed", "skew": {"minimum": {"openshift": "4.13.0", "rhel": "9.2"}}, "minimumAge": "14d"});
        let whole = json!({"apiVersion": "bootwright.dev/v1alpha1", "kind": "BootImagePolicy", "spec": spec});
        assert_eq!(Policy::read(&whole).unwrap(), Policy::read(&spec).unwrap());
        assert_eq!(Policy::read(&spec).unwrap().minimum_age_hours(), Some(336));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for bad in [
            json!({"mode": "managed"}),
            json!({"minimunAge": "3d"}),
            json!({"minimumAge": "3 days"}),
            json!({"skew": {"minimum": {"rhel": "9"}}}),
            json!({"skew": {"minimum": {"openshift": "13"}}}),
            json!({"defaultArchitecture": "x86"}),
            json!({"imageNames": {"open-stack": "x"}}),
            json!({"kind": "ConfigMap"}),
            json!({"deny": ["9.6"]}),
            json!({"imageNames": {"aws": "x"}}),
            json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            json!({"skew": {"knownBad": [{"architectures": ["x86"], "reason": "r"}]}}),
            json!([]),
        ] {
            assert!(Policy::read(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn selectors_follow_kubernetes() {
        let labels = vec![("a".to_owned(), "1".to_owned())];
        let selector = |value| serde_json::from_value::<Selector>(value).unwrap();
        assert!(selector(json!({})).matches(&labels));
        assert!(selector(json!({"matchLabels": {"a": "1"}})).matches(&labels));
        assert!(!selector(json!({"matchLabels": {"a": "2"}})).matches(&labels));
        assert!(
            selector(json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}))
                .matches(&labels)
        );
        assert!(
            !selector(json!({"matchExpressions": [{"key": "b", "operator": "Exists"}]})).matches(&labels)
        );
    }
}
