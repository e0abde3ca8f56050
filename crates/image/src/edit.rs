//! Stamping a file where it lies, safe from a kill at any moment.
//!
//! What is to be overwritten is written to an undo record first, and synced; then the pieces are written and synced; then
//! the record goes. While there is one, the next command puts the old bytes back.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, ioctl_ficlone};
use serde::{Deserialize, Serialize};

use crate::delta::{Delta, Piece};
use crate::disk::{DiskError, GuestDisk};
use crate::write::{partial, persist};

/// Undo records larger than this are none of ours: a delta is a few KiB.
const LARGEST_RECORD: u64 = 64 << 20;

/// Why a file was not edited; it is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The file, or its record, cannot be read or written.
    #[error("{path}: cannot be read or written")]
    Io {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another command is at work on it.
    #[error("{path}: another command is changing it; wait until it ends")]
    Busy {
        /// The file.
        path: String,
    },
    /// The bytes do not lie in the file as they are.
    #[error(
        "{path}: byte {offset} of the disk is compressed or shared in it, which allows no change in place; write a new file"
    )]
    NotInPlace {
        /// The file.
        path: String,
        /// Offset on the guest disk.
        offset: u64,
    },
    /// The file is not what the delta was made from.
    #[error("{path}: it changed since it was read")]
    Changed {
        /// The file.
        path: String,
    },
    /// The disk cannot be read.
    #[error("{path}: the disk cannot be read")]
    Disk {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: DiskError,
    },
    /// There is a record that is not one, or is of another file.
    #[error("{path}: not the record of an interrupted change of this file; look at both, then remove it")]
    Record {
        /// The record.
        path: String,
    },
}

/// An undo record.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The length of the file, which no change alters.
    length: u64,
    /// Offsets in the file, the bytes before and after.
    delta: Delta,
}

/// Where the undo record of a file lies.
fn record_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.bootwright-undo"))
}

/// Puts a file back that an interrupted command left half changed. Tells whether there was anything to do.
pub fn recover(path: &Path) -> Result<bool, EditError> {
    let record_path = record_of(path);
    if !record_path.exists() {
        return Ok(false);
    }
    // The record of a command that is still at work is none of an interrupted one.
    let file = locked(path)?;
    let text = match File::open(&record_path) {
        Ok(file) if file.metadata().is_ok_and(|m| m.len() <= LARGEST_RECORD) => {
            fs::read_to_string(&record_path)
        }
        Ok(_) => return Err(EditError::Record { path: record_path.display().to_string() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => Err(error),
    };
    let text = text.map_err(|source| failed(&record_path, source))?;
    let foreign = || EditError::Record { path: record_path.display().to_string() };
    let record: Record = serde_json::from_str(&text).map_err(|_| foreign())?;
    if file.metadata().map_err(|source| failed(path, source))?.len() != record.length {
        return Err(foreign());
    }
    // Each byte is old or new; anything else is somebody else's change.
    for piece in &record.delta.pieces {
        let now = read(&file, piece).map_err(|source| failed(path, source))?;
        let ours = |((now, old), new): ((&u8, &u8), &u8)| now == old || now == new;
        if piece.bytes.len() != piece.before.len()
            || !now.iter().zip(&piece.before).zip(&piece.bytes).all(ours)
        {
            return Err(foreign());
        }
    }
    let back =
        record.delta.pieces.iter().try_for_each(|piece| file.write_all_at(&piece.before, piece.offset));
    back.and_then(|()| file.sync_all()).map_err(|source| failed(path, source))?;
    fs::remove_file(&record_path).map_err(|source| failed(&record_path, source))?;
    Ok(true)
}

/// Writes a delta into the file that a disk was opened from.
pub fn edit_in_place(path: &Path, disk: &dyn GuestDisk, delta: &Delta) -> Result<(), EditError> {
    if delta.is_empty() {
        return Ok(());
    }
    let file = locked(path)?;
    let in_file = places(path, disk, delta)?;
    let length = file.metadata().map_err(|source| failed(path, source))?.len();
    for piece in &in_file.pieces {
        if read(&file, piece).map_err(|source| failed(path, source))? != piece.before {
            return Err(EditError::Changed { path: path.display().to_string() });
        }
    }
    let record_path = record_of(path);
    let record = Record { length, delta: in_file };
    let text = serde_json::to_vec(&record).map_err(|error| failed(&record_path, error.into()))?;
    let written = partial(&record_path).and_then(|partial| {
        partial.as_file().write_all_at(&text, 0)?;
        persist(partial, &record_path)
    });
    written.map_err(|source| failed(&record_path, source))?;
    let pieces =
        record.delta.pieces.iter().try_for_each(|piece| file.write_all_at(&piece.bytes, piece.offset));
    pieces.and_then(|()| file.sync_all()).map_err(|source| failed(path, source))?;
    fs::remove_file(&record_path).map_err(|source| failed(&record_path, source))
}

/// Makes a changed copy that shares all other bytes with the file, where the filesystem can; tells whether it could.
pub fn clone_with(path: &Path, disk: &dyn GuestDisk, delta: &Delta, out: &Path) -> Result<bool, EditError> {
    let source = File::open(path).map_err(|source| failed(path, source))?;
    let partial = partial(out).map_err(|source| failed(out, source))?;
    let Ok(in_file) = places(path, disk, delta) else { return Ok(false) };
    if ioctl_ficlone(partial.as_file(), &source).is_err() {
        return Ok(false);
    }
    let mut pieces = in_file.pieces.iter();
    pieces
        .try_for_each(|piece| partial.as_file().write_all_at(&piece.bytes, piece.offset))
        .and_then(|()| persist(partial, out))
        .map_err(|source| failed(out, source))?;
    Ok(true)
}

/// The delta with offsets in the file.
fn places(path: &Path, disk: &dyn GuestDisk, delta: &Delta) -> Result<Delta, EditError> {
    let mut pieces = Vec::new();
    for piece in &delta.pieces {
        let place = disk.place(piece.offset, piece.bytes.len() as u64);
        let place = place.map_err(|source| EditError::Disk { path: path.display().to_string(), source })?;
        let offset = place.ok_or_else(|| EditError::NotInPlace {
            path: path.display().to_string(),
            offset: piece.offset,
        })?;
        pieces.push(Piece { offset, ..piece.clone() });
    }
    Ok(Delta { pieces })
}

fn locked(path: &Path) -> Result<File, EditError> {
    let file = File::options().read(true).write(true).open(path).map_err(|source| failed(path, source))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(EditError::Busy { path: path.display().to_string() }),
        Err(error) => Err(failed(path, error.into())),
    }
}

fn read(file: &File, piece: &Piece) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; piece.before.len()];
    file.read_exact_at(&mut bytes, piece.offset)?;
    Ok(bytes)
}

fn failed(path: &Path, source: io::Error) -> EditError {
    EditError::Io { path: path.display().to_string(), source }
}
