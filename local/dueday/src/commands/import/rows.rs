//! The rows of a file, one by one.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use chrono::NaiveDate;
use csv::ByteRecord;
use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};

use super::column::Header;
use super::lines::Lines;
use super::rejects::Rejected;
use super::row::Row;
use crate::Failure;

/// A header ends before so many bytes.
const MAX_HEADER_BYTES: u64 = 64 * 1024;
/// What may part cells; the header shows which does.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// A file's text: what was read to know its header, and the rest.
type Text<R> = io::Chain<Cursor<Vec<u8>>, BufReader<DecodeReaderBytes<R, Vec<u8>>>>;

/// The rows of a file, one by one: UTF-8, or UTF-16 with a byte order mark, lines ending as they may.
pub struct Rows<R> {
    reader: csv::Reader<Lines<Text<R>>>,
    header: Header,
    today: NaiveDate,
}

/// A row and its line, or all that is wrong with it.
pub type ReadRow = Result<(u64, Row), Vec<Rejected>>;

/// Reads all rows of the file at `path`, for subscriptions that begin on `today`.
///
/// # Errors
/// [`Failure::File`] with the line, the column and what is allowed.
pub fn read(path: &Path, today: NaiveDate) -> Result<Vec<Row>, Failure> {
    let wrong = |reason: String| Failure::File { path: path.to_owned(), reason };
    parse(&std::fs::read(path).map_err(|error| wrong(error.to_string()))?, today).map_err(wrong)
}

/// Reads all rows of a file's `bytes`, for subscriptions that begin on `today`.
///
/// # Errors
/// The line, the column and what is allowed.
pub fn parse(bytes: &[u8], today: NaiveDate) -> Result<Vec<Row>, String> {
    let mut rows = Rows::new(bytes, today)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next_row().map_err(|error| error.to_string())? {
        let told = |wrong: Vec<Rejected>| wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        all.push(row.map_err(told)?.1);
    }
    Ok(all)
}

impl<R: Read> Rows<R> {
    /// The rows of `file`, whose header must name exactly the columns.
    ///
    /// # Errors
    /// What is wrong with the header, and what is allowed.
    pub fn new(file: R, today: NaiveDate) -> Result<Self, String> {
        let decoder = DecodeReaderBytesBuilder::new().utf8_passthru(true).strip_bom(true).build(file);
        let mut text = BufReader::new(decoder);
        let unreadable = |error: io::Error| error.to_string();
        let mut first = Vec::new();
        while first.trim_ascii().is_empty()
            && text.by_ref().take(MAX_HEADER_BYTES).read_until(b'\n', &mut first).map_err(unreadable)? > 0
        {}
        if first.starts_with(b"PK\x03\x04") {
            return Err("is a spreadsheet's own format: save it as \"CSV UTF-8\"".to_owned());
        }
        if first.contains(&0) {
            return Err("is not UTF-8 text: save it as \"CSV UTF-8\"".to_owned());
        }
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter(&first))
            .has_headers(false)
            .flexible(true)
            .from_reader(Lines::new(Cursor::new(first).chain(text)));
        let mut names = ByteRecord::new();
        reader.read_byte_record(&mut names).map_err(|error| io::Error::from(error).to_string())?;
        let header = Header::read(names.iter())?;
        Ok(Self { reader, header, today })
    }

    /// The next row.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn next_row(&mut self) -> io::Result<Option<ReadRow>> {
        let mut record = ByteRecord::new();
        if !self.reader.read_byte_record(&mut record).map_err(io::Error::from)? {
            return Ok(None);
        }
        let place = record.position().map_or(0, csv::Position::byte);
        let line = self.reader.get_mut().first_from(place).unwrap_or_default();
        let whole = |reason| Ok(Some(Err(vec![Rejected::row(line, reason)])));
        if record.iter().all(|cell| cell.trim_ascii().is_empty()) {
            return whole("is blank: remove the line".to_owned());
        }
        if record.len() != self.header.width {
            let quote = "a field that holds the delimiter must stand in double quotes";
            return whole(format!("must have {} fields, not {}; {quote}", self.header.width, record.len()));
        }
        Ok(Some(Row::read(&self.header, &record, line, self.today).map(|row| (line, row))))
    }
}

/// What parts the cells of `text`: no column's name holds any of them.
fn delimiter(text: &[u8]) -> u8 {
    let line = text.trim_ascii_start().split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let times = |delimiter: &u8| line.iter().filter(|byte| *byte == delimiter).count();
    // Of equals, the last one: a header without any has one column, and lacks the others.
    DELIMITERS.into_iter().rev().max_by_key(times).unwrap_or(b',')
}
