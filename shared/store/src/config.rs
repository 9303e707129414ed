//! Which table, where it answers, and how it is made.

use aws_config::SdkConfig;
use chrono::TimeDelta;

use super::{Settings, Table, dynamodb};
use clock::Clock;
use config::ReadBy::Every;
use config::variables;
use config::{ConfigError, Env, Variable};

variables! {
    TABLE = Variable::new(&[Every], "DUEDAY_TABLE", "NAME", "Work on this table on AWS instead of the local one")
        .default("dueday").common("table");
    ENDPOINT = Variable::new(&[Every], "DUEDAY_DYNAMODB_ENDPOINT", "URL", "Where DynamoDB answers, if not at AWS")
        .rare("endpoint");
    SHARDS = Variable::new(&[Every], "DUEDAY_SHARDS", "N", "Partitions of the indexes of a new table")
        .within(1, 1_000).default("4").rare("shards");
    RECEIPT_DAYS = Variable::new(&[Every], "DUEDAY_RECEIPT_DAYS", "DAYS", "Days that receipts and records are kept")
        .within(1, 3_650).default("190").rare("receipt-days");
}

/// Which table, and what a new one begins with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableConfig {
    /// `DUEDAY_TABLE`.
    pub name: String,
    /// `DUEDAY_DYNAMODB_ENDPOINT`; blank means AWS.
    pub endpoint: Option<String>,
    /// `DUEDAY_SHARDS`: only what a new table starts with; the settings are the truth.
    pub initial_shards: u32,
    /// `DUEDAY_RECEIPT_DAYS`: how long receipts and records are kept.
    pub receipts_kept: TimeDelta,
}

impl TableConfig {
    /// Reads it from `env`.
    ///
    /// # Errors
    /// [`ConfigError`], naming the first variable that is wrong and what is allowed.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            name: env.text(&TABLE)?,
            endpoint: env.given(&ENDPOINT),
            initial_shards: env.number(&SHARDS)?,
            receipts_kept: TimeDelta::days(env.number(&RECEIPT_DAYS)?.into()),
        })
    }

    /// What a new table's settings are.
    pub fn initial_settings(&self, clock: &dyn Clock) -> Settings {
        Settings {
            shards: self.initial_shards,
            charging: true,
            table_id: clock.ulid(),
            gateway: None,
            latest_run_at: None,
        }
    }

    /// The table, over a client of `sdk`.
    pub fn over(&self, sdk: &SdkConfig) -> Table {
        self.with(dynamodb(sdk, self.endpoint.as_deref()))
    }

    /// The table, over `client`.
    pub fn with(&self, client: aws_sdk_dynamodb::Client) -> Table {
        Table::new(client, &self.name, self.receipts_kept)
    }
}
