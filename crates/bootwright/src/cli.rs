//! The command line. Help, manual pages, completions and the reference in `docs/` are made from here.
#![expect(clippy::doc_markdown, reason = "the comments are help texts, shown as they are")]

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Keeps the boot images that new machines start from current with the cluster's release.
#[derive(Debug, Parser)]
#[command(
    name = "bootwright",
    version,
    help_expected = true,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub struct Global {
    /// When to colour the output
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto, global = true)]
    pub color: ColorChoice,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show which boot image every machine set should use, and why
    Plan(PlanArgs),
    /// Change the references in place
    Apply(ApplyArgs),
    /// Show the chain from metadata to decision for one object
    Explain(ExplainArgs),
    /// Tell which release, architecture and region an image is of
    Identify(IdentifyArgs),
    /// Look at release metadata
    #[command(subcommand)]
    Release(ReleaseCommand),
    /// Look at disk images, stamp them for a platform, write them in any format
    #[command(subcommand)]
    Image(ImageCommand),
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// Print the manual page, or write all of them into a directory
    Man(ManArgs),
}

/// What a plan is made from.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Release metadata that the machine sets should follow: a file, a directory, or `-`
    #[arg(long, value_name = "SRC", required = true)]
    pub release: Vec<String>,
    /// Older metadata by which current images are recognised as ours: a file, a directory, an index, or `git:DIR`
    #[arg(long, value_name = "SRC")]
    pub known: Vec<String>,
    /// A policy: a BootImagePolicy, or its spec alone, as YAML or JSON [default: manage everything that is safe]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The cluster's architecture (x86_64, aarch64, …), or `multi`, for sets that do not say their own
    #[arg(long, value_name = "ARCH")]
    pub cluster_arch: Option<String>,
    /// The cluster's infrastructure name, by which images that the installer made are recognised
    #[arg(long, value_name = "NAME")]
    pub infrastructure_name: Option<String>,
    /// The region of sets that name none
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,
    /// The name under which the release's image lies in a private store; may be given for each platform
    #[arg(long, value_name = "[PLATFORM=]NAME")]
    pub image_name: Vec<String>,
    /// The architecture of old metadata files that do not tell their own
    #[arg(long, value_name = "ARCH")]
    pub arch: Option<String>,
    /// The time to plan for, as in RFC 3339 [default: now]
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Manifests: files, directories that are searched for YAML and JSON, or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// What the plan is made from.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = PlanOutput::Table, value_name = "FORMAT")]
    pub output: PlanOutput,
    /// End with status 3 when changes are pending, else 4 when something needs a human
    #[arg(long)]
    pub exit_code: bool,
}

/// How to print a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanOutput {
    /// A table, and what needs a look
    Table,
    /// The table with places, references and skew
    Wide,
    /// JSON, as documented by docs/reference/plan.schema.json
    Json,
    /// The same as YAML
    Yaml,
    /// One line of JSON for each object to create or to patch
    Patch,
}

/// Arguments of `apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// Manifests: files, or directories that are searched for YAML and JSON
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// What the plan is made from.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Show the changes as a diff, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    pub output: Output,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The object: NAME, KIND/NAME or KIND/NAMESPACE/NAME
    pub object: String,
    /// Manifests: files, directories that are searched for YAML and JSON, or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// What the plan is made from.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    pub output: Output,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Table,
    /// JSON
    Json,
}

/// Arguments of `identify`.
#[derive(Debug, Args)]
pub struct IdentifyArgs {
    /// An AMI, an image name or path, a digest, an OS version; or a file: an image, a metadata file, a node's aleph.
    /// Of several, the order of their versions is told too
    #[arg(required = true, value_name = "WHAT")]
    pub what: Vec<String>,
    /// Metadata to look in: a file, a directory, an index, or `git:DIR`
    #[arg(long, value_name = "SRC")]
    pub known: Vec<String>,
    /// The architecture of old metadata files that do not tell their own
    #[arg(long, value_name = "ARCH")]
    pub arch: Option<String>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    pub output: Output,
}

/// Commands on release metadata.
#[derive(Debug, Subcommand)]
pub enum ReleaseCommand {
    /// Show what metadata publishes
    Show(ShowArgs),
    /// Compare two releases
    Diff(DiffArgs),
    /// Tell what is odd in metadata
    Lint(LintArgs),
    /// Add metadata to an index of published images
    Import(ImportArgs),
}

/// Arguments of `release show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Metadata: files, directories, an index, `git:DIR`, or `-`
    #[arg(required = true, value_name = "SRC")]
    pub sources: Vec<String>,
    /// Only this platform, as the metadata names it
    #[arg(long)]
    pub platform: Option<String>,
    /// Only this architecture; also that of old files that do not tell their own
    #[arg(long)]
    pub arch: Option<String>,
    /// Only images of this region
    #[arg(long)]
    pub region: Option<String>,
    /// Only artifacts of this format: `qcow2.gz`, `ova`, `pxe`
    #[arg(long)]
    pub format: Option<String>,
    /// Only this OS stream: `rhel-9`
    #[arg(long)]
    pub os_stream: Option<String>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    pub output: Output,
}

