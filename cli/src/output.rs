//! What commands print.

use serde::Serialize;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Padding, Style};

/// Prints `value` as JSON.
pub fn json(value: &impl Serialize) {
    println!("{}", serde_json::to_string_pretty(value).expect("output is representable"));
}

/// Rows under a header, in columns: those numbered in `right` are aligned to the right.
pub fn columns(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>, right: &[usize]) -> String {
    let mut builder = Builder::new();
    builder.push_record(header.iter().copied());
    rows.into_iter().for_each(|row| builder.push_record(row));
    let mut table = builder.build();
    table.with(Style::empty()).with(Padding::new(0, 2, 0, 0));
    for &column in right {
        table.modify(Columns::one(column), Alignment::right());
    }
    table.to_string()
}

/// A count with its noun: `1 payment`, `2 payments`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
