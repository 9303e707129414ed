//! A file of events that are still to be processed, one event per line.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// A file of events that are still to be processed, such as events whose processing failed.
#[derive(Clone, Debug)]
pub struct EventFile(PathBuf);

impl EventFile {
    /// Uses the file at `path`, which does not have to exist.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &PathBuf {
        &self.0
    }

    /// Appends `event` to the file, and returns when it is on the disk.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&self, event: &str) -> io::Result<()> {
        self.append_all([event])
    }

    /// Appends `events` to the file, and returns when all are on the disk.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append_all<'a>(&self, events: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
        let lines: String = events.into_iter().flat_map(|event| [event, "\n"]).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        file.write_all(lines.as_bytes())?;
        file.sync_data()
    }

    /// Moves the events of the file to a second file, and returns the events for processing. The second file keeps the
    /// events until the caller calls [`EventFile::finish_retry`], so a killed process loses no event.
    ///
    /// # Errors
    /// If one of the two files cannot be moved or read.
    pub fn start_retry(&self) -> io::Result<Vec<String>> {
        let retry_path = self.retry_path();
        // If a killed process has left the second file, its events are processed again. This is safe, because the
        // processing is idempotent.
        if !retry_path.exists() && self.0.exists() {
            fs::rename(&self.0, &retry_path)?;
        }
        match fs::read_to_string(&retry_path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            text => Ok(text?.lines().map(str::to_owned).collect()),
        }
    }

    /// Deletes the second file with the events that [`EventFile::start_retry`] returned. The caller must have processed
    /// each of these events, or appended the event to the first file again.
    ///
    /// # Errors
    /// If the file cannot be deleted.
    pub fn finish_retry(&self) -> io::Result<()> {
        match fs::remove_file(self.retry_path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Returns the events that are still to be processed. While another process processes these events, the same event can
    /// be contained twice.
    ///
    /// # Errors
    /// If one of the two files cannot be read.
    pub fn read_events(&self) -> io::Result<Vec<String>> {
        let mut events = Vec::new();
        for path in [self.path(), &self.retry_path()] {
            match fs::read_to_string(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                text => events.extend(text?.lines().map(str::to_owned)),
            }
        }
        Ok(events)
    }

    /// Returns the path of the second file, with the events that are being processed again.
    fn retry_path(&self) -> PathBuf {
        self.0.with_extension("again")
    }
}
