//! The settings item: the number of shards, the kill switch, the table's own id.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, Serializer};
use ulid::Ulid;

use super::{Key, Table, TableError, keys};
use billing::{AccountId, GatewayAccount};
use dynamo::shard_of;
use dynamo::{Instant, from_item, to_item};
use dynamo::{PRESENT, UpdateAnswer, s};

/// The format of the table's items. It is raised when an older version's items can no longer be read.
pub(super) const FORMAT: u32 = 1;

/// What the whole deployment agrees on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Settings {
    /// How many partitions the indexes are spread over. Raised before any writer uses it, never lowered.
    pub shards: u32,
    /// The kill switch, read with every page of due payments: off, the payment batch claims and charges nothing more from
    /// the next page on. What the gateway knows of open attempts is still settled.
    pub charging: bool,
    /// Made once with the table: tells a restored or copied table from the original in what we name elsewhere.
    pub table_id: Ulid,
    /// Who takes the payments of this table; absent until the first run of the payment batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayAccount>,
    /// When the latest run began, by its own clock and within a minute; absent until the first run.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "as_instant")]
    pub latest_run_at: Option<DateTime<Utc>>,
}

fn as_instant<S: Serializer>(at: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(Instant).serialize(serializer)
}

impl Settings {
    /// The shard of all of an account's subscriptions: SHA-256 of the account modulo the number of shards.
    pub fn shard_of(&self, account: &AccountId) -> u32 {
        shard_of(account.as_str(), self.shards)
    }
}

#[derive(Serialize)]
struct SettingsItem<'a> {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    #[serde(rename = "Format")]
    format: u32,
    #[serde(flatten)]
    settings: &'a Settings,
}

impl Table {
    /// The settings. GetItem, strongly consistent; `None` before the first [`Table::init_settings`].
    ///
    /// # Errors
    /// [`TableError`]: [`TableError::OtherFormat`] if the table is of another version of the code.
    pub async fn get_settings(&self) -> Result<Option<Settings>, TableError> {
        let Some(item) = self.get(keys::settings()).await? else { return Ok(None) };
        let format = item.get("Format").and_then(|format| format.as_n().ok());
        if format != Some(&FORMAT.to_string()) {
            return Err(TableError::OtherFormat { found: format.cloned().unwrap_or("none".to_owned()), read: FORMAT });
        }
        let settings: Settings = from_item(&item)?;
        if settings.shards == 0 {
            // A sweep of no shards would find nothing due, and look like a quiet day.
            return Err(TableError::unreadable(keys::settings(), "Shards must be at least 1, not 0"));
        }
        Ok(Some(settings))
    }

    /// The settings; if there are none yet, `initial` becomes them (put if absent).
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn init_settings(&self, initial: &Settings) -> Result<Settings, TableError> {
        if let Some(settings) = self.get_settings().await? {
            return Ok(settings);
        }
        let Key { pk, sk } = keys::settings();
        if self.put_if_absent(to_item(&SettingsItem { pk, sk, format: FORMAT, settings: initial })).await? {
            return Ok(initial.clone());
        }
        Ok(self.get_settings().await?.unwrap_or_else(|| initial.clone()))
    }

    /// Names `gateway` as the one that takes this table's payments, if `before` is named now; answers what is named then.
    /// UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn set_gateway(
        &self,
        before: Option<&GatewayAccount>,
        gateway: &GatewayAccount,
    ) -> Result<GatewayAccount, TableError> {
        let value = |gateway: &GatewayAccount| AttributeValue::M(to_item(gateway));
        let mut values = HashMap::from([(":gateway".to_owned(), value(gateway))]);
        let condition = match before {
            Some(before) => {
                values.insert(":before".to_owned(), value(before));
                "#Gateway = :before"
            }
            None => "attribute_exists(#PK) AND attribute_not_exists(#Gateway)",
        };
        let set = self.update_of(keys::settings(), "SET #Gateway = :gateway", condition, values);
        match self.update(set, ReturnValue::None).await? {
            UpdateAnswer::Done(_) => Ok(gateway.clone()),
            UpdateAnswer::Refused(Some(stored)) => {
                let settings: Settings = from_item(&stored)?;
                settings.gateway.ok_or(TableError::Contended { key: keys::settings() })
            }
            UpdateAnswer::Refused(None) => Err(TableError::Missing { key: keys::settings() }),
        }
    }

    /// Records that a run began at `now`, unless a later one is recorded. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn record_run_time(&self, now: DateTime<Utc>) -> Result<(), TableError> {
        const EARLIER: &str = "attribute_exists(#PK) AND (attribute_not_exists(#LatestRunAt) OR #LatestRunAt < :now)";
        self.set_latest_run(now, EARLIER, None).await
    }

    /// Makes `now` the time of the latest run if `before` is recorded: an operator has confirmed that the clock which says
    /// `now` is right. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn confirm_clock(&self, now: DateTime<Utc>, before: DateTime<Utc>) -> Result<(), TableError> {
        self.set_latest_run(now, "#LatestRunAt = :before", Some(before)).await
    }

    /// Refused: a run was recorded meanwhile.
    async fn set_latest_run(
        &self,
        now: DateTime<Utc>,
        condition: &str,
        before: Option<DateTime<Utc>>,
    ) -> Result<(), TableError> {
        let mut values = HashMap::from([(":now".to_owned(), s(Instant(now).text()))]);
        values.extend(before.map(|before| (":before".to_owned(), s(Instant(before).text()))));
        let set = self.update_of(keys::settings(), "SET #LatestRunAt = :now", condition, values);
        self.update(set, ReturnValue::None).await.map(drop)
    }

    /// Switches charging on or off. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn set_charging(&self, on: bool) -> Result<(), TableError> {
        let on = HashMap::from([(":on".to_owned(), AttributeValue::Bool(on))]);
        let switch = self.update_of(keys::settings(), "SET #Charging = :on", PRESENT, on);
        match self.update(switch, ReturnValue::None).await? {
            UpdateAnswer::Done(_) => Ok(()),
            UpdateAnswer::Refused(_) => Err(TableError::Missing { key: keys::settings() }),
        }
    }
}
