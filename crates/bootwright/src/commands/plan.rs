//! `bootwright plan`.

use plan::{Action, Decision, Finding, Plan, Severity, SkewState};
use serde_json::json;

use crate::cli::{PlanArgs, PlanOutput};
use crate::exit::Exit;
use crate::inputs::Loaded;
use crate::printer::{Printer, Tone};
use crate::table::Columns;

/// How many sets that need a look are told one by one.
const NOTES: usize = 20;

pub(crate) fn run(arguments: &PlanArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    let loaded = Loaded::read(&arguments.paths, &arguments.inputs)?;
    let plan = loaded.plan()?;
    match arguments.output {
        PlanOutput::Json => printer.json(&plan),
        PlanOutput::Yaml => printer.yaml(&plan)?,
        PlanOutput::Patch => print_patches(&plan, printer)?,
        PlanOutput::Table => print_table(&plan, false, loaded.found.files, printer),
        PlanOutput::Wide => print_table(&plan, true, loaded.found.files, printer),
    }
    if !matches!(arguments.output, PlanOutput::Json | PlanOutput::Yaml) {
        print_findings(&plan.findings, printer);
    }
    Ok(exit(&plan, arguments.exit_code))
}

/// What could not be read is an error whatever was asked.
pub(crate) fn exit(plan: &Plan, exit_code: bool) -> Exit {
    use plan::FindingReason::{UnparsableManifest, UnreadableFile};
    if plan.findings.iter().any(|f| matches!(f.reason, UnparsableManifest | UnreadableFile)) {
        Exit::Error
    } else if !exit_code {
        Exit::Done
    } else if plan.decisions.iter().any(|d| d.action == Action::Update) {
        Exit::Pending
    } else if plan.summary.needs_human > 0 {
        Exit::NeedsHuman
    } else {
        Exit::Done
    }
}

fn print_patches(plan: &Plan, printer: &mut Printer) -> anyhow::Result<()> {
    let mut created: Vec<&serde_json::Value> = Vec::new();
    for decision in plan.decisions.iter().filter(|d| d.action == Action::Update) {
        for object in &decision.creates {
            // Sets that share a template share the new one.
            if !created.contains(&object) {
                created.push(object);
                printer.json_line(&json!({ "create": object }))?;
            }
        }
        printer.json_line(&json!({ "object": decision.object, "patch": decision.patch }))?;
    }
    Ok(())
}

fn print_table(plan: &Plan, wide: bool, files: usize, printer: &mut Printer) {
    if plan.decisions.is_empty() {
        let word = if files == 1 { "file" } else { "files" };
        printer.line(format!("no machine sets in {files} {word}"));
        return;
    }
    let header: &[&str] = if wide {
        &[
            "MACHINE SET",
            "PLACE",
            "FROM",
            "TO",
            "ACTION",
            "REASON",
            "SKEW",
            "REFERENCE",
            "NEW REFERENCE",
            "FILE",
        ]
    } else {
        &["MACHINE SET", "PLACE", "FROM", "TO", "ACTION", "REASON"]
    };
    let mut table = Columns::new(printer, header);
    for decision in &plan.decisions {
        table.row(row(decision, wide));
    }
    table.print(printer);
    print_notes(plan, wide, printer);
    printer.line("");
    printer.line(summary(plan));
}

fn row(decision: &Decision, wide: bool) -> Vec<(Tone, String)> {
    let slot = &decision.slot;
    let place = [Some(slot.platform.as_str()), slot.region.as_deref(), slot.architecture.as_deref()];
    let place: Vec<&str> = place.into_iter().flatten().collect();
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let to = if decision.to.version.is_some() { &decision.to.version } else { &decision.to.reference };
    let mut cells = vec![
        (Tone::Plain, name(decision)),
        (Tone::Plain, place.join(" ")),
        (Tone::Plain, or_dash(&decision.from.version)),
        (Tone::Plain, or_dash(to)),
        (tone(decision), decision.action.as_str().to_owned()),
        (Tone::Plain, decision.reason.as_str().to_owned()),
    ];
    if wide {
        let object = &decision.object;
        let file = object.file.as_ref().map(|file| format!("{file}:{}", object.line));
        cells.extend([
            (skew_tone(decision.skew.state), decision.skew.state.as_str().to_owned()),
            (Tone::Plain, or_dash(&decision.from.reference)),
            (Tone::Plain, or_dash(&decision.to.reference)),
            (Tone::Quiet, or_dash(&file)),
        ]);
    }
    cells
}

