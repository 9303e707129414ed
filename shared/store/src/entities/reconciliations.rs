//! The requests for comparisons of days with the gateway: their progress and their results.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, NaiveDate, TimeDelta};

use crate::items::keep_attributes;
use crate::keys;
use crate::table::payments_table::Table;
use billing::{AcceptedDifference, DayReconciliation, NewAction};
use dynamo::{
    ABSENT, Entity as _, PrefixQuery, Query, TIME_TO_LIVE, TransactionOutcome, expiry_timestamp, key_of_item, n, s,
    values, with_next_version,
};
use dynamo::{Item, Page, Paging, TableError};

/// The attribute with the hashes of seen payments (payments at the gateway for which a comparison found a receipt),
/// each as 8 bytes in big-endian order.
const HASHES_ATTRIBUTE: &str = "Hashes";
/// How long the hashes of seen payments are stored after the start of the comparison. Without these hashes, a continued
/// comparison only sends more requests.
pub(crate) const SEEN_PAYMENTS_RETENTION: TimeDelta = TimeDelta::days(7);

/// Returns the item that this program would store for the seen payments in `item`.
///
/// # Errors
/// [`TableError::Unreadable`] if its key contains no start of a comparison, or the hashes cannot be read.
pub(crate) fn check_seen_payments(item: &Item) -> Result<Item, TableError> {
    let key = key_of_item(item);
    let started_at = key.sk.strip_prefix(keys::SEEN_PAYMENTS).and_then(|rest| rest.split('#').next()?.parse().ok());
    let started_at = started_at.and_then(DateTime::from_timestamp_millis);
    let hashes = item.get(HASHES_ATTRIBUTE).and_then(|hashes| hashes.as_b().ok());
    match started_at.zip(hashes) {
        Some((started_at, hashes)) if hashes.as_ref().len().is_multiple_of(8) => {
            let mut expected = keep_attributes(item, |name| name == HASHES_ATTRIBUTE);
            expected.insert(TIME_TO_LIVE.to_owned(), n(expiry_timestamp(started_at, SEEN_PAYMENTS_RETENTION)));
            Ok(expected)
        }
        _ => Err(TableError::unreadable(key, "its key or its hashes are not those of seen payments")),
    }
}

impl Table {
    /// Returns the latest comparison of the day `on`; `None` if the day was not compared. Sends one strongly consistent
    /// GetItem request.
    pub async fn get_reconciliation(&self, on: NaiveDate) -> Result<Option<DayReconciliation>, TableError> {
        let stored = self.get(keys::key_of_reconciliation(on)).await?;
        stored.map(|item| DayReconciliation::from_item(&item)).transpose()
    }

    /// Returns the latest comparison of each day, the newest day first. Sends a Query with `PK = RECONCILED`.
    pub async fn get_reconciliations(&self, paging: &Paging) -> Result<Page<DayReconciliation>, TableError> {
        let list = PrefixQuery::new(keys::RECONCILIATIONS, keys::RECONCILED_DAYS).descending();
        Ok(self.list_items(&list, paging).await?.read(|item| DayReconciliation::from_item(&item)))
    }

    /// Stores the comparison `new`, which has compared nothing yet, if no comparison of its day is stored. Returns
    /// whether it was stored. Sends one PutItem request.
    pub async fn create_reconciliation(&self, new: &DayReconciliation) -> Result<bool, TableError> {
        self.put_if_absent(new.to_item()).await
    }

    /// Stores `next` in place of `stored`: the progress of a comparison, its result, or a new comparison of the same
    /// day. Returns the stored comparison. Sends one UpdateItem request.
    ///
    /// # Errors
    /// [`TableError::Contended`] if another process compares the same day.
    pub async fn update_reconciliation(
        &self,
        stored: &DayReconciliation,
        next: DayReconciliation,
    ) -> Result<DayReconciliation, TableError> {
        let written = with_next_version(stored, next.clone());
        let change = |current: &DayReconciliation| (current == stored).then(|| next.clone());
        match self.change_item(stored.clone(), change).await? {
            Some(current) if current == written => Ok(written),
            _ => Err(TableError::Contended { key: stored.key() }),
        }
    }

    /// Returns the differences of the day `on` that a person has accepted. Sends a Query with
    /// `PK = RECONCILED#<day> AND begins_with(SK, "ACCEPTED#")`.
    pub async fn get_accepted_differences(&self, on: NaiveDate) -> Result<Vec<AcceptedDifference>, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_reconciled_day(on), keys::ACCEPTED_DIFFERENCES);
        self.list_items(&list, &Paging::all()).await?.read(|item| AcceptedDifference::from_item(&item)).into_items()
    }

    /// Stores `accepted` and the action-log entry of `action` in one transaction. Returns `false`, and stores nothing,
    /// if the difference was accepted before.
    pub async fn accept_difference(
        &self,
        accepted: &AcceptedDifference,
        action: &NewAction,
    ) -> Result<bool, TableError> {
        let put = self.build_put_if(accepted.to_item(), ABSENT, None);
        let writes = vec![put, self.build_action_put(&action.on_difference(accepted))];
        Ok(matches!(self.transact_with_retries(writes).await?, TransactionOutcome::Written))
    }

    /// Stores the hashes of the payments in the latest list page for which the comparison `day` found a receipt. If the
    /// comparison reads the same list page again, this call replaces the item of that list page. Sends one PutItem
    /// request.
    pub async fn put_seen_payments(&self, day: &DayReconciliation, hashes: &[u64]) -> Result<(), TableError> {
        let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_be_bytes()).collect();
        let key = keys::key_of_seen_payments(day.on, day.started_at, day.counts.payments);
        let mut item: Item = key.attributes().into_iter().collect();
        item.insert(HASHES_ATTRIBUTE.to_owned(), AttributeValue::B(Blob::new(bytes)));
        item.insert(TIME_TO_LIVE.to_owned(), n(expiry_timestamp(day.started_at, SEEN_PAYMENTS_RETENTION)));
        self.put(item).await
    }

    /// Calls `add` with each hash that [`Table::put_seen_payments`] has stored for the comparison `day`. Sends a Query
    /// with `PK = RECONCILED#<day> AND begins_with(SK, "SEEN#<start>#")`.
    pub async fn read_seen_payments(
        &self,
        day: &DayReconciliation,
        mut add: impl FnMut(u64),
    ) -> Result<(), TableError> {
        let partition = s(keys::partition_key_of_reconciled_day(day.on));
        let prefix = s(keys::sort_key_prefix_of_seen_payments(day.started_at));
        let key_condition = "#PK = :partition AND begins_with(#SK, :prefix)";
        let mut items = self.query(Query::new(key_condition, values([(":partition", partition), (":prefix", prefix)])));
        while let Some(item) = items.next().await? {
            let bytes =
                item.get(HASHES_ATTRIBUTE).and_then(|hashes| hashes.as_b().ok()).map(Blob::as_ref).unwrap_or_default();
            bytes.as_chunks::<8>().0.iter().for_each(|hash| add(u64::from_be_bytes(*hash)));
        }
        Ok(())
    }
}
