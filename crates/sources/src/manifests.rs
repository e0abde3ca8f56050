//! Manifests: found, read and searched for slots, file by file, so that memory holds slots and not text.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use machines::{Inventory, tree};

use crate::digest::Digest;
use crate::word::SourceError;

/// The name of standard input among paths.
const STDIN: &str = "-";

/// A larger file is no manifest.
const LARGEST_MANIFEST: u64 = 1 << 30;

/// A file, or a document in it, that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The file.
    pub file: Arc<str>,
    /// Line, from 1; 0 where it is about the whole file.
    pub line: usize,
    /// Column, from 1; 0 where it is about the whole file.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// What was found in manifests.
#[derive(Debug, Default)]
pub struct Found {
    /// The slots and facts.
    pub inventory: Inventory,
    /// What could not be read, in the order of the files.
    pub unread: Vec<Unread>,
    /// Every file that holds a slot: where it is, and its digest as it was read.
    pub read: HashMap<Arc<str>, (PathBuf, Digest)>,
    /// How many files were looked at.
    pub files: usize,
}

/// Finds the manifests under paths: a file as it is, a directory's YAML and JSON files with `.gitignore` respected, `-`
/// for standard input. In the order of the arguments, each directory sorted; a file that is reached twice counts once.
pub fn list(paths: &[PathBuf]) -> Result<Vec<PathBuf>, SourceError> {
    let mut files = Vec::new();
    for path in paths {
        let error = |source| SourceError::Read { path: path.display().to_string(), source };
        if path.as_os_str() == STDIN || !fs::metadata(path).map_err(error)?.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        for entry in ignore::WalkBuilder::new(path).require_git(false).sort_by_file_path(Ord::cmp).build() {
            let entry = entry.map_err(|e| error(std::io::Error::other(e)))?;
            let extension = entry.path().extension().map(std::ffi::OsStr::to_ascii_lowercase);
            let wanted = extension.is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
            if wanted && entry.path().is_file() {
                files.push(entry.into_path());
            }
        }
        if files.len() == before {
            return Err(SourceError::NoManifests { path: path.display().to_string() });
        }
    }
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(fs::canonicalize(file).unwrap_or_else(|_| file.clone())));
    Ok(files)
}

/// Reads manifests and collects their slots, on all cores. `progress` is told after each file how many are done.
pub fn read(files: &[PathBuf], progress: impl Fn(usize) + Sync) -> Found {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(files.len().max(1));
    let done = AtomicUsize::new(0);
    let share = files.len().div_ceil(workers).max(1);
    let mut all = Found::default();
    std::thread::scope(|scope| {
        let handles: Vec<_> = files
            .chunks(share)
            .map(|files| {
                let (done, progress) = (&done, &progress);
                scope.spawn(move || {
                    let mut found = Found::default();
                    for file in files {
                        found.read_file(file);
                        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
                    }
                    found
                })
            })
            .collect();
        for handle in handles {
            if let Ok(found) = handle.join() {
                all.absorb(found);
            }
        }
    });
    all
}

/// Reads one manifest's text, as it is on disk.
pub(crate) fn text(path: &Path) -> Result<String, SourceError> {
    let name = || path.display().to_string();
    let error = |source| SourceError::Read { path: name(), source };
    if path.as_os_str() == STDIN {
        let mut bytes = Vec::new();
        std::io::stdin().lock().take(LARGEST_MANIFEST).read_to_end(&mut bytes).map_err(error)?;
        if bytes.trim_ascii().is_empty() {
            return Err(error(std::io::Error::other("nothing came; did the command in front fail?")));
        }
        return String::from_utf8(bytes).map_err(|e| not_text(path, e.as_bytes()));
    }
    let size = fs::metadata(path).map_err(error)?.len();
    if size > LARGEST_MANIFEST {
        return Err(SourceError::TooLarge { path: name(), size, limit: LARGEST_MANIFEST, what: "manifest" });
    }
    let bytes = fs::read(path).map_err(error)?;
    String::from_utf8(bytes).map_err(|e| not_text(path, e.as_bytes()))
}

fn not_text(path: &Path, bytes: &[u8]) -> SourceError {
    let lossy = String::from_utf8_lossy(bytes);
    // UTF-16 has a zero beside every letter.
    let machines =
        Inventory::looks_like_machines(&lossy) || Inventory::looks_like_machines(&lossy.replace('\0', ""));
    let line =
        lossy.split(char::REPLACEMENT_CHARACTER).next().map_or(0, |before| before.matches('\n').count()) + 1;
    SourceError::NotText { path: path.display().to_string(), line, machines }
}

impl Found {
    fn read_file(&mut self, path: &Path) {
        self.files += 1;
        let file: Arc<str> = path.display().to_string().into();
        let text = match text(path) {
            Ok(text) => text,
            // Binary files with the ending of a manifest are no manifests.
            Err(SourceError::NotText { machines: false, .. }) => return,
            Err(SourceError::NotText { line, .. }) => {
                let message = "not UTF-8 text: expected a manifest in UTF-8".to_owned();
                self.unread.push(Unread { file, line, column: 1, message });
                return;
            }
            Err(error) => {
                let message = match error {
                    SourceError::Read { source, .. } => format!("cannot be read: {source}"),
                    error => error.to_string(),
                };
                self.unread.push(Unread { file, line: 0, column: 0, message });
                return;
            }
        };
        if !Inventory::may_hold_slots(&text) {
            return;
        }
        let before = self.inventory.len();
        let mut errors = Vec::new();
        tree::documents(&text, |document| match document {
            Ok(document) => self.inventory.add(&file, &document),
            Err(error) => errors.push(error),
        });
        if !errors.is_empty() && Inventory::looks_like_machines(&text) {
            self.unread.extend(errors.into_iter().map(|error| Unread {
                file: Arc::clone(&file),
                line: error.line,
                column: error.column,
                message: error.message,
            }));
        }
        if self.inventory.len() > before {
            self.read.insert(file, (path.to_owned(), Digest::of(text.as_bytes())));
        }
    }

    fn absorb(&mut self, other: Self) {
        self.inventory.absorb(other.inventory);
        self.unread.extend(other.unread);
        self.read.extend(other.read);
        self.files += other.files;
    }
}
