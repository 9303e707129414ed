//! Reads all accounts with all their stored items, one account after the other. Each account is one partition of the
//! table, and a Scan returns all items of a partition before the items of the next partition.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};

use crate::items::{CREATIONS, creations_of_account, is_erased_account};
use crate::keys;
use crate::scans::other_items::{NamedOwner, check_other_item, find_named_owner};
use crate::table::payments_table::{PaymentsSchema, Table};
use billing::{
    Account, AccountId, AttemptRecord, Dispute, ErasedAccount, Finding, GatewayToken, LoggedAction, Receipt, Refund,
    Subscription, WaivedPeriod,
};
use dynamo::{Entity, FaultyItem, Items, Query, Scan, is_expired, key_of_item, s, values};
use dynamo::{Item, Key, TableError};

/// The character between the partition key and the sort key in the stored text of a position in a scan. No partition
/// key contains this character.
pub const POSITION_SEPARATOR: char = ' ';

/// The attribute with the time after which DynamoDB deletes the item.
const TTL: &str = "TTL";

/// An account with all its stored items: the content of the account's partition.
#[derive(Debug, Default)]
pub struct AccountPartition {
    /// The partition key.
    pub key: String,
    /// The account itself; `None` if its item is missing or cannot be read.
    pub account: Option<Account>,
    /// The mark that the account was erased; `None` if the account was not erased.
    pub erased: Option<ErasedAccount>,
    pub subscriptions: Vec<Subscription>,
    pub receipts: Vec<Receipt>,
    pub refunds: Vec<Refund>,
    pub disputes: Vec<Dispute>,
    pub findings: Vec<Finding>,
    pub attempts: Vec<AttemptRecord>,
    pub waived: Vec<WaivedPeriod>,
    /// The entries of the action log.
    pub actions: Vec<LoggedAction>,
    /// One error for each item that cannot be read, or whose sort key has an unknown prefix.
    pub unreadable: Vec<TableError>,
    /// The items whose attributes contradict their key, or contain something that this program does not store.
    pub altered: Vec<AlteredItem>,
    /// When each payment record expires.
    pub expiries: Vec<RecordExpiry>,
}

/// An item that differs from the item that this program would store with the same content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlteredItem {
    pub key: Key,
    /// The names of the attributes that differ from the expected item, sorted.
    pub attributes: Vec<String>,
}

/// When a receipt or another payment record expires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordExpiry {
    pub key: Key,
    /// When the record was written.
    pub recorded_at: DateTime<Utc>,
    /// The TTL: when the record expires, in seconds since 1970.
    pub expires: i64,
}

/// The account partitions of a table, in the order in which a Scan returns them. At most one page of the Scan and one
/// account are in memory.
#[derive(Debug)]
pub struct AccountPartitions {
    items: Items,
    /// The key of the last item of the account that [`AccountPartitions::next`] returned last, as text: partition key,
    /// space, sort key.
    position: Option<String>,
    /// The partition key of the account after which the caller continues. If items were added to this account after
    /// the caller read it, they are left out. Alone, they would look like an incomplete account.
    skipped: Option<String>,
    /// The time at which the items between the accounts are checked; `None` if they are not checked.
    checked_at: Option<DateTime<Utc>>,
    /// The results of these checks since the last call of [`AccountPartitions::take_checked_items`].
    checked: CheckedItems,
}

/// The results of the checks of items outside of the accounts.
#[derive(Debug, Default)]
pub struct CheckedItems {
    pub faulty: Vec<FaultyItem>,
    /// The accounts and subscriptions that the items name.
    pub owners: Vec<NamedOwner>,
}

impl Table {
    /// Returns all accounts with their stored items. [`AccountPartitions`] sends strongly consistent Scan requests, one
    /// for each page, when the caller reads the accounts.
    pub fn account_partitions(&self) -> AccountPartitions {
        self.scan_partitions(Scan::all(), None)
    }

    /// Returns all items of `account` that have not expired at `now`; `None` if there are more than `max_items`. Sends
    /// one strongly consistent Query request for each page.
    pub async fn get_partition(
        &self,
        account: &AccountId,
        max_items: usize,
        now: DateTime<Utc>,
    ) -> Result<Option<AccountPartition>, TableError> {
        let key = keys::partition_key_of_account(account);
        let query = Query::new("#PK = :partition", values([(":partition", s(key))]));
        let items = self.query(query).read_up_to(Some(max_items.saturating_add(1))).await?;
        if items.len() > max_items {
            return Ok(None);
        }
        Ok(Some(AccountPartition::of_account(account, items, now)))
    }

    /// Returns the accounts after `position`, which [`AccountPartitions::position`] returned; all accounts if
    /// `position` is `None`.
    pub fn account_partitions_after(&self, position: Option<String>) -> AccountPartitions {
        self.scan_partitions(Scan::all(), position)
    }

    /// Returns the accounts like [`Table::account_partitions_after`], with eventually consistent reads, which cost half as
    /// much. A change of the last seconds may be missing.
    pub fn eventually_consistent_partitions_after(&self, position: Option<String>) -> AccountPartitions {
        self.scan_partitions(Scan::all().eventually_consistent(), position)
    }

