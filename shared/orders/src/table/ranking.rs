//! What the customers of each representative have ordered in a quarter.
//!
//! A total is read and written on condition of its version, in the transaction of the order: a transaction conflicts on an
//! `ADD` just as much, and only so can `Data` hold the sum as a text that sorts.

use futures::future::try_join_all;

use super::super::{EmployeeId, Quarter, QuarterTotal};
use super::index::Wanted;
use super::items::StoredTotal;
use super::writes::Writes;
use super::{OrdersTable, keys};
use billing::{Currency, Money};
use dynamo::shard_of;
use dynamo::{Entity as _, Key, TableError};

/// Quarters' totals lie in as many partitions as this, whatever is said of the orders: a total that moved would be two.
const TOTAL_BUCKETS: u32 = 8;

fn key_of(representative: &EmployeeId, quarter: Quarter, currency: Currency) -> Key {
    let bucket = shard_of(representative.as_str(), TOTAL_BUCKETS);
    keys::edge(keys::employee(representative), keys::quarter(quarter, currency, bucket))
}

impl OrdersTable {
    /// Pattern 14: the representatives by what their customers have ordered in `quarter`, in `currency`, the most first. GSI-1,
    /// `SK = quarter`, descending: one query for each of the eight partitions that a quarter is spread over, in parallel.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn ranking(&self, quarter: Quarter, currency: Currency) -> Result<Vec<QuarterTotal>, TableError> {
        let parts = (0..TOTAL_BUCKETS).map(|bucket| {
            let wanted = Wanted { is_forward: false, ..Wanted::all() };
            self.leading_to(keys::quarter(quarter, currency, bucket), wanted)
        });
        let items = try_join_all(parts).await?.into_iter().flatten();
        let mut totals =
            items.map(|item| Ok(StoredTotal::from_item(&item)?.total)).collect::<Result<Vec<_>, TableError>>()?;
        totals.sort_by(|a, b| (b.total.minor(), &a.representative).cmp(&(a.total.minor(), &b.representative)));
        Ok(totals)
    }

    /// What the customers of `representative` have ordered. GetItem, strongly consistent.
    pub(super) async fn total(
        &self,
        representative: &EmployeeId,
        quarter: Quarter,
        currency: Currency,
    ) -> Result<Option<StoredTotal>, TableError> {
        let item = self.0.get(key_of(representative, quarter, currency)).await?;
        item.map(|item| StoredTotal::from_item(&item)).transpose()
    }

    /// Adds the write by which `representative` is credited with `amount` in `quarter`, or loses it if that is negative.
    pub(super) async fn credit<'a>(
        &'a self,
        writes: Writes<'a>,
        representative: Option<&EmployeeId>,
        quarter: Quarter,
        amount: Money,
    ) -> Result<Writes<'a>, TableError> {
        let Some(representative) = representative else { return Ok(writes) };
        let key = key_of(representative, quarter, amount.currency());
        let Some(before) = self.total(representative, quarter, amount.currency()).await? else {
            let new = QuarterTotal { representative: representative.clone(), quarter, total: amount, version: 1 };
            return Ok(writes.create(StoredTotal { total: new, key }.to_item()));
        };
        let plus = before.total.plus(amount).map_err(|error| TableError::unreadable(key, error))?;
        Ok(writes.change(&before, &StoredTotal { total: plus, ..before.clone() }))
    }
}
