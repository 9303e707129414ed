//! Reads the stored events, also while another process writes them.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use chrono::NaiveDate;

/// The file name extension of the files of stored events.
pub(super) const EXTENSION: &str = "jsonl";

/// Returns the names of the files in `folder` for the day `from` and all later days, in the order of the days. If
/// `from` is `None`, returns the names of all files.
pub(super) fn event_files_from_day(folder: &Path, from: Option<NaiveDate>) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        let day = name.strip_suffix(EXTENSION).and_then(|stem| billing::parse_date(stem.strip_suffix('.')?).ok());
        if day.is_some_and(|day| from.is_none_or(|from| day >= from)) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// A reader of the stored events in a folder. It returns one line per event, in the order of publication.
#[derive(Debug)]
pub struct StoredEventLines {
    folder: PathBuf,
    from: Option<NaiveDate>,
    current_file: Option<CurrentFile>,
}

/// The file that is read now, and the offset of its next line.
#[derive(Debug)]
struct CurrentFile {
    name: String,
    file: BufReader<File>,
    /// The offset of the next line in bytes.
    offset: u64,
    /// Whether a newer file exists, so that no more lines are appended to this file.
    is_complete: bool,
}

impl StoredEventLines {
    /// Creates a reader of the lines in `folder` that were published on the UTC day `from` or later; of all lines if
    /// `from` is `None`.
    pub fn new(folder: PathBuf, from: Option<NaiveDate>) -> Self {
        Self { folder, from, current_file: None }
    }

    /// Skips all lines that exist now.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn skip_existing_lines(&mut self) -> io::Result<()> {
        if let Some(last) = self.file_names()?.pop() {
            let mut reading = self.open_file(last)?;
            reading.offset = reading.file.seek(SeekFrom::End(0))?;
            self.current_file = Some(reading);
        }
        Ok(())
    }

    /// Returns the next line; `None` if no complete line follows yet.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(reading) = &mut self.current_file {
                // If the journal has removed uncommitted lines at the end of the file, reading continues at the new
                // end, where the journal writes these lines again.
                let length = reading.file.get_ref().metadata()?.len();
                reading.offset = reading.offset.min(length);
                reading.file.seek(SeekFrom::Start(reading.offset))?;
                // Reads bytes and not text, because an incomplete line may end within a character.
                let mut line = Vec::new();
                let read = reading.file.read_until(b'\n', &mut line)?;
                if line.pop_if(|last| *last == b'\n').is_some() {
                    reading.offset += read as u64;
                    return String::from_utf8(line).map(Some).map_err(|error| io::Error::other(error.utf8_error()));
                }
            }
            let current = self.current_file.as_ref().map(|reading| reading.name.clone());
            let next =
                self.file_names()?.into_iter().find(|name| current.as_ref().is_none_or(|current| name > current));
            let Some(next) = next else { return Ok(None) };
            match &mut self.current_file {
                // Reads the current file once more before the newer file, because lines may have been appended between
                // the last read and the creation of the newer file.
                Some(reading) if !reading.is_complete => reading.is_complete = true,
                _ => self.current_file = Some(self.open_file(next)?),
            }
        }
    }

    /// Returns the names of the files to read, the oldest first; no names if the folder does not exist.
    fn file_names(&self) -> io::Result<Vec<String>> {
        match event_files_from_day(&self.folder, self.from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names,
        }
    }

    /// Opens the file `name` at its first line.
    fn open_file(&self, name: String) -> io::Result<CurrentFile> {
        let file = BufReader::new(File::open(self.folder.join(&name))?);
        Ok(CurrentFile { name, file, offset: 0, is_complete: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_line_returns_complete_lines_only_and_reads_removed_lines_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("2027-01-31.jsonl");
        let mut lines = StoredEventLines::new(folder.path().to_owned(), None);
        assert_eq!(lines.next_line().unwrap(), None);
        fs::write(&file, "first\nsec").unwrap();
        assert_eq!((lines.next_line().unwrap().as_deref(), lines.next_line().unwrap()), (Some("first"), None));
        fs::write(&file, "first\nsecond\n").unwrap();
        assert_eq!((lines.next_line().unwrap().as_deref(), lines.next_line().unwrap()), (Some("second"), None));
        fs::write(&file, "first\n").unwrap();
        assert_eq!(lines.next_line().unwrap(), None);
        fs::write(&file, "first\nsecond\n").unwrap();
        assert_eq!(lines.next_line().unwrap().as_deref(), Some("second"));
        fs::write(folder.path().join("2027-02-01.jsonl"), "third\n").unwrap();
        assert_eq!(lines.next_line().unwrap().as_deref(), Some("third"));
    }
}