    /// Returns the accounts after `position`, which are read with `scan`.
    fn scan_partitions(&self, scan: Scan, position: Option<String>) -> AccountPartitions {
        let after = position.as_deref().and_then(|text| Key::from_position(text, POSITION_SEPARATOR));
        let skipped = after.as_ref().map(|after| after.pk.clone());
        let items = self.dynamo.scan(scan.after(after));
        AccountPartitions { items, position, skipped, checked_at: None, checked: CheckedItems::default() }
    }
}

impl AccountPartitions {
    /// Returns the position after the account that [`AccountPartitions::next`] returned last, from which
    /// [`Table::account_partitions_after`] continues; `None` before the first account.
    pub fn position(&self) -> Option<&str> {
        self.position.as_deref()
    }

    /// Returns the same accounts, and also checks the items between them at the time `now`.
    /// [`AccountPartitions::take_checked_items`] returns the results.
    pub fn with_other_items_checked(self, now: DateTime<Utc>) -> Self {
        Self { checked_at: Some(now), ..self }
    }

    /// Returns the results of the checks of the items that were read since the last call, outside of the accounts.
    pub fn take_checked_items(&mut self) -> CheckedItems {
        std::mem::take(&mut self.checked)
    }

    /// Checks `item`, which is outside of the accounts.
    fn check_other(&mut self, item: &Item) {
        if let Some(now) = self.checked_at {
            self.checked.faulty.extend(check_other_item(item, now));
            self.checked.owners.extend(find_named_owner(item));
        }
    }

    /// Returns the next account with its items; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<AccountPartition>, TableError> {
        let mut partition: Option<AccountPartition> = None;
        while let Some(item) = self.items.peek().await? {
            let pk = item.get("PK").and_then(|pk| pk.as_s().ok()).cloned().unwrap_or_default();
            if !pk.starts_with(keys::ACCOUNTS) || self.skipped.as_deref() == Some(&pk) {
                let item = self.items.next().await?;
                if let Some(item) = item.filter(|_| !pk.starts_with(keys::ACCOUNTS)) {
                    self.check_other(&item);
                }
                continue;
            }
            let current =
                partition.get_or_insert_with(|| AccountPartition { key: pk.clone(), ..AccountPartition::default() });
            if current.key != pk {
                break;
            }
            if let Some(item) = self.items.next().await? {
                self.position = Some(key_of_item(&item).to_position(POSITION_SEPARATOR));
                current.add_item(item);
            }
        }
        Ok(partition)
    }
}

impl AccountPartition {
    /// Creates the partition with the key `key` from its items.
    pub fn from_items(key: String, items: impl IntoIterator<Item = Item>) -> Self {
        let mut partition = Self { key, ..Self::default() };
        items.into_iter().for_each(|item| partition.add_item(item));
        partition
    }

    /// Creates the partition of `account` from `items`. Leaves out the items that have expired at `now`.
    pub fn of_account(account: &AccountId, items: Vec<Item>, now: DateTime<Utc>) -> Self {
        let unexpired = items.into_iter().filter(|item| !is_expired(item, now));
        Self::from_items(keys::partition_key_of_account(account), unexpired)
    }

    /// Returns whether the partition has no item except the mark of an erased account.
    pub fn is_empty(&self) -> bool {
        let Self { account, subscriptions, receipts, refunds, disputes, findings, attempts, waived, actions, .. } =
            self;
        let is_without_records =
            receipts.is_empty() && refunds.is_empty() && disputes.is_empty() && findings.is_empty();
        let is_without_history = attempts.is_empty() && waived.is_empty() && actions.is_empty();
        let is_readable = self.unreadable.is_empty();
        account.is_none() && subscriptions.is_empty() && is_without_records && is_without_history && is_readable
    }

    /// Returns every customer token of the gateway that the partition contains.
    pub fn customer_tokens(&self) -> BTreeSet<&GatewayToken> {
        let current = self.subscriptions.iter().map(|subscription| &subscription.payment_method.customer);
        let open = self.subscriptions.iter().filter_map(|subscription| subscription.attempt.as_ref());
        let open = open.map(|attempt| &attempt.payment_method.customer);
        let receipts = self.receipts.iter().filter_map(|receipt| receipt.customer.as_ref());
        let attempts = self.attempts.iter().filter_map(|attempt| attempt.customer.as_ref());
        current.chain(open).chain(receipts).chain(attempts).collect()
    }

    /// Returns the receipts that have not expired at `now`. DynamoDB deletes an expired receipt only within a few days.
    pub fn unexpired_receipts(&self, now: DateTime<Utc>) -> impl Iterator<Item = &Receipt> {
        let unexpired = self.expiries.iter().filter(|expiry| expiry.expires > now.timestamp());
        let unexpired: BTreeSet<&Key> = unexpired.map(|expiry| &expiry.key).collect();
        self.receipts.iter().filter(move |receipt| unexpired.contains(&receipt.key()))
    }

