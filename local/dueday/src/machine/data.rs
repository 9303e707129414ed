//! The data folder: the engine's file, the gateway's ledger, the outbox, the kept events. One process holds it; a command that finds it
//! held speaks to that process's ports instead.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::config::{Credentials, Region};
use clock::Clock;
use config::Env;
use delivery::Notices;
use delivery::{Deliverer, Reach, Sender, TIMEOUT};
use emulator::{Config, Deployment, Engine, EngineError, Stream, Wire};
use gateways::{PaymentGateway, Processor};
use mail::MAIL_URL;
use mail::{Mailer, Outbox};
use orders::ORDERS_TABLE;
use orders::{Buckets, OrderDesk, OrdersTable};
use serde::{Deserialize, Serialize};
use store::{TableError, timeouts};

use super::deliveries::LocalQueue;
use super::follower::Follower;
use super::gateway::Gateway;
use super::journal::Journal;
use super::outlet::Outlet;
use super::post::Post;
use super::set_aside::SetAside;
use crate::Failure;
use crate::context::Context;
use crate::options::Options;
use crate::terminal::output;

/// What the engine's file begins with ("Database File Format" in the documentation of SQLite).
const FILE_HEADER: &[u8] = b"SQLite format 3\0";

/// Partitions of the index over all orders of a new table: one engine, one disk.
const INITIAL_BUCKETS: u32 = 1;

/// Whether a data folder must be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Folder {
    /// It must: an empty one would only seem to answer.
    Existing,
    /// It is made if it is not there.
    MadeIfAbsent,
}

/// Where the process that holds a data folder can be reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    pub pid: u32,
    pub api: String,
    pub dynamodb: String,
    pub gateway: String,
}

/// The data folder, held by this process.
pub struct Held {
    pub engine: Engine,
    stream: Stream,
    pub gateway: Gateway,
    lock: File,
    path: PathBuf,
}

/// Who holds the data folder now.
pub enum Holder {
    This(Box<Held>),
    /// Another process; it may not have said yet where it can be reached.
    Other(Option<Running>),
}

/// A system on the data folder, held by this process or another.
#[derive(Clone)]
pub struct Machine {
    pub deployment: Deployment,
    /// The deployment's, with all that it does for a merchant.
    pub gateway: Arc<dyn Processor>,
    /// Where it is served, if another process holds the folder.
    pub running: Option<Running>,
    /// Kept for as long as the machine is used.
    held: Option<Arc<Held>>,
}

impl Held {
    /// Holds the data folder, which is made if it is not there, unless another process does.
    ///
    /// # Errors
    /// [`Failure`]: a folder that cannot be used.
    pub async fn take(context: &Context, clock: &Arc<dyn Clock>) -> Result<Holder, Failure> {
        let folder = &context.options.data;
        let io = |source| Failure::Data { path: folder.clone(), source };
        std::fs::create_dir_all(folder).map_err(io)?;
        let path = folder.join("running.json");
        let mut lock =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        if lock.try_lock().is_err() {
            let mut text = String::new();
            lock.read_to_string(&mut text).map_err(io)?;
            return Ok(Holder::Other(serde_json::from_str(&text).ok()));
        }
        lock.set_len(0).map_err(io)?;
        let (file, new) = (database(&context.options), folder.join("dynamodb.new"));
        if !file.exists() {
            remove_begun(&new);
            make_tables(&new, &context.config).await?;
            std::fs::rename(&new, &file).map_err(io)?;
        }
        let mut engine = open_engine(&file)?;
        if !orders_table(engine.client()).exists().await? {
            // A folder of a version without an order desk.
            drop(engine);
            remove_begun(&new);
            std::fs::copy(&file, &new).map_err(io)?;
            make_tables(&new, &context.config).await?;
            std::fs::rename(&new, &file).map_err(io)?;
            engine = open_engine(&file)?;
        }
        // One that is there already may lack what came later.
        orders_table(engine.client()).create_if_absent().await?;
        let gateway = Gateway::open(&context.options, clock.clone())?;
        let stream = engine.stream(&context.config.table.name)?;
        Ok(Holder::This(Box::new(Self { engine, stream, gateway, lock, path })))
    }

