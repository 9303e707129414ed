//! The settings item: the number of shards, the switch for charging, the limits of the payment batch, the table's id,
//! the gateway account, and the time of the latest run.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize, Serializer};
use ulid::Ulid;

use crate::keys;
use crate::table::payments_table::Table;
use billing::{AccountId, GatewayAccount, LoggedAction, NewAction, PaymentLimits, Policy, StoredPolicy};
use dynamo::shard_of;
use dynamo::{Instant, from_item, to_item};
use dynamo::{Item, Key, TableError};
use dynamo::{PRESENT, UpdateItemOutcome, s};

/// The format of the table's items. It is incremented when the code can no longer read the items that older versions of
/// Dueday wrote.
pub(crate) const SETTINGS_FORMAT: u32 = 1;

/// The settings that all parts of a deployment share.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Settings {
    /// The number of shards of each index. This number is never lowered.
    pub shards: u32,
    /// True if charging is switched on. The payment batch reads this switch with every page of due payments. While it
    /// is off, the batch claims and charges nothing, but still settles open attempts with the outcomes that the gateway
    /// reports.
    pub charging: bool,
    /// The limits of the payment batch, which reads them when a run begins and with every page of due payments.
    #[serde(default)]
    pub payment_limits: PaymentLimits,
    /// The policy. `None` in a table of an earlier version, until a batch, the API, a command on one machine or
    /// `dueday settings adopt` stores one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<StoredPolicy>,
    /// The id of the table, which is created with the table. The idempotency keys of charges at the gateway are
    /// computed from this id, so that tables with different ids never use the same key. A restored or copied table has
    /// the id of the original table.
    pub table_id: Ulid,
    /// The id that DynamoDB gave to the table. If a table was restored from a backup or copied, it has the settings of
    /// the original table with the id of the original table here, but DynamoDB gave it another id. `None` until the
    /// first run of a batch.
    #[serde(rename = "DynamodbId", default, skip_serializing_if = "Option::is_none")]
    pub dynamodb_id: Option<String>,
    /// When a run, a sign-up or a command noticed that the table is a restored backup or a copy, or older than the
    /// payments at the gateway; `None` if the table is neither, or if an operator has confirmed the table since then.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "serialize_as_instant")]
    pub copy_noticed_at: Option<DateTime<Utc>>,
    /// The id that DynamoDB gave to the copy that was noticed; `None` if something else than the id has shown that the
    /// table is older. A backup of a copy that was not confirmed contains `copy_noticed_at` and the comparisons of that
    /// copy, but has another id itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_noticed_in: Option<String>,
    /// The gateway account that receives the payments of this table; `None` until the first run of the payment batch or
    /// the first charge at a sign-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayAccount>,
    /// The time at which the latest run began, from the clock of its machine. A run that begins less than a minute
    /// after the stored time does not update it. `None` before the first run.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "serialize_as_instant")]
    pub latest_run_at: Option<DateTime<Utc>>,
    /// The latest day on which a run began before the time zone of the policy was changed, in the former zone; `None` if
    /// the zone was never changed after a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_run_on: Option<NaiveDate>,
    /// The time at which the latest run of the payment batch began that compared the table with the gateway's latest
    /// payments. `None` if no run compares them: DynamoDB on AWS gives a restored table another id, so only runs on one
    /// machine need this comparison.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "serialize_as_instant")]
    pub latest_payment_run_at: Option<DateTime<Utc>>,
}

/// Serializes a time in the format of [`Instant`].
fn serialize_as_instant<S: Serializer>(at: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(Instant).serialize(serializer)
}

impl Settings {
    /// Returns the settings of a new table: charging is on, and the limits and the policy have their defaults.
    pub fn new(shards: u32, table_id: Ulid) -> Self {
        let payment_limits = PaymentLimits::default();
        Self {
            shards,
            charging: true,
            payment_limits,
            policy: Some(StoredPolicy::from(&Policy::default())),
            table_id,
            dynamodb_id: None,
            copy_noticed_at: None,
            copy_noticed_in: None,
            gateway: None,
            latest_run_at: None,
            latest_run_on: None,
            latest_payment_run_at: None,
        }
    }

