//! The format of the table's partition keys and sort keys. No other module knows this format.
//!
//! A stored key or attribute keeps its first name, even if the code now has a better name for the same thing, because
//! existing tables contain the first name. Examples: the prefix in [`key_of_inbound_event`], the attribute `Answer` of
//! the stored response of an idempotency record, and the attribute `LastTakenDate` of the last successful delivery to a
//! webhook endpoint. `docs/table.md` lists all keys.

mod webhooks;

use chrono::{DateTime, NaiveDate, Utc};
use ulid::Ulid;

use crate::table::batch::Batch;
use billing::{
    AccountId, Currency, DifferenceKind, Finding, GatewayToken, LoggedAction, Period, ReceiptId, Sku, Subscription,
    SubscriptionCode, SubscriptionId,
};
use dynamo::Key;

pub use webhooks::*;

/// The character between the parts of a key.
const SEPARATOR: char = '#';

/// The prefix of every account's partition key, and of the sort key of the item that stores the account itself.
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
/// The partition key of the list of open findings (findings that are not resolved).
pub const OPEN_FINDINGS: &str = "FINDINGS";
/// The prefix of the sort key of every record of an attempt that did not succeed.
pub const ATTEMPTS: &str = "ATT#";
/// The prefix of the sort key of every record of a waived period.
pub const WAIVED_PERIODS: &str = "WAV#";
/// The prefix of every run record's sort key.
pub const RUNS: &str = "SHARD#";
/// The prefix of the partition keys of the run records and the charge totals of a day.
pub const RUNS_OF_DAY: &str = "RUN#";
/// The prefix of the sort key of the charge total of each day and shard.
pub const CHARGE_TOTALS: &str = "CHARGED#";

/// The partition key of the erasures in progress.
pub const ERASURES: &str = "ERASURES";
/// The prefix of the sort key of every erasure in progress.
pub const ERASURE: &str = "ERASURE#";

/// The prefix of the sort key of every entry of the action log.
pub const ACTIONS: &str = "ACTION#";
/// The prefix of the partition keys of the actions that concern no account: one partition for each month, in UTC.
pub const ACTIONS_OF_MONTH: &str = "ACTIONS#";
/// The prefix of the partition key of the actions of an account that were made with the order desk.
pub const ORDER_ACTIONS: &str = "ACTIONS#ACC#";

/// The partition key of all audits.
pub const AUDITS: &str = "AUDITS";
/// The prefix of every audit's sort key, and of the partition key of its violations.
pub const AUDIT: &str = "AUDIT#";
/// The prefix of the sort key of every violation that an audit found.
pub const VIOLATIONS: &str = "VIOLATION#";

/// The partition key of the comparisons of days with the gateway.
pub const RECONCILIATIONS: &str = "RECONCILED";
/// The prefix of the sort key of every comparison of a day with the gateway.
pub const RECONCILED_DAYS: &str = "DAY#";
/// The prefix of the sort key of every accepted difference of a day.
pub const ACCEPTED_DIFFERENCES: &str = "ACCEPTED#";
/// The prefix of the sort key of the items with seen payments: payments for which a comparison found a receipt.
pub const SEEN_PAYMENTS: &str = "SEEN#";

/// The partition key of the settings item.
pub const SETTINGS: &str = "CTL#settings";
/// The partition key of the heartbeat item.
pub const HEARTBEAT: &str = "CTL#heartbeat";
/// The prefix of the partition key of the execution lease of each batch.
pub const EXECUTION_LEASES: &str = "CTL#execution#";
/// The prefix of the partition key of every code of a subscription.
pub const CODES: &str = "CODE#";
/// The prefix of the partition key of every processed inbound event.
pub const INBOUND_EVENTS: &str = "TOLD#";
/// The prefix of the partition key of every payment method setup.
pub const SETUPS: &str = "SETUP#";
/// The prefix of the partition key of every card link.
pub const CARD_LINKS: &str = "CARDLINK#";
/// The prefix of the partition key of every item that counts the uses of an operation with an hourly limit.
pub const LIMITS: &str = "LIMIT#";
/// The prefix of the partition key of every item that contains what support has refunded on a day.
pub const SUPPORT_REFUNDS: &str = "REFUNDED#support#";
/// The prefix of the partition key of every item that stores whether a notice was sent.
pub const NOTICES: &str = "NOTICE#";

