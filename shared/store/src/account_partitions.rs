//! Reads all accounts with all their stored items, one account after the other. Each account is one partition of the
//! table, and a Scan returns all items of a partition before the items of the next partition.

use aws_sdk_dynamodb::types::AttributeValue;

use super::subscriptions::read;
use super::{Item, Table, TableError, keys};
use billing::{Account, AttemptRecord, Dispute, Finding, Receipt, Refund, Subscription, WaivedPeriod};
use dynamo::{Entity as _, Items, Scan, key_of};

/// An account with all its stored items: the content of the account's partition.
#[derive(Debug, Default)]
pub struct AccountPartition {
    /// The partition key.
    pub key: String,
    /// The account itself; `None` if its item is missing or cannot be read.
    pub account: Option<Account>,
    pub subscriptions: Vec<Subscription>,
    pub receipts: Vec<Receipt>,
    pub refunds: Vec<Refund>,
    pub disputes: Vec<Dispute>,
    pub findings: Vec<Finding>,
    pub attempts: Vec<AttemptRecord>,
    pub waived: Vec<WaivedPeriod>,
    /// One error for each item that cannot be read or has an unknown kind of key.
    pub unreadable: Vec<TableError>,
}

/// The account partitions of a table, in the order in which a Scan returns them. At most one page of the Scan and one
/// account are in memory.
#[derive(Debug)]
pub struct AccountPartitions {
    items: Items,
}

impl Table {
    /// Returns all accounts with their stored items. [`AccountPartitions`] sends strongly consistent Scan requests, one
    /// for each page, when the caller reads the accounts.
    pub fn partitions(&self) -> AccountPartitions {
        AccountPartitions { items: self.dynamo.scan(Scan::all()) }
    }
}

impl AccountPartitions {
    /// Returns the next account with its items; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<AccountPartition>, TableError> {
        let mut partition: Option<AccountPartition> = None;
        while let Some(item) = self.items.peek().await? {
            let pk = item.get("PK").and_then(|pk| pk.as_s().ok()).cloned().unwrap_or_default();
            if !pk.starts_with(keys::ACCOUNTS) {
                self.items.next().await?;
                continue;
            }
            let current =
                partition.get_or_insert_with(|| AccountPartition { key: pk.clone(), ..AccountPartition::default() });
            if current.key != pk {
                break;
            }
            if let Some(item) = self.items.next().await? {
                current.add_item(item);
            }
        }
        Ok(partition)
    }
}

impl AccountPartition {
    /// Adds `item` to the items of its kind.
    fn add_item(&mut self, item: Item) {
        let sk = item.get("SK").and_then(|sk: &AttributeValue| sk.as_s().ok()).cloned().unwrap_or_default();
        let kinds = [
            keys::ACCOUNTS,
            keys::SUBSCRIPTIONS,
            keys::RECEIPTS,
            keys::REFUNDS,
            keys::DISPUTES,
            keys::FINDINGS,
            keys::ATTEMPTS,
            keys::WAIVED,
        ];
        let added = match kinds.into_iter().find(|kind| sk.starts_with(kind)) {
            Some(keys::ACCOUNTS) => Account::from_item(&item).map(|account| self.account = Some(account)),
            Some(keys::SUBSCRIPTIONS) => read(item).map(|subscription| self.subscriptions.push(subscription)),
            Some(keys::RECEIPTS) => Receipt::from_item(&item).map(|receipt| self.receipts.push(receipt)),
            Some(keys::REFUNDS) => Refund::from_item(&item).map(|refund| self.refunds.push(refund)),
            Some(keys::DISPUTES) => Dispute::from_item(&item).map(|dispute| self.disputes.push(dispute)),
            Some(keys::FINDINGS) => Finding::from_item(&item).map(|finding| self.findings.push(finding)),
            Some(keys::ATTEMPTS) => AttemptRecord::from_item(&item).map(|attempt| self.attempts.push(attempt)),
            Some(_) => WaivedPeriod::from_item(&item).map(|waived| self.waived.push(waived)),
            None => Err(TableError::unreadable(key_of(&item), "its key has an unknown prefix")),
        };
        self.unreadable.extend(added.err());
    }
}
