//! The stored events: one per line, in a file for each UTC day on which they were published, in the folder `events/` of
//! the data folder. On AWS the same lines are in an S3 bucket.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use clock::Clock;
use publishing::{BusEntry, EventBus, FailedEntry};
use serde::{Deserialize, Serialize};

use super::stored_lines::{EXTENSION, event_files_from_day};

/// The name of the file that stores the [`JournalPosition`].
const POSITION_FILE: &str = "position.json";

/// An event bus that stores its events in files.
///
/// Publishing has two steps. `put` writes the events, and [`EventJournal::commit`] stores the position in the stream up to
/// which all events are written. When the journal is opened, events that were written but not committed are removed.
/// They are published again later.
#[derive(Debug)]
pub struct EventJournal {
    folder: PathBuf,
    clock: Arc<dyn Clock>,
    state: Mutex<JournalState>,
}

/// A table whose changes are published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PublishedTable {
    Payments,
    Orders,
}

/// The position in the stream of one table up to which the events of all changes are committed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StreamPosition {
    /// The ARN of the stream; `None` if no event is committed yet.
    #[serde(default)]
    pub stream: Option<String>,
    /// The sequence number of the last committed stream record.
    #[serde(default)]
    pub sequence: Option<String>,
}

/// The content of the file [`POSITION_FILE`]: for each stream, the position up to which all events are committed, and
/// the end of the committed lines in the files. Lines after this end were written by a process that was killed before
/// it committed them. The journal removes these lines and writes them again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct JournalPosition {
    #[serde(flatten)]
    payments: StreamPosition,
    /// This field is missing in files of earlier versions, which published no changes of the orders table.
    #[serde(default)]
    orders: StreamPosition,
    /// The name of the newest file of events.
    file: String,
    /// The length in bytes of the committed lines in `file`.
    length: u64,
}

/// The committed events, and the events that are written but not committed yet.
#[derive(Debug, Default)]
struct JournalState {
    committed: JournalPosition,
    /// The newest file, and its length in bytes including the lines that are not committed yet. `None` if all lines are
    /// committed.
    written: Option<(String, u64)>,
}

