//! `bootwright image convert`.

use std::io::{self, BufWriter, IsTerminal as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use image::{
    ClusterCompression, Delta, Format, GuestDisk as _, Stamped, disk_size_of_platform, write_file, write_pipe,
};

use crate::cli::{Compress, ConvertArgs, ImageFormat};
use crate::exit::Exit;
use crate::images::{Proof, folder, open, size, stamp};
use crate::printer::Printer;

pub(crate) fn run(arguments: &ConvertArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    let (path, out) = (&arguments.image, &arguments.output);
    let format = format(arguments)?;
    let pipe = out == Path::new("-");
    if pipe && !format.streams() {
        bail!("-o -: qcow2 needs a file, its tables stand in front of what they are made from");
    }
    if pipe && io::stdout().is_terminal() {
        bail!("-o -: standard output is a terminal; redirect it, or name a file");
    }
    let proof = Proof::read(&arguments.proof)?;
    let scratch = if pipe { std::env::temp_dir() } else { folder(out).to_owned() };
    let opened = open(path, &scratch, printer)?;
    let delta = match &arguments.platform {
        Some(platform) => stamp(&opened, path, platform, &arguments.kernel)?,
        None => Delta::default(),
    };
    let disk = Stamped::new(&*opened.disk, &delta, grown(arguments)?);
    if let Some(gib) = arguments.size.filter(|gib| gib << 30 < opened.disk.size()) {
        bail!("--size {gib}: the disk has {} already, and is never cut", size(opened.disk.size()));
    }
    if pipe {
        // What went into a pipe cannot be taken back, so the proof comes first.
        proof.check(&opened, path)?;
        let mut output = BufWriter::with_capacity(1 << 20, io::stdout().lock());
        write_pipe(&disk, format, &mut output)?;
        return Ok(Exit::Done);
    }
    // The proof reads the file while the writer does; the new file appears when both are content.
    let proven = std::thread::scope(|scope| {
        let proven = scope.spawn(|| proof.check(&opened, path));
        let mut what = None;
        write_file(&disk, format, out, || -> anyhow::Result<()> {
            what = proven.join().map_err(|_| anyhow::anyhow!("the proof stopped"))??;
            Ok(())
        })
        .map(|()| what)
    });
    let proven = match proven {
        // Errors of the proof tell the image, those of the writer nothing.
        Err(error) if error.is::<image::WriteError>() => return Err(error.context(out.display().to_string())),
        other => other?,
    };
    let file = std::fs::metadata(out).with_context(|| out.display().to_string())?;
    let proven = proven.map(|what| format!("{what}, ")).unwrap_or_default();
    let platform = arguments.platform.as_ref().map(|p| format!("{p}, ")).unwrap_or_default();
    printer.line(format!(
        "{}: {proven}{platform}{}, disk of {}, file of {}",
        out.display(),
        format,
        size(format.size_of(disk.size())),
        size(used(&file)),
    ));
    Ok(Exit::Done)
}

/// What a file takes on disk.
fn used(file: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    file.len().min(file.blocks() * 512)
}

/// The size that the user wants, else the platform.
fn grown(arguments: &ConvertArgs) -> anyhow::Result<Option<u64>> {
    let Some(gib) = arguments.size else {
        return Ok(arguments.platform.as_deref().and_then(disk_size_of_platform));
    };
    match gib.checked_mul(1 << 30).filter(|_| gib <= 64 << 10) {
        Some(bytes) => Ok(Some(bytes)),
        None => bail!("--size {gib}: at most 65536 GiB"),
    }
}

/// As the user says; else by the name of the file; else as the platform wants it.
fn format(arguments: &ConvertArgs) -> anyhow::Result<Format> {
    let name = arguments.output.to_string_lossy();
    let of_platform = arguments.platform.as_deref().and_then(Format::of_platform);
    let asked = arguments.format.map(|format| match format {
        ImageFormat::Raw => Format::Raw,
        ImageFormat::Qcow2 => Format::Qcow2(ClusterCompression::None),
        ImageFormat::Vmdk => Format::Vmdk,
        ImageFormat::Vhd => Format::Vhd,
        ImageFormat::Gcp => Format::Gcp,
    });
    let Some(format) = asked.or_else(|| Format::of_name(&name)).or(of_platform) else {
        bail!("{name}: its name tells no format; give one with --format");
    };
    let compression = arguments.compress.map(|compress| match compress {
        Compress::None => ClusterCompression::None,
        Compress::Zlib => ClusterCompression::Zlib,
        Compress::Zstd => ClusterCompression::Zstd,
    });
    match (format, compression, of_platform) {
        (Format::Qcow2(_), Some(compression), _) => Ok(Format::Qcow2(compression)),
        // A name tells qcow2 and nothing of its compression.
        (Format::Qcow2(_), None, Some(of_platform @ Format::Qcow2(_))) => Ok(of_platform),
        (_, Some(ClusterCompression::Zlib | ClusterCompression::Zstd), _) => {
            bail!("--compress is about qcow2; other formats have one compression, or none")
        }
        (format, ..) => Ok(format),
    }
}
