//! Every file with every other: nothing may crash, hang, or change what it should not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use metadata::{Catalog, Document};

use super::{Corpus, word};

/// Folders of release metadata and of manifests.
const METADATA: [&str; 4] = ["installer", "fcos", "cosa", "configmap"];
const MANIFESTS: [&str; 3] = ["machines", "capi", "bad"];

pub(crate) fn run(corpus: &Corpus) -> anyhow::Result<()> {
    let metadata = files(corpus, &METADATA)?;
    let mut documents = 0;
    let mut all = Catalog::new();
    for file in &metadata {
        documents += usize::from(round_trip(file, &mut all)?);
    }
    let index = metadata::write_index(&all);
    let read = metadata::read_index(&index).context("the index of the corpus does not read back")?;
    ensure!(
        metadata::write_index(&read) == index,
        "the index of the corpus does not read back as it was written"
    );

    let manifests = files(corpus, &MANIFESTS)?;
    let before = contents(&manifests)?;
    let mut plans = 0;
    for release in &metadata {
        let mut arguments = vec!["plan".to_owned(), "-o".to_owned(), "json".to_owned()];
        arguments.extend(manifests.iter().map(|m| word(m)));
        arguments.extend([
            "--release".to_owned(),
            word(release),
            "--known".to_owned(),
            word(&corpus.path("installer")),
        ]);
        arguments.extend(["--cluster-arch".to_owned(), "x86_64".to_owned()]);
        let output = corpus.output(&arguments)?;
        let (_, stderr) = crate::run::text(&output);
        ensure!(!stderr.contains("breaks a rule"), "{}: {stderr}", release.display());
        plans += 1;
    }
    ensure!(contents(&manifests)? == before, "a plan changed a manifest");
    apply_on_copies(corpus, &manifests, &metadata)?;
    println!(
        "corpus: {documents} documents of {} files read back whole; {} manifests planned against {plans} files of metadata",
        metadata.len(),
        manifests.len()
    );
    Ok(())
}

/// Nothing of a document is lost. Files that are no release metadata (schemas, update graphs of another kind) say so.
fn round_trip(file: &Path, all: &mut Catalog) -> anyhow::Result<bool> {
    let bytes = fs::read(file)?;
    let Ok(document) = Document::parse(&word(file), &bytes) else {
        ensure!(word(file).contains("schema"), "{}: is not recognised as release metadata", file.display());
        return Ok(false);
    };
    if file.extension().is_some_and(|e| e == "json") {
        let original: serde_json::Value = serde_json::from_slice(&bytes)?;
        let [part] = document.parts() else { bail!("{}: expected one document", file.display()) };
        let again: serde_json::Value = serde_json::from_str(&part.value.to_string())?;
        ensure!(again == original, "{}: something was lost", file.display());
    }
    all.add(&document, None);
    Ok(true)
}

/// `apply` on a copy of all manifests, for a release of each era; a second one changes nothing.
fn apply_on_copies(corpus: &Corpus, manifests: &[PathBuf], metadata: &[PathBuf]) -> anyhow::Result<()> {
    let releases: Vec<&PathBuf> =
        metadata.iter().filter(|m| word(m).contains("/rhcos-4.") || word(m).contains("5.0")).collect();
    for release in releases {
        let folder = tempfile::tempdir()?;
        let policy = folder.path().join("policy");
        fs::write(
            &policy,
            r#"{"mode": "Managed", "allowReplaceMachines": true, "allowDistributionChange": true}"#,
        )?;
        for manifest in manifests {
            let name = manifest.file_name().context("no name")?;
            fs::copy(manifest, folder.path().join(name))?;
        }
        let mut arguments =
            vec!["apply".to_owned(), word(folder.path()), "--release".to_owned(), word(release)];
        arguments.extend([
            "--known".to_owned(),
            word(&corpus.path("installer")),
            "--policy".to_owned(),
            word(&policy),
        ]);
        arguments.extend(["--cluster-arch".to_owned(), "x86_64".to_owned()]);
        arguments.extend(["--infrastructure-name".to_owned(), "ocp4-x7k2p".to_owned()]);
        corpus.output(&arguments)?;
        let copies: Vec<PathBuf> =
            manifests.iter().filter_map(|m| Some(folder.path().join(m.file_name()?))).collect();
        let once = contents(&copies)?;
        let (stdout, stderr) = crate::run::text(&corpus.output(&arguments)?);
        ensure!(contents(&copies)? == once, "{}: a second apply changed files again", release.display());
        ensure!(
            stdout.contains("changed 0 references"),
            "{}: a second apply: {stdout} {stderr}",
            release.display()
        );
        for (copy, text) in &once {
            let original =
                manifests.iter().find(|m| m.file_name() == copy.file_name()).context("no original")?;
            let parses = |text: &str| serde_saphyr::from_multiple::<serde_json::Value>(text).is_ok();
            let was = fs::read_to_string(original)?;
            ensure!(!parses(&was) || parses(text), "{}: no longer parses", copy.display());
        }
    }
    Ok(())
}

fn contents(files: &[PathBuf]) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    files.iter().map(|file| Ok((file.clone(), fs::read_to_string(file)?))).collect()
}

fn files(corpus: &Corpus, folders: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(corpus.path(folder))? {
            files.push(entry?.path());
        }
    }
    files.sort();
    Ok(files)
}
