//! `bootwright apply`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use plan::{Action, Decision, FileChange, Plan};
use serde_json::json;
use sources::rewrite::{self, FileEdits};

use super::plan::{exit, print_findings, print_notes, summary};
use crate::cli::{ApplyArgs, Output};
use crate::exit::Exit;
use crate::inputs::Loaded;
use crate::printer::{Printer, Tone};

pub(crate) fn run(arguments: &ApplyArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    if arguments.paths.iter().any(|path| path.as_os_str() == "-") {
        bail!("`-` cannot be changed in place; `plan -o patch -` prints the changes");
    }
    let loaded = Loaded::read(&arguments.paths, &arguments.inputs)?;
    let plan = loaded.plan()?;
    let mut done = BTreeSet::new();
    let mut failed = BTreeMap::new();
    for (file, edits) in by_file(&plan) {
        match change_file(&loaded, &file, &edits, arguments, printer) {
            Ok(()) => {
                done.insert(file);
            }
            // One file's trouble does not stop the others.
            Err(error) => {
                printer.error(&error);
                failed.insert(file, format!("{error:#}"));
            }
        }
    }
    report(&plan, &done, &failed, arguments, printer);
    Ok(if failed.is_empty() { exit(&plan, false) } else { Exit::Error })
}

fn change_file(
    loaded: &Loaded,
    file: &Arc<str>,
    edits: &FileEdits,
    arguments: &ApplyArgs,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let (path, read) = loaded.found.read.get(file).ok_or_else(|| anyhow!("{file}: was not read"))?;
    let text = rewrite::edited(path, *read, edits)?;
    if !arguments.dry_run {
        rewrite::write(path, *read, &text)?;
    } else if arguments.output == Output::Table {
        print_diff(path, &text, printer)?;
    }
    Ok(())
}

fn by_file(plan: &Plan) -> BTreeMap<Arc<str>, FileEdits> {
    let mut files: BTreeMap<Arc<str>, FileEdits> = BTreeMap::new();
    for change in plan.decisions.iter().filter(|d| d.action == Action::Update).flat_map(|d| &d.changes) {
        let edits = files.entry(Arc::clone(change.file())).or_default();
        match change {
            FileChange::Edit { edit, .. } => edits.edits.push(edit.clone()),
            FileChange::Append { document, edits: inside, .. } => {
                edits.appends.push((document.clone(), inside.clone()));
            }
            // The planner knows no other change yet; a later one must not be passed over in silence.
            _ => {}
        }
    }
    files
}

fn report(
    plan: &Plan,
    done: &BTreeSet<Arc<str>>,
    failed: &BTreeMap<Arc<str>, String>,
    arguments: &ApplyArgs,
    printer: &mut Printer,
) {
    // A decision is carried out when all of its files are.
    let carried_out = |d: &&Decision| {
        d.action == Action::Update && d.changes.iter().all(|change| done.contains(change.file()))
    };
    let changed: Vec<&Decision> = plan.decisions.iter().filter(carried_out).collect();
    if arguments.output == Output::Json {
        printer.json(&json!({
            "apiVersion": plan::API_VERSION,
            "kind": "Applied",
            "dryRun": arguments.dry_run,
            "files": done,
            "failed": failed,
            "changed": changed,
            "findings": plan.findings,
            "summary": plan.summary,
        }));
        return;
    }
    if !arguments.dry_run {
        for decision in &changed {
            let object = &decision.object;
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            let word = printer.toned(Tone::Change, "changed");
            printer.line(format!(
                "{word} {}/{}: {} -> {} ({})",
                object.kind,
                object.name,
                text(&decision.from.reference),
                text(&decision.to.reference),
                object.file.as_deref().unwrap_or_default(),
            ));
        }
    }
    let verb = if arguments.dry_run { "would change" } else { "changed" };
    printer.line(format!("{verb} {} references in {} files", changed.len(), done.len()));
    print_notes(plan, false, printer);
    printer.line(summary(plan));
    print_findings(&plan.findings, printer);
}

/// Every changed line of a file with its number; edits keep the count of lines, and appended documents stand behind.
fn print_diff(path: &Path, new: &str, printer: &mut Printer) -> anyhow::Result<()> {
    let file = path.display();
    let old = std::fs::read_to_string(path).with_context(|| file.to_string())?;
    printer.line(format!("--- {file}"));
    printer.line(format!("+++ {file}"));
    for hunk in hunks(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>()) {
        printer.line(format!(
            "@@ -{},{} +{},{} @@",
            hunk.at + 1,
            hunk.removed.len(),
            hunk.to + 1,
            hunk.added.len()
        ));
        for line in hunk.removed {
            let line = printer.toned(Tone::Bad, &format!("-{line}"));
            printer.line(line);
        }
        for line in hunk.added {
            let line = printer.toned(Tone::Good, &format!("+{line}"));
            printer.line(line);
        }
    }
    Ok(())
}

struct Hunk<'a> {
    at: usize,
    to: usize,
    removed: Vec<&'a str>,
    added: Vec<&'a str>,
}

/// Edits replace text inside lines, insert single lines, or add documents at the end: lines are compared in order, and
/// a line that is new is found by looking for the old one behind it.
fn hunks<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Hunk<'a>> {
    const NEAR: usize = 8;
    let mut hunks: Vec<Hunk<'a>> = Vec::new();
    let (mut at, mut to) = (0, 0);
    while at < old.len() || to < new.len() {
        match (old.get(at), new.get(to)) {
            (Some(a), Some(b)) if a == b => {
                at += 1;
                to += 1;
            }
            (a, b) => {
                let inserted = a.and_then(|a| new.iter().skip(to + 1).take(NEAR).position(|line| line == a));
                let start = Hunk { at, to, removed: Vec::new(), added: Vec::new() };
                let open =
                    hunks.last().is_some_and(|h| h.at + h.removed.len() == at && h.to + h.added.len() == to);
                if !open {
                    hunks.push(start);
                }
                let Some(hunk) = hunks.last_mut() else { break };
                match (a, b, inserted) {
                    (None, Some(b), _) | (Some(_), Some(b), Some(_)) => {
                        hunk.added.push(b);
                        to += 1;
                    }
                    (Some(a), b, _) => {
                        hunk.removed.push(a);
                        at += 1;
                        if let Some(b) = b {
                            hunk.added.push(b);
                            to += 1;
                        }
                    }
                    (None, None, _) => break,
                }
            }
        }
    }
    hunks
}
