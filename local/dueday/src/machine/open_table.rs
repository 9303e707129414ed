//! The table that a command uses: the local table, or a table on AWS.

use std::sync::Arc;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::config::ProvideCredentials;
use billing::{AmountRules, GatewayAccount};
use chrono::{DateTime, Utc};
use config::Env;
use deployment::Deployment;
use encryption::{ENCRYPTION_KEYS, EncryptionKeys};
use gateways::{FullGateway, GatewayError, amount_rules_of_account, stripe_amount_rules};
use orders_desk::OrderDesk;
use orders_table::{BucketCount, OrdersTable};
use store::{Settings, Table, TableError, load_sdk_config};

use super::data_folder::{FolderRequirement, orders_table_name};
use super::encryption_keys::read_encryption_keys;
use super::gateway::{SANDBOX_OF_STACK, STRIPE, SelectedGateway};
use super::local_machine::LocalMachine;
use crate::Failure;
use crate::context::CommandContext;
use crate::terminal::output::print_message;

/// The open table of a command, local or on AWS, with its settings.
pub struct OpenTable {
    pub table: Table,
    /// The settings that are stored in the table.
    pub settings: Settings,
    /// The local system, which keeps the data folder locked. `None` for a table on AWS.
    machine: Option<LocalMachine>,
}

impl OpenTable {
    /// Opens the table that the options select. `folder` states whether the data folder of a local table must exist.
    ///
    /// # Errors
    /// If the folder or the table cannot be used.
    pub async fn open(context: &CommandContext, folder: FolderRequirement) -> Result<Self, Failure> {
        let opened = Self::open_with_any_policy(context, folder).await?;
        if opened.settings.policy.is_none() {
            return Err(match context.options.table() {
                Some(name) => Failure::NoPolicy { name: name.to_owned() },
                None => Failure::NoLocalPolicy { path: context.options.data.clone() },
            });
        }
        opened.table.use_policy(&opened.settings, context.clock.now())?;
        context.check_policy_flags(&opened.table.policy())?;
        Ok(opened)
    }

    /// Opens the table that the options select, like [`OpenTable::open`], even if the table has no policy, or one that
    /// cannot be read.
    ///
    /// # Errors
    /// If the folder or the table cannot be used.
    pub async fn open_with_any_policy(context: &CommandContext, folder: FolderRequirement) -> Result<Self, Failure> {
        if let Some(name) = context.options.table() {
            return Self::open_on_aws(context, name).await;
        }
        let machine = LocalMachine::open(context, folder, context.clock.clone()).await?;
        let Deployment { table, config, .. } = &machine.deployment;
        let initial = config.table.initial_settings(context.clock.as_ref());
        let settings = table.stored_or_initial_settings(&initial).await?;
        Ok(Self { table: table.clone(), settings, machine: Some(machine) })
    }

    /// Returns the gateway that the options select, and checks that this table's payments are made there.
    ///
    /// # Errors
    /// If this table's payments are made at another gateway account, or the gateway cannot be reached.
    pub async fn gateway(&self, context: &CommandContext) -> Result<Arc<dyn FullGateway>, Failure> {
        let gateway = self.configured_gateway(context).await?;
        if let Some(named) = &self.settings.gateway
            && self.has_marker(gateway.as_ref(), named).await? == Some(true)
        {
            return Ok(gateway);
        }
        let selected = gateway.account().await.map_err(|error| Failure::Refused(error.to_string()))?;
        match &self.settings.gateway {
            Some(named) if *named != selected => Err(Failure::Refused(format!(
                "the payments of this table are made at {named}, but this command uses {selected}: select the gateway of the table \
                 with --gateway"
            ))),
            _ => Ok(gateway),
        }
    }

    /// Returns the account at the gateway that the options select, even if this table's payments are made at another
    /// account. If the API key lacks the permission to read the account, a marker (a customer that Dueday creates for
    /// this purpose) identifies the account. If the account has the marker that this table's settings contain, uses
    /// this marker, otherwise creates a new marker.
    ///
    /// # Errors
    /// If the gateway cannot be reached, or refuses the request.
    pub async fn any_gateway_account(&self, context: &CommandContext) -> Result<GatewayAccount, Failure> {
        let gateway = self.configured_gateway(context).await?;
        if let Some(named) = &self.settings.gateway
            && self.has_marker(gateway.as_ref(), named).await? == Some(true)
        {
            return Ok(named.clone());
        }
        let account = match gateway.account().await {
            Err(refusal @ GatewayError::Unusable { .. }) => match gateway.create_marker().await {
                Ok(Some(marker)) => Ok(marker),
                Ok(None) => Err(refusal),
                Err(error) => Err(error),
            },
            account => account,
        };
        account.map_err(|error| Failure::Refused(error.to_string()))
    }

