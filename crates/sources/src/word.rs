//! The SRC word of the command line.

use std::path::PathBuf;

/// What a SRC word names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Word {
    /// A file, or a directory that is searched for metadata.
    Path(PathBuf),
    /// The whole history of a Git checkout: `git:DIR`.
    Git(PathBuf),
    /// Standard input: `-`.
    Stdin,
}

/// Why a source could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The word names a kind of source that this version does not read.
    #[error(
        "{word}: this version reads files, directories, `git:DIR` and `-`; save the metadata to a file first"
    )]
    Unsupported {
        /// The word.
        word: String,
    },
    /// A file or directory could not be read.
    #[error("{path}: cannot be read")]
    Read {
        /// The path.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is larger than any metadata or manifest.
    #[error("{path}: {size} bytes, expected at most {limit}: this is no {what}")]
    TooLarge {
        /// The path.
        path: String,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
        /// What was expected.
        what: &'static str,
    },
    /// A directory holds no metadata.
    #[error("{path}: no release metadata in any of its {files} JSON and YAML files")]
    Nothing {
        /// The path.
        path: String,
        /// How many files were looked at.
        files: usize,
    },
    /// A directory holds no manifests.
    #[error(
        "{path}: no YAML or JSON files in it; hidden files, and files that a .gitignore names, are passed over"
    )]
    NoManifests {
        /// The path.
        path: String,
    },
    /// A manifest is not UTF-8.
    #[error("{path}: not UTF-8 text at line {line}")]
    NotText {
        /// The path.
        path: String,
        /// The line, from 1.
        line: usize,
        /// Whether it was meant to hold machine sets.
        machines: bool,
    },
    /// A document is not metadata.
    #[error(transparent)]
    Document(#[from] metadata::DocumentError),
    /// An index is damaged.
    #[error("{path}: not usable as an index")]
    Index {
        /// The path.
        path: String,
        /// Why.
        #[source]
        source: metadata::IndexError,
    },
    /// Git failed.
    #[error("git {command} in {path} failed: {message}")]
    Git {
        /// The checkout.
        path: String,
        /// The command.
        command: &'static str,
        /// What git said.
        message: String,
    },
}

impl Word {
    /// Reads a word. Whether the path exists is told when it is opened.
    pub fn parse(word: &str) -> Result<Self, SourceError> {
        if word == "-" {
            return Ok(Self::Stdin);
        }
        if let Some(path) = word.strip_prefix("git:") {
            return Ok(Self::Git(path.into()));
        }
        let elsewhere = ["http://", "https://", "oci://", "configmap:", "payload:", "clusterversion:"];
        if elsewhere.iter().any(|prefix| word.starts_with(prefix)) {
            return Err(SourceError::Unsupported { word: word.to_owned() });
        }
        Ok(Self::Path(word.into()))
    }
}
