//! The command line of Bootwright: a dispatch table, one file a command, one printer.

pub mod cli;
mod commands;
mod exit;
mod images;
mod inputs;
mod printer;
mod table;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command, ImageCommand, ReleaseCommand};
use exit::Exit;
use printer::Printer;

/// Runs a command line, and tells the exit status.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; a wrong command line is exit status 1, as every other error.
            let _ = error.print();
            return if error.use_stderr() { Exit::Error } else { Exit::Done }.into();
        }
    };
    let mut printer = Printer::new(&cli.global);
    let done = match &cli.command {
        Command::Plan(arguments) => commands::plan::run(arguments, &mut printer),
        Command::Apply(arguments) => commands::apply::run(arguments, &mut printer),
        Command::Explain(arguments) => commands::explain::run(arguments, &mut printer),
        Command::Identify(arguments) => commands::identify::run(arguments, &mut printer),
        Command::Release(ReleaseCommand::Show(arguments)) => {
            commands::release_show::run(arguments, &mut printer)
        }
        Command::Release(ReleaseCommand::Diff(arguments)) => {
            commands::release_diff::run(arguments, &mut printer)
        }
        Command::Release(ReleaseCommand::Lint(arguments)) => {
            commands::release_lint::run(arguments, &mut printer)
        }
        Command::Release(ReleaseCommand::Import(arguments)) => {
            commands::release_import::run(arguments, &mut printer)
        }
        Command::Image(ImageCommand::Inspect(arguments)) => {
            commands::image_inspect::run(arguments, &mut printer)
        }
        Command::Image(ImageCommand::Stamp(arguments)) => commands::image_stamp::run(arguments, &mut printer),
        Command::Image(ImageCommand::Convert(arguments)) => {
            commands::image_convert::run(arguments, &mut printer)
        }
        Command::Completion(arguments) => Ok(commands::completion::run(arguments, &mut printer)),
        Command::Man(arguments) => commands::man::run(arguments, &mut printer),
    };
    let exit = done.unwrap_or_else(|error| {
        printer.error(&error);
        Exit::Error
    });
    printer.finish(exit).into()
}
