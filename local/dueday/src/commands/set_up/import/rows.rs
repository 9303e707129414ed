//! Reads the rows of a CSV file with subscriptions, one after the other.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use chrono::NaiveDate;
use csv::ByteRecord;
use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};

use super::column::ImportHeader;
use super::line_counter::LineCounter;
use super::rejects::Rejected;
use super::row::ImportRow;
use crate::Failure;

/// The largest size of the first line, the header, in bytes.
const MAX_HEADER_BYTES: u64 = 64 * 1024;
/// The allowed delimiters of cells; the header determines the delimiter of a file.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// The text of a file: the first line, which was already read to detect the delimiter, followed by the rest.
type Text<R> = io::Chain<Cursor<Vec<u8>>, BufReader<DecodeReaderBytes<R, Vec<u8>>>>;

/// Reads the rows of a CSV file. The text is UTF-8, with or without a byte order mark, or UTF-16 with a byte order
/// mark. The lines end with LF, CRLF or CR.
pub struct ImportRowReader<R> {
    reader: csv::Reader<LineCounter<Text<R>>>,
    delimiter: u8,
    header: ImportHeader,
    /// The date on which the subscriptions are created; `None` if the first payment dates are not compared with it.
    today: Option<NaiveDate>,
    /// Whether every row may be the second subscription of its SKU.
    allow_second: bool,
}

/// A row and its line number, or the reasons to reject the row.
pub type ReadRow = Result<(u64, ImportRow), Vec<Rejected>>;

/// Reads all rows of the file at `path`. `today` is the date on which their subscriptions will be created.
///
/// # Errors
/// [`Failure::File`] if the file cannot be read or a row is invalid. The message states the line, the column and the
/// allowed values.
pub fn read_import_rows(path: &Path, today: NaiveDate) -> Result<Vec<ImportRow>, Failure> {
    let file_failure = |reason: String| Failure::File { path: path.to_owned(), reason };
    parse_import_rows(&std::fs::read(path).map_err(|error| file_failure(error.to_string()))?, today)
        .map_err(file_failure)
}

/// Reads all rows of a file's `bytes`. `today` is the date on which their subscriptions will be created.
///
/// # Errors
/// If a row is invalid. The message states the line, the column and the allowed values.
pub fn parse_import_rows(bytes: &[u8], today: NaiveDate) -> Result<Vec<ImportRow>, String> {
    let mut rows = ImportRowReader::new(bytes)?.with_creation_date(today);
    let mut all = Vec::new();
    while let Some(row) = rows.next_row().map_err(|error| error.to_string())? {
        let join_reasons =
            |rejections: Vec<Rejected>| rejections.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        all.push(row.map_err(join_reasons)?.1);
    }
    Ok(all)
}

impl<R: Read> ImportRowReader<R> {
    /// Creates the reader of `file` and reads the header, which must contain exactly the allowed columns.
    ///
    /// # Errors
    /// If the file is not text, or its header is invalid. The message states the problem and the allowed columns.
    pub fn new(file: R) -> Result<Self, String> {
        let decoder = DecodeReaderBytesBuilder::new().utf8_passthru(true).strip_bom(true).build(file);
        let mut text = BufReader::new(decoder);
        let unreadable = |error: io::Error| error.to_string();
        let mut first = Vec::new();
        while first.trim_ascii().is_empty()
            && text.by_ref().take(MAX_HEADER_BYTES).read_until(b'\n', &mut first).map_err(unreadable)? > 0
        {}
        if first.starts_with(b"PK\x03\x04") {
            return Err("is a spreadsheet file, not CSV: save it as \"CSV UTF-8\"".to_owned());
        }
        if first.contains(&0) {
            return Err("is not UTF-8 text: save it as \"CSV UTF-8\"".to_owned());
        }
        let excel_delimiter = parse_excel_delimiter(&first)?;
        let delimiter = excel_delimiter.unwrap_or_else(|| detect_delimiter(&first));
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(LineCounter::new(Cursor::new(first).chain(text)));
        let mut names = ByteRecord::new();
        if excel_delimiter.is_some() {
            reader.read_byte_record(&mut names).map_err(|error| io::Error::from(error).to_string())?;
        }
        reader.read_byte_record(&mut names).map_err(|error| io::Error::from(error).to_string())?;
        let header = ImportHeader::parse_first_line(names.iter())?;
        Ok(Self { reader, delimiter, header, today: None, allow_second: false })
    }

    /// Makes the reader compare the first payment dates with `today`, the date on which the subscriptions are created.
    pub fn with_creation_date(self, today: NaiveDate) -> Self {
        Self { today: Some(today), ..self }
    }

    /// Imports the second subscriptions of a SKU of all rows, whatever their column `allow_second` contains, if
    /// `allow_second` is true.
    pub fn with_allow_second(self, allow_second: bool) -> Self {
        Self { allow_second, ..self }
    }

