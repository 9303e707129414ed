//! The stream of a table on the embedded engine, in the format that Lambda passes to a function.

use std::path::PathBuf;
use std::time::Duration;

use dynoxide::Database;
use dynoxide::actions::describe_table::DescribeTableRequest;
use dynoxide::actions::get_records::GetRecordsRequest;
use dynoxide::actions::get_shard_iterator::GetShardIteratorRequest;
use dynoxide::streams::shard_id;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::table_description::describe_table;

/// The SQL statement that creates an index on the stream records. Without the index, the engine reads all records for
/// each request, and the engine never deletes records.
const CREATE_INDEX: &str = "CREATE INDEX IF NOT EXISTS _dueday_stream_records
    ON _stream_records (table_name, CAST(sequence_number AS INTEGER))";
/// The difference between the sequence number of a stream record as DynamoDB's API shows it, and the number that the
/// engine's file contains for the same record.
const SEQUENCE_NUMBER_OFFSET: i128 = 100_000_000_000_000_000_000;
/// The maximum number of records that one SQL statement deletes. The number is small, because the engine waits until
/// the statement ends.
const MAX_RECORDS_PER_DELETE: i64 = 2_000;
/// The maximum time to wait while the engine locks its file.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The stream of one table: each change since the stream was enabled, with the item before and after the change.
#[derive(Clone)]
pub struct TableStream {
    database: Database,
    /// The path of the engine's data file, or the URI of its data in memory.
    file: PathBuf,
    table: String,
    arn: String,
}

/// The reason why a stream cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TableStreamError {
    #[error("the stream of {table} cannot be read: {reason}")]
    Engine { table: String, reason: String },
    #[error("the stream of {table} cannot be indexed or trimmed: {source}")]
    File { table: String, source: rusqlite::Error },
}