    /// What keeps the events of this folder's table, and hands what is to be delivered to `queue`.
    ///
    /// # Errors
    /// [`Failure`]: the events' folder cannot be used.
    pub async fn follower(&self, context: &Context, queue: Option<LocalQueue>) -> Result<Follower, Failure> {
        let folder = events_folder(&context.options);
        let journal = Journal::open(folder.clone(), context.clock.clone());
        let journal = Arc::new(journal.map_err(|source| Failure::Data { path: folder.clone(), source })?);
        // Its first changes would pass for known, and nobody would hear of them.
        let is_other = journal.stream().is_some_and(|stream| stream != self.stream.arn());
        let is_older = journal.position().map_or(Ok(false), |position| self.stream.is_before(&position))?;
        if is_other || is_older {
            return Err(Failure::OtherEvents { folder });
        }
        let desk = self.order_desk(context).await?;
        let not_ordered = SetAside::new(not_ordered(&context.options));
        let post = Arc::new(self.post(context).await?);
        let outlet =
            Outlet { journal, deliverer: self.deliverer(context)?, queue, desk, not_ordered, post: post.clone() };
        let failed = |source| Failure::Data { path: outlet.not_ordered.path().clone(), source };
        outlet.order_again().await.map_err(failed)?;
        Ok(Follower::new(self.stream.clone(), outlet))
    }

    /// The order desk in this folder.
    ///
    /// # Errors
    /// [`Failure`]: the table cannot be used.
    pub async fn order_desk(&self, context: &Context) -> Result<OrderDesk, Failure> {
        order_desk(self.engine.client_over(Arc::new(Wire::without_tokens())), context).await
    }

    /// What brings events to the endpoints in this folder's table.
    ///
    /// # Errors
    /// [`Failure`]: the machine cannot send by HTTP.
    pub fn deliverer(&self, context: &Context) -> Result<Deliverer, Failure> {
        let client = self.engine.client_over(Arc::new(Wire::without_tokens()));
        let table = context.config.table.with(client);
        let sender = Sender::new(Reach::Anywhere, TIMEOUT).map_err(|error| Failure::Refused(error.to_string()))?;
        Ok(Deliverer::new(table, sender, context.clock.clone()))
    }

    /// What writes to the customers of this folder's table.
    async fn post(&self, context: &Context) -> Result<Post, Failure> {
        let client = self.engine.client_over(Arc::new(Wire::without_tokens()));
        let config = &context.config;
        let table = config.table.with(client);
        let (merchant, clock) = (config.merchant.clone(), context.clock.clone());
        let notices = Notices::new(table, mailer(context).await?, merchant, config.billing.zone, clock);
        Ok(Post::new(notices, SetAside::new(context.options.data.join("not-mailed.jsonl"))))
    }

    /// Tells other commands where this process can be reached.
    ///
    /// # Errors
    /// [`Failure::Data`].
    pub fn announce(&mut self, running: &Running) -> Result<(), Failure> {
        let io = |source| Failure::Data { path: self.path.clone(), source };
        let text = serde_json::to_string(running).expect("addresses are representable");
        self.lock.write_all(text.as_bytes()).and_then(|()| self.lock.flush()).map_err(io)
    }
}

/// How mails leave: into the outbox, unless the environment says otherwise.
pub async fn mailer(context: &Context) -> Result<Arc<dyn Mailer>, Failure> {
    let from = context.options.mail_from();
    Ok(match Env::process().given(&MAIL_URL) {
        Some(url) => mail::mailer(&url, from)?,
        None if context.options.table().is_some() => {
            return Err(Failure::Refused("with --table, DUEDAY_MAIL_URL must say how mails leave".to_owned()));
        }
        None => Arc::new(Outbox::new(context.options.data.join("outbox"), from)?),
    })
}

/// Where the kept events are.
pub fn events_folder(options: &Options) -> PathBuf {
    options.data.join("events")
}

/// The file of what was paid and could not be ordered.
pub fn not_ordered(options: &Options) -> PathBuf {
    options.data.join("not-ordered.jsonl")
}

/// The engine's file.
fn database(options: &Options) -> PathBuf {
    options.data.join("dynamodb.sqlite")
}

/// Makes what tables are not there in a file of its own: the engine makes a table in several steps, and one that a kill cut
/// short could never be used.
async fn make_tables(file: &Path, config: &Config) -> Result<(), Failure> {
    let failed = |source| Failure::NewTable { path: file.to_owned(), source };
    let client = Engine::open(file)?.client();
    let table = config.table.with(client.clone());
    table.create_if_absent().await.map_err(failed)?;
    orders_table(client).create_if_absent().await.map_err(failed)
}

/// Removes what a kill has left of a new file.
fn remove_begun(new: &Path) {
    for left in ["new", "new-wal", "new-shm"] {
        let _ = std::fs::remove_file(new.with_extension(left));
    }
}

/// The order desk's table.
fn orders_table(client: aws_sdk_dynamodb::Client) -> OrdersTable {
    OrdersTable::new(client, ORDERS_TABLE.default.unwrap_or_default())
}