    /// Returns the time until which the table contains all payments that were made for it, if it was restored from a
    /// backup: the time of the latest payment run in the backup, or of the confirmation of an earlier restore. The time
    /// of the latest run counts only if neither is stored, because a run of the reminders or a refused run may have
    /// stored a later one. Before the first run, returns the creation time of the table.
    pub fn payments_known_until(&self) -> DateTime<Utc> {
        self.latest_payment_run_at.or(self.latest_run_at).unwrap_or(self.created_at())
    }

    /// Returns the latest day on which a run began, in the time zone of the policy at that time. `None` before the first
    /// run, or if the zone cannot be read.
    pub fn latest_run_day(&self) -> Option<NaiveDate> {
        let zone = self.policy.as_ref().and_then(StoredPolicy::zone);
        let latest = self.latest_run_at.zip(zone).map(|(at, zone)| at.with_timezone(&zone).date_naive());
        latest.max(self.latest_run_on)
    }

    /// Returns when the table was created: the time in its id.
    pub fn created_at(&self) -> DateTime<Utc> {
        let created_at = i64::try_from(self.table_id.timestamp_ms()).ok().and_then(DateTime::from_timestamp_millis);
        created_at.unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// Returns the shard of all subscriptions of an account: computed from the SHA-256 of the account's id and the
    /// number of shards.
    pub fn shard_of(&self, account: &AccountId) -> u32 {
        shard_of(account.as_str(), self.shards)
    }
}

/// The attributes of the settings item: its key, the format of the table's items, and the settings.
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

/// Returns the item that this program would store for the settings in `item`.
///
/// # Errors
/// [`TableError::Unreadable`] if the settings cannot be read, or contain no format.
pub(crate) fn settings_item(item: &Item) -> Result<Item, TableError> {
    if !item.contains_key("Format") {
        return Err(TableError::unreadable(keys::key_of_settings(), "its attribute Format is missing"));
    }
    let (settings, Key { pk, sk }) = (from_item::<Settings>(item)?, keys::key_of_settings());
    Ok(to_item(&SettingsItem { pk, sk, format: SETTINGS_FORMAT, settings: &settings }))
}

impl Table {
    /// Returns the settings; `None` before the first [`Table::init_settings`]. Sends one strongly consistent GetItem
    /// request.
    ///
    /// # Errors
    /// [`TableError::OtherFormat`] if the table was written by another version of this program, which uses another
    /// format of items.
    pub async fn get_settings(&self) -> Result<Option<Settings>, TableError> {
        let Some(item) = self.get(keys::key_of_settings()).await? else { return Ok(None) };
        let format = item.get("Format").and_then(|format| format.as_n().ok());
        if format != Some(&SETTINGS_FORMAT.to_string()) {
            return Err(TableError::OtherFormat {
                found: format.cloned().unwrap_or("none".to_owned()),
                read: SETTINGS_FORMAT,
            });
        }
        let settings: Settings = from_item(&item)?;
        if settings.shards == 0 {
            // With 0 shards, a run would read no shard, and would report without an error that nothing is due.
            return Err(TableError::unreadable(
                keys::key_of_settings(),
                "its attribute Shards must be at least 1, not 0",
            ));
        }
        Ok(Some(settings))
    }

    /// Returns the settings. If the table has no settings yet, stores `initial` as its settings; if only its policy is
    /// missing, because an earlier version created the table, stores the policy of `initial`. The stored policy becomes
    /// the copy of this table ([`Table::policy`]). Sends a GetItem request and, if there are no settings, a PutItem
    /// request on condition that they are absent, or if there is no policy, an UpdateItem request.
    pub async fn init_settings(&self, initial: &Settings) -> Result<Settings, TableError> {
        let settings = self.stored_or_initial_settings(initial).await?;
        let policy = match (&settings.policy, &initial.policy) {
            (None, Some(policy)) => Some(self.adopt_policy(policy, None).await?),
            (stored, _) => stored.clone(),
        };
        let settings = Settings { policy, ..settings };
        self.use_policy(&settings, None)?;
        Ok(settings)
    }

    /// Returns the settings, with or without a policy. If the table has no settings yet, stores `initial`. Sends a GetItem
    /// request and, if there are no settings, a PutItem request on condition that they are absent.
    pub async fn stored_or_initial_settings(&self, initial: &Settings) -> Result<Settings, TableError> {
        if let Some(settings) = self.get_settings().await? {
            return Ok(settings);
        }
        let Key { pk, sk } = keys::key_of_settings();
        if self.put_if_absent(to_item(&SettingsItem { pk, sk, format: SETTINGS_FORMAT, settings: initial })).await? {
            return Ok(initial.clone());
        }
        Ok(self.get_settings().await?.unwrap_or_else(|| initial.clone()))
    }

