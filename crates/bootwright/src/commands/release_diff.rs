//! `bootwright release diff`.

use metadata::{Change, ChangeKind};
use plan::API_VERSION;
use serde_json::json;

use crate::cli::{DiffArgs, Output};
use crate::exit::Exit;
use crate::inputs::{architecture, strict};
use crate::printer::{Printer, Tone};

pub(crate) fn run(arguments: &DiffArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    let arch = arguments.arch.as_deref().map(architecture).transpose()?;
    let load = |word: &String| strict(sources::load(std::slice::from_ref(word), arch.as_ref())?);
    let (old, new) = (load(&arguments.old)?, load(&arguments.new)?);
    let mut changes = metadata::diff(&old.catalog, &new.catalog);
    changes.extend(new.documents.iter().flat_map(metadata::package_changes));
    if arguments.output == Output::Json {
        printer.json(&json!({ "apiVersion": API_VERSION, "kind": "ReleaseDiff", "changes": changes }));
        return Ok(Exit::Done);
    }
    for change in &changes {
        print(change, printer);
    }
    if changes.is_empty() {
        printer.line("no difference");
    }
    Ok(Exit::Done)
}

fn print(change: &Change, printer: &mut Printer) {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let (from, to) = (text(&change.from), text(&change.to));
    let place = &change.place;
    let (tone, line) = match change.kind {
        ChangeKind::Version => (Tone::Change, format!("~ {place}: {from} -> {to}")),
        ChangeKind::Gained => (Tone::Good, format!("+ {place}: {to}")),
        ChangeKind::Lost => (Tone::Bad, format!("- {place}: {from}")),
        ChangeKind::RegionsGained => (Tone::Good, format!("+ {place} regions: {to}")),
        ChangeKind::RegionsLost => (Tone::Bad, format!("- {place} regions: {from}")),
        ChangeKind::Digest => (Tone::Look, format!("! {place}: same version, other content: {from} -> {to}")),
        ChangeKind::Package => match (&change.from, &change.to) {
            (Some(from), Some(to)) => (Tone::Plain, format!("~ package {place}: {from} -> {to}")),
            (None, Some(to)) => (Tone::Good, format!("+ package {place}: {to}")),
            (from, None) => (Tone::Bad, format!("- package {place}: {}", text(from))),
        },
        _ => (Tone::Plain, format!("? {place}: {from} -> {to}")),
    };
    let line = printer.toned(tone, &line);
    printer.line(line);
}
