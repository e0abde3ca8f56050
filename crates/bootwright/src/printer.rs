//! All output goes through here: results to standard output, everything else to standard error.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::cli::{ColorChoice, Global};
use crate::exit::Exit;

/// Prints.
pub(crate) struct Printer {
    out: BufWriter<io::Stdout>,
    color: bool,
    /// A reader that closed the pipe wants no more, and no error.
    closed: bool,
    failed: Option<io::Error>,
}

/// The meaning of a coloured word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Change,
    Look,
    Bad,
    Quiet,
    Plain,
}

impl Printer {
    pub(crate) fn new(global: &Global) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = match global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => io::stdout().is_terminal() && !no_color,
        };
        Self { out: BufWriter::new(io::stdout()), color, closed: false, failed: None }
    }

    /// A line of the result.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) {
        if !self.closed && self.failed.is_none() {
            let written = writeln!(self.out, "{}", text.as_ref());
            self.check(written);
        }
    }

    fn check(&mut self, written: io::Result<()>) {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => self.failed = Some(error),
            Ok(()) => {}
        }
    }

    /// A word in the colour of its meaning.
    pub(crate) fn toned(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            _ if !self.color => return text.to_owned(),
            Tone::Good => "32",
            Tone::Change => "36",
            Tone::Look => "33",
            Tone::Bad => "31",
            Tone::Quiet => "2",
            Tone::Plain => return text.to_owned(),
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Whether words are coloured.
    pub(crate) fn colors(&self) -> bool {
        self.color
    }

    /// The width of the terminal; none where the output is not one.
    pub(crate) fn width() -> Option<u16> {
        io::stdout().is_terminal().then(|| comfy_table::Table::new().width()).flatten()
    }

    /// A value as JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) {
        let written = serde_json::to_writer_pretty(&mut self.out, value).map_err(io::Error::from);
        self.check(written);
        self.line("");
    }

    /// A value as one line of JSON.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string(value)?;
        self.line(text);
        Ok(())
    }

    /// A value as YAML.
    pub(crate) fn yaml(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_saphyr::to_string(value)?;
        self.line(text.trim_end());
        Ok(())
    }

    /// A note beside the result.
    #[expect(clippy::print_stderr, reason = "the one place that writes to standard error")]
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        let _ = self.out.flush();
        eprintln!("{}", text.as_ref());
    }

    /// An error with its chain of causes, in one line.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        self.note(format!("error: {error:#}"));
    }

    /// Progress on a terminal, where something takes long.
    pub(crate) fn progress(what: &'static str, of: usize) -> ProgressBar {
        if !io::stderr().is_terminal() || of < 1000 {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(u64::try_from(of).unwrap_or(u64::MAX));
        let style = ProgressStyle::with_template("{msg} {pos}/{len} {wide_bar} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }

    /// Writes out what is buffered. A failure to write is an error, whatever the command achieved.
    pub(crate) fn finish(mut self, exit: Exit) -> Exit {
        let flushed = self.out.flush();
        self.check(flushed);
        match self.failed.take() {
            Some(error) => {
                self.note(format!("error: cannot write the output: {error}"));
                Exit::Error
            }
            None => exit,
        }
    }
}
