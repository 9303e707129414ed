//! Changes clap's definition of the command line: `dueday --help` lists the commands in groups, by the job of the
//! reader. `--help` leaves out the settings and the rare commands, which `--help-all` adds.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

/// A title, and the names of the commands below it in the order of the list.
type CommandGroup = (&'static str, &'static [&'static str]);

/// The groups of commands that `dueday --help` lists.
const COMMAND_GROUPS: [CommandGroup; 5] = [
    ("Find and explain", &["accounts", "subscriptions", "receipts", "why", "log", "events", "export"]),
    ("Act for a customer", &["account", "subscription", "refund", "receipt"]),
    (
        "Every day",
        &["status", "run", "runs", "due", "forecast", "report", "findings", "resolve", "audit", "reconcile", "orders"],
    ),
    (
        "Set up and change the system",
        &["deploy", "doctor", "import", "webhooks", "charging", "settings", "gateway", "shards"],
    ),
    ("Try and develop", &["demo", "listen", "token", "simulate", "completions"]),
];

/// The group of commands that only `dueday --help-all` lists.
const RARE_COMMANDS: CommandGroup =
    ("Rarely needed", &["duplicates", "confirm-clock", "confirm-table", "move-gateway", "reshard"]);

/// The template of the help: clap's own template without the list of commands, which is added in groups.
const HELP_TEMPLATE: &str = "{before-help}{about-with-newline}\n{usage-heading} dueday [OPTIONS] [COMMAND]\n\n";

/// The text after the short help of `dueday`.
const SHORT_FOOTER: &str = "Start with `dueday demo`. `dueday COMMAND --help` explains a command. `dueday --help-all` \
                            lists the settings, rarely needed commands, examples and exit codes.";

/// The heading of the options with which `dueday` serves the system.
pub const SERVING_HEADING: &str = "Serving";

/// Returns the names of the commands in all groups.
#[cfg(test)]
pub fn grouped_command_names() -> impl Iterator<Item = &'static str> {
    COMMAND_GROUPS.iter().chain([&RARE_COMMANDS]).flat_map(|(_, names)| names.iter().copied())
}

/// Returns the built command `dueday` with a help that lists the commands in groups. `long_footer` is the text after the
/// long help.
pub fn with_grouped_help(dueday: Command, long_footer: &str) -> Command {
    let all_groups = || COMMAND_GROUPS.iter().chain([&RARE_COMMANDS]);
    let width = all_groups().flat_map(|(_, names)| names.iter()).map(|name| name.len()).max().unwrap_or(0);
    let line = |name: &&str| {
        let about = dueday.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
        format!("  {name:width$}  {}\n", about.unwrap_or_default())
    };
    let group = |(title, names): &CommandGroup| format!("{title}:\n{}\n", names.iter().map(line).collect::<String>());
    let groups: String = COMMAND_GROUPS.iter().map(group).collect();
    let long_footer = format!("{}{long_footer}", group(&RARE_COMMANDS));
    let dueday = dueday.after_help(SHORT_FOOTER).after_long_help(long_footer);
    let hidden = |command: Command| move_details_behind_options(hide_serving_options(command)).hide(true);
    hide_serving_options(dueday)
        .mut_subcommands(hidden)
        .help_template(format!("{HELP_TEMPLATE}{groups}{{all-args}}{{after-help}}"))
}

/// Hides the options of the server from the short help of `command`.
fn hide_serving_options(command: Command) -> Command {
    let is_serving = |arg: &Arg| arg.get_help_heading() == Some(SERVING_HEADING);
    command.mut_args(|arg| if is_serving(&arg) { arg.hide_short_help(true) } else { arg })
}

/// Moves the further paragraphs of the description of `command` and its subcommands behind the options, because the
/// short help shows only the first paragraph.
fn move_details_behind_options(command: Command) -> Command {
    let command = command.mut_subcommands(move_details_behind_options);
    let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    let (about, long) = (text(command.get_about()), text(command.get_long_about()));
    let Some(further) = long.strip_prefix(&about).map(|further| further.trim_start_matches('.').trim()) else {
        return command;
    };
    if further.is_empty() {
        return command;
    }
    let after = [further.to_owned(), text(command.get_after_help())].join("\n\n");
    command.long_about(None).after_help(after.trim_end().to_owned())
}

/// Lets every option accept a negative number as its value, so that the error message of the option states the allowed
/// values.
pub fn allow_negative_numbers(command: Command) -> Command {
    let takes_value = |arg: &Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let command = command.mut_args(|arg| if takes_value(&arg) { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(allow_negative_numbers)
}

/// Returns the `arguments` of the process with `--help` at the end if the first of them is the word `help`: `help run`
/// means `run --help`.
pub fn replace_help_word(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_some_and(|word| word == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    arguments
}
