//! Processor architectures, in the RPM spelling that release metadata uses.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A processor architecture. `Other` keeps a name that this version does not know, so that nothing is lost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum Architecture {
    /// `aarch64`, in Kubernetes `arm64`.
    Aarch64,
    /// `ppc64le`.
    Ppc64le,
    /// `s390x`.
    S390x,
    /// `x86_64`, in Kubernetes `amd64`.
    X86_64,
    /// Any other name, as it was written.
    Other(String),
}

impl Architecture {
    /// Reads either spelling (`x86_64` or `amd64`); `None` for a name that is not known.
    pub fn known(name: &str) -> Option<Self> {
        match name {
            "aarch64" | "arm64" => Some(Self::Aarch64),
            "ppc64le" => Some(Self::Ppc64le),
            "s390x" => Some(Self::S390x),
            "x86_64" | "x86-64" | "amd64" => Some(Self::X86_64),
            _ => None,
        }
    }

    /// The RPM spelling, as in stream metadata.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Aarch64 => "aarch64",
            Self::Ppc64le => "ppc64le",
            Self::S390x => "s390x",
            Self::X86_64 => "x86_64",
            Self::Other(name) => name,
        }
    }

    /// The architecture that a file name tells between its separators: `rhcos-amd64.json`,
    /// `rhcos-48.84-metal.x86_64.raw.gz`, `…-live-kernel-x86_64`. `None` where none or two are named.
    pub fn in_file_name(name: &str) -> Option<Self> {
        let mut found = None;
        // `x86_64` holds a separator of its own, so it is looked for as a whole.
        let spelled = name.replace("x86_64", "amd64").replace("x86-64", "amd64");
        for word in spelled.split(|c: char| !c.is_ascii_alphanumeric()) {
            if let Some(architecture) = Self::known(word) {
                if found.as_ref().is_some_and(|other| *other != architecture) {
                    return None;
                }
                found = Some(architecture);
            }
        }
        found
    }
}

impl From<String> for Architecture {
    fn from(name: String) -> Self {
        Self::known(&name).unwrap_or(Self::Other(name))
    }
}

impl From<&str> for Architecture {
    fn from(name: &str) -> Self {
        Self::from(name.to_owned())
    }
}

impl From<Architecture> for String {
    fn from(architecture: Architecture) -> Self {
        architecture.as_str().to_owned()
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Architecture;

    #[test]
    fn file_names_tell_the_architecture() {
        let cases = [
            ("rhcos-amd64.json", Some(Architecture::X86_64)),
            ("rhcos-4.3-ppc64le.json", Some(Architecture::Ppc64le)),
            ("rhcos-46.82.202109242004-0-live-kernel-x86_64", Some(Architecture::X86_64)),
            ("rhcos-46.82-metal.x86_64.raw.gz", Some(Architecture::X86_64)),
            ("rhcos.json", None),
            ("arm64-and-amd64.json", None),
        ];
        for (name, expected) in cases {
            assert_eq!(Architecture::in_file_name(name), expected, "{name}");
        }
    }
}
