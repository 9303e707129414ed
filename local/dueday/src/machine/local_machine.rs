//! The local system on a data folder. If another process has locked the folder, the system connects to the servers of
//! that process.

use std::sync::Arc;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::config::{Credentials, Region};
use billing::StoredPolicy;
use charging::OlderTableCheck;
use chrono::{DateTime, Utc};
use clock::Clock;
use deployment::Deployment;
use emulator::EngineConnection;
use gateways::{FullGateway, PaymentGateway};
use orders_desk::OrderDesk;
use store::{TableError, aws_request_timeouts};

use super::data_folder::{FolderRequirement, LockOutcome, LockedFolder, RunningServer, database_path, open_order_desk};
use super::follower::StreamFollower;
use super::gateway::SelectedGateway;
use super::mailer::create_configured_mailer;
use crate::Failure;
use crate::context::CommandContext;
use crate::terminal::output;

/// The largest number of unpublished changes of a table that are counted.
const MAX_COUNTED_CHANGES: usize = 1_000;
/// The message of a command that has not published its changes, because no server runs.
const UNPUBLISHED_CHANGES: &str =
    "No server runs: the mails and events about these changes are sent when `dueday` runs.";

/// The local system on a data folder that this process, or another process, has locked.
#[derive(Clone)]
pub struct LocalMachine {
    pub deployment: Deployment,
    /// The same gateway as in `deployment`, with its functions for refunds and checkout pages.
    pub gateway: Arc<dyn FullGateway>,
    /// The process that serves the folder, if another process has locked it.
    pub running: Option<RunningServer>,
    /// The locked data folder. The lock is held until the last clone of this `LocalMachine` is dropped. `None` if another
    /// process has locked the folder.
    locked_folder: Option<Arc<LockedFolder>>,
}