/// The parts of the primary key of a subscription's item.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct SubscriptionKey {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub sku: Sku,
}

impl SubscriptionKey {
    /// Returns the parts of the key of `subscription`.
    pub fn from_subscription(subscription: &Subscription) -> Self {
        Self { account: subscription.account.clone(), subscription: subscription.id, sku: subscription.sku.clone() }
    }

    /// Reads the parts of the primary key `key`; `None` if it is not the key of a subscription.
    pub fn parse(key: &Key) -> Option<Self> {
        let account = key.pk.strip_prefix(ACCOUNTS)?.parse().ok()?;
        let (subscription, sku) = key.sk.strip_prefix(SUBSCRIPTIONS)?.split_once("#SKU#")?;
        Some(Self { account, subscription: subscription.parse().ok()?, sku: sku.parse().ok()? })
    }

    /// Returns the primary key of the subscription's item.
    pub fn key(&self) -> Key {
        Key {
            pk: partition_key_of_account(&self.account),
            sk: format!("{SUBSCRIPTIONS}{}#SKU#{}", self.subscription, self.sku),
        }
    }
}

/// Returns the partition key of an account. The partition contains the account, its subscriptions, and its receipts and
/// other payment records.
pub fn partition_key_of_account(account: &AccountId) -> String {
    format!("{ACCOUNTS}{account}")
}

/// Returns the key of an account.
pub fn key_of_account(account: &AccountId) -> Key {
    Key { pk: partition_key_of_account(account), sk: partition_key_of_account(account) }
}

/// Returns the key of the erasure of an account.
pub fn key_of_erasure(account: &AccountId) -> Key {
    Key { pk: ERASURES.to_owned(), sk: format!("{ERASURE}{account}") }
}

/// Returns the prefix of the sort key of a subscription with any SKU.
pub fn sort_key_prefix_of_subscription(subscription: SubscriptionId) -> String {
    format!("{SUBSCRIPTIONS}{subscription}{SEPARATOR}")
}

/// Returns the key of a receipt. The key contains the due date, the SKU and the subscription, so a subscription has at
/// most one receipt for a due date.
pub fn key_of_receipt(account: &AccountId, id: &ReceiptId) -> Key {
    let ReceiptId { due_on, subscription, sku } = id;
    Key { pk: partition_key_of_account(account), sk: format!("{RECEIPTS}{due_on}#SKU#{sku}#SUB#{subscription}") }
}

/// Returns the prefix of the sort keys of all refunds of a receipt.
pub fn sort_key_prefix_of_refunds(receipt: &ReceiptId) -> String {
    let ReceiptId { due_on, subscription, sku } = receipt;
    format!("{REFUNDS}{due_on}#SKU#{sku}#SUB#{subscription}{SEPARATOR}")
}

/// Returns the key of the item that stores which subscription has `code`. Receipt numbers contain this code.
pub fn key_of_subscription_code(code: SubscriptionCode) -> Key {
    let pk = format!("{CODES}{code}");
    Key { sk: pk.clone(), pk }
}

/// Returns the key of a refund.
pub fn key_of_refund(account: &AccountId, receipt: &ReceiptId, id: Ulid) -> Key {
    Key { pk: partition_key_of_account(account), sk: format!("{}{id}", sort_key_prefix_of_refunds(receipt)) }
}

/// Returns the key of a dispute of the payment of `receipt`. `id` is the gateway's id of the dispute.
pub fn key_of_dispute(account: &AccountId, receipt: &ReceiptId, id: &GatewayToken) -> Key {
    let ReceiptId { due_on, subscription, sku } = receipt;
    let sk = format!("{DISPUTES}{due_on}#SKU#{sku}#SUB#{subscription}{SEPARATOR}{id}");
    Key { pk: partition_key_of_account(account), sk }
}

