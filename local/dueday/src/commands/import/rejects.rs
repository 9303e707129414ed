//! The list of what was not imported, for a person to mend.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::column::Column;
use crate::Failure;
use crate::terminal::cell::for_spreadsheets;

/// From so many digits on, a text may hold a card number, be it mistyped: it is not repeated.
const MIN_CARD_DIGITS: usize = 12;
/// What stands for a value that is not repeated.
const LEFT_OUT: &str = "(left out)";

/// Why a row, or one of its cells, was not imported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rejected {
    /// The row's first line in the file, the header's being 1.
    pub line: u64,
    /// `None` if it is about the whole row.
    #[serde(serialize_with = "name")]
    pub field: Option<Column>,
    /// What stands there, unless it may be what must not be kept.
    pub value: String,
    /// What is allowed, or what is stored.
    pub reason: String,
}

fn name<S: serde::Serializer>(column: &Option<Column>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(column.map_or("", Into::into))
}

impl Rejected {
    /// About the whole row.
    pub fn row(line: u64, reason: String) -> Self {
        Self { line, field: None, value: String::new(), reason }
    }

    /// About the cell in `column`, which holds `text`.
    pub fn cell(line: u64, column: Column, text: &str, reason: String) -> Self {
        Self { line, field: Some(column), value: shown(text), reason }
    }

    /// About the cell in `column`, whatever it holds.
    pub fn secret(line: u64, column: Column, reason: String) -> Self {
        Self { line, field: Some(column), value: LEFT_OUT.to_owned(), reason }
    }
}

fn shown(text: &str) -> String {
    let digits = text.chars().filter(|c| c.is_numeric()).count();
    if digits < MIN_CARD_DIGITS { text.to_owned() } else { LEFT_OUT.to_owned() }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            None => write!(f, "line {}: {}", self.line, self.reason),
            Some(field) => write!(f, "line {}, {field}: {}", self.line, self.reason),
        }
    }
}

/// The list: a file once there is something to list, or one that an earlier import left.
pub struct Rejects {
    pub path: PathBuf,
    file: Option<csv::Writer<File>>,
}

impl Rejects {
    /// The list at `path`, emptied. It must not be `input`.
    ///
    /// # Errors
    /// [`Failure::File`].
    pub fn new(path: PathBuf, input: &Path) -> Result<Self, Failure> {
        let mut rejects = Self { path, file: None };
        if rejects.path.exists() {
            if rejects.path.canonicalize().ok() == input.canonicalize().ok() {
                return Err(rejects.wrong("is the file to import; list the rejected rows in another one"));
            }
            rejects.begin()?;
        }
        Ok(rejects)
    }

    fn wrong(&self, reason: impl ToString) -> Failure {
        Failure::File { path: self.path.clone(), reason: reason.to_string() }
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let file = File::create(&self.path).map_err(|error| self.wrong(error))?;
        let mut file = csv::WriterBuilder::new().has_headers(false).from_writer(file);
        let header = file.write_record(["line", "field", "value", "reason"]).map_err(io::Error::from);
        header.and_then(|()| file.flush()).map_err(|error| self.wrong(error))?;
        self.file = Some(file);
        Ok(())
    }

    /// Adds a line, which is in the file when this returns.
    ///
    /// # Errors
    /// [`Failure::File`].
    pub fn add(&mut self, rejected: Rejected) -> Result<(), Failure> {
        if self.file.is_none() {
            self.begin()?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let listed = Rejected { value: for_spreadsheets(&rejected.value).into_owned(), ..rejected };
        let written = file.serialize(listed).map_err(io::Error::from).and_then(|()| file.flush());
        written.map_err(|error| self.wrong(error))
    }
}
