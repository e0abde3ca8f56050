//! `bootwright completion`.

use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionArgs};
use crate::exit::Exit;
use crate::printer::Printer;

pub(crate) fn run(arguments: &CompletionArgs, printer: &mut Printer) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "bootwright", &mut script);
    printer.line(String::from_utf8_lossy(&script).trim_end());
    Exit::Done
}
