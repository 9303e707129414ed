//! The embedded DynamoDB engine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryPartition;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region, StalledStreamProtectionConfig};
use dynoxide::Database;
use rusqlite::Connection;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::dynamodb_operations::{execute_operation, execute_operation_without_token};
use crate::dynamodb_server::dynamodb_router;
use crate::engine_connection::EngineConnection;
use crate::http_server::{ServerLimits, serve_http};
use crate::in_process_client::{InProcessClient, NoSleep};
use crate::stream::{BUSY_TIMEOUT, TableStream, TableStreamError};

/// A DynamoDB engine in this process, in memory or in a file.
#[derive(Clone)]
pub struct Engine {
    database: Database,
    /// The path of the data file, or the URI of the data in memory.
    file: PathBuf,
}

/// The reason why the engine could not be started.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the data in {} cannot be used: {reason}", path.display())]
    Data { path: PathBuf, reason: String },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
}

impl Engine {
    /// Creates an empty engine in memory.
    ///
    /// # Panics
    /// If SQLite cannot open a database in memory.
    pub fn in_memory() -> Self {
        let uri = new_memory_uri();
        let database = Database::new(&uri).expect("an engine in memory");
        Self { database, file: uri.into() }
    }

    /// Creates an engine in memory with a copy of the data of this engine. A copy is much faster than the same requests
    /// again.
    ///
    /// # Panics
    /// If SQLite cannot read the data of this engine, or cannot open a database in memory.
    pub fn copy(&self) -> Self {
        let uri = new_memory_uri();
        let from = Connection::open(&self.file).expect("the data of an open engine");
        let _to = Connection::open(&uri).expect("a database in memory");
        from.execute("VACUUM INTO ?1", [&uri]).expect("a copy of the data of this engine");
        // Opens the database before `_to` is closed, because the data is deleted with the last connection.
        let database = Database::new(&uri).expect("an engine in memory");
        Self { database, file: uri.into() }
    }

    /// Opens the engine with the data file at `path`, which is created if it does not exist.
    ///
    /// # Errors
    /// [`EngineError::Data`] if the file cannot be opened or is damaged, or its path is not UTF-8.
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        let unusable = |reason: String| EngineError::Data { path: path.to_owned(), reason };
        let text = path.to_str().ok_or_else(|| unusable("its path is not UTF-8".to_owned()))?;
        let database = Database::new(text).map_err(|error| unusable(error.to_string()))?;
        // Reads the list of tables, so a damaged file makes this function fail, and not a later request.
        database
            .list_tables(dynoxide::actions::list_tables::ListTablesRequest::default())
            .map_err(|error| unusable(error.to_string()))?;
        Ok(Self { database, file: path.to_owned() })
    }

    /// Returns an SDK client that calls this engine without a socket.
    pub fn client(&self) -> Client {
        self.client_with_connection(Arc::new(EngineConnection::default()))
    }

    /// Returns an SDK client that calls this engine through `connection`, which may count requests and inject faults.
    pub fn client_with_connection(&self, connection: Arc<EngineConnection>) -> Client {
        let retries = connection.retry_config();
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("local"))
            // The engine verifies no signature, so the requests are not signed: a signature takes a tenth of the time of a
            // request.
            .allow_no_auth()
            .endpoint_url("http://in-process.invalid")
            .retry_config(retries)
            // Use a separate retry budget: by default, all clients of a process share one budget.
            .retry_partition(RetryPartition::custom("in-process").build())
            .sleep_impl(NoSleep)
            // The protection against stalled streams measures time with sleeps, and a sleep ends immediately here, so
            // it is disabled.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .http_client(InProcessClient::new(self.database.clone(), connection))
            .build();
        Client::from_conf(config)
    }

    /// Executes `request` without an SDK and without an [`EngineConnection`].
    ///
    /// # Errors
    /// The engine's error, as the JSON that DynamoDB would return.
    pub fn execute(&self, operation: &str, request: &Value) -> Result<Value, String> {
        let response = execute_operation(&self.database, operation, request.to_string().as_bytes());
        let response = response.map_err(|error| error.to_json())?;
        serde_json::from_str(&response).map_err(|error| error.to_string())
    }

    /// Executes the request in `body` without its idempotency token, and returns the response as JSON text. This method
    /// is for servers outside this crate.
    ///
    /// # Errors
    /// The engine's error, as the JSON that DynamoDB would return.
    pub fn execute_without_token(&self, operation: &str, body: &[u8]) -> Result<String, String> {
        execute_operation_without_token(&self.database, operation, body).map_err(|error| error.to_json())
    }

    /// Returns the stream of `table`. Enables the stream if it is not enabled.
    ///
    /// # Errors
    /// [`TableStreamError`] if the stream cannot be enabled or indexed.
    pub fn stream(&self, table: &str) -> Result<TableStream, TableStreamError> {
        TableStream::open(self.database.clone(), self.file.clone(), table)
    }

    /// Deletes all expired items, as DynamoDB does within days. Returns the number of deleted items.
    pub fn delete_expired(&self) -> usize {
        self.database.sweep_ttl().unwrap_or(0)
    }

    /// Removes the content of deleted and replaced items from the data file: SQLite only marks its pages as free. Writes
    /// the whole file again, and no request is executed meanwhile.
    ///
    /// # Errors
    /// [`EngineError::Data`] if the file cannot be written, for example because the disk is full, or if another connection
    /// prevents that the old content is overwritten.
    pub fn remove_deleted_data(&self) -> Result<(), EngineError> {
        let unusable = |reason: String| EngineError::Data { path: self.file.clone(), reason };
        self.database.vacuum().map_err(|error| unusable(error.to_string()))?;
        // The new file is in the write-ahead log until a checkpoint. The old content stays there too.
        let checkpoint = || -> rusqlite::Result<i64> {
            let connection = Connection::open(&self.file)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        };
        // The first column is 1 if another connection prevented the checkpoint, which is no error of the statement.
        match checkpoint() {
            Ok(0) => Ok(()),
            Ok(_) => Err(unusable("another connection reads or writes the file".to_owned())),
            Err(error) => Err(unusable(error.to_string())),
        }
    }

    /// Serves this engine to other programs on `address`, in a separate thread: the engine executes one request at a
    /// time behind a lock, and would block the other tasks of a shared runtime.
    ///
    /// # Errors
    /// [`EngineError::Listen`] if the server cannot listen on `address` or its thread cannot be started.
    pub fn serve(&self, address: SocketAddr) -> Result<RunningEngine, EngineError> {
        let listen_error = |source| EngineError::Listen { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(listen_error)?;
        listener.set_nonblocking(true).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(listen_error)?;
        let routes = dynamodb_router(self.database.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        // The thread is not joined. The thread ends when `RunningEngine` is dropped or when this process ends.
        std::thread::Builder::new()
            .name("dynamodb".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                    tokio::select! {
                        _ = serve_http(listener, routes, ServerLimits::default()) => {}
                        _ = stopped => {}
                    }
                });
            })
            .map_err(listen_error)?;
        Ok(RunningEngine { address, _stop: stop })
    }
}

/// Returns the URI of a new SQLite database in memory. SQLite's `memdb` shares a database between all connections of
/// this process that use the same name, so [`TableStream`] can open a second connection.
fn new_memory_uri() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("file:/engine-{}?vfs=memdb", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// An engine that is served on a socket. The server stops when this value is dropped.
#[derive(Debug)]
pub struct RunningEngine {
    pub address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl RunningEngine {
    /// Returns the URL for an SDK or the AWS CLI.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}