/// Returns the key of a finding in the partition of its account. The key contains the payment's id, so there is at most
/// one finding for each payment.
pub fn key_of_finding(finding: &Finding) -> Key {
    let Finding { account, subscription, due_on, payment, .. } = finding;
    Key {
        pk: partition_key_of_account(account),
        sk: format!("{FINDINGS}{due_on}#SUB#{subscription}{SEPARATOR}{payment}"),
    }
}

/// Returns the key of the copy of a finding in the list of open findings.
pub fn key_of_open_finding(finding: &Finding) -> Key {
    let Finding { account, subscription, due_on, payment, .. } = finding;
    let sk = format!("{FINDINGS}{account}{SEPARATOR}{due_on}#SUB#{subscription}{SEPARATOR}{payment}");
    Key { pk: OPEN_FINDINGS.to_owned(), sk }
}

/// Returns the key of the record of a waived period.
pub fn key_of_waived_period(account: &AccountId, subscription: SubscriptionId, due_on: NaiveDate) -> Key {
    Key { pk: partition_key_of_account(account), sk: format!("{WAIVED_PERIODS}{due_on}#SUB#{subscription}") }
}

/// Returns the key of the record of an attempt that did not succeed.
pub fn key_of_attempt_record(
    account: &AccountId,
    subscription: SubscriptionId,
    due_on: NaiveDate,
    attempt_no: u32,
) -> Key {
    Key {
        pk: partition_key_of_account(account),
        sk: format!("{ATTEMPTS}{due_on}#SUB#{subscription}{SEPARATOR}{attempt_no}"),
    }
}

/// Returns the account and the subscription of the receipt or other payment record with this key; `None` if it is the
/// key of another kind of item.
pub fn parse_subscription_of_record(key: &Key) -> Option<(AccountId, SubscriptionId)> {
    let account = key.pk.strip_prefix(ACCOUNTS)?.parse().ok()?;
    let (_, rest) = key.sk.split_once("#SUB#")?;
    Some((account, rest.split(SEPARATOR).next()?.parse().ok()?))
}

/// Returns the partition key of the actions without an account in `month`.
pub fn partition_key_of_actions(month: Period) -> String {
    format!("{ACTIONS_OF_MONTH}{month}")
}

/// Returns the partition key of the actions that concern `account` and were made with the order desk.
pub fn partition_key_of_order_actions(account: &AccountId) -> String {
    format!("{ORDER_ACTIONS}{account}")
}

/// Returns the key of an entry of the action log. The entry is in the partition of its account or, if it concerns no
/// account, in the partition of its month. The entries of the order desk about an account have a partition of their own,
/// so that the order desk needs no right to write into the partitions of accounts.
pub fn key_of_action(action: &LoggedAction) -> Key {
    let pk = match &action.account {
        Some(account) if action.kind.is_of_order_desk() => partition_key_of_order_actions(account),
        Some(account) => partition_key_of_account(account),
        None => partition_key_of_actions(Period::from_day(action.at.date_naive())),
    };
    Key { pk, sk: sort_key_of_action(action.id) }
}

/// Returns the sort key of the entry `id` of the action log.
pub fn sort_key_of_action(id: Ulid) -> String {
    format!("{ACTIONS}{id}")
}

/// Returns the account and the id of the action with this key; `None` if it is the key of another kind of item.
pub fn parse_action_key(key: &Key) -> Option<(Option<AccountId>, Ulid)> {
    let id = key.sk.strip_prefix(ACTIONS)?.parse().ok()?;
    match key.pk.strip_prefix(ORDER_ACTIONS).or_else(|| key.pk.strip_prefix(ACCOUNTS)) {
        Some(account) => Some((Some(account.parse().ok()?), id)),
        None => key.pk.starts_with(ACTIONS_OF_MONTH).then_some((None, id)),
    }
}

/// Returns the partition key of the run records of a batch on one date.
pub fn partition_key_of_runs(batch: Batch, on: NaiveDate) -> String {
    format!("{RUNS_OF_DAY}{batch}{SEPARATOR}{on}")
}

