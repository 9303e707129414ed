//! The quarter totals of representatives: the total amount of the orders that are credited to a representative in a quarter.
//!
//! The order desk reads a total, and then writes the new total in the transaction of the order, on condition that the
//! version of the total did not change. The DynamoDB action `ADD` would cause just as many conflicts between
//! transactions. Also, it could not update `Data`, which contains the amount as a sortable text.

use futures::future::try_join_all;

use crate::items::StoredQuarterTotal;
use crate::partition_queries::ItemSelection;
use crate::write_transaction::WriteTransaction;
use crate::{OrdersTable, keys};
use billing::{Currency, Money};
use dynamo::shard_of;
use dynamo::{Entity as _, Item, Key, TableError};
use orders::{EmployeeId, Quarter, QuarterTotal};

/// The number of partitions of GSI-1 over which the totals of a quarter are spread. This number must never change: it
/// is a part of the computation of the key of a total, so with another number a representative would get a second item
/// for the same total. It is independent of the number of buckets of GSI-2.
const TOTAL_BUCKETS: u32 = 8;

/// Returns the key of the quarter total of `representative`.
fn quarter_total_key(representative: &EmployeeId, quarter: Quarter, currency: Currency) -> Key {
    let bucket = shard_of(representative.as_str(), TOTAL_BUCKETS);
    keys::key_of_relation(keys::key_of_employee(representative), keys::key_of_quarter_totals(quarter, currency, bucket))
}

/// Returns the item that this program would store for the quarter total in `item`.
pub(crate) fn expected_quarter_total_item(item: &Item) -> Result<Item, TableError> {
    let stored = StoredQuarterTotal::from_item(item)?;
    let QuarterTotal { representative, quarter, total, .. } = &stored.total;
    let key = quarter_total_key(representative, *quarter, total.currency());
    Ok(StoredQuarterTotal { key, ..stored }.to_item())
}

impl OrdersTable {
    /// Returns the totals of the representatives for `quarter` in `currency`, largest total first (access pattern 14).
    /// Queries the eight partitions of `quarter` and `currency` in GSI-1, in parallel and each in descending order.
    pub async fn get_ranking(&self, quarter: Quarter, currency: Currency) -> Result<Vec<QuarterTotal>, TableError> {
        let queries = (0..TOTAL_BUCKETS).map(|bucket| {
            let selection = ItemSelection { is_ascending: false, ..ItemSelection::all_items() };
            self.query_relations_to(keys::key_of_quarter_totals(quarter, currency, bucket), selection)
        });
        let items = try_join_all(queries).await?.into_iter().flatten();
        let mut totals = items
            .map(|item| Ok(StoredQuarterTotal::from_item(&item)?.total))
            .collect::<Result<Vec<_>, TableError>>()?;
        totals.sort_by(|a, b| (b.total.minor(), &a.representative).cmp(&(a.total.minor(), &b.representative)));
        Ok(totals)
    }

    /// Returns the total of `representative` in `quarter` and `currency`; `None` if no order was credited to the
    /// representative in this quarter. Sends one strongly consistent GetItem request.
    pub(crate) async fn stored_total(
        &self,
        representative: &EmployeeId,
        quarter: Quarter,
        currency: Currency,
    ) -> Result<Option<StoredQuarterTotal>, TableError> {
        let item = self.dynamo.get(quarter_total_key(representative, quarter, currency)).await?;
        item.map(|item| StoredQuarterTotal::from_item(&item)).transpose()
    }

    /// Adds to `writes` a write that increases the total of `representative` in `quarter` by `amount`, which can be
    /// negative. Adds no write if `representative` is `None` or the amount is 0.
    pub(crate) async fn add_to_total<'a>(
        &'a self,
        writes: WriteTransaction<'a>,
        representative: Option<&EmployeeId>,
        quarter: Quarter,
        amount: Money,
    ) -> Result<WriteTransaction<'a>, TableError> {
        let Some(representative) = representative.filter(|_| amount.minor() != 0) else { return Ok(writes) };
        let key = quarter_total_key(representative, quarter, amount.currency());
        let Some(before) = self.stored_total(representative, quarter, amount.currency()).await? else {
            let new = QuarterTotal { representative: representative.clone(), quarter, total: amount, version: 1 };
            return Ok(writes.create(StoredQuarterTotal { total: new, key }.to_item()));
        };
        let after = before.total.with_amount_added(amount).map_err(|error| TableError::unreadable(key, error))?;
        Ok(writes.change(&before, &StoredQuarterTotal { total: after, ..before.clone() }))
    }
}
