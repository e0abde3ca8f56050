//! One document, kept as it is, with the format that its content has.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

/// A metadata document. The JSON is kept whole, so unknown fields survive; readers look into it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    name: Arc<str>,
    parts: Vec<Part>,
}

/// One piece of metadata in a document. Most documents are one piece; a list or a YAML stream may hold several.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The format that the content has.
    pub format: Format,
    /// The content.
    pub value: Value,
}

/// Formats of release metadata, told by content and never by file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// CoreOS stream metadata (fedora-coreos-tracker `metadata/stream`).
    Stream,
    /// coreos-assembler `meta.json` (coreos-assembler `src/v1.json`).
    Meta,
    /// The installer's `rhcos.json` up to 4.9: a flattened meta.json with `baseURI`
    /// (openshift/installer `hack/update-rhcos-bootimage.py`).
    InstallerRhcos,
    /// Azure marketplace images by architecture (openshift/installer `data/data/coreos/marketplace`).
    Marketplace,
    /// Fedora CoreOS `release.json` (stream-metadata-go `release`).
    Release,
    /// Fedora CoreOS `releases.json`, the index (fedora-coreos-tracker `metadata/release-index`).
    ReleaseIndex,
    /// Fedora CoreOS update graph (fedora-coreos-tracker `metadata/updates`): versions, no images.
    Updates,
    /// The ConfigMap `coreos-bootimages`.
    ConfigMap,
    /// The project's own index of published images.
    Index,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stream => "stream metadata",
            Self::Meta => "coreos-assembler meta.json",
            Self::InstallerRhcos => "installer rhcos.json",
            Self::Marketplace => "marketplace images",
            Self::Release => "Fedora CoreOS release",
            Self::ReleaseIndex => "Fedora CoreOS release index",
            Self::Updates => "Fedora CoreOS update graph",
            Self::ConfigMap => "ConfigMap coreos-bootimages",
            Self::Index => "index of published images",
        })
    }
}

/// Why a document is not release metadata.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The bytes are not UTF-8.
    #[error("{name}: not UTF-8 text, so neither JSON nor YAML: expected release metadata")]
    NotText {
        /// The document.
        name: String,
    },
    /// The text begins like JSON and does not parse as it.
    #[error("{name}: not valid JSON")]
    Json {
        /// The document.
        name: String,
        /// Where and what.
        #[source]
        source: serde_json::Error,
    },
    /// The text does not parse as YAML.
    #[error("{name}: not valid YAML")]
    Yaml {
        /// The document.
        name: String,
        /// Where and what.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    /// It parses, and nothing in it is release metadata.
    #[error(
        "{name}: no release metadata in it: expected stream metadata, a coreos-assembler meta.json, the installer's \
         rhcos.json, a Fedora CoreOS release or index, or the ConfigMap coreos-bootimages"
    )]
    Unrecognised {
        /// The document.
        name: String,
    },
}

impl Document {
    /// Parses JSON or YAML, and tells the format of each piece. `name` is used in messages, and for the architecture
    /// of old documents that name it nowhere else.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, DocumentError> {
        let text =
            std::str::from_utf8(bytes).map_err(|_| DocumentError::NotText { name: name.to_owned() })?;
        let text = text.trim_start_matches('\u{feff}');
        let values = if text.trim_start().starts_with(['{', '[']) {
            serde_json::Deserializer::from_str(text)
                .into_iter::<Value>()
                .collect::<Result<Vec<_>, _>>()
                .map_err(|source| DocumentError::Json { name: name.to_owned(), source })?
        } else {
            serde_saphyr::from_multiple::<Value>(text)
                .map_err(|source| DocumentError::Yaml { name: name.to_owned(), source: Box::new(source) })?
        };
        Self::from_values(name, values)
    }

    /// Takes values that are parsed already, for example a live object.
    pub fn from_values(name: &str, values: Vec<Value>) -> Result<Self, DocumentError> {
        let mut parts = Vec::new();
        for value in values {
            collect(value, &mut parts, 0);
        }
        if parts.is_empty() {
            return Err(DocumentError::Unrecognised { name: name.to_owned() });
        }
        Ok(Self { name: name.into(), parts })
    }

    /// The name that the caller gave.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The pieces, each with its format.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// Lists nest at most twice in practice (`kind: List` in an array); deeper ones are not searched.