/// Returns the key of the charge total of one shard on the day `on`.
pub fn key_of_charge_total(on: NaiveDate, shard: u32) -> Key {
    Key { pk: partition_key_of_runs(Batch::Payments, on), sk: format!("{CHARGE_TOTALS}{shard}") }
}

/// Returns the prefix of the sort keys of one shard's run records.
pub fn sort_key_prefix_of_shard_runs(shard: u32) -> String {
    format!("{RUNS}{shard}{SEPARATOR}")
}

/// Returns the key of the record of one run over one shard.
pub fn key_of_run(batch: Batch, on: NaiveDate, shard: u32, id: Ulid) -> Key {
    Key { pk: partition_key_of_runs(batch, on), sk: format!("{}{id}", sort_key_prefix_of_shard_runs(shard)) }
}

/// Returns the shard and the id of the run whose record has the sort key `sk`; `None` if it is no such key.
pub fn parse_run_sort_key(sk: &str) -> Option<(u32, Ulid)> {
    let (shard, id) = sk.strip_prefix(RUNS)?.split_once(SEPARATOR)?;
    Some((shard.parse().ok()?, id.parse().ok()?))
}

/// Returns the key of the item with the execution lease of `batch`.
pub fn key_of_execution_lease(batch: Batch) -> Key {
    let pk = format!("{EXECUTION_LEASES}{batch}");
    Key { sk: pk.clone(), pk }
}

/// Returns the key of the item that stores whether the notice of an event was sent.
pub fn key_of_notice(event: &str) -> Key {
    let pk = format!("{NOTICES}{event}");
    Key { sk: pk.clone(), pk }
}

/// Returns the key of the item that marks an inbound event of the gateway or the mail service as processed.
pub fn key_of_inbound_event(id: &str) -> Key {
    let pk = format!("{INBOUND_EVENTS}{id}");
    Key { sk: pk.clone(), pk }
}

/// Returns the key of a payment method setup.
pub fn key_of_payment_method_setup(id: Ulid) -> Key {
    let pk = format!("{SETUPS}{id}");
    Key { sk: pk.clone(), pk }
}

/// Returns the key of a card link.
pub fn key_of_card_link(id: Ulid) -> Key {
    let pk = format!("{CARD_LINKS}{id}");
    Key { sk: pk.clone(), pk }
}

/// Returns the key of the item that counts the uses of the limit `name` in the hour that begins at `hour`. A limit of an
/// account has a name such as `setups#acme`.
pub fn key_of_limit(name: &str, hour: DateTime<Utc>) -> Key {
    let pk = format!("{LIMITS}{name}#{}", hour.format("%Y-%m-%dT%H"));
    Key { sk: pk.clone(), pk }
}

/// Returns the account in the partition key of an item that counts the uses of a limit of an account. For a limit of a
/// payment method setup, returns the id of the setup, which is no account.
pub fn account_of_limit(pk: &str) -> Option<String> {
    pk.strip_prefix(LIMITS)?.split('#').nth(1).map(str::to_owned)
}

/// Returns the key of the item that contains what support has refunded on the day `on` in `currency`.
pub fn key_of_support_refunds(on: NaiveDate, currency: Currency) -> Key {
    let pk = format!("{SUPPORT_REFUNDS}{currency}#{on}");
    Key { sk: pk.clone(), pk }
}

/// Returns the day in the partition key of an item that contains what support has refunded.
pub fn day_of_support_refunds(pk: &str) -> Option<NaiveDate> {
    let (currency, day) = pk.strip_prefix(SUPPORT_REFUNDS)?.split_once('#')?;
    currency.parse::<Currency>().ok().and_then(|_| day.parse().ok())
}

/// Returns the key of an audit.
pub fn key_of_audit(id: Ulid) -> Key {
    Key { pk: AUDITS.to_owned(), sk: format!("{AUDIT}{id}") }
}

/// Returns the partition key of the violations that an audit found.
pub fn partition_key_of_violations(audit: Ulid) -> String {
    format!("{AUDIT}{audit}")
}