    /// Stores `gateway` as the gateway account of this table, if the stored gateway account is `before` (`None`: if no
    /// gateway account is stored). Returns the gateway account that is stored afterwards. Sends one UpdateItem request
    /// or, with an `action`, one TransactWriteItems request.
    pub async fn set_gateway(
        &self,
        before: Option<&GatewayAccount>,
        gateway: &GatewayAccount,
        action: Option<&NewAction>,
    ) -> Result<GatewayAccount, TableError> {
        let value = |gateway: &GatewayAccount| AttributeValue::M(to_item(gateway));
        let entry =
            action.map(|action| action.on_setting("gateway", before.map(ToString::to_string), gateway.to_string()));
        match self.replace_setting("Gateway", before.map(value), value(gateway), entry).await? {
            None => Ok(gateway.clone()),
            Some(stored) => stored.gateway.ok_or(TableError::Contended { key: keys::key_of_settings() }),
        }
    }

    /// Stores `id` as the id that DynamoDB gave to this table, if no id is stored. Returns the id that is stored
    /// afterwards. Sends one UpdateItem request.
    pub async fn init_dynamodb_id(&self, id: &str) -> Result<String, TableError> {
        match self.replace_setting("DynamodbId", None, s(id), None).await? {
            None => Ok(id.to_owned()),
            Some(stored) => stored.dynamodb_id.ok_or(TableError::Contended { key: keys::key_of_settings() }),
        }
    }

    /// Records that the table is a copy with the id `id` of DynamoDB, which differs from the id in the settings: switches
    /// charging off, and stores `now` as the time at which the copy was noticed, unless this copy was noticed before.
    /// Sends one UpdateItem request, and two if the copy was noticed before.
    pub async fn record_copy_with_id(&self, id: &str, now: DateTime<Utc>) -> Result<(), TableError> {
        const IS_OTHER_COPY: &str =
            "attribute_exists(#PK) AND (attribute_not_exists(#CopyNoticedIn) OR #CopyNoticedIn <> :id)";
        let values = HashMap::from([
            (":off".to_owned(), AttributeValue::Bool(false)),
            (":now".to_owned(), s(Instant(now).to_text())),
            (":id".to_owned(), s(id)),
        ]);
        let set = "SET #Charging = :off, #CopyNoticedAt = :now, #CopyNoticedIn = :id";
        let update = self.build_update(keys::key_of_settings(), set, IS_OTHER_COPY, values);
        match self.send_update(update, ReturnValue::None).await? {
            UpdateItemOutcome::Updated(_) => Ok(()),
            UpdateItemOutcome::ConditionFailed(_) => self.record_copy(now).await,
        }
    }

    /// Records that the table is a restored backup or a copy: switches charging off, and stores `now` as the time at
    /// which the copy was noticed, unless an earlier time is stored. Sends one UpdateItem request.
    pub async fn record_copy(&self, now: DateTime<Utc>) -> Result<(), TableError> {
        let values = HashMap::from([
            (":off".to_owned(), AttributeValue::Bool(false)),
            (":now".to_owned(), s(Instant(now).to_text())),
        ]);
        let set = "SET #Charging = :off, #CopyNoticedAt = if_not_exists(#CopyNoticedAt, :now)";
        let update = self.build_update(keys::key_of_settings(), set, PRESENT, values);
        self.send_update(update, ReturnValue::None).await.map(drop)
    }

    /// Stores `at` as the time until which the table contains all payments, unless an earlier time is stored: the days
    /// to compare before a confirmation begin then. Called before [`Table::record_copy`] if a run has noticed that the
    /// table is older than the gateway, because the run itself has stored its time as that of the latest run. Sends one
    /// UpdateItem request.
    pub async fn record_backup_time(&self, at: DateTime<Utc>) -> Result<(), TableError> {
        const IS_EARLIER: &str =
            "attribute_exists(#PK) AND (attribute_not_exists(#LatestPaymentRunAt) OR #LatestPaymentRunAt > :at)";
        let values = HashMap::from([(":at".to_owned(), s(Instant(at).to_text()))]);
        let update = self.build_update(keys::key_of_settings(), "SET #LatestPaymentRunAt = :at", IS_EARLIER, values);
        self.send_update(update, ReturnValue::None).await.map(drop)
    }

