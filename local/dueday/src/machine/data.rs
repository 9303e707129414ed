//! The data folder: the engine's file, the gateway's ledger, the outbox. One process holds it; a command that finds it
//! held speaks to that process's ports instead.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::config::{Credentials, Region};
use emulator::{Deployment, Engine, Wire};
use serde::{Deserialize, Serialize};
use shared::clock::Clock;
use shared::config::{Config, timeouts};
use shared::gateway::PaymentGateway;
use shared::mail::Outbox;
use shared::table::{Settings as TableSettings, Table};

use crate::Failure;
use crate::arguments::Settings;
use crate::commands::gateway::Gateway;

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
    pub gateway: Gateway,
    lock: File,
    path: PathBuf,
}

/// A system on the data folder, held by this process or another.
#[derive(Clone)]
pub struct Machine {
    pub deployment: Deployment,
    /// Kept for as long as the machine is used.
    _held: Option<Arc<Held>>,
}

/// A table to look at or to change: the local one, or one on AWS.
pub struct Opened {
    pub table: Table,
    pub config: Config,
    /// The settings that the table's users agree on.
    pub settings: TableSettings,
    /// Kept for as long as the local table is used.
    _machine: Option<Machine>,
}

impl Opened {
    /// The table that `settings` name.
    ///
    /// # Errors
    /// [`Failure`]: settings that are wrong, a folder or a table that cannot be used.
    pub async fn open(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        let Some(name) = &settings.table else {
            let machine = Machine::open(settings, clock.clone()).await?;
            let Deployment { table, config, .. } = machine.deployment.clone();
            let settings = table.init_settings(&config.initial_settings(clock.as_ref())).await?;
            return Ok(Self { table, config, settings, _machine: Some(machine) });
        };
        let config = settings.config()?;
        let table = config.connect().await;
        match table.get_settings().await {
            Ok(Some(settings)) => Ok(Self { table, config, settings, _machine: None }),
            Ok(None) => Err(Failure::Unused { name: name.clone() }),
            Err(error) if error.is_no_table() => Err(Failure::NoTable { name: name.clone() }),
            Err(error) => Err(error.into()),
        }
    }
}

impl Held {
    /// Holds the data folder of `settings`; `Err` with whoever holds it already.
    pub async fn take(settings: &Settings, clock: &Arc<dyn Clock>) -> Result<Result<Self, Option<Running>>, Failure> {
        let folder = &settings.data;
        let io = |source| Failure::Data { path: folder.clone(), source };
        std::fs::create_dir_all(folder).map_err(io)?;
        let path = folder.join("running.json");
        let mut lock =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        if lock.try_lock().is_err() {
            let mut text = String::new();
            lock.read_to_string(&mut text).map_err(io)?;
            return Ok(Err(serde_json::from_str(&text).ok()));
        }
        lock.set_len(0).map_err(io)?;
        let file = folder.join("dynamodb.sqlite");
        if !file.exists() {
            let new = folder.join("dynamodb.new");
            make_table(&new, settings).await?;
            std::fs::rename(&new, &file).map_err(io)?;
        }
        let engine = Engine::open(&file)?;
        let gateway = Gateway::open(settings, clock.clone())?;
        Ok(Ok(Self { engine, gateway, lock, path }))
    }

    /// Tells other commands where this process can be reached.
    pub fn announce(&mut self, running: &Running) -> Result<(), Failure> {
        let io = |source| Failure::Data { path: self.path.clone(), source };
        let text = serde_json::to_string(running).expect("addresses are representable");
        self.lock.write_all(text.as_bytes()).and_then(|()| self.lock.flush()).map_err(io)
    }
}

/// Makes the table in a file of its own: the engine makes a table in several steps, and one that a kill cut short could
/// never be used.
async fn make_table(file: &Path, settings: &Settings) -> Result<(), Failure> {
    for left in ["new", "new-wal", "new-shm"] {
        let _ = std::fs::remove_file(file.with_extension(left));
    }
    let config = settings.config()?;
    let table = Table::new(Engine::open(file)?.client(), &config.table, config.receipts_kept);
    Ok(table.create_if_absent().await?)
}

impl Machine {
    /// The system on the data folder, in this process if nobody holds the folder, else through the ports of whoever
    /// does. Creates the table if it is not there.
    pub async fn open(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        match Held::take(settings, &clock).await? {
            Ok(held) => Self::on(Arc::new(held), settings, clock).await,
            Err(Some(running)) => Self::through(running, settings, clock).await,
            Err(None) => Err(Failure::InUse { path: settings.data.clone(), what: "it serves nothing".to_owned() }),
        }
    }

    /// The system on a folder that this process holds.
    pub async fn on(held: Arc<Held>, settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        // Nothing gets lost inside a process, so nothing is repeated: the tokens by which the engine would know a repeated
        // transaction only cost memory and time, more with each of the last ten minutes' transactions.
        let client = held.engine.client_over(Arc::new(Wire::without_tokens()));
        let gateway = held.gateway.client(clock.clone());
        Ok(Self { _held: Some(held), ..Self::over(client, gateway, settings, clock).await? })
    }

    async fn through(running: Running, settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        // A payment that one gateway has made is unknown to another, and would be made again.
        if let Some(other) = settings.gateway.as_ref().filter(|url| **url != running.gateway) {
            let reason = format!("--gateway {other}: whoever uses the data folder charges at {}", running.gateway);
            return Err(Failure::Refused(reason));
        }
        let loader = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new("local"))
            .credentials_provider(Credentials::new("local", "local", None, None, "local"))
            .timeout_config(timeouts())
            .endpoint_url(&running.dynamodb);
        let client = aws_sdk_dynamodb::Client::new(&loader.load().await);
        let gateway = Gateway::At(running.gateway).client(clock.clone());
        Self::over(client, gateway, settings, clock).await
    }

    async fn over(
        client: aws_sdk_dynamodb::Client,
        gateway: Arc<dyn PaymentGateway>,
        settings: &Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Failure> {
        let mailer = Arc::new(Outbox::new(settings.data.join("outbox"), &settings.mail_from)?);
        let deployment = Deployment::new(client, settings.config()?, gateway, mailer, clock).ready().await?;
        Ok(Self { deployment, _held: None })
    }
}
