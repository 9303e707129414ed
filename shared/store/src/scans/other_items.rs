//! Checks the items outside of the partitions of accounts: each must be readable, contain what this program would store
//! with the same content, and expire within the time of its kind.

use billing::{
    AUDIT_RETENTION, AcceptedDifference, AccountId, AuditRecord, AuditViolation, DayReconciliation, Delivery, Erasure,
    Finding, LoggedAction, PaymentMethodSetup, RECONCILIATION_RETENTION, SubscriptionId, WebhookEndpoint,
};
use chrono::{DateTime, TimeDelta, Utc};
use dynamo::{Entity as _, FaultyItem, IDEMPOTENCY_RECORDS, ItemKind, check_item, entity_item, from_item, key_of_item};

use crate::entities::card_links::{CardLink, card_link_item};
use crate::entities::inbound_events::INBOUND_EVENT_RETENTION;
use crate::entities::notice_claims::{NOTICE_RETENTION, check_notice};
use crate::entities::reconciliations::{SEEN_PAYMENTS_RETENTION, check_seen_payments};
use crate::entities::subscriptions::expected_code_item;
use crate::items::{DELIVERY_RETENTION, SETUP_RETENTION, WaitingDelivery, open_finding_item};
use crate::keys;
use crate::runs::day_total::check_charge_total;
use crate::runs::execution_lease::check_execution_lease;
use crate::runs::hourly_limits::{COUNTER_RETENTION, check_use_counter};
use crate::runs::run_records::check_run_record;
use crate::runs::support_refunds::{SUPPORT_REFUNDS_RETENTION, check_support_refunds};
use crate::settings::settings_item::settings_item;
use crate::table::payments_table::PaymentsSchema;
use dynamo::{Item, Key, TableError};

/// The longest retention of payment records, runs and actions that can be configured.
const MAX_RETENTION: TimeDelta = TimeDelta::days(3_650);

/// The longest time for which an idempotency record is stored: an import stores its records for a week.
const MAX_IDEMPOTENCY_RETENTION: TimeDelta = TimeDelta::days(7);

/// The kinds of items outside of accounts.
const KINDS: [ItemKind; 24] = [
    (keys::SETTINGS, keys::SETTINGS, settings_item, None),
    (keys::HEARTBEAT, keys::HEARTBEAT, accept_any_content, None),
    (keys::EXECUTION_LEASES, keys::EXECUTION_LEASES, check_execution_lease, None),
    (keys::CODES, keys::CODES, expected_code_item, None),
    (keys::RUNS_OF_DAY, keys::RUNS, check_run_record, Some(MAX_RETENTION)),
    (keys::RUNS_OF_DAY, keys::CHARGE_TOTALS, check_charge_total, Some(MAX_RETENTION)),
    (keys::ERASURES, keys::ERASURE, entity_item::<PaymentsSchema, Erasure>, None),
    (keys::ACTIONS_OF_MONTH, keys::ACTIONS, entity_item::<PaymentsSchema, LoggedAction>, Some(MAX_RETENTION)),
    (keys::AUDITS, keys::AUDIT, entity_item::<PaymentsSchema, AuditRecord>, Some(AUDIT_RETENTION)),
    (keys::AUDIT, keys::VIOLATIONS, entity_item::<PaymentsSchema, AuditViolation>, Some(AUDIT_RETENTION)),
    (
        keys::RECONCILIATIONS,
        keys::RECONCILED_DAYS,
        entity_item::<PaymentsSchema, DayReconciliation>,
        Some(RECONCILIATION_RETENTION),
    ),
    (
        keys::RECONCILIATIONS,
        keys::ACCEPTED_DIFFERENCES,
        entity_item::<PaymentsSchema, AcceptedDifference>,
        Some(RECONCILIATION_RETENTION),
    ),
    (keys::RECONCILIATIONS, keys::SEEN_PAYMENTS, check_seen_payments, Some(SEEN_PAYMENTS_RETENTION)),
    (keys::SETUPS, keys::SETUPS, entity_item::<PaymentsSchema, PaymentMethodSetup>, Some(SETUP_RETENTION)),
    (keys::CARD_LINKS, keys::CARD_LINKS, card_link_item, Some(MAX_RETENTION)),
    (keys::LIMITS, keys::LIMITS, check_use_counter, Some(COUNTER_RETENTION)),
    (keys::SUPPORT_REFUNDS, keys::SUPPORT_REFUNDS, check_support_refunds, Some(SUPPORT_REFUNDS_RETENTION)),
    (keys::DELIVERIES_OF_ENDPOINT, keys::DELIVERIES, delivery_item, Some(DELIVERY_RETENTION)),
    (
        keys::DELIVERIES_OF_ENDPOINT,
        keys::WAITING_DELIVERIES,
        entity_item::<PaymentsSchema, WaitingDelivery>,
        Some(DELIVERY_RETENTION),
    ),
    (keys::NOTICES, keys::NOTICES, check_notice, Some(NOTICE_RETENTION)),
    (keys::WEBHOOKS, keys::WEBHOOK_ENDPOINTS, entity_item::<PaymentsSchema, WebhookEndpoint>, None),
    (keys::INBOUND_EVENTS, keys::INBOUND_EVENTS, accept_any_content, Some(INBOUND_EVENT_RETENTION)),
    (keys::OPEN_FINDINGS, keys::FINDINGS, finding_copy, None),
    (IDEMPOTENCY_RECORDS, IDEMPOTENCY_RECORDS, dynamo::check_idempotency_record, Some(MAX_IDEMPOTENCY_RETENTION)),
];

