//! The data folder: the database file, the ledger of the sandbox gateway, the outbox and the stored events. Only one
//! process at a time can lock the folder.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use clock::Clock;
use deployment::DeploymentConfig;
use emulator::{Engine, EngineConnection, EngineError};
use encryption::EncryptionKeys;
use notices::CustomerNotifier;
use orders_desk::OrderDesk;
use orders_table::{BucketCount, ORDERS_TABLE, OrdersTable};
use outbound::{AllowedAddresses, DELIVERY_TIMEOUT, Deliverer, MemoryQueue, WebhookSender};
use serde::{Deserialize, Serialize};
use store::Table;

use super::encryption_keys::read_or_create_encryption_keys;
use super::event_file::EventFile;
use super::follower::{PublishedStreams, StreamFollower};
use super::gateway::SelectedGateway;
use super::journal::EventJournal;
use super::listen::default_api_url;
use super::local_bus::LocalBus;
use super::mailer::create_configured_mailer;
use super::notice_sender::NoticeSender;
use super::old_mails::remove_old_mails;
use super::private_folder::open_private_folder;
use crate::Failure;
use crate::context::CommandContext;
use crate::options::Options;
use crate::terminal::output;

/// The first bytes of the database file ("Database File Format" in the documentation of SQLite).
const FILE_HEADER: &[u8] = b"SQLite format 3\0";

/// The number of buckets (partitions) of the index over all orders in a new local orders table. One bucket is enough,
/// because the embedded database engine uses only one disk.
const INITIAL_BUCKETS: u32 = 1;

/// Whether the data folder must exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FolderRequirement {
    /// The folder must exist. If a command created a missing folder, a wrong path would look like a table without data.
    MustExist,
    /// The folder must exist. If an earlier version of Dueday wrote it, the command stores the policy of its flags and
    /// variables. So only a command that runs batches may require this: it has the flags of the runs.
    MayBeOlder,
    /// The folder is created if it does not exist. If an earlier version of Dueday wrote it, the command stores the policy.
    CreateIfAbsent,
}

/// The process that has locked a data folder, and the URLs of its servers; the content of `running.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunningServer {
    pub pid: u32,
    pub api: String,
    pub dynamodb: String,
    pub gateway: String,
}

/// The data folder, locked by this process.
pub struct LockedFolder {
    pub engine: Engine,
    /// The keys that encrypt the secrets in the table.
    pub keys: EncryptionKeys,
    pub(super) streams: PublishedStreams,
    pub gateway: SelectedGateway,
    /// The URL of the API of this process; `None` if it serves no API.
    api: Option<String>,
    /// The locked file `running.json`.
    lock_file: File,
    lock_path: PathBuf,
}

/// The result of an attempt to lock the data folder.
pub enum LockOutcome {
    Acquired(Box<LockedFolder>),
    /// Another process has locked the folder. `None` if that process runs no servers, or has not written their URLs
    /// yet.
    HeldByOther(Option<RunningServer>),
}

