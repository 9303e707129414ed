//! The stored policy. The settings item contains it, and each process keeps a copy of it: a run from its beginning to
//! its end, the API and the consumers of events for [`MAX_COPY_AGE`].

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};
use billing::{NewAction, Policy, StoredPolicy};
use chrono::{DateTime, TimeDelta, Utc};
use config::{ConfiguredPolicy, PolicyDifference};
use dynamo::{Instant, PRESENT, TransactionOutcome, s, to_item};

use crate::keys;
use crate::settings::settings_item::Settings;
use crate::table::batch::Batch;
use crate::table::payments_table::Table;
use crate::table::policy_copy::PolicyCopy;
use dynamo::TableError;

/// The API and the consumers of events read the policy again if their copy is older than this.
pub const MAX_COPY_AGE: TimeDelta = TimeDelta::seconds(60);

impl Table {
    /// Returns the copy of the stored policy.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.read().policy
    }

    /// Returns the same table, which uses the policy of `configured` until the stored policy is read.
    pub fn with_configured_policy(self, configured: ConfiguredPolicy) -> Self {
        Self { policy: PolicyCopy::new(configured), ..self }
    }

    /// Returns the same table with its own copy of the policy, which does not change if another user of the table reads
    /// the policy again.
    pub fn with_own_policy(&self) -> Self {
        Self { dynamo: self.dynamo.clone(), policy: self.policy.detached() }
    }

    /// Makes the policy in `settings` the copy of this table and of its clones. The settings were read at the time
    /// `read_at`; `None` if they are soon read again. If `settings` contain no policy, because an earlier version stored
    /// them and no policy was adopted since then, the present copy stays.
    ///
    /// # Errors
    /// [`TableError::Unreadable`] if a setting of the stored policy cannot be read, or if there is none and a variable of
    /// the configuration is not valid.
    pub fn use_policy(&self, settings: &Settings, read_at: impl Into<Option<DateTime<Utc>>>) -> Result<(), TableError> {
        let Some(stored) = &settings.policy else {
            let missing =
                |error| TableError::unreadable(keys::key_of_settings(), format!("it has no policy, and {error}"));
            return self.policy.configured.valid_policy().map(drop).map_err(missing);
        };
        let unreadable = |error| TableError::unreadable(keys::key_of_settings(), format!("its policy: {error}"));
        self.policy.replace(&stored.read().map_err(unreadable)?, read_at.into());
        Ok(())
    }

    /// Returns the settings whose variables differ from the copy of the stored policy, which is used.
    pub fn policy_differences(&self) -> Vec<PolicyDifference> {
        self.policy.configured.differences_from(&self.policy())
    }

    /// Reads the stored policy if the copy is older than [`MAX_COPY_AGE`] at the time `now`, or from a later time. If the
    /// table does not respond now, the former copy of the stored policy stays. Sends one strongly consistent GetItem
    /// request, or none.
    pub async fn refresh_policy(&self, now: DateTime<Utc>) -> Result<(), TableError> {
        let copy = self.policy.read();
        let age = copy.read_at.map(|read_at| now.signed_duration_since(read_at));
        if age.is_some_and(|age| TimeDelta::zero() <= age && age <= MAX_COPY_AGE) {
            return Ok(());
        }
        match self.get_settings().await {
            Ok(Some(settings)) => self.use_policy(&settings, now),
            Ok(None) => Ok(()),
            Err(error) if copy.is_stored && error.is_transient() => {
                tracing::warn!(%error, error_type = "Table", "the policy was not read again, so the former one is used");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Stores `policy` if the settings contain no policy. Returns the policy that is stored afterwards. Sends one
    /// UpdateItem request or, with an `action`, one TransactWriteItems request.
    pub async fn adopt_policy(
        &self,
        policy: &StoredPolicy,
        action: Option<&NewAction>,
    ) -> Result<StoredPolicy, TableError> {
        let entry = action.map(|action| action.on_policy(None, policy));
        match self.replace_setting("Policy", None, AttributeValue::M(to_item(policy)), entry).await? {
            None => Ok(policy.clone()),
            Some(stored) => stored.policy.ok_or(TableError::Contended { key: keys::key_of_settings() }),
        }
    }

    /// Stores `after` as the policy at the time `now`, if the policy and the time of the latest run are still those of
    /// `settings`, and no daily execution has its lease. Also stores the day of the latest run in the former time zone. Sends
    /// one TransactWriteItems request.
    pub async fn set_policy(
        &self,
        settings: &Settings,
        after: &StoredPolicy,
        now: DateTime<Utc>,
        action: &NewAction,
    ) -> Result<SetPolicyOutcome, TableError> {
        let mut values = HashMap::from([(":after".to_owned(), AttributeValue::M(to_item(after)))]);
        let mut is_unchanged = |name: &str, value: Option<AttributeValue>| match value {
            Some(value) => {
                let placeholder = format!(":{name}");
                values.insert(placeholder.clone(), value);
                format!("#{name} = {placeholder}")
            }
            None => format!("attribute_not_exists(#{name})"),
        };
        let policy = is_unchanged("Policy", settings.policy.as_ref().map(|policy| AttributeValue::M(to_item(policy))));
        let run = is_unchanged("LatestRunAt", settings.latest_run_at.map(|at| s(Instant(at).to_text())));
        let condition = format!("{PRESENT} AND {policy} AND {run}");
        let mut set = "SET #Policy = :after".to_owned();
        // The time of the latest run would have another date in the new time zone.
        if let Some(day) = settings.latest_run_day() {
            set += ", #LatestRunOn = :day";
            values.insert(":day".to_owned(), s(day.to_string()));
        }
        let update = self.build_update(keys::key_of_settings(), &set, &condition, values);
        let entry = action.on_policy(settings.policy.as_ref(), after);
        let writes = [
            (PolicyWrite::Settings, TransactWriteItem::builder().update(update).build()),
            (PolicyWrite::ActionEntry, self.build_action_put(&entry)),
        ];
        let checks = Batch::ALL.map(|batch| (PolicyWrite::NoExecution(batch), self.build_execution_check(batch, now)));
        let TransactionOutcome::ConditionFailed(failed) = self.transact_named(writes.into_iter().chain(checks)).await?
        else {
            return Ok(SetPolicyOutcome::Set);
        };
        for batch in Batch::ALL {
            if let Some(item) = failed.item(PolicyWrite::NoExecution(batch)) {
                let (by, until) = Self::read_execution(item)?;
                return Ok(SetPolicyOutcome::Running { batch, by, until });
            }
        }
        Ok(SetPolicyOutcome::Changed)
    }
}

/// The result of setting the policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetPolicyOutcome {
    Set,
    /// The policy was changed, or a run has begun, since the settings were read. Nothing was stored.
    Changed,
    /// The daily execution `by` of `batch` has its lease until the time `until`. Nothing was stored.
    Running {
        batch: Batch,
        by: String,
        until: DateTime<Utc>,
    },
}

/// The writes of the transaction that sets the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PolicyWrite {
    Settings,
    ActionEntry,
    /// The check that no daily execution of this batch is running.
    NoExecution(Batch),
}
