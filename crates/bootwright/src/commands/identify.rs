//! `bootwright identify`.

use std::cmp::Ordering;
use std::path::Path;

use anyhow::{Context as _, bail};
use image::{FileKind, Sha256Hex};
use metadata::{Aleph, Catalog, Document, Identity, Match, OsVersion};
use plan::API_VERSION;
use serde::Serialize;
use serde_json::json;

use crate::cli::{IdentifyArgs, Output};
use crate::exit::Exit;
use crate::inputs::{architecture, strict};
use crate::printer::{Printer, Tone};

/// What one WHAT turned out to be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    what: String,
    /// What kind of file it is, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    identities: Vec<Identity>,
}

pub(crate) fn run(arguments: &IdentifyArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    let arch = arguments.arch.as_deref().map(architecture).transpose()?;
    let known = strict(sources::load(&arguments.known, arch.as_ref())?)?.catalog;
    let answers =
        arguments.what.iter().map(|what| identify(what, &known)).collect::<anyhow::Result<Vec<_>>>()?;
    let orders = orders(&answers);
    let unknown = answers.iter().any(|answer| answer.identities.is_empty());
    if arguments.output == Output::Json {
        let order: Vec<_> =
            orders.iter().map(|(a, b, order)| json!({"from": a, "to": b, "relation": order})).collect();
        printer.json(
            &json!({ "apiVersion": API_VERSION, "kind": "Identification", "items": answers, "order": order }),
        );
    } else {
        for answer in &answers {
            print(answer, &arguments.known, printer);
        }
        for (a, b, order) in &orders {
            printer.line(match *order {
                "unknown" => format!("{a} and {b} cannot be compared"),
                "same" => format!("{a} and {b} are the same version"),
                order => format!("{a} is {order} than {b}"),
            });
        }
    }
    Ok(if unknown { Exit::Error } else { Exit::Done })
}

fn identify(what: &str, known: &Catalog) -> anyhow::Result<Answer> {
    let path = Path::new(what);
    let mut answer =
        Answer { what: what.to_owned(), file: None, sha256: None, identities: known.identify(what) };
    let means_a_file =
        what.starts_with(['/', '.']) && !what.contains("://") && !what.starts_with("/resourceGroups");
    if answer.identities.is_empty() && means_a_file && !path.exists() && !what.starts_with("/subscriptions") {
        bail!("{what}: no such file");
    }
    if !answer.identities.is_empty() || !path.is_file() {
        return Ok(answer);
    }
    let failed = || format!("{what}: cannot be read");
    let digest = Sha256Hex::of_file(path).with_context(failed)?;
    answer.sha256 = Some(digest.to_string());
    answer.file = Some(FileKind::of(path).with_context(failed)?.to_string());
    answer.identities = known.identify(&digest.to_string());
    // Metadata and alephs are small texts.
    let small = std::fs::metadata(path)?.len() < (16 << 20);
    let text = if small { std::fs::read(path)? } else { Vec::new() };
    if let Some(aleph) = serde_json::from_slice(&text).ok().and_then(|value| Aleph::read(&value).ok()) {
        answer.file = Some("the aleph of a node: its boot image".to_owned());
        answer.identities = known.identify(aleph.version.as_str());
        for identity in &mut answer.identities {
            identity.matched = Match::Version;
            identity.architecture = identity.architecture.take().or_else(|| aleph.architecture.clone());
        }
    } else if let Ok(document) = Document::parse(what, &text) {
        let mut catalog = Catalog::new();
        catalog.add(&document, None);
        let formats: Vec<_> = document.parts().iter().map(|p| p.format.to_string()).collect();
        answer.file = Some(formats.join(", "));
        answer.identities = catalog.versions().iter().flat_map(|v| catalog.identify(v.as_str())).collect();
    }
    Ok(answer)
}

/// The order of neighbours, where each has one version.
fn orders(answers: &[Answer]) -> Vec<(&str, &str, &'static str)> {
    let version = |answer: &Answer| answer.identities.first()?.version.as_ref()?.parse::<OsVersion>().ok();
    answers
        .iter()
        .zip(answers.iter().skip(1))
        .map(|(a, b)| {
            let same_family = match (a.identities.first(), b.identities.first()) {
                (Some(a), Some(b)) => {
                    a.distribution == b.distribution
                        || [a.distribution, b.distribution].contains(&metadata::Distribution::Unknown)
                }
                _ => false,
            };
            let order = version(a).zip(version(b)).filter(|_| same_family).and_then(|(a, b)| a.compare(&b));
            let word = match order {
                Some(Ordering::Less) => "older",
                Some(Ordering::Equal) => "same",
                Some(Ordering::Greater) => "newer",
                None => "unknown",
            };
            (a.what.as_str(), b.what.as_str(), word)
        })
        .collect()
}

fn print(answer: &Answer, known: &[String], printer: &mut Printer) {
    printer.line(&answer.what);
    if let Some(file) = &answer.file {
        printer.line(format!("  file          {file}"));
    }
    if let Some(sha256) = &answer.sha256 {
        printer.line(format!("  sha256        {sha256}"));
    }
    if answer.identities.is_empty() {
        let hint = if known.is_empty() {
            "give metadata to look in with --known"
        } else {
            "in none of the metadata"
        };
        printer.line(format!("  {}", printer.toned(Tone::Look, &format!("unknown: {hint}"))));
    }
    for identity in &answer.identities {
        let mut row = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                printer.line(format!("  {name:<13} {value}"));
            }
        };
        let version = identity.version.as_ref().map(|v| format!("{} {v}", identity.distribution.label()));
        row("version", version.as_deref());
        row("OpenShift", identity.openshift.as_deref());
        row("RHEL", identity.rhel.as_deref());
        row("built", identity.built.as_deref());
        row("platform", identity.platform.as_deref());
        row("region", identity.region.as_deref());
        row("architecture", identity.architecture.as_ref().map(metadata::Architecture::as_str));
        let differs = identity.reference != answer.what;
        row("reference", Some(identity.reference.as_str()).filter(|_| differs));
        row("from", identity.source.as_deref());
    }
}