impl LockedFolder {
    /// Locks the data folder, unless another process has locked it. Creates the folder and its tables if they do not
    /// exist.
    ///
    /// # Errors
    /// If the folder, the database file or the gateway's ledger cannot be used.
    pub async fn lock(context: &CommandContext, clock: &Arc<dyn Clock>) -> Result<LockOutcome, Failure> {
        let folder = &context.options.data;
        let io = |source| Failure::Data { path: folder.clone(), source };
        open_private_folder(folder)?;
        let lock_path = folder.join("running.json");
        let mut lock_file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&lock_path).map_err(io)?;
        if lock_file.try_lock().is_err() {
            let mut text = String::new();
            lock_file.read_to_string(&mut text).map_err(io)?;
            return Ok(LockOutcome::HeldByOther(serde_json::from_str(&text).ok()));
        }
        lock_file.set_len(0).map_err(io)?;
        let (file, new) = (database_path(&context.options), folder.join("dynamodb.new"));
        if !file.exists() {
            remove_incomplete_database(&new);
            create_tables(&new, &context.config).await?;
            std::fs::rename(&new, &file).map_err(io)?;
        }
        let mut engine = open_engine(&file)?;
        if !orders_table_of_folder(engine.client()).exists().await? {
            // An earlier version of dueday created this database file, without the orders table. The missing table is
            // created in a copy, which then replaces the file.
            drop(engine);
            remove_incomplete_database(&new);
            std::fs::copy(&file, &new).map_err(io)?;
            create_tables(&new, &context.config).await?;
            std::fs::rename(&new, &file).map_err(io)?;
            engine = open_engine(&file)?;
        }
        // An earlier version of dueday may have created the orders table without the expiry of items. This call enables
        // the expiry.
        orders_table_of_folder(engine.client()).create_if_absent().await?;
        let keys = read_or_create_encryption_keys(folder, context.clock.as_ref())?;
        let gateway = SelectedGateway::open(&context.options, clock.clone()).await?;
        let streams = PublishedStreams {
            payments: engine.stream(&context.config.table.name)?,
            orders: engine.stream(orders_table_name())?,
        };
        Ok(LockOutcome::Acquired(Box::new(Self { engine, keys, streams, gateway, api: None, lock_file, lock_path })))
    }

    /// Removes the content of deleted and replaced items from the database file, and the mails that are in the outbox for
    /// longer than [`OUTBOX_RETENTION`](super::old_mails::OUTBOX_RETENTION) at `now`.
    ///
    /// # Errors
    /// If the database file or the outbox cannot be written.
    pub fn remove_deleted_data(&self, now: DateTime<Utc>) -> Result<(), Failure> {
        self.engine.remove_deleted_data()?;
        let outbox = self.lock_path.with_file_name("outbox");
        remove_old_mails(&outbox, now).map_err(|source| Failure::Data { path: outbox, source })
    }

    /// Creates the follower that publishes the changes of this folder's tables as events, and sends webhook deliveries
    /// to `queue`. If `queue` is `None`, the deliveries stay pending in the table. Before it creates the follower, this
    /// method tries again to place the orders that could not be placed earlier.
    ///
    /// # Errors
    /// If the folder of the events cannot be used, or the stored events belong to another table.
    pub async fn create_follower(
        &self,
        context: &CommandContext,
        queue: Option<MemoryQueue>,
    ) -> Result<StreamFollower, Failure> {
        let bus = self.open_bus(context, queue).await?;
        let failed = |source| Failure::Data { path: bus.unplaced_orders.path().clone(), source };
        bus.retry_unplaced_orders().await.map_err(failed)?;
        Ok(StreamFollower::new(self.streams.clone(), bus))
    }

    /// Opens the event bus, which appends the new events of this folder's tables to the stored events.
    pub(super) async fn open_bus(
        &self,
        context: &CommandContext,
        queue: Option<MemoryQueue>,
    ) -> Result<LocalBus, Failure> {
        let journal = Arc::new(self.open_journal(context)?);
        let desk = self.order_desk(context).await?;
        let unplaced_orders = EventFile::new(unplaced_orders_file(&context.options));
        let notice_sender = Arc::new(self.create_notice_sender(context).await?);
        let deliverer = self.create_deliverer(context)?;
        Ok(LocalBus { journal, deliverer, queue, desk, unplaced_orders, notice_sender })
    }

    /// Opens the journal of the published events.
    ///
    /// # Errors
    /// If the journal cannot be used, or its events belong to another table.
    fn open_journal(&self, context: &CommandContext) -> Result<EventJournal, Failure> {
        let folder = stored_events_folder(&context.options);
        let journal = EventJournal::open(folder.clone(), context.clock.clone())
            .map_err(|source| Failure::Data { path: folder.clone(), source })?;
        // If the stored events come from another table, their position belongs to the stream of that other table. A
        // follower that continued at this position in the stream of this folder's table would never publish the first
        // changes of this table.
        for (table, stream) in self.streams.streams_by_table() {
            if journal.committed_position(table).stream.is_some_and(|arn| arn != stream.arn()) {
                return Err(Failure::EventsOfOtherTable { folder });
            }
        }
        Ok(journal)
    }

    /// Returns the number of changes in the streams whose events are not published yet, and the time of the oldest of them;
    /// `None` if all are published. At most `limit` changes of each table are counted.
    ///
    /// # Errors
    /// If the events or a stream cannot be read.
    pub(super) fn unpublished_changes(
        &self,
        context: &CommandContext,
        limit: usize,
    ) -> Result<Option<(u64, DateTime<Utc>)>, Failure> {
        let journal = self.open_journal(context)?;
        let (mut count, mut oldest) = (0_u64, None);
        for (table, stream) in self.streams.streams_by_table() {
            let position = journal.committed_position(table);
            let next = stream.records_after(position.sequence.as_deref(), limit)?;
            let records = next["Records"].as_array().map(Vec::as_slice).unwrap_or_default();
            count = count.saturating_add(records.len() as u64);
            // A change without a readable time counts as very old, so that it is reported.
            let time = |record: &serde_json::Value| {
                let seconds = record["dynamodb"]["ApproximateCreationDateTime"].as_f64();
                seconds.and_then(|seconds| DateTime::from_timestamp(seconds as i64, 0)).unwrap_or_default()
            };
            let created = records.first().map(time);
            oldest = [oldest, created].into_iter().flatten().min();
        }
        Ok(oldest.map(|oldest| (count, oldest)))
    }

    /// Notices a database file that is older than the published events of the folder, because only the file was restored
    /// from a backup: switches charging off in `table` until an operator has confirmed the table, and prints a message.
    /// Later changes of the older file are published after the events that the folder already has.
    ///
    /// # Errors
    /// If the events or the table cannot be used, or the events belong to another table.
    pub async fn notice_older_database(&self, table: &Table, context: &CommandContext) -> Result<(), Failure> {
        let journal = self.open_journal(context)?;
        let (mut older, folder) = (Vec::new(), stored_events_folder(&context.options));
        for (published, stream) in self.streams.streams_by_table() {
            let committed = journal.committed_position(published).sequence;
            if committed.map_or(Ok(false), |position| stream.is_older_than(&position))? {
                older.push((published, stream));
            }
        }
        if older.is_empty() {
            return Ok(());
        }
        // First the mark in the table: if the process ends before the new positions are stored, the next command notices
        // the older file again.
        table.record_copy(context.clock.now()).await?;
        for (published, stream) in older {
            let newest = stream.newest_position()?;
            journal
                .restart_at(published, stream.arn(), newest.as_deref())
                .map_err(|source| Failure::Data { path: folder.clone(), source })?;
        }
        let message = format!(
            "{} is older than its events: it was restored from a backup. Charging is switched off: follow \"Restore a \
             data folder\" in docs/trouble.md",
            database_path(&context.options).display()
        );
        output::print_error(&message, context.options.json);
        Ok(())
    }

    /// Returns the order desk that works on the orders table of this folder.
    ///
    /// # Errors
    /// If the order desk's table cannot be read.
    pub async fn order_desk(&self, context: &CommandContext) -> Result<OrderDesk, Failure> {
        open_order_desk(self.engine.client_with_connection(Arc::new(EngineConnection::without_tokens())), context).await
    }

    /// Creates the deliverer that sends events to the webhook endpoints of this folder's table.
    ///
    /// # Errors
    /// If no HTTP client can be created.
    pub fn create_deliverer(&self, context: &CommandContext) -> Result<Deliverer, Failure> {
        let client = self.engine.client_with_connection(Arc::new(EngineConnection::without_tokens()));
        let table = context.config.table.connect_with(client);
        let sender = WebhookSender::new(AllowedAddresses::Any, DELIVERY_TIMEOUT)
            .map_err(|error| Failure::Refused(error.to_string()))?;
        Ok(Deliverer::new(table, sender, self.keys.clone(), context.clock.clone()))
    }

    /// Creates the sender of notices (mails to customers about events, such as a declined payment). It sends them to
    /// the customers in the table of this data folder.
    async fn create_notice_sender(&self, context: &CommandContext) -> Result<NoticeSender, Failure> {
        let client = self.engine.client_with_connection(Arc::new(EngineConnection::without_tokens()));
        let config = &context.config;
        let table = config.table.connect_with(client);
        let (merchant, clock) = (config.merchant.clone(), context.clock.clone());
        let notices = CustomerNotifier::new(table, create_configured_mailer(context).await?, merchant, clock);
        let api = self.api.clone().unwrap_or_else(default_api_url);
        let notices = notices.with_card_links(Some(api));
        let waiting = EventFile::new(unmailed_events_file(&context.options));
        let delayed = EventFile::new(delayed_mails_file(&context.options));
        Ok(NoticeSender::new(notices, waiting, delayed))
    }

    /// Writes the URLs of this process's servers to the lock file, where other commands read them.
    ///
    /// # Errors
    /// [`Failure::Data`] if the file cannot be written.
    pub fn write_server_urls(&mut self, running: &RunningServer) -> Result<(), Failure> {
        self.api = Some(running.api.clone());
        let io = |source| Failure::Data { path: self.lock_path.clone(), source };
        let text = serde_json::to_string(running).expect("the addresses can be written as JSON");
        self.lock_file.write_all(text.as_bytes()).and_then(|()| self.lock_file.flush()).map_err(io)
    }
}

