//! `bootwright image inspect`.

use image::{Inspection, Opened, inspect};
use plan::API_VERSION;
use serde_json::json;

use crate::cli::{InspectArgs, Output};
use crate::exit::Exit;
use crate::images::{open, size};
use crate::printer::{Printer, Tone};

pub(crate) fn run(arguments: &InspectArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    let path = &arguments.image;
    let opened = open(path, &std::env::temp_dir(), printer)?;
    let found = inspect(&*opened.disk)?;
    if arguments.output == Output::Json {
        printer.json(&json!({
            "apiVersion": API_VERSION,
            "kind": "ImageInspection",
            "file": path.display().to_string(),
            "container": opened.container,
            "compression": opened.compression,
            "member": opened.member,
            "sha256": opened.sha256.map(|digest| digest.to_string()),
            "contentSha256": opened.content_sha256.map(|digest| digest.to_string()),
            "disk": found,
        }));
    } else {
        printer.line(path.display().to_string());
        print(&opened, &found, printer);
    }
    Ok(Exit::Done)
}

fn print(opened: &Opened, found: &Inspection, printer: &mut Printer) {
    let mut row = |name: &str, value: String| printer.line(format!("  {name:<13} {value}"));
    let packed = opened.compression.map(|c| format!(" in {c:?}").to_lowercase()).unwrap_or_default();
    let member = opened.member.as_ref().map(|name| format!(", {name} of an archive")).unwrap_or_default();
    row("container", format!("{}{packed}{member}", opened.container));
    let allocated = found.allocated.map(|bytes| format!(", {} in the file", size(bytes))).unwrap_or_default();
    row("disk", format!("{}, {} of data{allocated}", size(found.virtual_size), size(found.data)));
    if let Some(digest) = opened.sha256 {
        row("sha256", digest.to_string());
    }
    if let Some(digest) = opened.content_sha256 {
        row("decompressed", digest.to_string());
    }
    let booted = if found.pristine { "" } else { " (a machine has booted it, or it is not CoreOS)" };
    row("platform", format!("{}{booted}", found.platform.as_deref().unwrap_or("unknown")));
    if let Some(architecture) = &found.architecture {
        row("architecture", architecture.clone());
    }
    if let Some(table) = &found.partitions {
        row("sectors", format!("{} bytes", table.sector_size));
        for partition in &table.partitions {
            let filesystem = found.filesystems.iter().find(|f| f.partition == partition.number);
            let filesystem = filesystem.map(|f| format!("  {} {}", f.kind, f.label)).unwrap_or_default();
            let length = size(partition.length);
            row(
                &format!("partition {}", partition.number),
                format!("{:<11} {length:>9}{filesystem}", partition.name),
            );
        }
    }
    for entry in &found.entries {
        row("boot entry", entry.name.clone());
        row("  options", entry.options.clone());
    }
    if let Some(consoles) = found.consoles {
        row("consoles", format!("of platforms from {consoles}"));
    }
    let stamping = match &found.not_stampable {
        None => printer.toned(Tone::Good, "possible"),
        Some(why) => printer.toned(Tone::Look, &format!("not possible: {why}")),
    };
    printer.line(format!("  {:<13} {stamping}", "stamping"));
    for note in &found.notes {
        printer.line(format!("  {:<13} {note}", "note"));
    }
}
