//! Writes the events and the items of a simulation to files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde_json::Value;
use simulator::SimulatedRecords;

use crate::Failure;

/// The name of the file with the items of the table.
const ITEMS_FILE: &str = "items.jsonl";

/// Writes `records` to the new folder `folder`: the events to a file for each day, and the items to [`ITEMS_FILE`]. The
/// files have the irregularities of the event archive on AWS: some events are repeated on the next day, and the events
/// of a day are not in the order of their publication.
///
/// # Errors
/// [`Failure::Refused`] if the folder exists or a file cannot be written.
pub fn write_simulation_files(folder: &Path, records: &SimulatedRecords) -> Result<(), Failure> {
    let refused = |error: std::io::Error| {
        Failure::Refused(format!("--keep {}: the folder must be new and writable: {error}", folder.display()))
    };
    fs::create_dir(folder).map_err(refused)?;
    let mut days: BTreeMap<NaiveDate, Vec<&Value>> = BTreeMap::new();
    for (number, event) in records.events.iter().enumerate() {
        let at = event["time"].as_str().and_then(|time| time.parse::<DateTime<Utc>>().ok()).unwrap_or_default();
        let day = at.date_naive();
        days.entry(day).or_default().push(event);
        if number % 3 == 0 {
            days.entry(day + Days::new(1)).or_default().push(event);
        }
    }
    for (day, events) in days {
        let newest_first: String = events.iter().rev().map(|event| format!("{event}\n")).collect();
        fs::write(folder.join(format!("{day}.jsonl")), newest_first).map_err(refused)?;
    }
    let items: String = records.items.iter().map(|item| format!("{item}\n")).collect();
    fs::write(folder.join(ITEMS_FILE), items).map_err(refused)
}
