//! `bootwright release import`.

use std::fs;

use anyhow::Context as _;
use metadata::{Catalog, LintRule};

use crate::cli::ImportArgs;
use crate::exit::Exit;
use crate::inputs::architecture;
use crate::printer::Printer;

pub(crate) fn run(arguments: &ImportArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    let arch = arguments.arch.as_deref().map(architecture).transpose()?;
    let path = &arguments.index;
    let mut catalog = Catalog::new();
    let mut before = 0;
    if path.exists() {
        let text = fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?;
        catalog = metadata::read_index(&text).with_context(|| path.display().to_string())?;
        before = catalog.images.len() + catalog.artifacts.len();
    }
    let loaded = sources::load(&arguments.sources, arch.as_ref())?;
    // A history holds files that were broken for a day; they are told, and the rest is imported.
    for (_, error) in &loaded.unread {
        printer.note(format!("warning: {error}"));
    }
    let imported = loaded.catalog;
    let documents = imported.sources.len();
    catalog.append(imported);
    // What contradicts itself is kept, so that it can be recognised, and told.
    for lint in metadata::lint(&catalog, None) {
        if matches!(lint.rule, LintRule::SameVersionOtherDigest | LintRule::ImageIdReused) {
            printer.note(format!("warning: {}: {} [{:?}]", lint.source, lint.message, lint.rule));
        }
    }
    let text = metadata::write_index(&catalog);
    let written = metadata::read_index(&text).context("the index that was made does not read back")?;
    sources::rewrite::replace(path, &text)?;
    let entries = written.images.len() + written.artifacts.len();
    printer.line(format!(
        "{}: {documents} documents read; {} images and {} artifacts known, {} of them new",
        path.display(),
        written.images.len(),
        written.artifacts.len(),
        entries - before.min(entries)
    ));
    Ok(Exit::Done)
}