/// Returns the path of the folder of the stored events.
pub fn stored_events_folder(options: &Options) -> PathBuf {
    options.data.join("events")
}

/// Returns the path of the file with the events whose mails are not sent yet.
pub fn unmailed_events_file(options: &Options) -> PathBuf {
    options.data.join("not-mailed.jsonl")
}

/// Returns the path of the file with the events whose mails are delayed, because their recipients did not accept them.
pub fn delayed_mails_file(options: &Options) -> PathBuf {
    options.data.join("mails-delayed.jsonl")
}

/// Returns the path of the file with the events of payments whose order could not be placed.
pub fn unplaced_orders_file(options: &Options) -> PathBuf {
    options.data.join("not-ordered.jsonl")
}

/// Returns the path of the database file.
pub(super) fn database_path(options: &Options) -> PathBuf {
    options.data.join("dynamodb.sqlite")
}

/// Creates the missing tables in the database `file`. `file` must be a temporary file that the caller renames
/// afterwards. The engine creates a table in several steps, so a killed process may leave a file with an incomplete
/// table, which could never be used.
async fn create_tables(file: &Path, config: &DeploymentConfig) -> Result<(), Failure> {
    let failed = |source| Failure::NewTable { path: file.to_owned(), source };
    let client = Engine::open(file)?.client();
    let table = config.table.connect_with(client.clone());
    table.create_if_absent().await.map_err(failed)?;
    orders_table_of_folder(client).create_if_absent().await.map_err(failed)
}

