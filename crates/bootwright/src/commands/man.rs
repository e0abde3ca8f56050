//! `bootwright man`.

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::cli::{Cli, ManArgs};
use crate::exit::Exit;
use crate::printer::Printer;

pub(crate) fn run(arguments: &ManArgs, printer: &mut Printer) -> anyhow::Result<Exit> {
    if let Some(directory) = &arguments.dir {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{}: cannot be made", directory.display()))?;
        clap_mangen::generate_to(Cli::command(), directory)
            .with_context(|| format!("{}: cannot be written", directory.display()))?;
        return Ok(Exit::Done);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    printer.line(String::from_utf8_lossy(&page).trim_end());
    Ok(Exit::Done)
}
