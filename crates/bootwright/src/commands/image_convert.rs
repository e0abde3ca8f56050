//! `bootwright image convert`.

use std::io::{self, BufWriter, IsTerminal as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use image::{ClusterCompression, Delta, Format, GuestDisk as _, Stamped, write_file, write_pipe};

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
        name(format),
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

/// The size that a platform wants, or the user.
fn grown(arguments: &ConvertArgs) -> anyhow::Result<Option<u64>> {
    // IBM Cloud takes images of 100 GiB (coreos-assembler `src/cosalib/ibmcloud.py`).
    let own = arguments.platform.as_deref().filter(|p| *p == "ibmcloud").map(|_| 100);
    let Some(gib) = arguments.size.or(own) else { return Ok(None) };
    match gib.checked_mul(1 << 30).filter(|_| gib <= 64 << 10) {
        Some(bytes) => Ok(Some(bytes)),
        None => bail!("--size {gib}: at most 65536 GiB"),
    }
}

/// As the user says; else by the name of the file; else as the platform wants it (coreos-assembler
/// `src/cosalib/qemuvariants.py`).
fn format(arguments: &ConvertArgs) -> anyhow::Result<Format> {
    let name = arguments.output.to_string_lossy();
    let ending = |endings: &[&str]| endings.iter().any(|ending| name.to_ascii_lowercase().ends_with(ending));
    let by_name = if ending(&[".qcow2"]) {
        Some(ImageFormat::Qcow2)
    } else if ending(&[".vmdk"]) {
        Some(ImageFormat::Vmdk)
    } else if ending(&[".vhd"]) {
        Some(ImageFormat::Vhd)
    } else if ending(&[".tar.gz", ".tgz"]) {
        Some(ImageFormat::Gcp)
    } else if ending(&[".raw", ".img"]) {
        Some(ImageFormat::Raw)
    } else {
        None
    };
    let by_platform = arguments.platform.as_deref().and_then(|platform| match platform {
        "aws" | "vmware" => Some(ImageFormat::Vmdk),
        "azure" | "azurestack" => Some(ImageFormat::Vhd),
        "gcp" => Some(ImageFormat::Gcp),
        "openstack" | "qemu" | "kubevirt" | "nutanix" | "ibmcloud" => Some(ImageFormat::Qcow2),
        "metal" => Some(ImageFormat::Raw),
        _ => None,
    });
    let Some(format) = arguments.format.or(by_name).or(by_platform) else {
        bail!("{name}: its name tells no format; give one with --format");
    };
    let nutanix = arguments.platform.as_deref() == Some("nutanix");
    let compress = arguments.compress.unwrap_or(if nutanix { Compress::Zlib } else { Compress::None });
    if format != ImageFormat::Qcow2 && arguments.compress.is_some_and(|c| c != Compress::None) {
        bail!("--compress is about qcow2; other formats have one compression, or none");
    }
    Ok(match format {
        ImageFormat::Raw => Format::Raw,
        ImageFormat::Vmdk => Format::Vmdk,
        ImageFormat::Vhd => Format::Vhd,
        ImageFormat::Gcp => Format::Gcp,
        ImageFormat::Qcow2 => Format::Qcow2(match compress {
            Compress::None => ClusterCompression::None,
            Compress::Zlib => ClusterCompression::Zlib,
            Compress::Zstd => ClusterCompression::Zstd,
        }),
    })
}

fn name(format: Format) -> &'static str {
    match format {
        Format::Qcow2(ClusterCompression::None) => "qcow2",
        Format::Qcow2(ClusterCompression::Zlib) => "qcow2 with zlib",
        Format::Qcow2(ClusterCompression::Zstd) => "qcow2 with Zstandard",
        Format::Vmdk => "stream-optimised vmdk",
        Format::Vhd => "fixed vhd",
        Format::Gcp => "disk.raw in tar.gz",
        _ => "raw",
    }
}
