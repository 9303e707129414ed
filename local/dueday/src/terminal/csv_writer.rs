//! The writer of all CSV files of the command.

use std::borrow::Cow;
use std::io::{self, Write};

use csv::{QuoteStyle, WriterBuilder};

use super::spreadsheet_cell::escape_formulas;

/// A cell of a CSV file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CsvCell<'a> {
    /// A text, which may come from a customer. Formulas in it are escaped.
    Text(Cow<'a, str>),
    /// A number that the program computed, such as an amount. It may be negative.
    Number(String),
}

impl<'a> From<&'a str> for CsvCell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for CsvCell<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// Writes a CSV file that a spreadsheet program can open: every text that is not a number is in double quotes, and no text is evaluated as a
/// formula, whether the program separates cells at commas, semicolons or tabs.
pub struct CsvWriter<W: Write>(csv::Writer<W>);

impl<W: Write> CsvWriter<W> {
    /// Creates the writer of a file to `output`.
    pub fn new(output: W) -> Self {
        Self(WriterBuilder::new().quote_style(QuoteStyle::NonNumeric).from_writer(output))
    }

    /// Writes `cells` as one row.
    ///
    /// # Errors
    /// If the output cannot be written, or if the row has another number of cells than the first row.
    pub fn write_row<'a>(&mut self, cells: impl IntoIterator<Item = CsvCell<'a>>) -> io::Result<()> {
        let cells = cells.into_iter().map(|cell| match cell {
            CsvCell::Text(text) => escape_formulas(&text).into_owned(),
            CsvCell::Number(number) => number,
        });
        self.0.write_record(cells).map_err(into_io_error)
    }

    /// Writes the buffered rows to the output.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    /// Returns the output. Rows that are still buffered are not in it.
    pub fn output(&self) -> &W {
        self.0.get_ref()
    }
}

/// Returns the I/O error inside `error`, so that callers can distinguish a closed pipe from other errors such as a full
/// disk.
fn into_io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use csv::ReaderBuilder;

    use super::super::spreadsheet_cell::unescape_formulas;
    use super::*;

    /// Texts that would be formulas in a spreadsheet, at the start of a cell or after a separator.
    const HOSTILE_TEXTS: [&str; 14] = [
        "=1+1",
        "＝HYPERLINK(\"http://evil.example\")",
        "＋1",
        "－1",
        "＠SUM(A1)",
        "a;=1+1",
        "a;\"=1+1",
        "a\";=1+1",
        "a; ＝1+1;@b",
        "a\t=1+1",
        "a\n=1+1",
        "a,=1+1",
        "';'=1",
        "\";\"\"=1+1",
    ];

    /// Returns the cells of a file with one row of `texts`, as a program with the delimiter `delimiter` reads them.
    fn parsed_csv_cells(texts: &[&str], delimiter: u8) -> Vec<String> {
        let mut writer = CsvWriter::new(Vec::new());
        writer.write_row(texts.iter().map(|text| CsvCell::from(*text))).unwrap();
        writer.flush().unwrap();
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(writer.output().as_slice());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        rows.iter().flatten().map(str::to_owned).collect()
    }

    #[test]
    fn csv_file_contains_no_formula_whichever_delimiter_the_spreadsheet_uses() {
        for delimiter in [b',', b';', b'\t'] {
            for hostile in HOSTILE_TEXTS {
                for cell in parsed_csv_cells(&["first", hostile, "last"], delimiter) {
                    let begin = cell.trim_start_matches(['"', ' ']);
                    let is_formula = begin.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
                    assert!(!is_formula, "{hostile:?} with {:?}: {cell:?}", delimiter as char);
                }
            }
        }
    }

    #[test]
    fn csv_file_is_read_back_unchanged() {
        let read = parsed_csv_cells(&HOSTILE_TEXTS, b',');
        let read: Vec<_> = read.iter().map(|cell| unescape_formulas(cell)).collect();
        assert_eq!(read, HOSTILE_TEXTS);
    }

    #[test]
    fn csv_file_has_quotes_around_texts_and_none_around_numbers() {
        let mut writer = CsvWriter::new(Vec::new());
        writer.write_row(["account", "amount", "name"].map(CsvCell::from)).unwrap();
        writer.write_row(["acme".into(), CsvCell::Number("-5.00".to_owned()), "".into()]).unwrap();
        writer.flush().unwrap();
        let text = String::from_utf8(writer.output().clone()).unwrap();
        assert_eq!(text, "\"account\",\"amount\",\"name\"\n\"acme\",-5.00,\"\"\n");
    }
}