/// Removes the incomplete database file `new` that a killed process may have left, and the files that SQLite writes
/// next to this file.
fn remove_incomplete_database(new: &Path) {
    for left in ["new", "new-wal", "new-shm"] {
        let _ = std::fs::remove_file(new.with_extension(left));
    }
}

/// Returns the orders table of the order desk. Requests to the table use `client`.
fn orders_table_of_folder(client: aws_sdk_dynamodb::Client) -> OrdersTable {
    OrdersTable::new(client, orders_table_name())
}

/// Returns the name of the orders table in a data folder.
pub(super) fn orders_table_name() -> &'static str {
    ORDERS_TABLE.default.unwrap_or_default()
}

/// Opens the database `file`. Fails if the file is empty or is not a database. Without this check, the engine would
/// treat an empty file as a new database.
pub(super) fn open_engine(file: &Path) -> Result<Engine, Failure> {
    let damaged = |problem: &str| Failure::Damaged { path: file.to_owned(), problem: problem.to_owned() };
    let mut header = Vec::new();
    let read = File::open(file).and_then(|opened| opened.take(16).read_to_end(&mut header));
    match read.map_err(|source| Failure::Data { path: file.to_owned(), source })? {
        0 => Err(damaged("is empty: its data is lost")),
        _ if header != FILE_HEADER => Err(damaged("is not a data file of dueday, or is damaged")),
        _ => Engine::open(file).map_err(|error| match error {
            EngineError::Data { reason, .. } if reason.contains("malformed") || reason.contains("encrypted") => {
                damaged("is damaged")
            }
            other => other.into(),
        }),
    }
}

/// Returns the order desk. Requests to its orders table use `client`.
pub(super) async fn open_order_desk(
    client: aws_sdk_dynamodb::Client,
    context: &CommandContext,
) -> Result<OrderDesk, Failure> {
    let table = orders_table_of_folder(client);
    table.refuse_planned_changes().await?;
    let buckets = table.get_or_store_buckets(BucketCount::new(INITIAL_BUCKETS)).await?;
    Ok(OrderDesk::new(table, buckets, context.clock.clone()).with_optional_goods())
}
