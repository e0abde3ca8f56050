//! `bootwright release show`.

use metadata::{Architecture, Artifact, Catalog, Image, SourceId};
use plan::API_VERSION;
use serde_json::{Value, json};

use crate::cli::{Output, ShowArgs};
use crate::exit::Exit;
use crate::inputs::{architecture, strict};
use crate::printer::{Printer, Tone};
use crate::table::Columns;

pub(crate) fn run(arguments: &ShowArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    let arch = arguments.arch.as_deref().map(architecture).transpose()?;
    let catalog = strict(sources::load(&arguments.sources, arch.as_ref())?)?.catalog;
    let filter = Filter { arguments, arch: arch.as_ref(), catalog: &catalog };
    // A region is of an image and a format of an artifact: naming one asks for that kind alone.
    let images: Vec<&Image> =
        catalog.images.iter().filter(|i| arguments.format.is_none() && filter.image(i)).collect();
    let artifacts: Vec<&Artifact> =
        catalog.artifacts.iter().filter(|a| arguments.region.is_none() && filter.artifact(a)).collect();
    match arguments.output {
        Output::Json => print_json(&filter, &images, &artifacts, printer)?,
        Output::Table => print_tables(&catalog, &images, &artifacts, printer),
    }
    if images.is_empty() && artifacts.is_empty() {
        printer.note(format!("nothing is published for {}", filter.words()));
    }
    for problem in &catalog.problems {
        printer.note(format!("warning: {}: {}: {}", problem.source, problem.path, problem.message));
    }
    Ok(Exit::Done)
}

struct Filter<'a> {
    arguments: &'a ShowArgs,
    arch: Option<&'a Architecture>,
    catalog: &'a Catalog,
}

impl Filter<'_> {
    fn common(&self, platform: &str, architecture: Option<&Architecture>, source: SourceId) -> bool {
        let stream = self.catalog.source(source).and_then(|s| s.os_stream.as_deref());
        self.arguments.platform.as_deref().is_none_or(|wanted| wanted == platform)
            && self.arch.is_none_or(|wanted| architecture == Some(wanted))
            && self.arguments.os_stream.as_deref().is_none_or(|wanted| stream == Some(wanted))
    }

    fn image(&self, image: &Image) -> bool {
        self.common(&image.platform, image.architecture.as_ref(), image.source)
            && self.arguments.region.as_deref().is_none_or(|wanted| image.region.as_deref() == Some(wanted))
    }

    fn artifact(&self, artifact: &Artifact) -> bool {
        self.common(&artifact.platform, artifact.architecture.as_ref(), artifact.source)
            && self.arguments.format.as_deref().is_none_or(|wanted| wanted == &*artifact.format)
    }

    fn words(&self) -> String {
        let a = self.arguments;
        let words = [&a.platform, &a.arch, &a.region, &a.format, &a.os_stream];
        let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
        if words.is_empty() { "any platform".to_owned() } else { words.join(" ") }
    }
}

fn print_json(
    filter: &Filter<'_>,
    images: &[&Image],
    artifacts: &[&Artifact],
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let catalog = filter.catalog;
    let source = |id: SourceId| catalog.source(id).map(|s| s.name.to_string());
    let version = |v: &Option<std::sync::Arc<metadata::OsVersion>>| v.as_ref().map(ToString::to_string);
    let image = |i: &&Image| -> anyhow::Result<Value> {
        Ok(json!({
            "platform": i.platform, "architecture": i.architecture, "region": i.region,
            "version": version(&i.version), "reference": i.reference.text(),
            "image": serde_json::to_value(&i.reference)?, "source": source(i.source),
        }))
    };
    let artifact = |a: &&Artifact| {
        json!({
            "platform": a.platform, "architecture": a.architecture, "format": a.format, "part": a.part,
            "version": version(&a.version), "location": a.location, "usable": a.has_usable_location(),
            "signature": a.signature, "sha256": a.sha256, "size": a.size,
            "uncompressedSha256": a.uncompressed_sha256, "uncompressedSize": a.uncompressed_size,
            "source": source(a.source),
        })
    };
    let sources = catalog.sources.iter().map(|s| {
        json!({
            "name": s.name, "format": s.format, "stream": s.stream, "osStream": s.os_stream,
            "releaseVersion": s.release_version, "lastModified": s.last_modified,
            "distribution": s.distribution, "default": s.default,
        })
    });
    let nothing = images.is_empty() && artifacts.is_empty();
    printer.json(&json!({
        "apiVersion": API_VERSION,
        "kind": "Release",
        "sources": sources.collect::<Vec<_>>(),
        "images": images.iter().map(image).collect::<anyhow::Result<Vec<_>>>()?,
        "artifacts": artifacts.iter().map(artifact).collect::<Vec<_>>(),
        "missing": nothing.then(|| format!("nothing is published for {}", filter.words())),
        "problems": catalog.problems,
    }));
    Ok(())
}

fn print_tables(catalog: &Catalog, images: &[&Image], artifacts: &[&Artifact], printer: &mut Printer) {
    for source in &catalog.sources {
        let facts = [
            Some(source.format.to_string()),
            Some(source.distribution.label().to_owned()),
            source.os_stream.as_ref().map(|s| format!("OS stream {s}")),
            source.stream.as_ref().map(|s| format!("called `{s}`")),
            source.release_version.as_ref().map(|v| format!("of release {v}")),
            source.last_modified.as_ref().map(|t| format!("changed {t}")),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        printer.line(format!("{}: {}", source.name, facts.join(", ")));
    }
    let plain = |text: &str| (Tone::Plain, text.to_owned());
    let arch = |a: Option<&Architecture>| plain(a.map_or("?", Architecture::as_str));
    let dash = |text: Option<String>| (Tone::Plain, text.unwrap_or_else(|| "-".to_owned()));
    if !images.is_empty() {
        printer.line("");
        let mut table = Columns::new(printer, &["IMAGE", "ARCH", "REGION", "VERSION", "REFERENCE"]);
        for image in images {
            table.row(vec![
                plain(&image.platform),
                arch(image.architecture.as_ref()),
                dash(image.region.as_ref().map(ToString::to_string)),
                dash(image.version.as_ref().map(ToString::to_string)),
                (Tone::Plain, image.reference.text()),
            ]);
        }
        table.print(printer);
    }
    if !artifacts.is_empty() {
        printer.line("");
        let mut table = Columns::new(printer, &["ARTIFACT", "ARCH", "FORMAT", "VERSION", "LOCATION"]);
        for artifact in artifacts {
            let format = if &*artifact.part == "disk" {
                artifact.format.to_string()
            } else {
                format!("{} {}", artifact.format, artifact.part)
            };
            table.row(vec![
                plain(&artifact.platform),
                arch(artifact.architecture.as_ref()),
                (Tone::Plain, format),
                dash(artifact.version.as_ref().map(ToString::to_string)),
                plain(&artifact.location),
            ]);
        }
        table.print(printer);
    }
}
