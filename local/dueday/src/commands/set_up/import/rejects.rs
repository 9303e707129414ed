//! The file of rejects: the cells and rows that were not imported, for a person to correct.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::column::ImportColumn;
use crate::Failure;
use crate::terminal::csv_writer::{CsvCell, CsvWriter};

/// A text with at least this many digits may contain a card number, possibly mistyped, and is not written to the file.
const MIN_CARD_DIGITS: usize = 12;
/// The placeholder for a value that is not written to the file because it may be confidential.
const HIDDEN_VALUE: &str = "(left out)";

/// A row or a cell that was not imported, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejected {
    /// The first line of the row in the file; the header is line 1.
    pub line: u64,
    /// The column of the cell; `None` for the whole row.
    pub field: Option<ImportColumn>,
    /// The text of the cell, or a placeholder if the text may be confidential.
    pub value: String,
    /// The reason why the cell or row was not imported. It states the allowed values, or the different stored value.
    pub reason: String,
}

impl Rejected {
    /// Creates the rejection of a whole row.
    pub fn row(line: u64, reason: String) -> Self {
        Self { line, field: None, value: String::new(), reason }
    }

    /// Creates the rejection of the cell in `column` with the content `text`.
    pub fn cell(line: u64, column: ImportColumn, text: &str, reason: String) -> Self {
        Self { line, field: Some(column), value: hide_card_number(text), reason }
    }

    /// Creates the rejection of the cell in `column` without its confidential content.
    pub fn private_cell(line: u64, column: ImportColumn, reason: String) -> Self {
        Self { line, field: Some(column), value: HIDDEN_VALUE.to_owned(), reason }
    }
}

/// Returns `text`, or the placeholder if the text may contain a card number.
fn hide_card_number(text: &str) -> String {
    let digits = text.chars().filter(|c| c.is_numeric()).count();
    if digits < MIN_CARD_DIGITS { text.to_owned() } else { HIDDEN_VALUE.to_owned() }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            None => write!(f, "line {}: {}", self.line, self.reason),
            Some(field) => write!(f, "line {}, {field}: {}", self.line, self.reason),
        }
    }
}

/// The file of rejects (the rows and cells that were not imported). If the file exists when the import starts, it is
/// emptied. Otherwise, it is created when the first row or cell is rejected.
pub struct RejectsFile {
    pub path: PathBuf,
    file: Option<CsvWriter<File>>,
}

impl RejectsFile {
    /// Uses the file at `path` for the rejects, and empties it if it exists.
    ///
    /// # Errors
    /// [`Failure::File`] if the file cannot be written, or if `path` is the imported file `input`.
    pub fn new(path: PathBuf, input: &Path) -> Result<Self, Failure> {
        let mut rejects = Self { path, file: None };
        if rejects.path.exists() {
            if rejects.path.canonicalize().ok() == input.canonicalize().ok() {
                return Err(rejects.file_failure("is the file to import; choose another file for the rejected rows"));
            }
            rejects.create_file()?;
        }
        Ok(rejects)
    }

    /// Returns the failure of the command if the file cannot be used for this `reason`.
    fn file_failure(&self, reason: impl ToString) -> Failure {
        Failure::File { path: self.path.clone(), reason: reason.to_string() }
    }

    /// Creates or empties the file, and writes its header.
    fn create_file(&mut self) -> Result<(), Failure> {
        let file = File::create(&self.path).map_err(|error| self.file_failure(error))?;
        let mut file = CsvWriter::new(file);
        let header = file.write_row(["line", "field", "value", "reason"].map(CsvCell::from));
        header.and_then(|()| file.flush()).map_err(|error| self.file_failure(error))?;
        self.file = Some(file);
        Ok(())
    }

    /// Appends the rejected row or cell to the file as one line, and flushes the file.
    ///
    /// # Errors
    /// [`Failure::File`] if the file cannot be written.
    pub fn add_rejected_row(&mut self, rejected: Rejected) -> Result<(), Failure> {
        if self.file.is_none() {
            self.create_file()?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let column: &str = rejected.field.map_or("", Into::into);
        let line = CsvCell::Number(rejected.line.to_string());
        let written = file.write_row([line, column.into(), rejected.value.into(), rejected.reason.into()]);
        written.and_then(|()| file.flush()).map_err(|error| self.file_failure(error))
    }
}
