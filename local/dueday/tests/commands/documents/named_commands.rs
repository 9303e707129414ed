//! Checks each command in backticks of the documents, such as `dueday why ACCOUNT SUBSCRIPTION`: its subcommands and
//! options exist. If the command contains all its arguments, the command line accepts it. Blocks of code are not
//! checked here, because `.ci/tour` runs them.

use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _};
use dueday::Arguments;

use super::text_files;

/// The document about the past. It may name commands that no longer exist.
const HISTORY: &str = "CHANGELOG.md";

/// The placeholders in the documents, and a valid value of each.
const PLACEHOLDERS: [(&str, &str); 25] = [
    ("ACCOUNT", "acme"),
    ("SUBSCRIPTION", "01JZXCVBNM0123456789ABCDEF"),
    ("ENDPOINT", "01JZXCVBNM0123456789ABCDEF"),
    ("DATE", "2027-01-31"),
    ("DAY", "2027-01-31"),
    ("D", "2027-01-31"),
    ("DAYS", "7"),
    ("N", "3"),
    ("ID", "01JZXCVBNM0123456789ABCDEF"),
    ("NUMBER", "202701-7KQ29M-4T3XWA"),
    ("RECEIPT", "2027-01-31.01JZXCVBNM0123456789ABCDEF.gold"),
    ("PAYMENT", "pay_1"),
    ("TABLE", "dueday"),
    ("NAME", "dueday"),
    ("OLD", "dueday"),
    ("URL", "https://gateway.example.com"),
    ("GATEWAY", "https://gateway.example.com"),
    ("ZONE", "Europe/Vienna"),
    ("TEXT", "a reason"),
    ("REASON", "a reason"),
    ("SKU", "gold"),
    ("ADDRESS", "ana@example.com"),
    ("FOLDER", "folder"),
    ("FILE", "file.csv"),
    ("X", "status"),
];

/// Returns the commands in backticks of `document`, outside of blocks of code. A line break in a command is a space.
fn named_commands(document: &str) -> Vec<String> {
    let texts = document.split("```").step_by(2);
    let quoted = texts.flat_map(|text| text.split('`').skip(1).step_by(2));
    let commands = quoted.map(|quoted| quoted.split_whitespace().collect::<Vec<_>>().join(" "));
    commands.filter(|command| command.starts_with("dueday ")).collect()
}

/// Returns the reason why the command line refuses `command`; `None` if it accepts `command`. A command without
/// placeholders, such as `dueday refund`, only names a subcommand or an option, so its required arguments may be
/// missing.
fn reason_to_refuse(dueday: &Command, command: &str) -> Option<String> {
    let is_placeholder = |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase());
    let mut words = Vec::new();
    for word in command.split(' ') {
        match PLACEHOLDERS.iter().find(|(placeholder, _)| *placeholder == word) {
            Some((_, value)) => words.push(*value),
            None if is_placeholder(word) => return Some(format!("{word} is not in the list of placeholders")),
            None => words.push(word),
        }
    }
    let is_complete = command.split(' ').any(is_placeholder);
    let error = dueday.clone().try_get_matches_from(&words).err()?;
    let is_missing = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    let is_option_without_value = error.kind() == ErrorKind::InvalidValue && words.last()?.starts_with("--");
    let is_reference = !is_complete && (is_missing || is_option_without_value);
    (!is_reference && error.kind() != ErrorKind::DisplayHelp).then(|| error.render().to_string())
}

#[test]
fn each_command_that_a_document_names_can_be_typed() {
    let (mut checked, mut refused) = (0, Vec::new());
    let mut dueday = Arguments::command();
    dueday.build();
    let documents = text_files().filter(|(path, _)| path.ends_with(".md") && path != HISTORY);
    for (path, document) in documents {
        for command in named_commands(&document) {
            checked += 1;
            if let Some(reason) = reason_to_refuse(&dueday, &command) {
                refused.push(format!("{path}: `{command}`: {reason}"));
            }
        }
    }
    assert!(checked > 150, "the test finds too few commands: {checked}");
    assert!(refused.is_empty(), "the documents name commands that the command line refuses:\n{}", refused.join("\n"));
}

#[test]
fn a_wrong_command_in_a_document_is_found() {
    let document = "Run `dueday why ACCOUNT SUBSCRIPTION\n--date DATE`, `dueday refund` or `dueday listen --forward-to`.\n\n\
        ```sh\ndueday not-checked here\n```\n\nNever `dueday refund NUMBER`, `dueday statsu`, `dueday runs --day D` or \
        `dueday why WHO SUBSCRIPTION`.";
    let commands = named_commands(document);
    let dueday = Arguments::command();
    let refused: Vec<&str> =
        commands.iter().filter(|command| reason_to_refuse(&dueday, command).is_some()).map(String::as_str).collect();
    let wrong = ["dueday refund NUMBER", "dueday statsu", "dueday runs --day D", "dueday why WHO SUBSCRIPTION"];
    assert_eq!((commands.len(), refused), (7, wrong.to_vec()));
}
