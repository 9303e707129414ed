//! The kept events: one a line, in a file for each day on which they were published, in `events/` of the data folder. On AWS the
//! same lines are in a bucket.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use clock::Clock;
use delivery::{Bus, Entry, Refused};
use serde::{Deserialize, Serialize};

use super::kept_lines::{EXTENSION, days};

const POSITION: &str = "position.json";

/// A bus that keeps what is put on it.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

/// How far the stream was followed, and where the lines of that end. What lies behind is of a process that was killed, and
/// is made again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Position {
    /// The stream's ARN.
    #[serde(default)]
    stream: Option<String>,
    sequence: Option<String>,
    file: String,
    length: u64,
}

#[derive(Debug, Default)]
struct State {
    kept: Position,
    /// Where the lines end that are written and not yet kept for good.
    written: Option<(String, u64)>,
}

impl Journal {
    /// The journal in `folder`, which is made if it is not there. Lines that were begun and not kept are cut off.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(folder: PathBuf, clock: Arc<dyn Clock>) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let days = days(&folder, None)?;
        let kept: Position = match fs::read(folder.join(POSITION)) {
            Ok(text) => serde_json::from_slice(&text)?,
            // Whatever lines there are stay.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = days.last().cloned().unwrap_or_default();
                let length = if file.is_empty() { 0 } else { fs::metadata(folder.join(&file))?.len() };
                let kept = Position { file, length, ..Position::default() };
                write_position(&folder, &kept)?;
                kept
            }
            Err(error) => return Err(error),
        };
        // Emptied, not removed: somebody may be listening.
        for name in days.iter().filter(|name| **name >= kept.file) {
            let length = if *name == kept.file { kept.length } else { 0 };
            OpenOptions::new().write(true).open(folder.join(name))?.set_len(length)?;
        }
        Ok(Self { folder, clock, state: Mutex::new(State { kept, written: None }) })
    }

    /// The sequence number of the record up to which everything is kept.
    pub fn position(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).kept.sequence.clone()
    }

    /// The ARN of the stream that was followed so far.
    pub fn stream(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).kept.stream.clone()
    }

    /// Keeps for good what was put, which is all that the stream of the ARN `stream` tells up to `sequence`.
    ///
    /// # Errors
    /// The position cannot be written: what was put will be put again.
    pub fn keep(&self, stream: &str, sequence: &str) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (stream, sequence) = (Some(stream.to_owned()), Some(sequence.to_owned()));
        let mut kept = Position { stream, sequence, ..state.kept.clone() };
        if let Some((file, length)) = state.written.take() {
            (kept.file, kept.length) = (file, length);
        }
        write_position(&self.folder, &kept)?;
        state.kept = kept;
        Ok(())
    }

    fn write(&self, entries: &[Entry]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let today = format!("{}.{EXTENSION}", self.clock.now().date_naive());
        // A clock that is set back begins no older file: the newest is the one that is written.
        let name = today.max(state.kept.file.clone());
        let begun = if name == state.kept.file { state.kept.length } else { 0 };
        if begun == 0 && !state.kept.file.is_empty() {
            // A day has begun since something was put that was not kept.
            OpenOptions::new().write(true).open(self.folder.join(&state.kept.file))?.set_len(state.kept.length)?;
        }
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(self.folder.join(&name))?;
        file.set_len(begun)?;
        file.seek(SeekFrom::Start(begun))?;
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, &entry.event)?;
            lines.push(b'\n');
        }
        file.write_all(&lines)?;
        file.sync_data()?;
        state.written = Some((name, begun + lines.len() as u64));
        Ok(())
    }
}

fn write_position(folder: &Path, position: &Position) -> io::Result<()> {
    let new = folder.join("position.new");
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec(position)?)?;
    file.sync_data()?;
    fs::rename(new, folder.join(POSITION))?;
    // What was followed is removed from the stream once this is on the disk.
    File::open(folder)?.sync_all()
}

#[async_trait]
impl Bus for Journal {
    async fn put(&self, entries: &[Entry]) -> Vec<Refused> {
        match self.write(entries) {
            Ok(()) => Vec::new(),
            Err(error) => (0..entries.len()).map(|index| Refused { index, reason: error.to_string() }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use billing::CloudEvent;
    use billing::{Event, EventType, News};
    use chrono::{DateTime, Utc};
    use clock::SimulatedClock;
    use delivery::StreamEvent;

    use super::super::kept_lines::Lines;
    use super::*;

    fn entry(id: &str) -> Entry {
        let account = r#"{"type":"account.created","data":{"account":"acme","version":1,"locale":"en","mail_status":"deliverable"}}"#;
        let news: News = serde_json::from_str(account).unwrap();
        assert_eq!(news.event_type(), EventType::AccountCreated);
        let event =
            Event { id: id.to_owned(), account: "acme".parse().unwrap(), at: DateTime::<Utc>::UNIX_EPOCH, news };
        Entry { sequence: id.to_owned(), event: StreamEvent::Event(CloudEvent::new(event, "urn:table")) }
    }

    fn ids(folder: &Path) -> Vec<String> {
        let mut lines = Lines::new(folder.to_owned(), None);
        let lines = std::iter::from_fn(|| lines.next_line().unwrap());
        lines
            .map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap()["id"].as_str().unwrap().to_owned())
            .collect()
    }

    #[tokio::test]
    async fn what_was_put_and_not_kept_is_cut_off_and_put_again() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(SimulatedClock::new("2027-01-31T23:59:00Z".parse().unwrap(), 1));
        let open = || Journal::open(folder.path().to_owned(), clock.clone()).unwrap();
        let journal = open();
        assert_eq!(journal.position(), None);
        assert_eq!(journal.put(&[entry("1"), entry("2")]).await, []);
        journal.keep("arn", "2").unwrap();
        journal.put(&[entry("3")]).await;
        clock.set("2027-02-01T00:01:00Z".parse().unwrap());
        journal.put(&[entry("3"), entry("4")]).await;
        assert_eq!(ids(folder.path()), ["1", "2", "3", "4"], "as a kill leaves it");

        let journal = open();
        assert_eq!(
            (journal.position().as_deref(), ids(folder.path())),
            (Some("2"), vec!["1".to_owned(), "2".to_owned()])
        );
        journal.put(&[entry("3"), entry("4")]).await;
        journal.keep("arn", "4").unwrap();
        journal.keep("arn", "9").unwrap();
        assert_eq!((open().position().as_deref(), ids(folder.path()).len()), (Some("9"), 4));
        assert_eq!(days(folder.path(), Some("2027-02-01".parse().unwrap())).unwrap(), ["2027-02-01.jsonl"]);
    }
}
