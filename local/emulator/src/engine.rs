//! The embedded DynamoDB engine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryPartition;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, StalledStreamProtectionConfig};
use dynoxide::Database;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::connector::{InProcess, Instantly};
use crate::dynamodb_server::dynamodb_router;
use crate::http_server::{Limits, serve};
use crate::operations::{carry_out, carry_out_without_tokens};
use crate::stream::{Stream, StreamError};
use crate::wire::Wire;

/// A DynamoDB engine in this process, in memory or in a file.
#[derive(Clone)]
pub struct Engine {
    database: Database,
    /// `None`: in memory.
    file: Option<PathBuf>,
}

/// Why the engine could not be started.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the data in {} cannot be used: {reason}", path.display())]
    Data { path: PathBuf, reason: String },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
}

impl Engine {
    /// An empty engine in memory.
    ///
    /// # Panics
    /// If SQLite cannot open a database in memory.
    pub fn memory() -> Self {
        Self { database: Database::memory().expect("an engine in memory"), file: None }
    }

    /// The engine whose data is in the file at `path`, made if absent.
    ///
    /// # Errors
    /// [`EngineError::Data`].
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        let unusable = |reason: String| EngineError::Data { path: path.to_owned(), reason };
        let text = path.to_str().ok_or_else(|| unusable("its path is not UTF-8".to_owned()))?;
        let database = Database::new(text).map_err(|error| unusable(error.to_string()))?;
        // Reads what a damaged file would fail on, before anything else does.
        database
            .list_tables(dynoxide::actions::list_tables::ListTablesRequest::default())
            .map_err(|error| unusable(error.to_string()))?;
        Ok(Self { database, file: Some(path.to_owned()) })
    }

    /// An SDK client that speaks to this engine without a socket.
    pub fn client(&self) -> Client {
        self.client_over(Arc::new(Wire::default()))
    }

    /// An SDK client that speaks to this engine over `wire`, which counts and may inject faults.
    pub fn client_over(&self, wire: Arc<Wire>) -> Client {
        let retries = wire.retries();
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("local"))
            .credentials_provider(Credentials::new("local", "local", None, None, "local"))
            .endpoint_url("http://in-process.invalid")
            .retry_config(retries)
            // By default all clients of a process share what they may retry.
            .retry_partition(RetryPartition::custom("in-process").build())
            .sleep_impl(Instantly)
            // It measures with a sleep that is over at once.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .http_client(InProcess::new(self.database.clone(), wire))
            .build();
        Client::from_conf(config)
    }

    /// Carries out a request without an SDK and without a wire: JSON in, JSON out.
    ///
    /// # Errors
    /// As DynamoDB answers them, in JSON.
    pub fn ask(&self, operation: &str, request: &Value) -> Result<Value, String> {
        let answer = carry_out(&self.database, operation, request.to_string().as_bytes());
        let answer = answer.map_err(|error| error.to_json())?;
        serde_json::from_str(&answer).map_err(|error| error.to_string())
    }

    /// Carries out the request in `body`, as text and without its token, for servers of one's own.
    ///
    /// # Errors
    /// As DynamoDB answers them, in JSON.
    pub fn answer(&self, operation: &str, body: &[u8]) -> Result<String, String> {
        carry_out_without_tokens(&self.database, operation, body).map_err(|error| error.to_json())
    }

    /// The stream of `table`, enabled if it is not.
    ///
    /// # Errors
    /// [`StreamError`].
    pub fn stream(&self, table: &str) -> Result<Stream, StreamError> {
        Stream::of(self.database.clone(), self.file.clone(), table)
    }

    /// Deletes what has expired, as DynamoDB does within days. Answers how many items.
    pub fn delete_expired(&self) -> usize {
        self.database.sweep_ttl().unwrap_or(0)
    }

    /// Serves this engine to other programs on `address`, in a thread of its own: requests are carried out one at a
    /// time behind a lock, and would hold up whatever shares their runtime.
    ///
    /// # Errors
    /// [`EngineError::Listen`].
    pub fn serve(&self, address: SocketAddr) -> Result<Served, EngineError> {
        let listen = |source| EngineError::Listen { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(listen)?;
        let routes = dynamodb_router(self.database.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        // It is not waited for: it ends with this process at the latest.
        std::thread::Builder::new()
            .name("dynamodb".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                    tokio::select! {
                        _ = serve(listener, routes, Limits::default()) => {}
                        _ = stopped => {}
                    }
                });
            })
            .map_err(listen)?;
        Ok(Served { address, _stop: stop })
    }
}

/// An engine being served; stops when dropped.
#[derive(Debug)]
pub struct Served {
    pub address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Served {
    /// Where an SDK or the AWS CLI finds it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}
