//! The table that a command works on: the local one, or one on AWS.

use std::sync::Arc;

use aws_sdk_dynamodb::config::ProvideCredentials;
use billing::GatewayAccount;
use emulator::Deployment;
use gateways::{GatewayError, Processor};
use orders::{Buckets, OrderDesk, OrdersTable};
use store::{Settings, Table, TableError, sdk};

use super::data::{Folder, Machine};
use super::gateway::Gateway;
use crate::Failure;
use crate::context::Context;

/// A table to look at or to change.
pub struct Opened {
    pub table: Table,
    /// The settings that the table's users agree on.
    pub settings: Settings,
    /// Kept for as long as the local table is used.
    machine: Option<Machine>,
}

impl Opened {
    /// The table that the options name. A local one is in a `folder`.
    ///
    /// # Errors
    /// [`Failure`]: a folder or a table that cannot be used.
    pub async fn open(context: &Context, folder: Folder) -> Result<Self, Failure> {
        if let Some(name) = context.options.table() {
            return Self::on_aws(context, name).await;
        }
        let machine = Machine::open(context, folder, context.clock.clone()).await?;
        let Deployment { table, config, .. } = &machine.deployment;
        let settings = table.init_settings(&config.table.initial_settings(context.clock.as_ref())).await?;
        Ok(Self { table: table.clone(), settings, machine: Some(machine) })
    }

    /// The gateway that the options name, which must be the one that takes this table's payments.
    ///
    /// # Errors
    /// [`Failure`]: another one, or one that cannot be asked.
    pub async fn gateway(&self, context: &Context) -> Result<Arc<dyn Processor>, Failure> {
        let gateway = self.named_gateway(context)?;
        if let Some(named) = &self.settings.gateway
            && self.has_marker(gateway.as_ref(), named).await? == Some(true)
        {
            return Ok(gateway);
        }
        let ours = gateway.account().await.map_err(|error| Failure::Refused(error.to_string()))?;
        match &self.settings.gateway {
            Some(named) if *named != ours => Err(Failure::Refused(format!(
                "the payments of this table are made at {named}, and --gateway names {ours}"
            ))),
            _ => Ok(gateway),
        }
    }

    /// The account of the gateway that the options name. An account that the key may not read is named by the table's marker, or by a
    /// new one.
    ///
    /// # Errors
    /// [`Failure`]: one that cannot be asked.
    pub async fn any_gateway_account(&self, context: &Context) -> Result<GatewayAccount, Failure> {
        let gateway = self.named_gateway(context)?;
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

    async fn has_marker(&self, gateway: &dyn Processor, named: &GatewayAccount) -> Result<Option<bool>, Failure> {
        gateway.has_marker(named).await.map_err(|error| Failure::Refused(error.to_string()))
    }

    /// The gateway that the options name.
    fn named_gateway(&self, context: &Context) -> Result<Arc<dyn Processor>, Failure> {
        Ok(match &self.machine {
            Some(machine) => machine.gateway.clone(),
            None if context.options.gateway().is_none() => {
                return Err(Failure::Refused("with --table, give --gateway as it is deployed".to_owned()));
            }
            None => Gateway::open(&context.options, context.clock.clone())?.client(context.clock.clone()),
        })
    }

    /// Keeps what has happened by now, and orders what was paid, if nobody else does.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn catch_up(&self, context: &Context) -> Result<(), Failure> {
        match &self.machine {
            Some(machine) => machine.catch_up(context).await,
            None => Ok(()),
        }
    }

    /// The order desk beside the table: on AWS in the table `name`, over `initial` buckets if it is new.
    ///
    /// # Errors
    /// [`Failure`]: its table cannot be used.
    pub async fn order_desk(&self, context: &Context, name: &str, initial: Buckets) -> Result<OrderDesk, Failure> {
        if let Some(machine) = &self.machine {
            return machine.order_desk(context).await;
        }
        let table = OrdersTable::new(self.table.client().clone(), name);
        match table.buckets(initial).await {
            Ok(buckets) => Ok(OrderDesk::new(table, buckets, context.clock.clone())),
            Err(error) if error.is_no_table() => Err(Failure::NoTable { name: name.to_owned() }),
            Err(error) => Err(error.into()),
        }
    }

    async fn on_aws(context: &Context, name: &str) -> Result<Self, Failure> {
        let sdk = sdk().await;
        if sdk.region().is_none() {
            return Err(Failure::NoRegion);
        }
        if let Some(provider) = sdk.credentials_provider() {
            let found = provider.provide_credentials().await;
            found.map_err(|error| Failure::NoCredentials { reason: innermost(&error) })?;
        }
        let table = context.config.table.over(&sdk);
        match table.get_settings().await {
            Ok(Some(settings)) => Ok(Self { table, settings, machine: None }),
            Ok(None) => Err(Failure::Unused { name: name.to_owned() }),
            Err(source @ TableError::Request { code: None, .. }) => {
                let region = sdk.region().map(ToString::to_string).unwrap_or_default();
                let place = context.config.table.endpoint.clone().unwrap_or_else(|| format!("AWS in {region}"));
                Err(Failure::Unreachable { place, source })
            }
            Err(error) if error.is_no_table() => Err(Failure::NoTable { name: name.to_owned() }),
            Err(error) => Err(error.into()),
        }
    }
}

/// Why there are no credentials. That this machine is not one of AWS's own says nothing to its user.
fn innermost(error: &dyn std::error::Error) -> String {
    let texts: Vec<_> = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect();
    match texts.last() {
        Some(text) if !texts.iter().any(|text| text.contains("IMDS")) => format!(" ({text})"),
        _ => String::new(),
    }
}
