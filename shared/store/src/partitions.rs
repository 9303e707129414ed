//! Accounts with all that is kept of them, one after the other: a scan brings the items of a partition together.

use aws_sdk_dynamodb::types::AttributeValue;

use super::subscriptions::read;
use super::{Item, Table, TableError, keys};
use billing::{Account, AttemptRecord, Dispute, Finding, Receipt, Refund, Subscription, WaivedPeriod};
use dynamo::{Entity as _, Items, Scan, key_of};

/// An account, and all that is kept of it.
#[derive(Debug, Default)]
pub struct Partition {
    /// The partition key.
    pub key: String,
    pub account: Option<Account>,
    pub subscriptions: Vec<Subscription>,
    pub receipts: Vec<Receipt>,
    pub refunds: Vec<Refund>,
    pub disputes: Vec<Dispute>,
    pub findings: Vec<Finding>,
    pub attempts: Vec<AttemptRecord>,
    pub waived: Vec<WaivedPeriod>,
    /// What cannot be read, or is of no kind that is known.
    pub unreadable: Vec<TableError>,
}

/// The accounts of a table, as a scan brings them: a page in memory at a time, and the one that is being put together.
#[derive(Debug)]
pub struct Partitions {
    items: Items,
}

impl Table {
    /// Every account with all that is kept of it. Scan, all pages, strongly consistent.
    pub fn partitions(&self) -> Partitions {
        Partitions { items: self.dynamo.scan(Scan::all()) }
    }
}

impl Partitions {
    /// The next account; `None` at the end.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn next(&mut self) -> Result<Option<Partition>, TableError> {
        let mut partition: Option<Partition> = None;
        while let Some(item) = self.items.peek().await? {
            let pk = item.get("PK").and_then(|pk| pk.as_s().ok()).cloned().unwrap_or_default();
            if !pk.starts_with(keys::ACCOUNTS) {
                self.items.next().await?;
                continue;
            }
            let current = partition.get_or_insert_with(|| Partition { key: pk.clone(), ..Partition::default() });
            if current.key != pk {
                break;
            }
            if let Some(item) = self.items.next().await? {
                current.add(item);
            }
        }
        Ok(partition)
    }
}

impl Partition {
    fn add(&mut self, item: Item) {
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
            None => Err(TableError::unreadable(key_of(&item), "it is of no kind that is known")),
        };
        self.unreadable.extend(added.err());
    }
}
