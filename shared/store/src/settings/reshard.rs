//! Write sharding: computes the number of partitions (shards) that the indexes need, raises this number, and moves
//! subscriptions to their new shards.
//!
//! DynamoDB allows at most 1,000 write units and 3,000 read units per second for each partition of a table or an index.
//! An index that cannot keep up throttles the writes of the table (Amazon DynamoDB Developer Guide, "Best practices for
//! designing and using partition keys effectively" and "Using global secondary index write sharding").

use std::collections::HashMap;

use chrono::NaiveDate;

use crate::keys;
use crate::settings::settings_item::Settings;
use crate::table::payments_table::Table;
use billing::{NewAction, Subscription, days_after};
use dynamo::ItemRewrite;
use dynamo::TableError;
use dynamo::from_item;
use dynamo::{UpdateItemOutcome, n};

/// The highest load that the index shards must carry: the payments and imports per second on the busiest day, and the
/// size of an index entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeakLoad {
    /// The number of payments per second, in all shards together.
    pub payments: u32,
    /// The number of subscriptions per second that an import creates while payments run.
    pub imports: u32,
    /// The size of an entry of the payment index, in bytes.
    pub row_bytes: u32,
}

/// The number of shards that each kind of index access requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequiredShards {
    /// The number of shards that are required to read the due payments.
    pub reads: u32,
    /// The number of shards that are required to write the index entries of payments.
    pub payments: u32,
    /// The number of shards that are required to write the index entries of imported subscriptions.
    pub imports: u32,
}

/// The largest number of shards. No AWS account needs more, and every shard costs one Query request per run.
pub const MAX_SHARDS: u32 = 1_000;

impl PeakLoad {
    /// Computes the number of shards that this load requires. Reading due rows costs half a read unit per 4 KB of a
    /// row. A payment causes two writes of the index, because an entry is removed and an entry is added. An import
    /// causes one write. Writes get 50% more shards than the average load requires, because some shards have more load
    /// than others.
    ///
    /// ```
    /// use store::PeakLoad;
    /// let required = PeakLoad { payments: 1_000, imports: 1_000, row_bytes: 300 }.required_shards();
    /// assert_eq!((required.reads, required.payments, required.imports, required.recommended()), (1, 3, 2, 3));
    /// ```
    pub fn required_shards(&self) -> RequiredShards {
        let Self { payments, imports, row_bytes } = *self;
        let units = row_bytes.div_ceil(4_096).max(1);
        RequiredShards {
            reads: payments.saturating_mul(units).div_ceil(2 * 3_000),
            payments: payments.saturating_mul(3).div_ceil(1_000),
            imports: imports.saturating_mul(3).div_ceil(2 * 1_000),
        }
    }
}

impl RequiredShards {
    /// Returns the recommended number of shards: the largest of the three numbers, and at least 1.
    pub fn recommended(&self) -> u32 {
        self.reads.max(self.payments).max(self.imports).max(1)
    }
}

/// The result of moving a subscription to the shard in which it belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReshardOutcome {
    Moved,
    /// The subscription is in the right shard already, or does not exist any more.
    AlreadyInPlace,
    /// The subscription was not moved, because it is due by tomorrow, or has an open payment attempt or a claimed
    /// reminder. A later call can move it.
    Postponed,
}

impl Table {
    /// Raises the number of shards in the settings to `shards`, unless the stored number is already at least as large.
    /// Returns the number that is stored afterwards. Sends one UpdateItem request or, with an `action`, one GetItem and
    /// one TransactWriteItems request.
    pub async fn raise_shard_count(&self, shards: u32, action: Option<&NewAction>) -> Result<u32, TableError> {
        const IS_LOWER_SHARD_COUNT: &str = "#Shards < :shards";
        let values = HashMap::from([(":shards".to_owned(), n(shards))]);
        let raise = self.build_update(keys::key_of_settings(), "SET #Shards = :shards", IS_LOWER_SHARD_COUNT, values);
        let entry = match action {
            Some(action) => {
                let before = self.get_settings().await?.map(|settings| settings.shards.to_string());
                Some(action.on_setting("shards", before, shards.to_string()))
            }
            None => None,
        };
        match self.send_logged_update(raise, entry).await? {
            UpdateItemOutcome::Updated(_) => Ok(shards),
            UpdateItemOutcome::ConditionFailed(Some(stored)) => Ok(from_item::<Settings>(&stored)?.shards),
            UpdateItemOutcome::ConditionFailed(None) => Err(TableError::Missing { key: keys::key_of_settings() }),
        }
    }

    /// Returns the approximate number of the table's items, of all kinds; `None` if it is unknown, as on one machine.
    /// Sends one DescribeTable request; AWS updates the number every six hours.
    pub async fn item_count(&self) -> Result<Option<u64>, TableError> {
        let described = self.client().describe_table().table_name(self.name()).send().await;
        let described = described.map_err(|error| TableError::from_sdk_error("DescribeTable", error))?;
        let count = described.table.and_then(|table| table.item_count);
        Ok(count.and_then(|count| u64::try_from(count).ok()))
    }

    /// Moves the subscription `stored` to its shard according to `settings`. Postpones the move if the subscription is
    /// due by tomorrow, or has an open payment attempt or a claimed reminder, because a run may be processing the rows
    /// of its current shard. Sends one UpdateItem request per try.
    pub async fn reshard_subscription(
        &self,
        stored: Subscription,
        settings: &Settings,
        today: NaiveDate,
    ) -> Result<ReshardOutcome, TableError> {
        let moved = |stored: &Subscription| match settings.shard_of(&stored.account) {
            shard if shard == stored.shard => Err(ReshardOutcome::AlreadyInPlace),
            _ if !may_change_shard(stored, today) => Err(ReshardOutcome::Postponed),
            shard => Ok(ItemRewrite::without_records(Subscription { shard, ..stored.clone() })),
        };
        let record_exists = |_: &dynamo::Item| Ok(ReshardOutcome::Postponed);
        match self.rewrite_item(stored, moved, record_exists).await {
            Ok(_) => Ok(ReshardOutcome::Moved),
            Err(refused) => Ok(refused.into_reason()?.unwrap_or(ReshardOutcome::AlreadyInPlace)),
        }
    }
}

/// Returns whether the subscription may be moved to another shard: no run of today or tomorrow will process it.
fn may_change_shard(stored: &Subscription, today: NaiveDate) -> bool {
    let is_later = |on: Option<NaiveDate>| on.is_none_or(|on| on > days_after(today, 1));
    stored.attempt.is_none()
        && stored.reminder_claim.is_none()
        && is_later(stored.next_payment_on)
        && is_later(stored.next_reminder_on)
}