/// The engine on `file`, which must be one: an empty file would be taken for a new table.
fn open_engine(file: &Path) -> Result<Engine, Failure> {
    let damaged = |what: &str| Failure::Damaged { path: file.to_owned(), what: what.to_owned() };
    let mut header = Vec::new();
    let read = File::open(file).and_then(|opened| opened.take(16).read_to_end(&mut header));
    match read.map_err(|source| Failure::Data { path: file.to_owned(), source })? {
        0 => Err(damaged("is empty: its data is lost")),
        _ if header != FILE_HEADER => Err(damaged("is no data file of dueday, or is damaged")),
        _ => Engine::open(file).map_err(|error| match error {
            EngineError::Data { reason, .. } if reason.contains("malformed") || reason.contains("encrypted") => {
                damaged("is damaged")
            }
            other => other.into(),
        }),
    }
}

impl Machine {
    /// The system on the data folder, in this process if nobody holds the folder, else through the ports of whoever
    /// does. It goes by `clock`.
    ///
    /// # Errors
    /// [`Failure`]: a folder that cannot be used, or that is not there although it must be.
    pub async fn open(context: &Context, folder: Folder, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        if folder == Folder::Existing && !database(&context.options).exists() {
            return Err(Failure::NoData { path: context.options.data.clone(), demo: context.hint("demo") });
        }
        match Held::take(context, &clock).await? {
            Holder::This(held) => Self::on(Arc::new(*held), context, clock).await,
            Holder::Other(Some(running)) => Self::through(running, context, clock).await,
            Holder::Other(None) => {
                Err(Failure::InUse { path: context.options.data.clone(), what: "it serves nothing".to_owned() })
            }
        }
    }

    /// The system on a folder that this process holds.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn on(held: Arc<Held>, context: &Context, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        // Nothing gets lost inside a process, so nothing is repeated: the tokens by which the engine would know a repeated
        // transaction only cost memory and time, more with each of the last ten minutes' transactions.
        let client = held.engine.client_over(Arc::new(Wire::without_tokens()));
        let gateway = held.gateway.client(clock.clone());
        let deployment = deployment(client, gateway.clone(), context, clock).await?;
        Ok(Self { deployment, gateway, running: None, held: Some(held) })
    }

    /// Keeps what has happened by now. Whoever else holds the folder does so by itself.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn catch_up(&self, context: &Context) -> Result<(), Failure> {
        match &self.held {
            Some(held) => {
                let follower = held.follower(context, None).await?;
                follower.catch_up().await?;
                let post = &follower.post;
                let sent = post.send().await;
                let failed = sent.map_err(|source| Failure::Data { path: post.waiting.path().clone(), source })?;
                if let Some(reason) = failed {
                    output::tell(format!(
                        "error: mails wait: {reason}. The next command, or `dueday`, tries them again"
                    ));
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The order desk on this machine.
    ///
    /// # Errors
    /// [`Failure`]: its table cannot be used.
    pub async fn order_desk(&self, context: &Context) -> Result<OrderDesk, Failure> {
        order_desk(self.deployment.table.client().clone(), context).await
    }

    async fn through(running: Running, context: &Context, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        // A payment that one gateway has made is unknown to another, and would be made again.
        if let Some(other) = context.options.gateway().filter(|url| *url != running.gateway) {
            let reason = format!("--gateway {other}: whoever uses the data folder charges at {}", running.gateway);
            return Err(Failure::Refused(reason));
        }
        let loader = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new("local"))
            .credentials_provider(Credentials::new("local", "local", None, None, "local"))
            .timeout_config(timeouts())
            .endpoint_url(&running.dynamodb);
        let client = aws_sdk_dynamodb::Client::new(&loader.load().await);
        let gateway = Gateway::if_asked(&running.gateway).client(clock.clone());
        let deployment = deployment(client, gateway.clone(), context, clock).await?;
        Ok(Self { deployment, gateway, running: Some(running), held: None })
    }
}

/// The order desk whose table is reached through `client`.
async fn order_desk(client: aws_sdk_dynamodb::Client, context: &Context) -> Result<OrderDesk, Failure> {
    let table = orders_table(client);
    let buckets = table.buckets(Buckets::new(INITIAL_BUCKETS)).await?;
    Ok(OrderDesk::new(table, buckets, context.clock.clone()))
}

/// The system whose table is reached through `client`, on `clock`. A new table's own id is made by the machine's clock.
async fn deployment(
    client: aws_sdk_dynamodb::Client,
    gateway: Arc<dyn PaymentGateway>,
    context: &Context,
    clock: Arc<dyn Clock>,
) -> Result<Deployment, Failure> {
    let mailer = mailer(context).await?;
    let deployment = Deployment::new(client, context.config.clone(), gateway, mailer, context.clock.clone());
    let ready = deployment.ready().await.map_err(|error| match error {
        TableError::OtherFormat { .. } => {
            Failure::OtherVersion { path: context.options.data.clone(), reason: error.to_string() }
        }
        error => error.into(),
    })?;
    Ok(Deployment { clock, ..ready })
}