/// Returns the key of the violation `number` of an audit. The sort keys of the violations of an audit have the order of
/// their numbers.
pub fn key_of_violation(audit: Ulid, number: u64) -> Key {
    Key { pk: partition_key_of_violations(audit), sk: format!("{VIOLATIONS}{number:08}") }
}

/// Returns the key of the comparison of the day `on` with the gateway.
pub fn key_of_reconciliation(on: NaiveDate) -> Key {
    Key { pk: RECONCILIATIONS.to_owned(), sk: format!("{RECONCILED_DAYS}{on}") }
}

/// Returns the partition key of the accepted differences and of the seen payments of the day `on`.
/// A change of these items publishes no event: `template.yaml` selects the changes to publish by their partition keys.
pub fn partition_key_of_reconciled_day(on: NaiveDate) -> String {
    format!("{RECONCILIATIONS}#{on}")
}

/// Returns the key of an accepted difference of the day `on`.
pub fn key_of_accepted_difference(on: NaiveDate, kind: DifferenceKind, id: &str) -> Key {
    Key { pk: partition_key_of_reconciled_day(on), sk: format!("{ACCEPTED_DIFFERENCES}{kind}#{id}") }
}

/// Returns the prefix of the sort keys of the items with the seen payments of the comparison that started at
/// `started_at`. Seen payments are payments for which the comparison found a receipt.
pub fn sort_key_prefix_of_seen_payments(started_at: DateTime<Utc>) -> String {
    format!("{SEEN_PAYMENTS}{}#", started_at.timestamp_millis())
}

/// Returns the key of the item with the seen payments of one list page, for a comparison of the day `on`. `last` is the
/// number of payments that the comparison has read up to the end of this list page.
pub fn key_of_seen_payments(on: NaiveDate, started_at: DateTime<Utc>, last: u64) -> Key {
    Key {
        pk: partition_key_of_reconciled_day(on),
        sk: format!("{}{last:012}", sort_key_prefix_of_seen_payments(started_at)),
    }
}

/// Returns the key of the settings item.
pub fn key_of_settings() -> Key {
    Key { pk: SETTINGS.to_owned(), sk: SETTINGS.to_owned() }
}

/// Returns the key of the heartbeat item, which a schedule writes so that the stream always has a change to publish.
pub fn key_of_heartbeat() -> Key {
    Key { pk: HEARTBEAT.to_owned(), sk: HEARTBEAT.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscription_key_parse_reads_keys_of_subscriptions_and_rejects_all_others() {
        let subscription_key = SubscriptionKey {
            account: "123".parse().unwrap(),
            subscription: "01JZXCVBNM0123456789ABCDEF".parse().unwrap(),
            sku: "999".parse().unwrap(),
        };
        assert_eq!(subscription_key.key().to_string(), "ACC#123 SUB#01JZXCVBNM0123456789ABCDEF#SKU#999");
        assert_eq!(SubscriptionKey::parse(&subscription_key.key()), Some(subscription_key.clone()));
        let id = ReceiptId {
            due_on: "2026-01-31".parse().unwrap(),
            subscription: subscription_key.subscription,
            sku: subscription_key.sku.clone(),
        };
        let receipt = key_of_receipt(&subscription_key.account, &id);
        assert_eq!(receipt.sk, "REC#2026-01-31#SKU#999#SUB#01JZXCVBNM0123456789ABCDEF");
        assert_eq!(SubscriptionKey::parse(&receipt), None);
        let waived = key_of_waived_period(&subscription_key.account, subscription_key.subscription, id.due_on);
        let attempt = key_of_attempt_record(&subscription_key.account, subscription_key.subscription, id.due_on, 12);
        for record in [&receipt, &waived, &attempt] {
            assert_eq!(
                parse_subscription_of_record(record),
                Some((subscription_key.account.clone(), subscription_key.subscription)),
                "{record}"
            );
        }
        assert_eq!(parse_subscription_of_record(&subscription_key.key()), None);
        assert_eq!(SubscriptionKey::parse(&Key { pk: "ACC#a#b".into(), sk: subscription_key.key().sk }), None);
    }
}
