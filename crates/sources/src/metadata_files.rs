//! Release metadata from files, directories, indexes and Git histories.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use metadata::{Architecture, Catalog, Document};

use crate::git;
use crate::word::{SourceError, Word};

/// The largest metadata document that is read; real ones are below 100 KiB, indexes of all history a few MiB.
const LARGEST_DOCUMENT: u64 = 256 << 20;

/// What sources hold.
#[derive(Debug, Default)]
pub struct Loaded {
    /// All that they say.
    pub catalog: Catalog,
    /// The documents themselves; none for an index, which keeps only what is published.
    pub documents: Vec<Document>,
    /// Files of directories and histories that look like metadata and could not be read as it: each with the error.
    pub unread: Vec<(String, String)>,
}

/// Loads metadata by SRC words, in their order. `architecture` stands in where an old document does not tell its own.
pub fn load(words: &[String], architecture: Option<&Architecture>) -> Result<Loaded, SourceError> {
    let mut loaded = Loaded::default();
    for word in words {
        match Word::parse(word)? {
            Word::Stdin => {
                let mut bytes = Vec::new();
                let read = std::io::stdin().lock().take(LARGEST_DOCUMENT).read_to_end(&mut bytes);
                read.map_err(|source| SourceError::Read { path: "standard input".to_owned(), source })?;
                loaded.add("standard input", &bytes, architecture)?;
            }
            Word::Git(path) => {
                let mut found = 0;
                git::blobs(&path, |name, bytes| {
                    found += usize::from(loaded.try_add(name, bytes, architecture));
                })?;
                if found == 0 && loaded.unread.is_empty() {
                    return Err(SourceError::Nothing { path: path.display().to_string(), files: 0 });
                }
            }
            Word::Path(path) if path.is_dir() => loaded.add_directory(&path, architecture)?,
            Word::Path(path) => {
                let bytes = read(&path)?;
                loaded.add(&path.display().to_string(), &bytes, architecture)?;
            }
        }
    }
    Ok(loaded)
}

impl Loaded {
    fn add(
        &mut self,
        name: &str,
        bytes: &[u8],
        architecture: Option<&Architecture>,
    ) -> Result<(), SourceError> {
        if bytes.starts_with(b"bootwright-index") {
            let text = String::from_utf8_lossy(bytes);
            let catalog = metadata::read_index(&text)
                .map_err(|source| SourceError::Index { path: name.to_owned(), source })?;
            self.catalog.append(catalog);
            return Ok(());
        }
        let document = Document::parse(name, bytes)?;
        self.catalog.add(&document, architecture);
        self.documents.push(document);
        Ok(())
    }

    /// Adds a file that was found and not named: what is no metadata is passed over, what should be and is broken is kept
    /// as an error.
    fn try_add(&mut self, name: &str, bytes: &[u8], architecture: Option<&Architecture>) -> bool {
        if !looks_like_metadata(bytes) {
            return false;
        }
        match self.add(name, bytes, architecture) {
            Ok(()) => true,
            Err(SourceError::Document(metadata::DocumentError::Unrecognised { .. })) => false,
            Err(error) => {
                self.unread.push((name.to_owned(), chain(&error)));
                false
            }
        }
    }

    /// Every metadata file below a directory; other files are passed over.
    fn add_directory(&mut self, path: &Path, architecture: Option<&Architecture>) -> Result<(), SourceError> {
        let mut files = 0;
        let mut found = 0;
        for file in files_below(path)? {
            files += 1;
            let name = file.display().to_string();
            match read(&file) {
                Ok(bytes) => found += usize::from(self.try_add(&name, &bytes, architecture)),
                Err(error) => self.unread.push((name, chain(&error))),
            }
        }
        if found == 0 && self.unread.is_empty() {
            return Err(SourceError::Nothing { path: path.display().to_string(), files });
        }
        Ok(())
    }
}

/// An error with its causes, without the file that it is told with.
fn chain(error: &SourceError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn files_below(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let mut files = Vec::new();
    for entry in ignore::WalkBuilder::new(path).require_git(false).sort_by_file_path(Ord::cmp).build() {
        let entry = entry.map_err(|error| SourceError::Read {
            path: path.display().to_string(),
            source: std::io::Error::other(error),
        })?;
        let wanted = entry
            .path()
            .extension()
            .is_some_and(|e| e == "json" || e == "yaml" || e == "yml" || e == "index");
        if wanted && entry.file_type().is_some_and(|t| t.is_file()) {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

/// A cheap test before parsing: every format has one of these words.
fn looks_like_metadata(bytes: &[u8]) -> bool {
    let words: [&[u8]; 5] =
        [b"\"architectures\"", b"\"buildid\"", b"coreos-bootimages", b"hyperVGen", b"bootwright-index"];
    words.iter().any(|word| memchr::memmem::find(bytes, word).is_some())
}

fn read(path: &Path) -> Result<Vec<u8>, SourceError> {
    let error = |source| SourceError::Read { path: path.display().to_string(), source };
    let mut file = File::open(path).map_err(error)?;
    let size = file.metadata().map_err(error)?.len();
    if size > LARGEST_DOCUMENT {
        let path = path.display().to_string();
        return Err(SourceError::TooLarge { path, size, limit: LARGEST_DOCUMENT, what: "release metadata" });
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(error)?;
    Ok(bytes)
}