    /// Stores the time of the latest run, or the creation time of the table before the first run, as the time from
    /// which the first payment run compares the table with the gateway's latest payments, unless such a time is stored.
    /// Called when a process opens the table on one machine, because a later run of the reminders stores its own time
    /// as that of the latest run. Sends one GetItem request, and one UpdateItem request if no time is stored.
    pub async fn init_payment_run_time(&self) -> Result<(), TableError> {
        match self.get_settings().await? {
            Some(settings) if settings.latest_payment_run_at.is_none() => {
                self.record_backup_time(settings.payments_known_until()).await
            }
            _ => Ok(()),
        }
    }

    /// Stores `id` as the id that DynamoDB gave to this restored or copied table, in place of `before`. Called after an
    /// operator has confirmed that the table may be used. Returns `false`, and stores nothing, if another person has
    /// confirmed the table meanwhile. Sends one UpdateItem request or, with an `action`, one TransactWriteItems
    /// request.
    pub async fn confirm_copy(&self, before: &str, id: &str, action: Option<&NewAction>) -> Result<bool, TableError> {
        let values = HashMap::from([(":before".to_owned(), s(before)), (":after".to_owned(), s(id))]);
        // All payments before the copy was noticed were compared, so later runs need not compare them again.
        let set =
            "SET #DynamodbId = :after, #LatestPaymentRunAt = #CopyNoticedAt REMOVE #CopyNoticedAt, #CopyNoticedIn";
        let is_unconfirmed = "#DynamodbId = :before AND attribute_exists(#CopyNoticedAt)";
        let update = self.build_update(keys::key_of_settings(), set, is_unconfirmed, values);
        let entry = action.map(|action| action.on_setting("table", Some(before.to_owned()), id.to_owned()));
        Ok(matches!(self.send_logged_update(update, entry).await?, UpdateItemOutcome::Updated(_)))
    }

    /// Sets the attribute `name` of the settings to `after`, if its value is `before` (`None`: if it has no value), and
    /// stores the action-log entry `entry`. Returns `None` if the attribute was set, otherwise the stored settings.
    pub(crate) async fn replace_setting(
        &self,
        name: &str,
        before: Option<AttributeValue>,
        after: AttributeValue,
        entry: Option<LoggedAction>,
    ) -> Result<Option<Settings>, TableError> {
        let condition = match before {
            Some(_) => format!("#{name} = :before"),
            None => format!("{PRESENT} AND attribute_not_exists(#{name})"),
        };
        let mut values = HashMap::from([(":after".to_owned(), after)]);
        values.extend(before.map(|before| (":before".to_owned(), before)));
        let set = self.build_update(keys::key_of_settings(), &format!("SET #{name} = :after"), &condition, values);
        match self.send_logged_update(set, entry).await? {
            UpdateItemOutcome::Updated(_) => Ok(None),
            UpdateItemOutcome::ConditionFailed(Some(stored)) => Ok(Some(from_item(&stored)?)),
            UpdateItemOutcome::ConditionFailed(None) => Err(TableError::Missing { key: keys::key_of_settings() }),
        }
    }

    /// Stores `now` as the start time of the latest run, unless a later time is stored. Sends one UpdateItem request.
    pub async fn record_run_time(&self, now: DateTime<Utc>) -> Result<(), TableError> {
        const IS_EARLIER_RUN_TIME: &str =
            "attribute_exists(#PK) AND (attribute_not_exists(#LatestRunAt) OR #LatestRunAt < :now)";
        self.set_latest_run_time(now, IS_EARLIER_RUN_TIME, None, None).await
    }

    /// Stores `now` as the start time of the latest run of the payment batch that compared the table with the gateway's
    /// latest payments. Sends one UpdateItem request.
    pub async fn record_payment_run_time(&self, now: DateTime<Utc>) -> Result<(), TableError> {
        let values = HashMap::from([(":now".to_owned(), s(Instant(now).to_text()))]);
        let set = "SET #LatestPaymentRunAt = :now";
        let update = self.build_update(keys::key_of_settings(), set, PRESENT, values);
        self.send_update(update, ReturnValue::None).await.map(drop)
    }