/// The account, the subscriptions and the finding that an item outside of the accounts names. They must exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedOwner {
    /// The key of the item.
    pub key: Key,
    pub account: AccountId,
    pub subscriptions: Vec<SubscriptionId>,
    /// The finding of which the item is a copy: it must be open.
    pub finding: Option<Finding>,
}

/// Returns what is wrong with `item`, an item outside of the accounts, at the time `now`.
pub fn check_other_item(item: &Item, now: DateTime<Utc>) -> Vec<FaultyItem> {
    check_item(&KINDS, item, now)
}

/// Returns the account and the subscriptions that `item` names, if it is a setup, a card link or a copy of a finding.
pub fn find_named_owner(item: &Item) -> Option<NamedOwner> {
    let key = key_of_item(item);
    let has_prefix = |prefix: &str| key.pk.starts_with(prefix);
    let (account, subscriptions, finding) = if has_prefix(keys::SETUPS) {
        let setup = PaymentMethodSetup::from_item(item).ok()?;
        (setup.account, setup.subscriptions.unwrap_or_default(), None)
    } else if has_prefix(keys::CARD_LINKS) {
        let link: CardLink = from_item(item).ok()?;
        (link.account, vec![link.subscription], None)
    } else if key.pk == keys::OPEN_FINDINGS {
        let finding = Finding::from_item(item).ok()?;
        (finding.account.clone(), vec![finding.subscription], Some(finding))
    } else {
        return None;
    };
    Some(NamedOwner { key, account, subscriptions, finding })
}

/// Returns the item that this program would store for the delivery in `item`. Earlier versions stored all deliveries to
/// an endpoint in one partition.
fn delivery_item(item: &Item) -> Result<Item, TableError> {
    let delivery = Delivery::from_item(item)?;
    let (mut expected, earlier) = (delivery.to_item(), keys::earlier_key_of_delivery(&delivery.key));
    if key_of_item(item) == earlier {
        expected.extend(earlier.attributes());
    }
    Ok(expected)
}

/// Returns the copy of the open finding in `item`.
fn finding_copy(item: &Item) -> Result<Item, TableError> {
    Ok(open_finding_item(&Finding::from_item(item)?))
}

/// Returns `item` itself, because only its key has a meaning.
fn accept_any_content(item: &Item) -> Result<Item, TableError> {
    Ok(item.clone())
}
