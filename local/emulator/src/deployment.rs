//! What the functions are on AWS: both batches over one table, one gateway and one mailer, on one clock.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use billing::{Account, LeadDays, NewSubscription, Refusal};
use chrono::NaiveDate;
use clock::Clock;
use gateways::PaymentGateway;
use mail::Mailer;
use payments::ChargeDue;
use reminders::RemindDue;
use store::{Created, Table, TableError};
use sweep::{Sweep, Task};

use crate::Config;

/// A whole system, but for the API.
#[derive(Clone, Debug)]
pub struct Deployment {
    pub table: Table,
    pub config: Config,
    pub gateway: Arc<dyn PaymentGateway>,
    pub mailer: Arc<dyn Mailer>,
    pub clock: Arc<dyn Clock>,
}

/// Why a subscription could not be enrolled.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    #[error("first_payment_date {0}")]
    Refused(#[from] Refusal),
    #[error("there is one of this id already")]
    Exists,
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Deployment {
    /// A system whose table is reached through `client`.
    pub fn new(
        client: Client,
        config: Config,
        gateway: Arc<dyn PaymentGateway>,
        mailer: Arc<dyn Mailer>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let table = config.table.with(client);
        Self { table, config, gateway, mailer, clock }
    }

    /// The same system, its table reached through `client`.
    pub fn over(&self, client: Client) -> Self {
        let table = self.config.table.with(client);
        Self { table, ..self.clone() }
    }

    /// Creates the table and its settings if they are not there.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn ready(self) -> Result<Self, TableError> {
        self.table.create_if_absent().await?;
        self.table.init_settings(&self.config.table.initial_settings(self.clock.as_ref())).await?;
        Ok(self)
    }

    /// What the payment batch does with each row.
    pub fn charge_due(&self) -> ChargeDue {
        ChargeDue::new(
            self.table.clone(),
            self.gateway.clone(),
            (&self.config.billing, &self.config.charging),
            self.clock.clone(),
        )
    }

    /// What the reminder batch does with each row.
    pub fn remind_due(&self) -> RemindDue {
        let merchant = self.config.merchant.clone();
        RemindDue::new(self.table.clone(), self.mailer.clone(), merchant, self.clock.clone())
    }

    /// A batch that does `task` with each row of this system's table.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn sweep<T: Task>(&self, task: T) -> Result<Sweep<T>, TableError> {
        Sweep::new(self.table.clone(), task, (&self.config.table, self.config.limits), self.clock.clone()).await
    }

    /// The payment batch.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn payments(&self) -> Result<Sweep<ChargeDue>, TableError> {
        self.sweep(self.charge_due()).await
    }

    /// The reminder batch.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn reminders(&self) -> Result<Sweep<RemindDue>, TableError> {
        self.sweep(self.remind_due()).await
    }

    /// Creates the subscription `new` on the day `today`, and its account if there is none.
    ///
    /// # Errors
    /// [`EnrolError`].
    pub async fn enrol(&self, account: &Account, new: NewSubscription, today: NaiveDate) -> Result<(), EnrolError> {
        let lead: LeadDays = self.config.billing.policy.lead;
        let settings = self.table.init_settings(&self.config.table.initial_settings(self.clock.as_ref())).await?;
        self.table.create_account(account).await?;
        let subscription = new.begin(settings.shard_of(&account.id), lead, today, self.clock.now())?;
        match self.table.create_subscription(&subscription, None).await? {
            Created::Created => Ok(()),
            Created::Exists | Created::NoAccount | Created::Replayed(_) => Err(EnrolError::Exists),
        }
    }
}