impl EventJournal {
    /// Opens the journal in `folder`. Creates the folder if it does not exist, and removes lines that were not
    /// committed.
    ///
    /// # Errors
    /// If the folder or one of its files cannot be used.
    pub fn open(folder: PathBuf, clock: Arc<dyn Clock>) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let days = event_files_from_day(&folder, None)?;
        let committed: JournalPosition = match fs::read(folder.join(POSITION_FILE)) {
            Ok(text) => serde_json::from_slice(&text)?,
            // Without a stored position, all existing lines count as committed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = days.last().cloned().unwrap_or_default();
                let length = if file.is_empty() { 0 } else { fs::metadata(folder.join(&file))?.len() };
                let committed = JournalPosition { file, length, ..JournalPosition::default() };
                write_journal_position(&folder, &committed)?;
                committed
            }
            Err(error) => return Err(error),
        };
        // Lines are removed by truncating a file and not by deleting it, because `dueday listen` may be reading the
        // file in another process.
        for name in days.iter().filter(|name| **name >= committed.file) {
            let length = if *name == committed.file { committed.length } else { 0 };
            OpenOptions::new().write(true).open(folder.join(name))?.set_len(length)?;
        }
        Ok(Self { folder, clock, state: Mutex::new(JournalState { committed, written: None }) })
    }

    /// Returns the position in the stream of `table` up to which all events are committed.
    pub fn committed_position(&self, table: PublishedTable) -> StreamPosition {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match table {
            PublishedTable::Payments => state.committed.payments.clone(),
            PublishedTable::Orders => state.committed.orders.clone(),
        }
    }

    /// Commits the written events, after the caller has written all events up to the record `sequence` of the stream of
    /// `table`. `stream` is the ARN of this stream.
    ///
    /// # Errors
    /// If the position cannot be written. The events are then published again later.
    pub fn commit(&self, table: PublishedTable, stream: &str, sequence: &str) -> io::Result<()> {
        self.store_position(table, stream, Some(sequence))
    }

    /// Stores the position `newest` in the stream of `table`, whose database file was replaced by an older copy.
    /// `newest` is the newest record of the copy; `None` if its stream is empty, so that each later record is
    /// published. `stream` is the ARN of this stream.
    ///
    /// # Errors
    /// If the position cannot be written.
    pub fn restart_at(&self, table: PublishedTable, stream: &str, newest: Option<&str>) -> io::Result<()> {
        self.store_position(table, stream, newest)
    }

    /// Stores the position `sequence` in the stream of `table`, and commits the written events.
    fn store_position(&self, table: PublishedTable, stream: &str, sequence: Option<&str>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut committed = state.committed.clone();
        let position = StreamPosition { stream: Some(stream.to_owned()), sequence: sequence.map(str::to_owned) };
        match table {
            PublishedTable::Payments => committed.payments = position,
            PublishedTable::Orders => committed.orders = position,
        }
        if let Some((file, length)) = state.written.take() {
            (committed.file, committed.length) = (file, length);
        }
        write_journal_position(&self.folder, &committed)?;
        state.committed = committed;
        Ok(())
    }

    /// Writes the events of `entries` after the committed lines, and replaces the lines that are not committed.
    fn write_events(&self, entries: &[BusEntry]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let today = format!("{}.{EXTENSION}", self.clock.now().date_naive());
        // If the clock was set back, the events are appended to the newest file, so that the order of the files stays
        // the order of publication.
        let name = today.max(state.committed.file.clone());
        let committed_length = if name == state.committed.file { state.committed.length } else { 0 };
        if committed_length == 0 && !state.committed.file.is_empty() {
            // The first event of a new day begins a new file. Uncommitted lines at the end of the previous file are
            // removed now.
            OpenOptions::new()
                .write(true)
                .open(self.folder.join(&state.committed.file))?
                .set_len(state.committed.length)?;
        }
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(self.folder.join(&name))?;
        file.set_len(committed_length)?;
        file.seek(SeekFrom::Start(committed_length))?;
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, &entry.event)?;
            lines.push(b'\n');
        }
        file.write_all(&lines)?;
        file.sync_data()?;
        state.written = Some((name, committed_length + lines.len() as u64));
        Ok(())
    }
}

/// Replaces the file [`POSITION_FILE`] in `folder`, and returns when the new file is on the disk.
fn write_journal_position(folder: &Path, position: &JournalPosition) -> io::Result<()> {
    let new = folder.join("position.new");
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec(position)?)?;
    file.sync_data()?;
    fs::rename(new, folder.join(POSITION_FILE))?;
    // The caller deletes the published records from the stream next, so the position must be on the disk.
    File::open(folder)?.sync_all()
}

