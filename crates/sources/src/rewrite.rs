//! Files are written whole or not at all: a new file beside the old one, then a rename.

use std::fs;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use machines::edit::{self, Edit, EditError};

use crate::digest::Digest;
use crate::manifests;
use crate::word::SourceError;

/// What happens to one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileEdits {
    /// Replacements of bytes.
    pub edits: Vec<Edit>,
    /// Copies of documents for the end of the file: the document's bytes, and edits in the bytes of the file.
    pub appends: Vec<(Range<usize>, Vec<Edit>)>,
}

/// Why a file was not written; it is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] SourceError),
    /// The file changed since the plan was made.
    #[error("{path}: changed since it was read; plan again")]
    Changed {
        /// The file.
        path: String,
    },
    /// The edits do not fit together.
    #[error("{path}: the changes do not fit together")]
    Edits {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: EditError,
    },
    /// The file cannot be written.
    #[error("{path}: cannot be written")]
    Write {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// The text of a file after edits, provided that it is still what it was when it was read.
pub fn edited(path: &Path, read: Digest, edits: &FileEdits) -> Result<String, RewriteError> {
    let name = || path.display().to_string();
    let text = manifests::text(path)?;
    if Digest::of(text.as_bytes()) != read {
        return Err(RewriteError::Changed { path: name() });
    }
    let failed = |source| RewriteError::Edits { path: name(), source };
    let mut appended = String::new();
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut seen = Vec::new();
    for (document, edits) in &edits.appends {
        let out_of_range = || failed(EditError::OutOfRange { range: document.clone() });
        let whole = edit::apply(&text, edits).map_err(failed)?;
        // Edits lie inside the document, so its end moves by what they add.
        let end = (document.end + whole.len()).checked_sub(text.len()).ok_or_else(out_of_range)?;
        let copy = whole.get(document.start..end).ok_or_else(out_of_range)?;
        if !seen.iter().any(|other| other == copy) {
            seen.push(copy.to_owned());
            let end = if copy.ends_with('\n') { "" } else { newline };
            appended = format!("{appended}---{newline}{copy}{end}");
        }
    }
    let mut new = edit::apply(&text, &edits.edits).map_err(failed)?;
    if !appended.is_empty() {
        if !new.ends_with('\n') {
            new.push_str(newline);
        }
        new.push_str(&appended);
    }
    Ok(new)
}

/// Writes a file's new text, if the file is still what it was when it was read. Mode, owner and place stay; a symbolic
/// link is followed.
pub fn write(path: &Path, read: Digest, text: &str) -> Result<(), RewriteError> {
    let target = fs::canonicalize(path).map_err(|source| failed(path, source))?;
    replace_if(&target, text, || {
        let same = Digest::of(manifests::text(&target)?.as_bytes()) == read;
        if same { Ok(()) } else { Err(RewriteError::Changed { path: path.display().to_string() }) }
    })
}

/// Writes a file of ours, whether or not there is one. Mode, owner and place of one that is there stay; a symbolic link
/// is followed.
pub fn replace(path: &Path, text: &str) -> Result<(), RewriteError> {
    let target = if path.exists() { fs::canonicalize(path) } else { Ok(path.to_owned()) };
    replace_if(&target.map_err(|source| failed(path, source))?, text, || Ok(()))
}

fn replace_if(
    target: &Path,
    text: &str,
    check: impl FnOnce() -> Result<(), RewriteError>,
) -> Result<(), RewriteError> {
    let failed = |source| failed(target, source);
    let directory = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // What the user's mask leaves of this is the mode of a new file.
    let mode = fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new()
        .prefix(".bootwright-")
        .permissions(mode)
        .tempfile_in(directory)
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    if let Ok(old) = fs::metadata(target) {
        // Only root can give a file away; for everybody else it is theirs already.
        if fchown(file.as_file(), Some(old.uid()), Some(old.gid())).is_err()
            && file.as_file().metadata().map_err(failed)?.uid() != old.uid()
        {
            return Err(failed(std::io::Error::other(
                "it belongs to somebody else, and would be this user's",
            )));
        }
        file.as_file().set_permissions(old.permissions()).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    check()?;
    file.persist(target).map_err(|error| failed(error.error))?;
    Ok(())
}

fn failed(path: &Path, source: std::io::Error) -> RewriteError {
    RewriteError::Write { path: path.display().to_string(), source }
}
