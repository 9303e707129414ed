//! Prints output and messages. Only this module writes to standard output and standard error: if the reader has closed
//! the pipe, a command must end without an error, but the `print` macros panic.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use console::style;
use indicatif::HumanCount;
use serde::Serialize;

use crate::Failure;

/// Writes `text` to standard output.
///
/// # Errors
/// If standard output cannot be written, or its reader has closed the pipe ([`ErrorKind::BrokenPipe`]).
pub fn write_to_stdout(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Prints `text` to standard output. A closed pipe is not an error.
///
/// # Errors
/// [`Failure::Output`] if standard output cannot be written for another reason.
pub fn print_text(text: &str) -> Result<(), Failure> {
    ignore_closed_output(write_to_stdout(text))
}

/// Prints `text` as a line on standard error. Failures are ignored: there is no other place to report them.
pub fn print_message(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints the `message` of an error on standard error: as a line of text, or as a JSON object if `is_json` is true.
pub fn print_error(message: &str, is_json: bool) {
    if is_json {
        print_message(serde_json::json!({ "error": { "message": message } }));
    } else {
        print_message(format!("error: {message}"));
    }
}

/// Returns `value` as indented JSON with a line break at the end.
pub fn format_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("the output can be written as JSON") + "\n"
}

/// Converts the result of a write. A closed pipe counts as success, so that `dueday export receipts | head` does not
/// fail.
pub fn ignore_closed_output(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// Returns a subscription's status in its colour: green if active, yellow if past due, red if unpaid.
pub fn colored_status(status: &str) -> String {
    let text = style(status.replace('_', " "));
    match status {
        "active" => text.green(),
        "past_due" => text.yellow(),
        "unpaid" => text.red(),
        _ => text.dim(),
    }
    .to_string()
}

/// Returns `word` in green, the colour of a good result.
pub fn green_text(word: &str) -> String {
    style(word).green().to_string()
}

/// Returns `word` in bold red, the colour of a result that needs attention.
pub fn red_text(word: &str) -> String {
    style(word).red().bold().to_string()
}

/// Returns `number` with its noun in the singular or plural: `1 payment`, `2 payments`.
pub fn format_count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", HumanCount(number)) }
}
