//! What commands print. Nothing else in this crate writes to standard output or standard error: a reader that is gone
//! must end a command quietly, and the `print` macros panic.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use console::style;
use indicatif::HumanCount;
use serde::Serialize;

use crate::Failure;

/// Writes `text` to standard output.
///
/// # Errors
/// It cannot be written, or the reader is gone ([`ErrorKind::BrokenPipe`]).
pub fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Prints `text`; a reader that is gone is no failure.
///
/// # Errors
/// [`Failure::Output`].
pub fn print(text: &str) -> Result<(), Failure> {
    unless_closed(write(text))
}

/// Says `text` on standard error, a line. There is nobody to tell if that fails.
pub fn tell(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// `value` as JSON.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("output is representable") + "\n"
}

/// `written`, unless the reader has gone: `dueday export receipts | head` is no failure.
pub fn unless_closed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// A subscription's status, coloured by how well it is.
pub fn status(status: &str) -> String {
    let text = style(status.replace('_', " "));
    match status {
        "active" => text.green(),
        "past_due" => text.yellow(),
        "unpaid" => text.red(),
        _ => text.dim(),
    }
    .to_string()
}

/// A word that says that something is as it should be.
pub fn good(word: &str) -> String {
    style(word).green().to_string()
}

/// A word that says that somebody must look.
pub fn bad(word: &str) -> String {
    style(word).red().bold().to_string()
}

/// A count with its noun: `1 payment`, `2 payments`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", HumanCount(number)) }
}
