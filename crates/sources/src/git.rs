//! The history of a Git checkout, by the user's own `git`: every version of every JSON and YAML file.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::word::SourceError;

/// Larger blobs are no metadata.
const LARGEST_BLOB: usize = 16 << 20;

/// Hands every distinct blob of the history to `each`, named `PATH@BLOB`, the newest first.
pub(crate) fn blobs(path: &Path, mut each: impl FnMut(&str, &[u8])) -> Result<(), SourceError> {
    let failed =
        |command, message: String| SourceError::Git { path: path.display().to_string(), command, message };
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(path).args(arguments).stdin(Stdio::null()).stderr(Stdio::piped());
        command
    };
    let listed =
        git(&["rev-list", "--objects", "--all"]).output().map_err(|e| failed("rev-list", e.to_string()))?;
    if !listed.status.success() {
        return Err(failed("rev-list", String::from_utf8_lossy(&listed.stderr).trim().to_owned()));
    }
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let wanted: Vec<(&str, &str)> = listed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, name)| {
            let extension = Path::new(name).extension();
            extension.is_some_and(|e| e == "json" || e == "yaml" || e == "yml")
        })
        .collect();

    let mut child = git(&["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| failed("cat-file", e.to_string()))?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("cat-file", "no pipes".to_owned()));
    };
    // Git answers while it is asked: the questions are asked beside, or both pipes would fill.
    std::thread::scope(|scope| -> Result<(), SourceError> {
        let ids: Vec<&str> = wanted.iter().map(|(id, _)| *id).collect();
        scope.spawn(move || {
            for id in ids {
                if writeln!(input, "{id}").is_err() {
                    break;
                }
            }
        });
        let mut output = BufReader::new(output);
        for (id, name) in &wanted {
            let mut header = String::new();
            output.read_line(&mut header).map_err(|e| failed("cat-file", e.to_string()))?;
            let size = header.trim_end().rsplit(' ').next().and_then(|size| size.parse::<usize>().ok());
            let Some(size) = size else { continue };
            let mut blob = Vec::new();
            let limit = u64::try_from(size).unwrap_or(u64::MAX);
            let read = (&mut output).take(limit).read_to_end(&mut blob);
            read.map_err(|e| failed("cat-file", e.to_string()))?;
            output.read_exact(&mut [0]).map_err(|e| failed("cat-file", e.to_string()))?;
            if blob.len() == size && size <= LARGEST_BLOB {
                let short = id.get(..10).unwrap_or(id);
                each(&format!("{name}@{short}"), &blob);
            }
        }
        Ok(())
    })?;
    let _ = child.wait();
    Ok(())
}