    /// Reads `item`, and adds it to the field of this struct for its kind of item.
    fn add_item(&mut self, mut item: Item) {
        // After all its refunds have failed, a receipt keeps the attributes `RefundedAmount` (0) and `RefundedDate`.
        // Remove both attributes, or the receipt would be reported as altered: a `Receipt` without refunds is stored
        // without these attributes.
        if item.get("RefundedAmount").is_some_and(|amount| amount.as_n().is_ok_and(|minor| minor == "0")) {
            item.remove("RefundedAmount");
            item.remove("RefundedDate");
        }
        // The domain type of an account has no field for its count of creations.
        if creations_of_account(&item) > 0 {
            item.remove(CREATIONS);
        }
        let sk = item.get("SK").and_then(|sk: &AttributeValue| sk.as_s().ok()).cloned().unwrap_or_default();
        let kinds = [
            keys::ACCOUNTS,
            keys::SUBSCRIPTIONS,
            keys::RECEIPTS,
            keys::REFUNDS,
            keys::DISPUTES,
            keys::FINDINGS,
            keys::ATTEMPTS,
            keys::WAIVED_PERIODS,
            keys::ACTIONS,
        ];
        let added = match kinds.into_iter().find(|kind| sk.starts_with(kind)) {
            Some(keys::ACCOUNTS) if is_erased_account(&item) => {
                self.read_item(&item).map(|erased| self.erased = Some(erased))
            }
            Some(keys::ACCOUNTS) => self.read_item(&item).map(|account| self.account = Some(account)),
            Some(keys::SUBSCRIPTIONS) => {
                self.read_item(&item).map(|subscription| self.subscriptions.push(subscription))
            }
            Some(keys::RECEIPTS) => self
                .read_record(&item, |receipt: &Receipt| receipt.processed_at)
                .map(|receipt| self.receipts.push(receipt)),
            Some(keys::REFUNDS) => self.read_item(&item).map(|refund| self.refunds.push(refund)),
            Some(keys::DISPUTES) => self.read_item(&item).map(|dispute| self.disputes.push(dispute)),
            Some(keys::FINDINGS) => self.read_item(&item).map(|finding| self.findings.push(finding)),
            Some(keys::ATTEMPTS) => self
                .read_record(&item, |attempt: &AttemptRecord| attempt.processed_at)
                .map(|attempt| self.attempts.push(attempt)),
            Some(keys::ACTIONS) => self.read_action(&item).map(|action| self.actions.push(action)),
            Some(_) => self.read_record(&item, WaivedPeriod::recorded_from).map(|waived| self.waived.push(waived)),
            None => Err(TableError::unreadable(key_of_item(&item), "its key has an unknown prefix")),
        };
        self.unreadable.extend(added.err());
    }

    /// Reads `item` as a `T`. If `item` differs from the item that this program would store for this `T`, records the
    /// names of the different attributes.
    fn read_item<T: Entity<PaymentsSchema>>(&mut self, item: &Item) -> Result<T, TableError> {
        let content = T::from_item(item)?;
        self.record_altered_item(item, content.to_item());
        Ok(content)
    }

    /// Reads a payment record like [`AccountPartition::read_item`]. `recorded_at` returns when the record was written.
    fn read_record<T: Entity<PaymentsSchema>>(
        &mut self,
        item: &Item,
        recorded_at: impl Fn(&T) -> DateTime<Utc>,
    ) -> Result<T, TableError> {
        let record = T::from_item(item)?;
        let mut same = record.to_item();
        // The domain type has no field for the TTL, so the expected item gets the stored TTL.
        same.extend(item.get_key_value(TTL).map(|(name, ttl)| (name.clone(), ttl.clone())));
        self.record_altered_item(item, same);
        let expires = item.get(TTL).and_then(|ttl| ttl.as_n().ok()?.parse().ok()).unwrap_or_default();
        self.expiries.push(RecordExpiry { key: key_of_item(item), recorded_at: recorded_at(&record), expires });
        Ok(record)
    }

    /// Reads an entry of the action log, and records its altered attributes.
    fn read_action(&mut self, item: &Item) -> Result<LoggedAction, TableError> {
        let action = LoggedAction::from_item(item)?;
        let mut same = action.to_item();
        // The domain type has no field for the TTL, so the expected item gets the stored TTL. Earlier versions stored the
        // entries of the order desk in this partition, too.
        same.extend(item.get_key_value(TTL).map(|(name, ttl)| (name.clone(), ttl.clone())));
        same.extend(key_of_item(item).attributes());
        self.record_altered_item(item, same);
        Ok(action)
    }

    /// Adds `stored` to the altered items, if its attributes differ from those of `expected`.
    fn record_altered_item(&mut self, stored: &Item, expected: Item) {
        let names: BTreeSet<&String> = stored.keys().chain(expected.keys()).collect();
        let attributes: Vec<String> =
            names.into_iter().filter(|name| stored.get(*name) != expected.get(*name)).cloned().collect();
        if !attributes.is_empty() {
            self.altered.push(AlteredItem { key: key_of_item(stored), attributes });
        }
    }
}