const LIST_DEPTH: u8 = 4;

fn collect(value: Value, parts: &mut Vec<Part>, depth: u8) {
    match value {
        Value::Array(items) if depth < LIST_DEPTH => {
            for item in items {
                collect(item, parts, depth + 1);
            }
        }
        Value::Object(map) if is_list(&map) && depth < LIST_DEPTH => {
            if let Some(Value::Array(items)) = map.into_iter().find_map(|(k, v)| (k == "items").then_some(v))
            {
                for item in items {
                    collect(item, parts, depth + 1);
                }
            }
        }
        Value::Object(map) => {
            if let Some(format) = detect(&map) {
                parts.push(Part { format, value: Value::Object(map) });
            }
        }
        _ => {}
    }
}

fn is_list(map: &Map<String, Value>) -> bool {
    map.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
        && map.get("items").is_some_and(Value::is_array)
}

fn detect(map: &Map<String, Value>) -> Option<Format> {
    let has = |key: &str| map.contains_key(key);
    if map.get("kind").and_then(Value::as_str) == Some("ConfigMap") {
        let data = map.get("data")?.as_object()?;
        return (data.contains_key("stream") || data.contains_key("streams")).then_some(Format::ConfigMap);
    }
    if has("kind") && has("apiVersion") {
        return None;
    }
    if map.get("architectures").is_some_and(Value::is_object) {
        return Some(if has("release") { Format::Release } else { Format::Stream });
    }
    if map.get("images").is_some_and(Value::is_object) && (has("buildid") || has("ostree-version")) {
        return Some(if has("baseURI") { Format::InstallerRhcos } else { Format::Meta });
    }
    if let Some(releases) = map.get("releases").and_then(Value::as_array) {
        let index = releases.iter().any(|r| r.get("commits").is_some() || r.get("oci-images").is_some());
        return Some(if index { Format::ReleaseIndex } else { Format::Updates });
    }
    let by_architecture = |(name, value): (&String, &Value)| {
        crate::Architecture::known(name).is_some() && value.get("azure").is_some_and(Value::is_object)
    };
    (!map.is_empty() && map.iter().all(by_architecture)).then_some(Format::Marketplace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats(text: &str) -> Vec<Format> {
        Document::parse("t", text.as_bytes()).unwrap().parts().iter().map(|p| p.format).collect()
    }

    #[test]
    fn the_format_is_told_by_content() {
        assert_eq!(formats(r#"{"stream":"stable","architectures":{}}"#), [Format::Stream]);
        assert_eq!(formats(r#"{"buildid":"1","images":{},"baseURI":"x"}"#), [Format::InstallerRhcos]);
        assert_eq!(formats(r#"{"buildid":"1","images":{}}"#), [Format::Meta]);
        assert_eq!(formats(r#"{"releases":[{"version":"1","commits":[]}]}"#), [Format::ReleaseIndex]);
        assert_eq!(formats(r#"{"x86_64":{"azure":{}}}"#), [Format::Marketplace]);
        assert_eq!(
            formats(
                "kind: List\napiVersion: v1\nitems:\n- {kind: ConfigMap, apiVersion: v1, data: {stream: '{}'}}\n- {kind: Pod}\n"
            ),
            [Format::ConfigMap]
        );
        assert_eq!(formats("---\narchitectures: {}\n---\nkind: Secret\n"), [Format::Stream]);
    }

    #[test]
    fn what_is_no_metadata_says_what_was_expected() {
        for text in ["", "[]", "{}", "kind: Pod\napiVersion: v1\n", "just words"] {
            let error = Document::parse("some.yaml", text.as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with("some.yaml: no release metadata"), "{text}: {error}");
        }
        assert!(matches!(Document::parse("x", b"{\"a\":"), Err(DocumentError::Json { .. })));
        assert!(matches!(Document::parse("x", b"\xff\xfe"), Err(DocumentError::NotText { .. })));
    }
}