    /// Returns the next row; `None` at the end of the file.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn next_row(&mut self) -> io::Result<Option<ReadRow>> {
        let mut record = ByteRecord::new();
        if !self.reader.read_byte_record(&mut record).map_err(io::Error::from)? {
            return Ok(None);
        }
        let offset = record.position().map_or(0, csv::Position::byte);
        let line = self.reader.get_mut().line_at(offset).unwrap_or_default();
        let reject_row = |reason| Ok(Some(Err(vec![Rejected::row(line, reason)])));
        if record.iter().all(|cell| cell.trim_ascii().is_empty()) {
            return reject_row("is blank: remove the line".to_owned());
        }
        let line_breaks = record.iter().flatten().filter(|byte| **byte == b'\n').count();
        let contains_rows = |cell: &&[u8]| cell.contains(&b'\n') && cell.contains(&self.delimiter);
        let end = self.reader.position().byte();
        if let Some(cell) = record.iter().find(contains_rows)
            && has_open_quote(self.reader.get_mut().bytes_until(end), self.delimiter)
        {
            let last = line.saturating_add(u64::try_from(line_breaks).unwrap_or(0));
            let begin: String = String::from_utf8_lossy(cell).chars().take_while(|c| !c.is_control()).take(8).collect();
            return reject_row(format!(
                "the double quote before {begin:?} is not closed on its line, so the lines {line} to {last} became one row, \
                 and none of them is imported: close the quote, or write a quote inside of a cell twice"
            ));
        }
        let further_cells = record.iter().skip(self.header.width);
        if record.len() < self.header.width || further_cells.into_iter().any(|cell| !cell.trim_ascii().is_empty()) {
            let hint = "a field that contains the delimiter must be in double quotes";
            return reject_row(format!("must have {} fields, not {}; {hint}", self.header.width, record.len()));
        }
        let row = ImportRow::parse_record(&self.header, &record, line, self.today);
        Ok(Some(row.map(|row| (line, ImportRow { allow_second: row.allow_second || self.allow_second, ..row }))))
    }
}

/// Returns whether a cell in `row`, the text of a row, begins with a double quote that is not closed before the end of
/// the cell.
fn has_open_quote(row: &[u8], delimiter: u8) -> bool {
    let ends_cell = |byte: u8| byte == delimiter || byte == b'\r' || byte == b'\n';
    let mut bytes = row.iter().copied().peekable();
    let mut is_cell_start = true;
    while let Some(byte) = bytes.next() {
        if !(is_cell_start && byte == b'"') {
            is_cell_start = ends_cell(byte);
            continue;
        }
        // Skip the quoted text. Two double quotes are one double quote of the text.
        loop {
            match bytes.next() {
                None => return true,
                Some(b'"') if bytes.next_if_eq(&b'"').is_none() => break,
                Some(_) => {}
            }
        }
        if bytes.peek().is_some_and(|next| !ends_cell(*next)) {
            return true;
        }
        is_cell_start = false;
    }
    false
}

/// Returns the delimiter in the line `sep=;`, which Excel reads and writes before the header; `None` if `line` is not such
/// a line.
///
/// # Errors
/// If the line contains a delimiter that is not allowed.
fn parse_excel_delimiter(line: &[u8]) -> Result<Option<u8>, String> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_matches(['\r', '\n', '"', ' ']);
    let Some(delimiter) = line.get(..4).filter(|start| start.eq_ignore_ascii_case("sep=")).and(line.get(4..)) else {
        return Ok(None);
    };
    match delimiter.as_bytes() {
        [delimiter] if DELIMITERS.contains(delimiter) => Ok(Some(*delimiter)),
        _ => Err(format!("line 1 must name the delimiter as sep=, or sep=; or sep= with a tab, not {line:?}")),
    }
}

/// Returns the delimiter that occurs most often in the first line of `text`. No column name contains a delimiter.
fn detect_delimiter(text: &[u8]) -> u8 {
    let line = text.trim_ascii_start().split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let times = |delimiter: &u8| line.iter().filter(|byte| *byte == delimiter).count();
    // `rev` selects the comma if no delimiter occurs. The header then has one column, and `ImportHeader::parse_first_line`
    // reports the missing columns.
    DELIMITERS.into_iter().rev().max_by_key(times).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_open_quote_accepts_closed_quotes_around_line_breaks_and_delimiters() {
        for closed in
            ["a,\"b\nc,d\",e\n", "\"a,\"\"b\"\"\n\"", "\"\",b\r\n", "a\"b,c\n", "\r\n\"a\nb,\",c\r\n", "a,\"b\""]
        {
            assert!(!has_open_quote(closed.as_bytes(), b','), "{closed:?}");
        }
        for open in ["a,\"b\nc,d\"e,f\n", "a,\"b\nc,d\n", "a,\"b\"\"\n", "\"", "a,\"b\" ,c"] {
            assert!(has_open_quote(open.as_bytes(), b','), "{open:?}");
        }
    }
}
