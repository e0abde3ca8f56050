//! `bootwright release lint`.

use plan::API_VERSION;
use serde_json::json;

use crate::cli::{LintArgs, Output};
use crate::exit::Exit;
use crate::inputs::{architecture, strict};
use crate::printer::{Printer, Tone};

pub(crate) fn run(arguments: &LintArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    let arch = arguments.arch.as_deref().map(architecture).transpose()?;
    let catalog = strict(sources::load(&arguments.sources, arch.as_ref())?)?.catalog;
    let against = match arguments.against.as_slice() {
        [] => None,
        words => Some(strict(sources::load(words, arch.as_ref())?)?.catalog),
    };
    let lints = metadata::lint(&catalog, against.as_ref());
    let errors = lints.iter().filter(|l| l.rule.is_error()).count();
    if arguments.output == Output::Json {
        printer
            .json(&json!({ "apiVersion": API_VERSION, "kind": "Lint", "findings": lints, "errors": errors }));
    } else {
        for lint in &lints {
            let (tone, word) =
                if lint.rule.is_error() { (Tone::Bad, "error") } else { (Tone::Look, "warning") };
            let word = printer.toned(tone, word);
            printer.line(format!("{}: {word}: {} [{:?}]", lint.source, lint.message, lint.rule));
        }
        let documents = catalog.sources.len();
        printer.line(format!("{documents} documents: {errors} errors, {} warnings", lints.len() - errors));
    }
    Ok(if errors > 0 { Exit::Error } else { Exit::Done })
}
