//! What commands print.

use std::io::{ErrorKind, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::peaker::PriorityMax;
use tabled::settings::{Alignment, Padding, Style as Lines, Width};

use crate::Failure;

/// Prints `text`. Colours stay on terminals that take them; whoever has stopped reading is not written to.
///
/// # Errors
/// [`Failure::Output`].
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout();
    unless_closed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Prints `value` as JSON.
///
/// # Errors
/// [`Failure::Output`].
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    print(&(serde_json::to_string_pretty(value).expect("output is representable") + "\n"))
}

/// `written`, unless the reader has gone: `dueday export receipts | head` is no failure.
pub fn unless_closed(written: std::io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// Rows under a header, in columns that fit the terminal: those numbered in `right` are aligned to the right.
pub fn columns(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>, right: &[usize]) -> String {
    let mut builder = Builder::new();
    builder.push_record(header.iter().map(|name| styled(name, Style::new().bold())));
    rows.into_iter().for_each(|row| builder.push_record(row));
    let mut table = builder.build();
    table.with(Lines::empty()).with(Padding::new(0, 2, 0, 0));
    for &column in right {
        table.modify(Columns::one(column), Alignment::right());
    }
    if let Some(width) = width() {
        table.with(Width::truncate(width).suffix("…").priority(PriorityMax::right()));
    }
    table.to_string().lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The terminal's width; none where the output is no terminal.
fn width() -> Option<usize> {
    let is_terminal = std::io::stdout().is_terminal();
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size().filter(|_| is_terminal)?;
    Some(usize::from(columns))
}

/// A subscription's status, coloured by how well it is.
pub fn status(status: &str) -> String {
    let colour = match status {
        "active" => AnsiColor::Green,
        "past_due" => AnsiColor::Yellow,
        "unpaid" => AnsiColor::Red,
        _ => AnsiColor::BrightBlack,
    };
    styled(&status.replace('_', " "), colour.on_default())
}

fn styled(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// A count with its noun: `1 payment`, `2 payments`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", grouped(number)) }
}

/// A number in groups of three digits: `100,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}