/// The bare name for MachineSets, the kind in front for everything else.
fn name(decision: &Decision) -> String {
    let object = &decision.object;
    if object.kind == "MachineSet" { object.name.clone() } else { format!("{}/{}", object.kind, object.name) }
}

pub(crate) fn tone(decision: &Decision) -> Tone {
    match decision.action {
        Action::Update => Tone::Change,
        Action::Refuse => Tone::Bad,
        _ if decision.needs_human() => Tone::Look,
        Action::Current | Action::Resolve => Tone::Good,
        _ => Tone::Quiet,
    }
}

fn skew_tone(state: SkewState) -> Tone {
    match state {
        SkewState::Current => Tone::Good,
        SkewState::Violation => Tone::Bad,
        _ => Tone::Look,
    }
}

/// The sentences of what is not simply done, with the next step.
pub(crate) fn print_notes(plan: &Plan, wide: bool, printer: &mut Printer) {
    let told = |d: &&Decision| wide || d.needs_human();
    let limit = if wide { usize::MAX } else { NOTES };
    let told: Vec<&Decision> = plan.decisions.iter().filter(told).collect();
    if !told.is_empty() {
        printer.line("");
    }
    for decision in told.iter().take(limit) {
        let name = printer.toned(tone(decision), &name(decision));
        printer.line(format!("{name}: {}", decision.message));
        for artifact in &decision.artifacts {
            let digest = artifact.uncompressed_sha256.as_ref().map(|d| ("uncompressed sha256", d));
            let digest = digest.or(artifact.sha256.as_ref().map(|d| ("sha256", d)));
            if let Some((kind, digest)) = digest {
                printer.line(format!("  {} {kind} {digest}", artifact.format));
            }
        }
        if let Some(next) = &decision.next {
            printer.line(format!("  next: {next}"));
        }
    }
    if told.len() > limit {
        printer.line(format!("… and {} more; -o wide shows all", told.len() - limit));
    }
}

pub(crate) fn summary(plan: &Plan) -> String {
    let summary = &plan.summary;
    let order = ["update", "resolve", "current", "leave", "wait", "refuse"];
    let actions: Vec<String> =
        order.iter().filter_map(|a| summary.actions.get(a).map(|n| format!("{n} {a}"))).collect();
    let skew = &summary.skew;
    let oldest = skew.oldest.as_ref().map(|v| format!(", oldest {v}")).unwrap_or_default();
    let unknown = if skew.unknown > 0 { format!(", {} unknown", skew.unknown) } else { String::new() };
    let sets = if summary.slots == 1 { "machine set" } else { "machine sets" };
    if summary.slots == 0 {
        return "no machine sets".to_owned();
    }
    format!(
        "{} {sets}: {}; skew {}{oldest}{unknown}, afterwards {}",
        summary.slots,
        actions.join(", "),
        skew.state.as_str(),
        skew.after.as_str()
    )
}

pub(crate) fn print_findings(findings: &[Finding], printer: &mut Printer) {
    for finding in findings {
        let place = match &finding.file {
            Some(file) if finding.line > 0 => format!("{file}:{}:{}: ", finding.line, finding.column),
            Some(file) => format!("{file}: "),
            None => String::new(),
        };
        let severity = match finding.severity {
            Severity::Error => "error",
            _ => "warning",
        };
        let object = finding.object.as_ref().map(|o| format!("{o}: ")).unwrap_or_default();
        printer.note(format!("{place}{severity}: {object}{} [{:?}]", finding.message, finding.reason));
    }
}