impl LocalMachine {
    /// Opens the system on the data folder with `clock`. Locks the folder, or connects to the process that has locked
    /// it.
    ///
    /// # Errors
    /// In these cases:
    /// - The folder or the table cannot be used.
    /// - `folder` requires an existing folder, and the folder contains no database.
    /// - The process that has locked the folder runs no servers.
    /// - `--gateway` selects another gateway than the process that has locked the folder.
    pub async fn open(
        context: &CommandContext,
        folder: FolderRequirement,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Failure> {
        if folder != FolderRequirement::CreateIfAbsent && !database_path(&context.options).exists() {
            return Err(Failure::NoData { path: context.options.data.clone(), demo: context.command_line("demo") });
        }
        match LockedFolder::lock(context, &clock).await? {
            LockOutcome::Acquired(locked) => Self::with_locked_folder(Arc::new(*locked), folder, context, clock).await,
            LockOutcome::HeldByOther(Some(running)) => Self::connect_to_server(running, folder, context, clock).await,
            LockOutcome::HeldByOther(None) => {
                let user = "a command that runs no servers".to_owned();
                Err(Failure::InUse { path: context.options.data.clone(), user })
            }
        }
    }

    /// Opens the system on `locked`, a folder that this process has locked. If an earlier version of Dueday wrote the
    /// folder, `folder` states whether this command stores the policy.
    ///
    /// # Errors
    /// If the mailer cannot be created, or the table cannot be used.
    pub async fn with_locked_folder(
        locked: Arc<LockedFolder>,
        folder: FolderRequirement,
        context: &CommandContext,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Failure> {
        // A request inside one process cannot get lost, so no request is repeated, and the idempotency tokens of
        // transactions are not needed. The engine would store these tokens for ten minutes, which costs memory and
        // time.
        let client = locked.engine.client_with_connection(Arc::new(EngineConnection::without_tokens()));
        let gateway = locked.gateway.client(clock.clone());
        let deployment = open_local_deployment(client, folder, gateway.clone(), context, clock).await?;
        locked.notice_older_database(&deployment.table, context).await?;
        deployment.table.init_payment_run_time().await?;
        // The engine gives a restored copy of its file the same id, so each process compares the file with the gateway.
        let older_table_check = Some(Arc::new(OlderTableCheck::new(gateway.clone())));
        let deployment = Deployment { older_table_check, ..deployment };
        Ok(Self { deployment, gateway, running: None, locked_folder: Some(locked) })
    }

    /// Publishes all changes up to now as events, processes the events, and sends the waiting notices. Also tries again
    /// to place the orders that could not be placed earlier. Does nothing if another process serves the folder, because
    /// that process does the same work.
    ///
    /// # Errors
    /// If the events cannot be stored or processed. If a mail cannot be sent, this method only prints a message.
    pub async fn publish_all_changes(&self, context: &CommandContext) -> Result<(), Failure> {
        match &self.locked_folder {
            Some(folder) => publish_and_notify(folder.create_follower(context, None).await?).await,
            None => Ok(()),
        }
    }

    /// Publishes all new changes as events, processes the events, and sends the waiting notices. A command calls this
    /// method after its changes, and [`LocalMachine::publish_all_changes`] before its changes. Unlike that method, this
    /// method does not try again to place the orders that could not be placed earlier.
    ///
    /// # Errors
    /// The errors of [`LocalMachine::publish_all_changes`].
    pub async fn publish_changes(&self, context: &CommandContext) -> Result<(), Failure> {
        match &self.locked_folder {
            Some(folder) => {
                let bus = folder.open_bus(context, None).await?;
                publish_and_notify(StreamFollower::new(folder.streams.clone(), bus)).await
            }
            None => Ok(()),
        }
    }

    /// Prints a message if no server runs and the table contains changes whose events are not published yet, so that a
    /// person does not wait for the mails about them. A command calls this method after its changes, if it does not
    /// publish them.
    ///
    /// # Errors
    /// If the events or a stream cannot be read.
    pub fn mention_unpublished_changes(&self, context: &CommandContext) -> Result<(), Failure> {
        if let Some(folder) = &self.locked_folder
            && folder.unpublished_changes(context, 1)?.is_some()
        {
            output::print_message(UNPUBLISHED_CHANGES);
        }
        Ok(())
    }

    /// Returns the number of changes whose events are not published (at most 1,000 for each table), and the time of the
    /// oldest; `None` if there are none, or if another process serves the folder and publishes them.
    ///
    /// # Errors
    /// If the events or a stream cannot be read.
    pub fn unpublished_changes(&self, context: &CommandContext) -> Result<Option<(u64, DateTime<Utc>)>, Failure> {
        match &self.locked_folder {
            Some(folder) => folder.unpublished_changes(context, MAX_COUNTED_CHANGES),
            None => Ok(None),
        }
    }

    /// Removes the content of deleted and replaced items from the database file, and old mails from the outbox, if this
    /// process has locked the folder.
    ///
    /// # Errors
    /// If the file or the outbox cannot be written.
    pub fn remove_deleted_data(&self) -> Result<(), Failure> {
        match &self.locked_folder {
            Some(folder) => folder.remove_deleted_data(self.deployment.clock.now()),
            None => Ok(()),
        }
    }

    /// Returns whether this process has locked the data folder.
    pub fn has_locked_folder(&self) -> bool {
        self.locked_folder.is_some()
    }

    /// Returns the order desk that works on the orders table of this machine.
    ///
    /// # Errors
    /// If the order desk's table cannot be read.
    pub async fn order_desk(&self, context: &CommandContext) -> Result<OrderDesk, Failure> {
        open_order_desk(self.deployment.table.client().clone(), context).await
    }

    /// Opens the local system through the servers of the process `running`.
    async fn connect_to_server(
        running: RunningServer,
        folder: FolderRequirement,
        context: &CommandContext,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Failure> {
        // All payments of the table are at the gateway of the running process. Another gateway does not know these
        // payments, so charges there would charge the same periods again.
        if let Some(other) = context.options.gateway().filter(|url| *url != running.gateway) {
            let reason =
                format!("--gateway {other}: the process that uses the data folder charges at {}", running.gateway);
            return Err(Failure::Refused(reason));
        }
        let client = dynamodb_client_of_server(&running).await;
        let gateway = SelectedGateway::of_running_process(&running.gateway).client(clock.clone());
        let deployment = open_local_deployment(client, folder, gateway.clone(), context, clock).await?;
        Ok(Self { deployment, gateway, running: Some(running), locked_folder: None })
    }
}

/// Publishes all changes up to now with `follower`, and sends the waiting notices.
async fn publish_and_notify(follower: StreamFollower) -> Result<(), Failure> {
    follower.publish_all_changes().await?;
    let notice_sender = &follower.notice_sender;
    let failed_file = |source| Failure::Data { path: notice_sender.waiting.path().clone(), source };
    // Retry the delayed notices first: `send` may add more of them, which it has just tried.
    let failed_delayed = notice_sender.retry_delayed().await.map_err(failed_file)?;
    let failed = notice_sender.send_waiting().await.map_err(failed_file)?.or(failed_delayed);
    if let Some(reason) = failed {
        output::print_message(format!(
            "error: mails cannot be sent: {reason}. The next command, or `dueday`, sends them"
        ));
    }
    Ok(())
}

/// Returns a client of the DynamoDB server of the process `running`.
pub(super) async fn dynamodb_client_of_server(running: &RunningServer) -> aws_sdk_dynamodb::Client {
    let loader = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new("local"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .timeout_config(aws_request_timeouts())
        .endpoint_url(&running.dynamodb);
    aws_sdk_dynamodb::Client::new(&loader.load().await)
}

/// Opens the local deployment. Requests to its table use `client`. The deployment uses `clock`, which may be simulated,
/// but the id of a new table is created with the system clock. `folder` states whether a table of an earlier version gets
/// the policy of this command.
async fn open_local_deployment(
    client: aws_sdk_dynamodb::Client,
    folder: FolderRequirement,
    gateway: Arc<dyn PaymentGateway>,
    context: &CommandContext,
    clock: Arc<dyn Clock>,
) -> Result<Deployment, Failure> {
    let mailer = create_configured_mailer(context).await?;
    let deployment = Deployment::new(client, context.config.clone(), gateway, mailer, context.clock.clone());
    let (table, initial) = (&deployment.table, deployment.config.table.initial_settings(context.clock.as_ref()));
    table.create_if_absent().await?;
    // Without this check, the settings would be created again: charging on, and without ceilings.
    let to_failure = |error| match error {
        TableError::OtherFormat { .. } => {
            Failure::OtherVersion { path: context.options.data.clone(), reason: error.to_string() }
        }
        error => error.into(),
    };
    if table.get_settings().await.map_err(to_failure)?.is_none() && !table.is_empty().await? {
        return Err(Failure::Refused(
            "the settings of the table are lost: restore the data folder from a backup (docs/trouble.md)".to_owned(),
        ));
    }
    let settings = match folder {
        FolderRequirement::MustExist => table.stored_or_initial_settings(&initial).await,
        FolderRequirement::MayBeOlder | FolderRequirement::CreateIfAbsent => table.init_settings(&initial).await,
    };
    let settings = settings.map_err(to_failure)?;
    // A command that repairs the policy also opens a table whose policy is missing or cannot be read.
    if let Some(Ok(policy)) = settings.policy.as_ref().map(StoredPolicy::read) {
        table.use_policy(&settings, None)?;
        context.check_policy_flags(&policy)?;
    }
    Ok(Deployment { clock, ..deployment })
}
