//! CSV files with columns that are known, and errors that name the line and the column.

use std::fmt::Display;
use std::io::Read;
use std::str::FromStr;

use csv::StringRecord;

/// A line of a file.
pub struct Line<'a> {
    header: &'a StringRecord,
    record: &'a StringRecord,
}

impl Line<'_> {
    /// The cell of `column`, if there is one and it is not blank.
    ///
    /// # Errors
    /// The column, what stands there, and what is allowed.
    pub fn cell<T: FromStr<Err: Display>>(&self, column: &str) -> Result<Option<T>, String> {
        let place = self.header.iter().position(|name| name == column);
        let text = place.and_then(|place| self.record.get(place)).filter(|text| !text.is_empty());
        text.map(|text| text.parse().map_err(|error| format!("{column} {text:?}: {error}"))).transpose()
    }

    /// The cell of `column`, which must not be blank.
    ///
    /// # Errors
    /// As [`Line::cell`].
    pub fn needed<T: FromStr<Err: Display>>(&self, column: &str) -> Result<T, String> {
        self.cell(column)?.ok_or_else(|| format!("{column} must not be blank"))
    }
}

/// What `read` makes of each line of a file's text, if all of them are right.
///
/// # Errors
/// The line, the column and what is allowed.
pub fn lines<T>(
    text: impl Read,
    columns: &[&str],
    read: impl Fn(&Line<'_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    if let Some(column) = header.iter().find(|column| !columns.contains(column)) {
        return Err(format!("column {column:?} is not known; the columns are {}", columns.join(",")));
    }
    let line = |record: Result<StringRecord, csv::Error>| {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        read(&Line { header: &header, record: &record }).map_err(|reason| format!("line {line}: {reason}"))
    };
    reader.records().map(line).collect()
}
