//! `bootwright image stamp`.

use std::path::Path;

use anyhow::{Context as _, bail};
use image::{Delta, Format, Opened, Stamped, clone_with, edit_in_place, write_file};

use crate::cli::StampArgs;
use crate::exit::Exit;
use crate::images::{Proof, folder, open, stamp};
use crate::printer::Printer;

pub(crate) fn run(arguments: &StampArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    let path = &arguments.image;
    let proof = Proof::read(&arguments.proof)?;
    let scratch = arguments.output.as_deref().map_or_else(std::env::temp_dir, |out| folder(out).to_owned());
    let opened = open(path, &scratch, printer)?;
    if arguments.in_place && (opened.compression.is_some() || opened.member.is_some()) {
        bail!("{}: an image in an archive is not changed in place; write a new file with -o", path.display());
    }
    let proven = proof.check(&opened, path)?;
    let delta = stamp(&opened, path, &arguments.platform, &arguments.kernel)?;
    let to = if let Some(out) = &arguments.delta {
        let text = serde_json::to_string_pretty(&delta)? + "\n";
        sources::rewrite::replace(out, &text)?;
        out
    } else if let Some(out) = &arguments.output {
        new_file(&opened, path, &delta, out)?;
        out
    } else {
        edit_in_place(path, &*opened.disk, &delta)?;
        path
    };
    let what = proven.map(|what| format!("{what}, ")).unwrap_or_default();
    let (bytes, pieces) = (delta.len(), delta.pieces.len());
    printer.line(match pieces {
        0 => format!("{}: {what}{} already", to.display(), arguments.platform),
        _ => format!("{}: {what}{}, {bytes} bytes in {pieces} places", to.display(), arguments.platform),
    });
    Ok(Exit::Done)
}

/// The image with the delta, in its own format. Where the filesystem can, the copy shares all other bytes.
fn new_file(opened: &Opened, path: &Path, delta: &Delta, out: &Path) -> anyhow::Result<()> {
    let plain = opened.compression.is_none() && opened.member.is_none();
    if plain && clone_with(path, &*opened.disk, delta, out)? {
        return Ok(());
    }
    let stamped = Stamped::new(&*opened.disk, delta, None);
    write_file::<image::WriteError>(&stamped, Format::of_image(opened), out, || Ok(()))
        .with_context(|| out.display().to_string())
}
