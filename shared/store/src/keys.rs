//! Partition and sort keys. The only place that knows how they are written and what separates their parts.

use chrono::NaiveDate;
use ulid::Ulid;

use super::{Batch, Key};
use billing::DeliveryKey;
use billing::{AccountId, Finding, GatewayToken, ReceiptId, Sku, Subscription, SubscriptionId};

const SEPARATOR: char = '#';

/// The prefix of every account's partition, and of the account's own sort key.
pub const ACCOUNTS: &str = "ACC#";
/// The prefix of every subscription's sort key.
pub const SUBSCRIPTIONS: &str = "SUB#";
/// The prefix of every receipt's sort key.
pub const RECEIPTS: &str = "REC#";
/// The prefix of every refund's sort key.
pub const REFUNDS: &str = "RFD#";
/// The prefix of every dispute's sort key.
pub const DISPUTES: &str = "DSP#";
/// The prefix of every finding's sort key.
pub const FINDINGS: &str = "FND#";
/// The partition of the findings that are not resolved.
pub const OPEN_FINDINGS: &str = "FINDINGS";
/// The prefix of the sort key of every record of an attempt that did not succeed.
pub const ATTEMPTS: &str = "ATT#";
/// The prefix of the sort key of every record of a month that is waived.
pub const WAIVED: &str = "WAV#";
/// The prefix of every run record's sort key.
pub const RUNS: &str = "SHARD#";
/// The sort keys of what was charged on a day begin so.
pub const CHARGED: &str = "CHARGED#";

/// The partition of the webhook endpoints.
pub const WEBHOOKS: &str = "WEBHOOKS";
/// The prefix of every webhook endpoint's sort key.
pub const WEBHOOK_ENDPOINTS: &str = "ENDPOINT#";
/// The prefix of every delivery's sort key.
pub const DELIVERIES: &str = "EVENT#";

/// What identifies a subscription: its key, in parts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct SubscriptionKey {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub sku: Sku,
}

impl SubscriptionKey {
    /// The parts of `subscription`'s key.
    pub fn of(subscription: &Subscription) -> Self {
        Self { account: subscription.account.clone(), subscription: subscription.id, sku: subscription.sku.clone() }
    }

    /// The parts of `key`, if it is a subscription's.
    pub fn parse(key: &Key) -> Option<Self> {
        let account = key.pk.strip_prefix(ACCOUNTS)?.parse().ok()?;
        let (subscription, sku) = key.sk.strip_prefix(SUBSCRIPTIONS)?.split_once("#SKU#")?;
        Some(Self { account, subscription: subscription.parse().ok()?, sku: sku.parse().ok()? })
    }

    /// The table's key.
    pub fn key(&self) -> Key {
        Key { pk: partition(&self.account), sk: format!("{SUBSCRIPTIONS}{}#SKU#{}", self.subscription, self.sku) }
    }
}

/// The partition of an account: itself, its subscriptions, receipts and records.
pub fn partition(account: &AccountId) -> String {
    format!("{ACCOUNTS}{account}")
}

/// An account.
pub fn account(account: &AccountId) -> Key {
    Key { pk: partition(account), sk: partition(account) }
}

/// The sort keys of one subscription, whatever its SKU.
pub fn subscription_prefix(subscription: SubscriptionId) -> String {
    format!("{SUBSCRIPTIONS}{subscription}{SEPARATOR}")
}

/// The receipt of one due date of one subscription: it can exist once.
pub fn receipt(account: &AccountId, id: &ReceiptId) -> Key {
    let ReceiptId { due_on, subscription, sku } = id;
    Key { pk: partition(account), sk: format!("{RECEIPTS}{due_on}#SKU#{sku}#SUB#{subscription}") }
}

/// The sort keys of the refunds of a receipt.
pub fn refunds(receipt: &ReceiptId) -> String {
    let ReceiptId { due_on, subscription, sku } = receipt;
    format!("{REFUNDS}{due_on}#SKU#{sku}#SUB#{subscription}{SEPARATOR}")
}

/// A refund of a receipt.
pub fn refund(account: &AccountId, receipt: &ReceiptId, id: Ulid) -> Key {
    Key { pk: partition(account), sk: format!("{}{id}", refunds(receipt)) }
}

/// A dispute of a receipt's payment.
pub fn dispute(account: &AccountId, receipt: &ReceiptId, id: &GatewayToken) -> Key {
    let ReceiptId { due_on, subscription, sku } = receipt;
    let sk = format!("{DISPUTES}{due_on}#SKU#{sku}#SUB#{subscription}{SEPARATOR}{id}");
    Key { pk: partition(account), sk }
}

/// A finding in its account: one for each payment.
pub fn finding(finding: &Finding) -> Key {
    let Finding { account, subscription, due_on, payment, .. } = finding;
    Key { pk: partition(account), sk: format!("{FINDINGS}{due_on}#SUB#{subscription}{SEPARATOR}{payment}") }
}