    /// Returns whether the account of `gateway` has the marker customer `named`; `None` if `named` is not a marker
    /// customer. A marker customer only identifies the account.
    async fn has_marker(&self, gateway: &dyn FullGateway, named: &GatewayAccount) -> Result<Option<bool>, Failure> {
        gateway.has_marker(named).await.map_err(|error| Failure::Refused(error.to_string()))
    }

    /// Removes the content of deleted and replaced items from the database file of this machine. Does nothing if another
    /// process serves the file, because that process does so each day, or if the table is on AWS.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn remove_deleted_data(&self) -> Result<(), Failure> {
        match &self.machine {
            Some(machine) => machine.remove_deleted_data(),
            None => Ok(()),
        }
    }

    /// Returns the URL of the API if another process serves the local table; `None` otherwise.
    pub fn running_api_url(&self) -> Option<String> {
        Some(self.machine.as_ref()?.running.as_ref()?.api.clone())
    }

    /// Returns the gateway that the options select.
    async fn configured_gateway(&self, context: &CommandContext) -> Result<Arc<dyn FullGateway>, Failure> {
        Ok(match &self.machine {
            Some(machine) => machine.gateway.clone(),
            None if context.options.gateway().is_none() => {
                return Err(Failure::Refused("with --table, also give --gateway with the deployed value".to_owned()));
            }
            None => SelectedGateway::open(&context.options, context.clock.clone()).await?.client(context.clock.clone()),
        })
    }

    /// Returns the amounts that the gateway of this table's payments can charge, if they are known without a request;
    /// otherwise no rules.
    pub fn known_amount_rules(&self, context: &CommandContext) -> AmountRules {
        match context.options.gateway() {
            Some(STRIPE) => stripe_amount_rules(),
            _ => amount_rules_of_account(self.settings.gateway.as_ref()),
        }
    }

    /// Returns the amounts that the gateway of this table's payments can charge. If the gateway must be asked and does
    /// not respond, prints a message and returns no rules, so that prices can be entered at that time.
    pub async fn amount_rules(&self, context: &CommandContext) -> AmountRules {
        let known = self.known_amount_rules(context);
        // A command for a table on AWS does not know the gateway if `--gateway` is missing and no run has stored it.
        let is_gateway_selected = self.machine.is_some() || context.options.gateway().is_some();
        let is_sandbox = self.settings.gateway.as_ref().is_some_and(|gateway| gateway.kind == SANDBOX_OF_STACK);
        if known != AmountRules::none() || (is_sandbox && !is_gateway_selected) {
            return known;
        }
        let rules = match self.configured_gateway(context).await {
            Ok(gateway) => gateway.amount_rules().await.map_err(|error| error.to_string()),
            Err(failure) => Err(failure.message()),
        };
        rules.unwrap_or_else(|reason| {
            print_message(format!("prices are not compared with the amounts that the gateway can charge: {reason}"));
            known
        })
    }

    /// Returns the number of changes of the local table whose events are not published, and the time of the oldest. Returns
    /// `None` if there are none, or if a server or AWS publishes them.
    ///
    /// # Errors
    /// If the events or a stream cannot be read.
    pub fn unpublished_changes(&self, context: &CommandContext) -> Result<Option<(u64, DateTime<Utc>)>, Failure> {
        match &self.machine {
            Some(machine) => machine.unpublished_changes(context),
            None => Ok(None),
        }
    }

    /// Returns whether another process on this machine serves the table. That process also publishes and processes the
    /// events.
    pub fn is_served_by_another_process(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| !machine.has_locked_folder())
    }

    /// Publishes and processes the events of the local table, see [`LocalMachine::publish_all_changes`]. Does nothing for a
    /// table on AWS: there, the stream of the table publishes the changes.
    ///
    /// # Errors
    /// If the events cannot be stored or processed.
    pub async fn publish_all_changes(&self, context: &CommandContext) -> Result<(), Failure> {
        match &self.machine {
            Some(machine) => machine.publish_all_changes(context).await,
            None => Ok(()),
        }
    }

    /// Publishes the changes that the command has made since [`OpenTable::publish_all_changes`], see
    /// [`LocalMachine::publish_changes`]. Does nothing for a table on AWS: there, the stream of the table publishes the
    /// changes.
    ///
    /// # Errors
    /// If the events cannot be stored or processed.
    pub async fn publish_changes(&self, context: &CommandContext) -> Result<(), Failure> {
        match &self.machine {
            Some(machine) => machine.publish_changes(context).await,
            None => Ok(()),
        }
    }

    /// Prints a message if the changes of the command wait for a server, see [`LocalMachine::mention_unpublished_changes`].
    /// Does nothing for a table on AWS.
    ///
    /// # Errors
    /// If the events or a stream cannot be read.
    pub fn mention_unpublished_changes(&self, context: &CommandContext) -> Result<(), Failure> {
        self.machine.as_ref().map_or(Ok(()), |machine| machine.mention_unpublished_changes(context))
    }

    /// Returns the keys that encrypt the secrets in the table. For a local table, reads them from the data folder. For
    /// a table on AWS, reads them from `DUEDAY_ENCRYPTION_KEYS`, and returns `None` if that variable is not set.
    ///
    /// # Errors
    /// If the keys are invalid, or the file in the data folder cannot be read.
    pub fn encryption_keys(&self, context: &CommandContext) -> Result<Option<EncryptionKeys>, Failure> {
        if self.machine.is_some() {
            return read_encryption_keys(&context.options.data).map(Some);
        }
        let keys = Env::of_process().read_optional(&ENCRYPTION_KEYS, EncryptionKeys::parse);
        keys.map_err(|error| Failure::Refused(error.to_string()))
    }

    /// Returns the order desk of the local table or of the table on AWS. The orders table on AWS has the name `name`.
    /// The index over all orders of a new orders table gets `initial` buckets (partitions).
    ///
    /// # Errors
    /// If the order desk's table does not exist, or cannot be read.
    pub async fn order_desk(
        &self,
        context: &CommandContext,
        name: &str,
        initial: BucketCount,
    ) -> Result<OrderDesk, Failure> {
        if let Some(machine) = &self.machine {
            return machine.order_desk(context).await;
        }
        let table = self.orders_table(name);
        let set_up = async {
            table.refuse_planned_changes().await?;
            table.get_or_store_buckets(initial).await
        };
        match set_up.await {
            Ok(buckets) => Ok(OrderDesk::new(table, buckets, context.clock.clone())),
            Err(error) if error.is_missing_table() => Err(Failure::NoTable { name: name.to_owned() }),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the orders table of this machine or on AWS, where it has the name `name`. Sends no request.
    pub fn orders_table(&self, name: &str) -> OrdersTable {
        let name = if self.machine.is_some() { orders_table_name() } else { name };
        OrdersTable::new(self.table.client().clone(), name)
    }

    /// Opens the table `name` on AWS.
    async fn open_on_aws(context: &CommandContext, name: &str) -> Result<Self, Failure> {
        let sdk = load_sdk_config_with_credentials().await?;
        let table = context.config.table.connect(&sdk);
        match table.get_settings().await {
            Ok(Some(settings)) => Ok(Self { table, settings, machine: None }),
            Ok(None) => Err(Failure::NoSettings { name: name.to_owned() }),
            Err(TableError::Request { source, .. }) if source.code.is_none() => {
                let region = sdk.region().map(ToString::to_string).unwrap_or_default();
                let place = context.config.table.endpoint.clone().unwrap_or_else(|| format!("AWS in {region}"));
                Err(Failure::Unreachable { place, source })
            }
            Err(error) if error.is_missing_table() => Err(Failure::NoTable { name: name.to_owned() }),
            Err(error) => Err(error.into()),
        }
    }
}

/// Loads the settings of the AWS SDK, and checks that they contain a region and credentials.
///
/// # Errors
/// [`Failure::NoRegion`] and [`Failure::NoCredentials`].
pub async fn load_sdk_config_with_credentials() -> Result<SdkConfig, Failure> {
    let sdk = load_sdk_config().await;
    if sdk.region().is_none() {
        return Err(Failure::NoRegion);
    }
    if let Some(provider) = sdk.credentials_provider() {
        let found = provider.provide_credentials().await;
        found.map_err(|error| Failure::NoCredentials { reason: missing_credentials_reason(&error) })?;
    }
    Ok(sdk)
}

/// Returns the reason why no credentials were found. Leaves out errors of the metadata service (IMDS), which exists
/// only on EC2.
fn missing_credentials_reason(error: &dyn std::error::Error) -> String {
    let texts: Vec<_> = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect();
    match texts.last() {
        Some(text) if !texts.iter().any(|text| text.contains("IMDS")) => format!(" ({text})"),
        _ => String::new(),
    }
}
