//! The kept events, read: while they are written, too.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use chrono::NaiveDate;

/// What the files of the days end with.
pub(super) const EXTENSION: &str = "jsonl";

/// The names of the files in `folder` whose day is `from` or later, in the order of their days.
pub(super) fn days(folder: &Path, from: Option<NaiveDate>) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        let day = name.strip_suffix(EXTENSION).and_then(|name| billing::parse_date(name.strip_suffix('.')?).ok());
        if day.is_some_and(|day| from.is_none_or(|from| day >= from)) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The kept lines of a folder, in the order in which they were told.
#[derive(Debug)]
pub struct Lines {
    folder: PathBuf,
    from: Option<NaiveDate>,
    at: Option<Reading>,
}

#[derive(Debug)]
struct Reading {
    name: String,
    file: BufReader<File>,
    offset: u64,
    /// There is a newer file, so that nothing is added to this one any more.
    is_complete: bool,
}

impl Lines {
    /// Those in `folder` that were told on `from` or later.
    pub fn new(folder: PathBuf, from: Option<NaiveDate>) -> Self {
        Self { folder, from, at: None }
    }

    /// Passes by all that there are now.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn skip_all(&mut self) -> io::Result<()> {
        if let Some(last) = self.names()?.pop() {
            let mut reading = self.open(last)?;
            reading.offset = reading.file.seek(SeekFrom::End(0))?;
            self.at = Some(reading);
        }
        Ok(())
    }

    /// The next line, once it is there whole; `None` if there is none yet.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(reading) = &mut self.at {
                // What was cut off is written again.
                let length = reading.file.get_ref().metadata()?.len();
                reading.offset = reading.offset.min(length);
                reading.file.seek(SeekFrom::Start(reading.offset))?;
                // A line that is half there may end within a character.
                let mut line = Vec::new();
                let read = reading.file.read_until(b'\n', &mut line)?;
                if line.pop_if(|last| *last == b'\n').is_some() {
                    reading.offset += read as u64;
                    return String::from_utf8(line).map(Some).map_err(|error| io::Error::other(error.utf8_error()));
                }
            }
            let done = self.at.as_ref().map(|reading| reading.name.clone());
            let next = self.names()?.into_iter().find(|name| done.as_ref().is_none_or(|done| name > done));
            let Some(next) = next else { return Ok(None) };
            match &mut self.at {
                // Lines may have come to it since it was read, before the newer one was begun.
                Some(reading) if !reading.is_complete => reading.is_complete = true,
                _ => self.at = Some(self.open(next)?),
            }
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        match days(&self.folder, self.from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names,
        }
    }

    fn open(&self, name: String) -> io::Result<Reading> {
        let file = BufReader::new(File::open(self.folder.join(&name))?);
        Ok(Reading { name, file, offset: 0, is_complete: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_read_once_it_is_whole_and_again_if_it_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("2027-01-31.jsonl");
        let mut lines = Lines::new(folder.path().to_owned(), None);
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
