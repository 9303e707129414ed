//! Reads the CSV files of the order desk. Error messages contain the line number and the column name.

use std::fmt::Display;
use std::io::Read;
use std::str::FromStr;

use billing::parse_date;
use chrono::NaiveDate;
use csv::StringRecord;

/// A line of a CSV file.
pub struct CsvLine<'a> {
    header: &'a StringRecord,
    record: &'a StringRecord,
}

impl CsvLine<'_> {
    /// Parses the cell of `column`; `None` if the file lacks the column or the cell is blank.
    ///
    /// # Errors
    /// If the text of the cell is invalid. The message states the column, the text and the allowed values.
    pub fn optional_cell<T: FromStr<Err: Display>>(&self, column: &str) -> Result<Option<T>, String> {
        self.parse_cell(column, str::parse)
    }

    /// Parses the date in the cell of `column`; `None` if the file lacks the column or the cell is blank.
    ///
    /// # Errors
    /// Like [`CsvLine::optional_cell`].
    pub fn optional_date(&self, column: &str) -> Result<Option<NaiveDate>, String> {
        self.parse_cell(column, parse_date)
    }

    /// Parses the date in the cell of `column`, which must not be blank.
    ///
    /// # Errors
    /// Like [`CsvLine::required_cell`].
    pub fn required_date(&self, column: &str) -> Result<NaiveDate, String> {
        self.optional_date(column)?.ok_or_else(|| must_not_be_blank(column))
    }

    /// Parses the cell of `column` with `parse`; `None` if the file lacks the column or the cell is blank.
    fn parse_cell<T, E: Display>(
        &self,
        column: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, String> {
        let index = self.header.iter().position(|name| name == column);
        let text = index.and_then(|index| self.record.get(index)).filter(|text| !text.is_empty());
        text.map(|text| parse(text).map_err(|error| format!("{column} {text:?}: {error}"))).transpose()
    }

    /// Parses the cell of `column`, which must not be blank.
    ///
    /// # Errors
    /// Like [`CsvLine::optional_cell`], and if the cell is blank.
    pub fn required_cell<T: FromStr<Err: Display>>(&self, column: &str) -> Result<T, String> {
        self.optional_cell(column)?.ok_or_else(|| must_not_be_blank(column))
    }
}

/// Returns the error for a blank cell of `column`.
fn must_not_be_blank(column: &str) -> String {
    format!("{column} must not be blank")
}

/// Parses every line of the CSV file `text` with `read`. The header may only contain the names in `columns`.
///
/// # Errors
/// If the header or a line is invalid, or if there is no line after the header. The message states the line, the column
/// and the allowed values.
pub fn read_csv_lines<T>(
    text: impl Read,
    columns: &[&str],
    read: impl Fn(&CsvLine<'_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    if let Some(column) = header.iter().find(|column| !columns.contains(column)) {
        return Err(format!("column {column:?} is unknown; the columns are {}", columns.join(",")));
    }
    let line = |record: Result<StringRecord, csv::Error>| {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        read(&CsvLine { header: &header, record: &record }).map_err(|reason| format!("line {line}: {reason}"))
    };
    let lines: Vec<T> = reader.records().map(line).collect::<Result<_, _>>()?;
    if lines.is_empty() {
        return Err(format!("the file must contain a line after the header; the columns are {}", columns.join(",")));
    }
    Ok(lines)
}
