//! `cargo xtask generate`: the reference in `docs/reference`, made from the code.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use plan::{FindingReason, Plan, Policy, Reason};

use crate::run::root;

pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let files = [
        ("docs/reference/cli.md", cli()),
        ("docs/reference/reasons.md", reasons()),
        ("docs/reference/plan.schema.json", schema::<Plan>()?),
        ("docs/reference/policy.schema.json", schema::<Policy>()?),
    ];
    let mut stale = Vec::new();
    for (name, text) in files {
        let path = root().join(name);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if check {
            stale.push(name);
        } else {
            fs::create_dir_all(path.parent().context("no folder")?)?;
            fs::write(&path, text)?;
            println!("wrote {name}");
        }
    }
    if !stale.is_empty() {
        bail!("out of date: {}; run `cargo xtask generate` and commit the result", stale.join(", "));
    }
    Ok(())
}

fn schema<T: schemars::JsonSchema>() -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&schemars::schema_for!(T))? + "\n")
}

const GENERATED: &str = "<!-- Made by `cargo xtask generate`; do not edit. -->\n";

fn reasons() -> String {
    let mut out = format!("{GENERATED}\n# Reason codes\n\n");
    out += "Every decision of a plan has one reason. The list is closed for a version of the program; readers must accept \
            new words.\n\n`human` marks reasons for which `plan --exit-code` ends with 4 when nothing is pending.\n\n";
    out += "| action | reason | human | meaning |\n|---|---|---|---|\n";
    for reason in Reason::ALL {
        let human = if reason.needs_human() { "yes" } else { "" };
        let action = reason.action().as_str();
        let _ = writeln!(out, "| {action} | `{}` | {human} | {} |", reason.as_str(), reason.meaning());
    }
    out += "\n# Findings\n\nWhat should be known beside the decisions.\n\n| reason | meaning |\n|---|---|\n";
    for (reason, meaning) in FindingReason::ALL {
        let _ = writeln!(out, "| `{reason:?}` | {meaning} |");
    }
    out
}

fn cli() -> String {
    let mut out = format!("{GENERATED}\n# Command line\n\n");
    out += "Exit status: 0 done, or nothing to do; 1 an error, also where one of several inputs could not be read; with \
            `plan --exit-code` 3 when changes are pending, else 4 when something needs a human.\n";
    let mut command = bootwright::cli::Cli::command();
    command.build();
    describe(&command, "", &mut out);
    out
}

fn describe(command: &clap::Command, prefix: &str, out: &mut String) {
    let name = format!("{prefix}{}", command.get_name());
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    if !prefix.is_empty() {
        let _ = write!(out, "\n## `{name}`\n\n{about}.\n\n```\n{usage}\n```\n");
        let arguments: Vec<_> =
            command.get_arguments().filter(|a| a.get_id() != "help" && !a.is_hide_set()).collect();
        if !arguments.is_empty() {
            *out += "\n| argument | meaning |\n|---|---|\n";
        }
        for argument in arguments {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let mut values: Vec<String> = Vec::new();
            if argument.get_action().takes_values() {
                values =
                    argument.get_possible_values().iter().map(|v| format!("`{}`", v.get_name())).collect();
            }
            let values = if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) };
            let shown = argument.to_string().replace('|', "\\|");
            let _ = writeln!(out, "| `{shown}` | {}{values} |", help.replace('|', "\\|"));
        }
    }
    for sub in command.get_subcommands().filter(|s| s.get_name() != "help") {
        describe(sub, &format!("{name} "), out);
    }
}