/// A finding in the list of those that are not resolved.
pub fn open_finding(finding: &Finding) -> Key {
    let Finding { account, subscription, due_on, payment, .. } = finding;
    let sk = format!("{FINDINGS}{account}{SEPARATOR}{due_on}#SUB#{subscription}{SEPARATOR}{payment}");
    Key { pk: OPEN_FINDINGS.to_owned(), sk }
}

/// The record of a month that is waived.
pub fn waived_period(account: &AccountId, subscription: SubscriptionId, due_on: NaiveDate) -> Key {
    Key { pk: partition(account), sk: format!("{WAIVED}{due_on}#SUB#{subscription}") }
}

/// The record of an attempt that did not succeed.
pub fn attempt_record(account: &AccountId, subscription: SubscriptionId, due_on: NaiveDate, attempt_no: u32) -> Key {
    Key { pk: partition(account), sk: format!("{ATTEMPTS}{due_on}#SUB#{subscription}{SEPARATOR}{attempt_no}") }
}

/// The account and the subscription that a receipt or another record with this key is of.
pub fn of_record(key: &Key) -> Option<(AccountId, SubscriptionId)> {
    let account = key.pk.strip_prefix(ACCOUNTS)?.parse().ok()?;
    let (_, rest) = key.sk.split_once("#SUB#")?;
    Some((account, rest.split(SEPARATOR).next()?.parse().ok()?))
}

/// The partition of a batch's run records on one date.
pub fn runs(batch: Batch, on: NaiveDate) -> String {
    format!("RUN#{batch}{SEPARATOR}{on}")
}

/// What was charged on a day in a shard.
pub fn charged(on: NaiveDate, shard: u32) -> Key {
    Key { pk: runs(Batch::Payments, on), sk: format!("{CHARGED}{shard}") }
}

/// The sort keys of one shard's run records.
pub fn runs_of_shard(shard: u32) -> String {
    format!("{RUNS}{shard}{SEPARATOR}")
}

/// One invocation's record of one shard.
pub fn run(batch: Batch, on: NaiveDate, shard: u32, id: Ulid) -> Key {
    Key { pk: runs(batch, on), sk: format!("{}{id}", runs_of_shard(shard)) }
}

/// The lease of a batch's daily execution.
pub fn execution(batch: Batch) -> Key {
    let pk = format!("CTL#execution#{batch}");
    Key { sk: pk.clone(), pk }
}

/// The notice of an event: whether it was sent.
pub fn notice(event: &str) -> Key {
    let pk = format!("NOTICE#{event}");
    Key { sk: pk.clone(), pk }
}

/// What a gateway or a mail service has told us: whether it was worked on.
pub fn told(id: &str) -> Key {
    let pk = format!("TOLD#{id}");
    Key { sk: pk.clone(), pk }
}

/// A setup of a payment method.
pub fn setup(id: Ulid) -> Key {
    let pk = format!("SETUP#{id}");
    Key { sk: pk.clone(), pk }
}

/// A webhook endpoint.
pub fn webhook_endpoint(id: Ulid) -> Key {
    Key { pk: WEBHOOKS.to_owned(), sk: format!("{WEBHOOK_ENDPOINTS}{id}") }
}

/// The partition of the deliveries to a webhook endpoint.
pub fn deliveries(endpoint: Ulid) -> String {
    format!("WEBHOOK#{endpoint}")
}

/// The delivery of an event to a webhook endpoint: it can exist once.
pub fn delivery(key: &DeliveryKey) -> Key {
    Key { pk: deliveries(key.endpoint), sk: format!("{DELIVERIES}{}", key.event) }
}

/// The settings.
pub fn settings() -> Key {
    Key { pk: "CTL#settings".to_owned(), sk: "CTL#settings".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscription_key_parse_reads_back_its_own_and_nothing_else() {
        let of = SubscriptionKey {
            account: "123".parse().unwrap(),
            subscription: "01JZXCVBNM0123456789ABCDEF".parse().unwrap(),
            sku: "999".parse().unwrap(),
        };
        assert_eq!(of.key().to_string(), "ACC#123 SUB#01JZXCVBNM0123456789ABCDEF#SKU#999");
        assert_eq!(SubscriptionKey::parse(&of.key()), Some(of.clone()));
        let id =
            ReceiptId { due_on: "2026-01-31".parse().unwrap(), subscription: of.subscription, sku: of.sku.clone() };
        let receipt = receipt(&of.account, &id);
        assert_eq!(receipt.sk, "REC#2026-01-31#SKU#999#SUB#01JZXCVBNM0123456789ABCDEF");
        assert_eq!(SubscriptionKey::parse(&receipt), None);
        let waived = waived_period(&of.account, of.subscription, id.due_on);
        let attempt = attempt_record(&of.account, of.subscription, id.due_on, 12);
        for record in [&receipt, &waived, &attempt] {
            assert_eq!(of_record(record), Some((of.account.clone(), of.subscription)), "{record}");
        }
        assert_eq!(of_record(&of.key()), None);
        assert_eq!(SubscriptionKey::parse(&Key { pk: "ACC#a#b".into(), sk: of.key().sk }), None);
    }
}
