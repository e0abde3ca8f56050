//! `bootwright explain`.

use anyhow::bail;
use machines::Slot;
use plan::{API_VERSION, Planner, Step};
use serde_json::json;

use super::plan::tone;
use crate::cli::{ExplainArgs, Output};
use crate::exit::Exit;
use crate::inputs::Loaded;
use crate::printer::{Printer, Tone};

pub(crate) fn run(arguments: &ExplainArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    let loaded = Loaded::read(&arguments.paths, &arguments.inputs)?;
    let wanted = Wanted::parse(&arguments.object);
    let slots: Vec<(usize, &Slot)> =
        loaded.slots.iter().enumerate().filter(|(_, slot)| wanted.matches(slot)).collect();
    if slots.is_empty() {
        let mut near: Vec<&str> = loaded.slots.iter().map(|s| s.object.name.as_str()).collect();
        near.sort_by_key(|name| distance(name, wanted.name));
        near.dedup();
        near.truncate(3);
        let hint = if near.is_empty() { String::new() } else { format!("; there is {}", near.join(", ")) };
        bail!("no machine set `{}` in {} files{hint}", arguments.object, loaded.found.files);
    }
    let planner = Planner::new(loaded.inputs());
    let mut explained = Vec::new();
    for (n, slot) in slots {
        let Some((decision, steps)) = planner.explain(&loaded.slots, n) else { continue };
        match arguments.output {
            Output::Json => explained.push(json!({ "decision": decision, "steps": steps })),
            Output::Table => {
                let object = &slot.object;
                let place =
                    object.file.as_ref().map(|f| format!(" ({f}:{})", object.line)).unwrap_or_default();
                printer.line(format!("{object}{}", printer.toned(Tone::Quiet, &place)));
                print_tree(&steps, tone(&decision), printer);
                if let Some(next) = &decision.next {
                    printer.line(format!("   next: {next}"));
                }
            }
        }
    }
    if arguments.output == Output::Json {
        printer.json(&json!({ "apiVersion": API_VERSION, "kind": "Explanation", "items": explained }));
    }
    Ok(Exit::Done)
}

fn print_tree(steps: &[Step], last: Tone, printer: &mut Printer) {
    let width = steps.iter().map(|s| s.question.len()).max().unwrap_or_default();
    for (n, step) in steps.iter().enumerate() {
        let end = n + 1 == steps.len();
        let answer = if end { printer.toned(last, &step.answer) } else { step.answer.clone() };
        let branch = if end { "└─" } else { "├─" };
        printer.line(format!("{branch} {:width$}  {answer}", step.question));
    }
}

/// NAME, KIND/NAME or KIND/NAMESPACE/NAME.
struct Wanted<'a> {
    kind: Option<&'a str>,
    namespace: Option<&'a str>,
    name: &'a str,
}

impl<'a> Wanted<'a> {
    fn parse(text: &'a str) -> Self {
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            [kind, namespace, name] => Self { kind: Some(kind), namespace: Some(namespace), name },
            [kind, name] => Self { kind: Some(kind), namespace: None, name },
            _ => Self { kind: None, namespace: None, name: text },
        }
    }

    fn matches(&self, slot: &Slot) -> bool {
        let object = &slot.object;
        // kubectl's words for kinds are lower case, and may be plural.
        let kind = |wanted: &str| {
            let wanted = wanted.to_ascii_lowercase();
            let own = object.kind.to_ascii_lowercase();
            wanted == own || wanted == format!("{own}s")
        };
        object.name == self.name
            && self.kind.is_none_or(kind)
            && self.namespace.is_none_or(|namespace| object.namespace == namespace)
    }
}

/// How many edits make one name the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.chars()) {
            let value = (diagonal + usize::from(x != y)).min(*cell + 1).min(left + 1);
            diagonal = *cell;
            *cell = value;
            left = value;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
