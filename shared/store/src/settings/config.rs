//! The configuration of the table: its name, its endpoint, and the initial settings of a new table.

use aws_config::SdkConfig;

use crate::settings::settings_item::Settings;
use crate::table::payments_table::Table;
use billing::StoredPolicy;
use clock::Clock;
use config::ReadingFunction::{Api, Every, Payments, Reminders};
use config::variables;
use config::{ConfigError, ConfiguredPolicy, Env, EnvVariable};
use dynamo::{TableError, create_dynamodb_client};

variables! {
    TABLE = EnvVariable::new(&[Every], "DUEDAY_TABLE", "NAME", "Use this table on AWS instead of the local table")
        .default("dueday").common_flag("table");
    ENDPOINT = EnvVariable::new(&[Every], "DUEDAY_DYNAMODB_ENDPOINT", "URL", "URL of DynamoDB, if it is not on AWS")
        .rare_flag("endpoint");
    SHARDS = EnvVariable::new(&[Api, Reminders, Payments], "DUEDAY_SHARDS", "N", "Index partitions (shards) of a new table")
        .in_range(1, 1_000).default("4").rare_flag("shards");
}

/// The reason why a function that uses a table could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TableSetUpError {
    /// A variable is missing or not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The table could not be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// The table to use, and the initial settings of a new table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableConfig {
    /// `DUEDAY_TABLE`: the name of the table.
    pub name: String,
    /// `DUEDAY_DYNAMODB_ENDPOINT`: the URL of DynamoDB; `None` for AWS.
    pub endpoint: Option<String>,
    /// `DUEDAY_SHARDS`: the number of shards of a new table. An existing table has the number that its settings item
    /// contains.
    pub initial_shards: u32,
    /// The policy of a new table. An existing table has the policy that its settings item contains.
    pub configured_policy: ConfiguredPolicy,
}

/// Parses the URL of DynamoDB.
fn parse_endpoint(text: &str) -> Result<String, String> {
    config::parse_displayable_url(text).map_err(|allowed| format!("must be {allowed}"))
}

impl TableConfig {
    /// Reads the configuration from `env`.
    ///
    /// # Errors
    /// [`ConfigError`], with the name and the allowed values of the first invalid variable.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            name: env.required_text(&TABLE)?,
            endpoint: env.read_optional(&ENDPOINT, parse_endpoint)?,
            initial_shards: env.number(&SHARDS)?,
            configured_policy: ConfiguredPolicy::read(env),
        })
    }

    /// Returns the settings of a new table. They have no policy if a variable of it is not valid.
    pub fn initial_settings(&self, clock: &dyn Clock) -> Settings {
        let policy = self.configured_policy.valid_policy().ok().map(StoredPolicy::from);
        Settings { policy, ..Settings::new(self.initial_shards, clock.ulid()) }
    }

    /// Returns the table, which is accessed through a new client with the SDK settings `sdk`.
    pub fn connect(&self, sdk: &SdkConfig) -> Table {
        self.connect_with(create_dynamodb_client(sdk, self.endpoint.as_deref()))
    }

    /// Returns the table, which is accessed through `client`.
    pub fn connect_with(&self, client: aws_sdk_dynamodb::Client) -> Table {
        Table::new(client, &self.name).with_configured_policy(self.configured_policy.clone())
    }
}
