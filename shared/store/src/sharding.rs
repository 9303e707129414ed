//! Write sharding: how many partitions the indexes need, raising that number, and moving items to their new partitions.
//!
//! A partition writes at most 1,000 and reads at most 3,000 units a second, in an index as in the table, and an index that
//! cannot follow throttles the table (Amazon DynamoDB Developer Guide, "Best practices for designing and using partition
//! keys effectively" and "Using global secondary index write sharding").

use std::collections::HashMap;

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::NaiveDate;

use super::settings::Settings;
use super::{Rewritten, Table, TableError, keys};
use billing::{Subscription, days_after};
use dynamo::Next;
use dynamo::from_item;
use dynamo::{UpdateAnswer, n};

/// What a busy second asks of the indexes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Payments per second, of all shards together.
    pub payments: u32,
    /// Subscriptions per second that are imported meanwhile.
    pub imports: u32,
    /// Bytes of an entry of the payment index.
    pub row_bytes: u32,
}

/// How many shards each kind of work asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needed {
    pub reads: u32,
    pub payments: u32,
    pub imports: u32,
}

/// More shards than this are not needed by any account of AWS, and each costs a query a day.
pub const MAX_SHARDS: u32 = 1_000;

impl Demand {
    /// How many shards are needed: for reading what is due, half a unit for each 4 KB; for payments, each of which takes an
    /// entry out of the index and puts one in, and imports, half as many again as on average.
    ///
    /// ```
    /// use store::Demand;
    /// let needed = Demand { payments: 1_000, imports: 1_000, row_bytes: 300 }.needed();
    /// assert_eq!((needed.reads, needed.payments, needed.imports, needed.shards()), (1, 3, 2, 3));
    /// ```
    pub fn needed(&self) -> Needed {
        let Self { payments, imports, row_bytes } = *self;
        let units = row_bytes.div_ceil(4_096).max(1);
        Needed {
            reads: payments.saturating_mul(units).div_ceil(2 * 3_000),
            payments: payments.saturating_mul(3).div_ceil(1_000),
            imports: imports.saturating_mul(3).div_ceil(2 * 1_000),
        }
    }
}

impl Needed {
    /// The number to choose.
    pub fn shards(&self) -> u32 {
        self.reads.max(self.payments).max(self.imports).max(1)
    }
}

/// What became of a subscription that may have to move to another shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resharded {
    Moved,
    /// It is where it belongs.
    InPlace,
    /// It is due, or a payment or a reminder of it is under way: it stays until that is done.
    Stays,
}

impl Table {
    /// Raises the number of shards to `shards`; answers how many there are then. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn raise_shards(&self, shards: u32) -> Result<u32, TableError> {
        const LOWER: &str = "#Shards < :shards";
        let values = HashMap::from([(":shards".to_owned(), n(shards))]);
        let raise = self.update_of(keys::settings(), "SET #Shards = :shards", LOWER, values);
        match self.update(raise, ReturnValue::None).await? {
            UpdateAnswer::Done(_) => Ok(shards),
            UpdateAnswer::Refused(Some(stored)) => Ok(from_item::<Settings>(&stored)?.shards),
            UpdateAnswer::Refused(None) => Err(TableError::Missing { key: keys::settings() }),
        }
    }

    /// About how many items there are, of all kinds. DescribeTable; AWS counts every six hours.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn item_count(&self) -> Result<u64, TableError> {
        let described = self.client().describe_table().table_name(self.name()).send().await;
        let described = described.map_err(|error| TableError::request("DescribeTable", error))?;
        let count = described.table.and_then(|table| table.item_count).unwrap_or(0);
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Moves `stored` to the shard where it belongs by `settings`, unless it is due by tomorrow or something of it is under
    /// way: a run that goes on walks the shard it is in. UpdateItem, under the write rule.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn reshard(
        &self,
        stored: Subscription,
        settings: &Settings,
        today: NaiveDate,
    ) -> Result<Resharded, TableError> {
        let moved = |stored: &Subscription| match settings.shard_of(&stored.account) {
            shard if shard == stored.shard => Err(Resharded::InPlace),
            _ if !is_at_rest(stored, today) => Err(Resharded::Stays),
            shard => Ok(Next::only(Subscription { shard, ..stored.clone() })),
        };
        let nothing_with_it = |_: &super::Item| Ok(Resharded::Stays);
        Ok(match self.rewrite(stored, moved, nothing_with_it).await? {
            Rewritten::Applied(_) => Resharded::Moved,
            Rewritten::Left(why) => why,
            Rewritten::Gone => Resharded::InPlace,
        })
    }
}

fn is_at_rest(stored: &Subscription, today: NaiveDate) -> bool {
    let is_far = |on: Option<NaiveDate>| on.is_none_or(|on| on > days_after(today, 1));
    stored.attempt.is_none()
        && stored.reminder_claim.is_none()
        && is_far(stored.next_payment_on)
        && is_far(stored.next_reminder_on)
}