/// Arguments of `release diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The older release
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The newer release
    #[arg(value_name = "NEW")]
    pub new: String,
    /// The architecture of old metadata files that do not tell their own
    #[arg(long, value_name = "ARCH")]
    pub arch: Option<String>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    pub output: Output,
}

/// Arguments of `release lint`.
#[derive(Debug, Args)]
pub struct LintArgs {
    /// Metadata: files, directories, an index, `git:DIR`, or `-`
    #[arg(required = true, value_name = "SRC")]
    pub sources: Vec<String>,
    /// Another release: what it has and this one lacks is told
    #[arg(long, value_name = "SRC")]
    pub against: Vec<String>,
    /// The architecture of old metadata files that do not tell their own
    #[arg(long, value_name = "ARCH")]
    pub arch: Option<String>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    pub output: Output,
}

/// Arguments of `release import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Metadata: files, directories, other indexes, or `git:DIR` for all of a checkout's history
    #[arg(required = true, value_name = "SRC")]
    pub sources: Vec<String>,
    /// The index; created where it does not exist
    #[arg(long, value_name = "FILE")]
    pub index: PathBuf,
    /// The architecture of old metadata files that do not tell their own
    #[arg(long, value_name = "ARCH")]
    pub arch: Option<String>,
}

/// The commands about disk images.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Tell what an image is: container, partitions, boot entries, platform
    Inspect(InspectArgs),
    /// Make an image a platform's: platform id, consoles, kernel arguments
    Stamp(StampArgs),
    /// Write an image in another format, stamped where a platform is given
    Convert(ConvertArgs),
}

/// Arguments of `image inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The image: raw, qcow2, vmdk, fixed vhd, an OVA or a Google archive; plain or in gzip, xz or Zstandard
    #[arg(value_name = "IN")]
    pub image: PathBuf,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    pub output: Output,
}

/// How an image is proven.
#[derive(Debug, Args)]
pub struct ProofArgs {
    /// The digest that the image must have, of the file or of what it holds once decompressed
    #[arg(long, value_name = "HEX")]
    pub sha256: Option<String>,
    /// Release metadata that must name the digest of the image: a file, a directory, an index, or `-`
    #[arg(long, value_name = "SRC")]
    pub release: Vec<String>,
}

/// What beside the platform is stamped.
#[derive(Debug, Args)]
pub struct KernelArgs {
    /// A console in the place of the platform's own, as in ttyS0,115200n8; may be given again, the last is /dev/console
    #[arg(long, value_name = "CONSOLE", requires = "platform")]
    pub console: Vec<String>,
    /// A further kernel argument; may be given again
    #[arg(long, value_name = "ARGUMENT", requires = "platform")]
    pub karg: Vec<String>,
    /// Also from an image that is another platform's already
    #[arg(long, requires = "platform")]
    pub restamp: bool,
}

/// Arguments of `image stamp`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("to").required(true).args(["output", "in_place", "delta"]))]
pub struct StampArgs {
    /// The image
    #[arg(value_name = "IN")]
    pub image: PathBuf,
    /// The platform: openstack, aws, azure, gcp, vmware, metal, …
    #[arg(long)]
    pub platform: String,
    /// The new file, in the format of the image
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Change the file itself: raw, fixed vhd, or qcow2 whose boot entries are not compressed
    #[arg(long)]
    pub in_place: bool,
    /// Write only what changes, as JSON: offsets on the disk, bytes before and after
    #[arg(long, value_name = "FILE")]
    pub delta: Option<PathBuf>,
    /// What beside the platform is stamped.
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// How the image is proven.
    #[command(flatten)]
    pub proof: ProofArgs,
}

/// Arguments of `image convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The image
    #[arg(value_name = "IN")]
    pub image: PathBuf,
    /// The new file, or `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Its format [default: by the name of OUT, else that of the platform]
    #[arg(long, value_enum)]
    pub format: Option<ImageFormat>,
    /// How the clusters of qcow2 are compressed [default: none; zlib for nutanix]
    #[arg(long, value_enum)]
    pub compress: Option<Compress>,
    /// Stamp for this platform: openstack, aws, azure, gcp, vmware, …
    #[arg(long)]
    pub platform: Option<String>,
    /// Grow the disk to so many GiB [default: 100 for ibmcloud, what the format needs for others]
    #[arg(long, value_name = "GIB")]
    pub size: Option<u64>,
    /// What beside the platform is stamped.
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// How the image is proven.
    #[command(flatten)]
    pub proof: ProofArgs,
}

/// Formats that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImageFormat {
    /// The disk itself, sparse
    Raw,
    /// QEMU's
    Qcow2,
    /// VMware's, stream-optimised; also for AWS
    Vmdk,
    /// Fixed VHD, for Azure
    Vhd,
    /// disk.raw in a tar.gz, for Google Cloud
    Gcp,
}

/// How clusters of qcow2 are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compress {
    /// Not at all
    None,
    /// Deflate, which every QEMU reads
    Zlib,
    /// Zstandard, which QEMU reads since 5.1
    Zstd,
}

/// Arguments of `completion`.
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for every command into this directory
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        super::Cli::command().debug_assert();
    }
}
