//! Changes clap's definition of the command line: `dueday --help` lists the commands in groups, by the job of the
//! reader.

use clap::{Arg, ArgAction, Command};

/// The groups, and the commands of each group in the order of the list.
const COMMAND_GROUPS: [(&str, &[&str]); 6] = [
    ("Find and explain", &["accounts", "subscriptions", "receipts", "why", "log", "events", "export"]),
    ("Act for a customer", &["account", "subscription", "refund", "receipt"]),
    (
        "Every day",
        &[
            "status",
            "run",
            "runs",
            "due",
            "forecast",
            "report",
            "findings",
            "resolve",
            "audit",
            "reconcile",
            "duplicates",
        ],
    ),
    ("Goods", &["orders"]),
    (
        "Set up and change the system",
        &[
            "deploy",
            "doctor",
            "import",
            "webhooks",
            "charging",
            "settings",
            "confirm-clock",
            "confirm-table",
            "gateway",
            "move-gateway",
            "shards",
            "reshard",
        ],
    ),
    ("Try and develop", &["demo", "listen", "token", "simulate", "completions", "help"]),
];

/// The template of the help: clap's own template without the list of commands, which is added in groups.
const HELP_TEMPLATE: &str = "{before-help}{about-with-newline}\n{usage-heading} dueday [OPTIONS] [COMMAND]\n\n";

/// Returns the names of the commands in all groups.
#[cfg(test)]
pub fn grouped_names() -> impl Iterator<Item = &'static str> {
    COMMAND_GROUPS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// Returns the built command `dueday` with a help that lists the commands in groups.
pub fn with_groups(dueday: Command) -> Command {
    let width = COMMAND_GROUPS.iter().flat_map(|(_, names)| names.iter()).map(|name| name.len()).max().unwrap_or(0);
    let line = |name: &&str| {
        let about = dueday.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
        format!("  {name:width$}  {}\n", about.unwrap_or_default())
    };
    let group =
        |(title, names): &(&str, &[&str])| format!("{title}:\n{}\n", names.iter().map(line).collect::<String>());
    let groups: String = COMMAND_GROUPS.iter().map(group).collect();
    let names: Vec<String> = dueday.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let hidden = |dueday: Command, name: &String| dueday.mut_subcommand(name, |command| command.hide(true));
    let dueday = dueday.after_long_help(crate::options::help_of_environment());
    names.iter().fold(dueday, hidden).help_template(format!("{HELP_TEMPLATE}{groups}{{all-args}}{{after-help}}"))
}

/// Lets every option accept a negative number as its value, so that the error message of the option states the allowed
/// values.
pub fn allow_negative_numbers(command: Command) -> Command {
    let takes_value = |arg: &Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let command = command.mut_args(|arg| if takes_value(&arg) { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(allow_negative_numbers)
}