#[async_trait]
impl EventBus for EventJournal {
    async fn publish_entries(&self, entries: &[BusEntry]) -> Vec<FailedEntry> {
        match self.write_events(entries) {
            Ok(()) => Vec::new(),
            Err(error) => (0..entries.len()).map(|index| FailedEntry { index, reason: error.to_string() }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use billing::CloudEvent;
    use billing::{Event, EventData, EventType};
    use chrono::{DateTime, Utc};
    use clock::SimulatedClock;
    use publishing::StreamEvent;

    use super::super::stored_lines::StoredEventLines;
    use super::*;

    fn sample_bus_entry(id: &str) -> BusEntry {
        let account = r#"{"type":"account.created",
            "data":{"account":"acme","version":1,"locale":"en","mail_status":"deliverable"}}"#;
        let data: EventData = serde_json::from_str(account).unwrap();
        assert_eq!(data.event_type(), EventType::AccountCreated);
        let event = Event { id: id.to_owned(), subject: "acme".to_owned(), at: DateTime::<Utc>::UNIX_EPOCH, data };
        BusEntry { sequence: id.to_owned(), event: StreamEvent::Event(CloudEvent::new(event, "urn:table")) }
    }

    fn stored_event_ids(folder: &Path) -> Vec<String> {
        let mut lines = StoredEventLines::new(folder.to_owned(), None);
        let lines = std::iter::from_fn(|| lines.next_line().unwrap());
        lines
            .map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap()["id"].as_str().unwrap().to_owned())
            .collect()
    }

    fn committed_sequence(journal: &EventJournal, table: PublishedTable) -> Option<String> {
        journal.committed_position(table).sequence
    }

    #[tokio::test]
    async fn open_journal_removes_lines_that_were_not_committed() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(SimulatedClock::new("2027-01-31T23:59:00Z".parse().unwrap(), 1));
        let open = || EventJournal::open(folder.path().to_owned(), clock.clone()).unwrap();
        let journal = open();
        assert_eq!(committed_sequence(&journal, PublishedTable::Payments), None);
        assert_eq!(journal.publish_entries(&[sample_bus_entry("1"), sample_bus_entry("2")]).await, []);
        journal.commit(PublishedTable::Payments, "arn", "2").unwrap();
        journal.publish_entries(&[sample_bus_entry("3")]).await;
        clock.set("2027-02-01T00:01:00Z".parse().unwrap());
        journal.publish_entries(&[sample_bus_entry("3"), sample_bus_entry("4")]).await;
        assert_eq!(
            stored_event_ids(folder.path()),
            ["1", "2", "3", "4"],
            "a killed process leaves two uncommitted lines"
        );

        let journal = open();
        assert_eq!(
            (committed_sequence(&journal, PublishedTable::Payments).as_deref(), stored_event_ids(folder.path())),
            (Some("2"), vec!["1".to_owned(), "2".to_owned()])
        );
        journal.publish_entries(&[sample_bus_entry("3"), sample_bus_entry("4")]).await;
        journal.commit(PublishedTable::Payments, "arn", "4").unwrap();
        journal.commit(PublishedTable::Payments, "arn", "9").unwrap();
        assert_eq!(
            (committed_sequence(&open(), PublishedTable::Payments).as_deref(), stored_event_ids(folder.path()).len()),
            (Some("9"), 4)
        );
        assert_eq!(
            event_files_from_day(folder.path(), Some("2027-02-01".parse().unwrap())).unwrap(),
            ["2027-02-01.jsonl"]
        );
    }

    #[tokio::test]
    async fn position_of_an_older_file_with_an_empty_stream_is_before_each_later_event() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(SimulatedClock::new("2027-01-31T12:00:00Z".parse().unwrap(), 1));
        let open = || EventJournal::open(folder.path().to_owned(), clock.clone()).unwrap();
        let journal = open();
        assert_eq!(journal.publish_entries(&[sample_bus_entry("1")]).await, []);
        journal.commit(PublishedTable::Payments, "arn", "1").unwrap();
        journal.restart_at(PublishedTable::Payments, "arn", None).unwrap();
        let position = open().committed_position(PublishedTable::Payments);
        assert_eq!(position, StreamPosition { stream: Some("arn".to_owned()), sequence: None });
        assert_eq!(stored_event_ids(folder.path()), ["1"], "the events of the newer file stay");
    }

    #[tokio::test]
    async fn each_table_has_its_own_position_and_a_file_of_an_earlier_version_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(SimulatedClock::new("2027-01-31T12:00:00Z".parse().unwrap(), 1));
        let open = || EventJournal::open(folder.path().to_owned(), clock.clone()).unwrap();
        let earlier = r#"{"stream":"arn:payments","sequence":"7","file":"","length":0}"#;
        fs::write(folder.path().join(POSITION_FILE), earlier).unwrap();
        let position = |stream: &str, sequence: &str| StreamPosition {
            stream: Some(stream.to_owned()),
            sequence: Some(sequence.to_owned()),
        };
        let journal = open();
        assert_eq!(journal.committed_position(PublishedTable::Payments), position("arn:payments", "7"));
        assert_eq!(journal.committed_position(PublishedTable::Orders), StreamPosition::default());

        journal.publish_entries(&[sample_bus_entry("1")]).await;
        journal.commit(PublishedTable::Orders, "arn:orders", "3").unwrap();
        let journal = open();
        assert_eq!(journal.committed_position(PublishedTable::Payments), position("arn:payments", "7"));
        assert_eq!(journal.committed_position(PublishedTable::Orders), position("arn:orders", "3"));
        assert_eq!(stored_event_ids(folder.path()), ["1"]);
    }
}
