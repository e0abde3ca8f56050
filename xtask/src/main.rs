//! The project's own commands, run as `cargo xtask COMMAND`.

mod bench;
mod corpus;
mod fixtures;
mod fuzz;
mod generate;
mod run;
mod test;
mod tools;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what the tests need and run everything: format, lints, tests, generated files, dependencies, corpus
    Test,
    /// Run the cases and files of the real-data corpus through the binary
    Corpus,
    /// Write the generated reference in docs/
    Generate {
        /// Change nothing, and fail where a file is out of date
        #[arg(long)]
        check: bool,
    },
    /// Measure against rivals, in pairs in one run
    Bench(bench::Args),
    /// Build miniature CoreOS disk images: faithful in what a stamp looks at, without root
    Fixtures(fixtures::Args),
    /// Fuzz a parser of foreign bytes
    Fuzz(fuzz::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Test => test::run(),
        Command::Corpus => corpus::run(),
        Command::Generate { check } => generate::run(check),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Fixtures(arguments) => fixtures::run(&arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
    }
}