impl TableStream {
    /// Opens the stream of `table`, and enables it if it is not enabled.
    pub(crate) fn open(database: Database, file: PathBuf, table: &str) -> Result<Self, TableStreamError> {
        let failed = |reason: String| TableStreamError::Engine { table: table.to_owned(), reason };
        let arn = || -> Result<Option<String>, TableStreamError> {
            let describe = DescribeTableRequest { table_name: table.to_owned() };
            let described = describe_table(&database, describe).map_err(|error| failed(error.to_string()))?;
            Ok(described["Table"]["LatestStreamArn"].as_str().map(str::to_owned))
        };
        if arn()?.is_none() {
            let request = json!({
                "TableName": table,
                "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" },
            });
            let request = serde_json::from_value(request).map_err(|error| failed(error.to_string()))?;
            database.update_table(request).map_err(|error| failed(error.to_string()))?;
        }
        let arn = arn()?.ok_or_else(|| failed("it has no ARN".to_owned()))?;
        let stream = Self { database, file, table: table.to_owned(), arn };
        stream.connection()?.execute_batch(CREATE_INDEX).map_err(|source| stream.file_error(source))?;
        Ok(stream)
    }

    /// Returns the ARN of the stream. A table that was deleted and created again has another ARN.
    pub fn arn(&self) -> &str {
        &self.arn
    }

    /// Returns up to `limit` records after the sequence number `position`, or from the oldest record on if `position`
    /// is `None`. The result is the event that Lambda would pass to a function.
    ///
    /// # Errors
    /// [`TableStreamError::Engine`] if the engine cannot read the stream.
    pub fn records_after(&self, position: Option<&str>, limit: usize) -> Result<Value, TableStreamError> {
        let failed = |error: dynoxide::DynoxideError| TableStreamError::Engine {
            table: self.table.clone(),
            reason: error.to_string(),
        };
        let request = GetShardIteratorRequest {
            stream_arn: self.arn.clone(),
            shard_id: shard_id(&self.table),
            shard_iterator_type: if position.is_some() { "AFTER_SEQUENCE_NUMBER" } else { "TRIM_HORIZON" }.to_owned(),
            sequence_number: position.map(str::to_owned),
        };
        let iterator = self.database.get_shard_iterator(request).map_err(failed)?.shard_iterator;
        let request = GetRecordsRequest { shard_iterator: iterator.unwrap_or_default(), limit: Some(limit) };
        let records = self.database.get_records(request).map_err(failed)?.records;
        let records = records.into_iter().map(|record| {
            let mut record = serde_json::to_value(record).expect("records are representable");
            record["eventSourceARN"] = self.arn.as_str().into();
            record
        });
        Ok(json!({ "Records": records.collect::<Vec<_>>() }))
    }

    /// Returns whether the newest record is older than the sequence number `position`. This happens after the engine's
    /// file was replaced by an older or a new file.
    ///
    /// # Errors
    /// [`TableStreamError::File`] if the file cannot be read.
    pub fn is_older_than(&self, position: &str) -> Result<bool, TableStreamError> {
        let Ok(public) = position.parse::<i128>() else { return Ok(false) };
        Ok(self.newest_number()?.is_none_or(|newest| newest < public))
    }

    /// Returns the sequence number of the newest record; `None` if the stream has no record.
    ///
    /// # Errors
    /// [`TableStreamError::File`] if the file cannot be read.
    pub fn newest_position(&self) -> Result<Option<String>, TableStreamError> {
        Ok(self.newest_number()?.map(|newest| format!("{newest:021}")))
    }

    /// Returns the sequence number of the newest record as a number.
    fn newest_number(&self) -> Result<Option<i128>, TableStreamError> {
        let newest: Option<i64> = self
            .connection()?
            .query_row(
                "SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = ?1",
                params![self.table],
                |row| row.get(0),
            )
            .map_err(|source| self.file_error(source))?;
        Ok(newest.map(|newest| i128::from(newest) + SEQUENCE_NUMBER_OFFSET))
    }

    /// Deletes the records up to the sequence number `position`. The newest record is not deleted, because the engine
    /// computes the next sequence number from it; only its items are removed, because they may be of an erased account.
    /// Returns the number of deleted records.
    ///
    /// # Errors
    /// [`TableStreamError::File`] if the file cannot be written.
    pub fn delete_records_until(&self, position: &str) -> Result<usize, TableStreamError> {
        let Ok(public) = position.parse::<i128>() else { return Ok(0) };
        let Ok(stored) = i64::try_from(public - SEQUENCE_NUMBER_OFFSET) else { return Ok(0) };
        let (connection, mut removed) = (self.connection()?, 0);
        loop {
            let step = connection.execute(
                "DELETE FROM _stream_records WHERE id IN (
                    SELECT id FROM _stream_records
                    WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) <= ?2
                        AND CAST(sequence_number AS INTEGER) <
                            (SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = ?1)
                    LIMIT ?3)",
                params![self.table, stored, MAX_RECORDS_PER_DELETE],
            );
            match step.map_err(|source| self.file_error(source))? {
                0 => break,
                step => removed += step,
            }
        }
        let emptied = connection.execute(
            "UPDATE _stream_records SET new_image = NULL, old_image = NULL
                WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) <= ?2
                    AND (new_image IS NOT NULL OR old_image IS NOT NULL)",
            params![self.table, stored],
        );
        emptied.map_err(|source| self.file_error(source))?;
        Ok(removed)
    }

    /// Opens the engine's data with SQLite.
    fn connection(&self) -> Result<Connection, TableStreamError> {
        let connection = Connection::open(&self.file).map_err(|source| self.file_error(source))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(|source| self.file_error(source))?;
        Ok(connection)
    }

    fn file_error(&self, source: rusqlite::Error) -> TableStreamError {
        TableStreamError::File { table: self.table.clone(), source }
    }
}

impl std::fmt::Debug for TableStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableStream").field("table", &self.table).finish_non_exhaustive()
    }
}
