//! The aleph: the record on a node of the boot image that it was born from.
//!
//! Three shapes were written over time (coreos-assembler, osbuild, bootc): `build` with `imgid`, then `version`, then
//! OCI labels. The file may be missing on the oldest nodes.

use serde_json::Value;

use crate::{Architecture, OsVersion};

/// What an aleph tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aleph {
    /// The version of the boot image.
    pub version: OsVersion,
    /// The architecture, where a file name or reference in the record holds it.
    pub architecture: Option<Architecture>,
    /// The container image or ostree reference that the boot image was made from.
    pub reference: Option<String>,
}

/// Why a value is not an aleph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AlephError {
    /// It has none of the members that an aleph has.
    #[error(
        "not an aleph: expected `version`, `build` or OCI labels beside `ref`, `imgid` or `target-image`"
    )]
    NotAleph,
    /// It names a version that is none.
    #[error("the aleph's version `{text}` is not an OS version")]
    Version {
        /// What it says.
        text: String,
    },
}

impl Aleph {
    /// Reads the parsed file.
    pub fn read(value: &Value) -> Result<Self, AlephError> {
        const MARKS: [&str; 5] = ["ref", "imgid", "target-image", "container-image", "osbuild-version"];
        let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
        if value.get("architectures").is_some() || !MARKS.iter().any(|mark| value.get(mark).is_some()) {
            return Err(AlephError::NotAleph);
        }
        let labels = [value.get("labels"), value.get("container-image").and_then(|c| c.get("image-labels"))];
        let labelled = labels.into_iter().flatten().find_map(|labels| {
            labels.get("org.opencontainers.image.version").or_else(|| labels.get("version"))?.as_str()
        });
        // Images of December 2023 carry both members; `version` is the newer one.
        let version = text("version").or_else(|| text("build")).or(labelled).ok_or(AlephError::NotAleph)?;
        let version = version.parse().map_err(|_| AlephError::Version { text: version.to_owned() })?;
        let architecture = ["imgid", "ref", "target-image", "image"]
            .into_iter()
            .filter_map(text)
            .find_map(|name| name.split('/').find_map(Architecture::in_file_name));
        Ok(Self {
            version,
            architecture,
            reference: text("ref").or_else(|| text("target-image")).map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_shape_is_read() {
        let cases = [
            (
                json!({"build": "43.81.202001142154.0", "imgid": "rhcos-43.81.202001142154.0-qemu.x86_64.qcow2", "ref": ""}),
                "43.81.202001142154.0",
                Some("x86_64"),
            ),
            (
                json!({"build": "39.20231204.1.0", "version": "39.20231204.1.0", "ref": "fedora/aarch64/coreos/next"}),
                "39.20231204.1.0",
                Some("aarch64"),
            ),
            (
                json!({"ref": "docker://ostree-image-signed:oci-archive:/rhcos-9.6.20251212-1-ostree.x86_64.ociarchive", "version": "9.6.20251212-1"}),
                "9.6.20251212-1",
                Some("x86_64"),
            ),
            (
                json!({"target-image": "quay.io/x", "labels": {"org.opencontainers.image.version": "9.8.20260428-0"}}),
                "9.8.20260428-0",
                None,
            ),
        ];
        for (value, version, architecture) in cases {
            let aleph = Aleph::read(&value).unwrap();
            assert_eq!(aleph.version.as_str(), version);
            assert_eq!(aleph.architecture.as_ref().map(Architecture::as_str), architecture, "{value}");
        }
    }

    #[test]
    fn other_documents_are_refused() {
        assert_eq!(Aleph::read(&json!({"version": "1"})), Err(AlephError::NotAleph));
        assert!(matches!(Aleph::read(&json!({"ref": "x", "version": "1"})), Err(AlephError::Version { .. })));
    }
}