    /// Sets the time of the latest run to `now`, if the stored time is `before`. Called after an operator has confirmed
    /// that this machine's clock, which shows `now`, is right. A later time of the latest payment run also becomes `now`, and
    /// the day of the latest run is computed from `now` again.
    /// Sends one UpdateItem request or, with an `action`, one TransactWriteItems request; then a GetItem request, and
    /// another UpdateItem request if the time of the latest payment run is later.
    pub async fn confirm_clock(
        &self,
        now: DateTime<Utc>,
        before: DateTime<Utc>,
        action: Option<&NewAction>,
    ) -> Result<(), TableError> {
        let text = |at: DateTime<Utc>| Instant(at).to_text();
        let entry = action.map(|action| action.on_setting("latest_run_at", Some(text(before)), text(now)));
        self.set_latest_run_time(now, "#LatestRunAt = :before", Some(before), entry).await?;
        // A run on the clock that was ahead may have stored a later time here, too.
        match self.get_settings().await? {
            Some(settings) if settings.latest_payment_run_at.is_some_and(|at| at > now) => {
                self.record_backup_time(now).await
            }
            _ => Ok(()),
        }
    }

    /// Sets the time of the latest run to `now` if `condition` is true. If `condition` is false, another run has stored
    /// its time first, which is no error. `before` is the value of `:before` in `condition`; `None` if `condition` does
    /// not contain `:before`. `entry` is the action-log entry that is also written.
    async fn set_latest_run_time(
        &self,
        now: DateTime<Utc>,
        condition: &str,
        before: Option<DateTime<Utc>>,
        entry: Option<LoggedAction>,
    ) -> Result<(), TableError> {
        let mut values = HashMap::from([(":now".to_owned(), s(Instant(now).to_text()))]);
        values.extend(before.map(|before| (":before".to_owned(), s(Instant(before).to_text()))));
        // If a person has confirmed the clock, a day that was stored while it was ahead was not run either.
        let expression = match before {
            Some(_) => "SET #LatestRunAt = :now REMOVE #LatestRunOn",
            None => "SET #LatestRunAt = :now",
        };
        let set = self.build_update(keys::key_of_settings(), expression, condition, values);
        self.send_logged_update(set, entry).await.map(drop)
    }

    /// Stores `after` as the limits of the payment batch, if the stored limits are `before`. Returns whether `after`
    /// was stored. Sends one UpdateItem request or, with an `action`, one TransactWriteItems request.
    pub async fn set_payment_limits(
        &self,
        before: &PaymentLimits,
        after: &PaymentLimits,
        action: Option<&NewAction>,
    ) -> Result<bool, TableError> {
        let item = |limits: &PaymentLimits| AttributeValue::M(to_item(limits));
        let values = HashMap::from([(":after".to_owned(), item(after)), (":before".to_owned(), item(before))]);
        // The settings of an older table have no limits, which means the defaults.
        let mut condition = "#PaymentLimits = :before".to_owned();
        if *before == PaymentLimits::default() {
            condition = format!("{PRESENT} AND (attribute_not_exists(#PaymentLimits) OR {condition})");
        }
        let set = self.build_update(keys::key_of_settings(), "SET #PaymentLimits = :after", &condition, values);
        let entry = action.map(|action| action.on_payment_limits(before, after));
        Ok(matches!(self.send_logged_update(set, entry).await?, UpdateItemOutcome::Updated(_)))
    }

    /// Switches charging on or off. Sends one UpdateItem request or, with an `action`, one GetItem and one
    /// TransactWriteItems request.
    pub async fn set_charging(&self, on: bool, action: Option<&NewAction>) -> Result<(), TableError> {
        let state = |on: bool| if on { "on" } else { "off" }.to_owned();
        let entry = match action {
            Some(action) => {
                let before = self.get_settings().await?.map(|settings| state(settings.charging));
                Some(action.on_setting("charging", before, state(on)))
            }
            None => None,
        };
        let on = HashMap::from([(":on".to_owned(), AttributeValue::Bool(on))]);
        let update = self.build_update(keys::key_of_settings(), "SET #Charging = :on", PRESENT, on);
        match self.send_logged_update(update, entry).await? {
            UpdateItemOutcome::Updated(_) => Ok(()),
            UpdateItemOutcome::ConditionFailed(_) => Err(TableError::Missing { key: keys::key_of_settings() }),
        }
    }
}
