//! Exit statuses, as scripts know them.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or nothing to do.
    Done,
    /// An error, also where an input could not be read.
    Error,
    /// `--exit-code`: changes are pending.
    Pending,
    /// `--exit-code`: nothing is pending, and something needs a human.
    NeedsHuman,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Error => 1,
            Exit::Pending => 3,
            Exit::NeedsHuman => 4,
        })
    }
}
