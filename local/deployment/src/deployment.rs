//! A deployment on one machine: the payment batch and the reminder batch use one table, one gateway, one mailer and one
//! clock, like the Lambda functions on AWS.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use billing::{Account, AccountRecords, CreationRefusal, LeadDays, NewSubscription, Subscription};
use charging::{ChargingEngine, OlderTableCheck, SignUpCharges};
use chrono::NaiveDate;
use clock::Clock;
use gateways::PaymentGateway;
use mail::Mailer;
use payments::PaymentBatch;
use reminders::ReminderBatch;
use store::{CreateOutcome, Table, TableError};
use sweep::{BatchTask, Sweep};

use crate::DeploymentConfig;

/// A deployment on one machine, without the HTTP API.
#[derive(Clone, Debug)]
pub struct Deployment {
    pub table: Table,
    pub config: DeploymentConfig,
    pub gateway: Arc<dyn PaymentGateway>,
    pub mailer: Arc<dyn Mailer>,
    pub clock: Arc<dyn Clock>,
    /// The check that the table is not older than the gateway's latest payments; `None` without this check.
    pub older_table_check: Option<Arc<OlderTableCheck>>,
}

/// The reason why a subscription could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateSubscriptionError {
    #[error(transparent)]
    Refused(#[from] CreationRefusal),
    #[error("a subscription with this id already exists")]
    Exists,
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Deployment {
    /// Creates a deployment that accesses its table with `client`.
    pub fn new(
        client: Client,
        config: DeploymentConfig,
        gateway: Arc<dyn PaymentGateway>,
        mailer: Arc<dyn Mailer>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let table = config.table.connect_with(client);
        Self { table, config, gateway, mailer, clock, older_table_check: None }
    }

    /// Returns the same deployment, but with `client` for the requests to its table.
    pub fn with_client(&self, client: Client) -> Self {
        let table = self.config.table.connect_with(client);
        Self { table, ..self.clone() }
    }

    /// Creates the table and its settings if they do not exist.
    ///
    /// # Errors
    /// [`TableError`] if the table cannot be accessed.
    pub async fn create_table_if_absent(self) -> Result<Self, TableError> {
        self.table.create_if_absent().await?;
        self.table.init_settings(&self.config.table.initial_settings(self.clock.as_ref())).await?;
        Ok(self)
    }

    /// Returns the engine that applies reports of the gateway to the payments of the table.
    pub fn charging_engine(&self) -> ChargingEngine {
        ChargingEngine::new(self.table.clone(), self.clock.clone())
    }

    /// Returns the task that the payment batch executes for each row.
    pub fn payment_task(&self) -> PaymentBatch {
        PaymentBatch::new(self.table.clone(), self.gateway.clone(), &self.config.charging, self.clock.clone())
            .with_older_table_check(self.older_table_check.clone())
    }

    /// Returns the charges at sign-ups.
    pub fn sign_up_charges(&self) -> SignUpCharges {
        let config = &self.config.charging;
        let charges = SignUpCharges::new(self.table.clone(), self.gateway.clone(), config, self.clock.clone());
        charges.with_older_table_check(self.older_table_check.clone())
    }

    /// Returns the task that the reminder batch executes for each row.
    pub fn reminder_task(&self) -> ReminderBatch {
        let merchant = self.config.merchant.clone();
        ReminderBatch::new(self.table.clone(), self.mailer.clone(), merchant, self.clock.clone())
    }

    /// Returns a batch that executes `task` for each due row of the table.
    ///
    /// # Errors
    /// [`TableError`] if the settings cannot be read.
    pub async fn batch_of_task<T: BatchTask>(&self, task: T) -> Result<Sweep<T>, TableError> {
        Sweep::new(self.table.clone(), task, &self.config.table, self.config.limits, self.clock.clone()).await
    }

    /// Returns the same deployment for a batch: a run uses one policy from its beginning to its end, although another user
    /// of the table reads the policy again.
    fn with_own_policy(&self) -> Self {
        Self { table: self.table.with_own_policy(), ..self.clone() }
    }

    /// Returns the payment batch.
    ///
    /// # Errors
    /// [`TableError`] if the settings cannot be read.
    pub async fn payment_batch(&self) -> Result<Sweep<PaymentBatch>, TableError> {
        let own = self.with_own_policy();
        own.batch_of_task(own.payment_task()).await
    }

    /// Returns the reminder batch.
    ///
    /// # Errors
    /// [`TableError`] if the settings cannot be read.
    pub async fn reminder_batch(&self) -> Result<Sweep<ReminderBatch>, TableError> {
        let own = self.with_own_policy();
        own.batch_of_task(own.reminder_task()).await
    }

    /// Creates the subscription `new` on the day `today`, and its account if it does not exist.
    ///
    /// # Errors
    /// [`CreateSubscriptionError::Refused`] if the first payment date is not allowed or the account already has a
    /// subscription of the same SKU, [`CreateSubscriptionError::Exists`] if the subscription exists, and
    /// [`CreateSubscriptionError::Table`] if the table cannot be accessed.
    pub async fn create_subscription(
        &self,
        account: &Account,
        new: NewSubscription,
        today: NaiveDate,
    ) -> Result<(), CreateSubscriptionError> {
        let settings = self.table.init_settings(&self.config.table.initial_settings(self.clock.as_ref())).await?;
        self.table.create_account(account).await?;
        let lead: LeadDays = self.table.policy().lead;
        let (shard, now) = (settings.shard_of(&account.id), self.clock.now());
        let subscription = |existing: &AccountRecords| new.clone().into_subscription(existing, shard, lead, today, now);
        let to_json = |_: &Subscription| String::new();
        let created = self.table.create_subscription_of_account(&account.id, None, to_json, subscription).await?;
        match created?.0 {
            CreateOutcome::Created => Ok(()),
            CreateOutcome::Exists
            | CreateOutcome::AccountChanged
            | CreateOutcome::NoAccount
            | CreateOutcome::AccountErased { .. }
            | CreateOutcome::Replayed(_) => Err(CreateSubscriptionError::Exists),
        }
    }
}
