//! Events: public facts about changes. Each event follows from the change of one stored item.
//!
//! For each change of an item, the stream of the DynamoDB table contains an image of the item before the change and an
//! image after the change. This module computes the events from these two images alone, so a repeated computation gives
//! equal events with equal ids. Events contain ids, dates and amounts, but no e-mail address, no token of a payment
//! method or customer, and no card data.
//!
//! The orders are stored in the table of the order desk, so the order desk computes the events of orders, in the same
//! way. This module only declares the types and the data of these events.

mod action;
mod check_events;
mod cloud_event;
mod data;
mod operator_event;
mod order;
mod payment;
mod received_event;
#[cfg(feature = "openapi")]
mod schemas;
mod subscription;
mod subscription_event;

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use ulid::Ulid;

use crate::action::LoggedAction;
use crate::checks::audit_record::AuditRecord;
use crate::checks::day_reconciliation::DayReconciliation;
use crate::records::attempt_record::{AttemptEnd, AttemptRecord};
use crate::records::dispute::{Dispute, DisputeStatus};
use crate::records::receipt::Receipt;
use crate::records::refund::{Refund, RefundStatus};
use crate::records::waived_period::WaivedPeriod;
use crate::subscriptions::subscription::Subscription;
use crate::values::account::Account;
use crate::values::ids::AccountId;
pub use action::ActionEventData;
pub use check_events::{AuditEventData, ReconciliationEventData};
pub use cloud_event::CloudEvent;
pub use data::{AccountEventData, EventData, EventType};
pub use operator_event::OperatorEvent;
pub use order::{OrderEventData, OrderLineEventData};
pub use payment::{
    DeclineEventData, DisputeEventData, ExpiredReceiptEventData, PaymentEventData, RefundEventData, ReversalEventData,
    WaivedPeriodEventData,
};
pub use received_event::{ReceivedEvent, UnreadableEvent};
#[cfg(feature = "openapi")]
pub use schemas::event_schemas;
pub use subscription::{ChangedField, SubscriptionEventData, WaitingTerms};

/// The content of an item before or after a change, from the DynamoDB stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ItemImage {
    Account(Account),
    Subscription(Box<Subscription>),
    Receipt(Receipt),
    Refund(Refund),
    Dispute(Dispute),
    Attempt(AttemptRecord),
    Waived(WaivedPeriod),
    Audit(AuditRecord),
    Reconciliation(Box<DayReconciliation>),
    Action(Box<LoggedAction>),
}

/// A fact about a change of an account, a subscription, a payment or an order, about an audit of the table, about the
/// comparison of a day with the gateway, or about a change that a person or a program made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The unique id of the event. A repeated computation of the same event gives the same id.
    pub id: String,
    /// The subject of the event:
    /// - for an event of an audit, `audit/` and the id of the audit
    /// - for an event of a comparison with the gateway, `reconciliation/` and the compared date
    /// - for an action that concerns no account, `action/` and the id of the entry of the action log
    /// - for all other events, the id of the account
    pub subject: String,
    /// When the change happened.
    pub at: DateTime<Utc>,
    pub data: EventData,
}

/// Returns the events for the change of an item from `old` to `new` at the time `at`. `old` is `None` if the item is
/// new, and `new` is `None` if the item was deleted. Returns no events if no public data has changed, for example if
/// only a claim, a lease, a shard or the version has changed.
pub fn events_between_images(old: Option<&ItemImage>, new: Option<&ItemImage>, at: DateTime<Utc>) -> Vec<Event> {
    match (old, new) {
        (old, Some(ItemImage::Account(new))) => {
            let old = match old {
                Some(ItemImage::Account(old)) => Some(old),
                _ => None,
            };
            account_event(old, new, at).into_iter().collect()
        }
        (Some(ItemImage::Account(old)), None) => {
            vec![new_account_event(old, EventData::AccountErased(AccountEventData::from_account(old)), at)]
        }
        (old, Some(ItemImage::Subscription(new))) => {
            let old = match old {
                Some(ItemImage::Subscription(old)) => Some(old.as_ref()),
                _ => None,
            };
            let data = subscription_event::subscription_event(old, new);
            data.map(|data| new_subscription_event(new, data, at)).into_iter().collect()
        }
        (None, Some(ItemImage::Receipt(receipt))) => vec![payment_succeeded_event(receipt)],
        // A receipt is deleted only by DynamoDB, after its time to live (TTL). So a deleted receipt has expired.
        (Some(ItemImage::Receipt(receipt)), None) => vec![receipt_expired_event(receipt, at)],
        (old, Some(ItemImage::Refund(refund))) => match old {
            Some(ItemImage::Refund(old)) if old.status == refund.status => Vec::new(),
            _ => refund_event(refund, at).into_iter().collect(),
        },
        (old, Some(ItemImage::Dispute(dispute))) => match old {
            Some(ItemImage::Dispute(old)) => dispute_events(Some(old), dispute, at),
            _ => dispute_events(None, dispute, at),
        },
        (None, Some(ItemImage::Attempt(record))) => attempt_event(record).into_iter().collect(),
        (None, Some(ItemImage::Waived(waived))) => vec![period_waived_event(waived)],
        (old, Some(ItemImage::Audit(audit))) => {
            let had_ended = matches!(old, Some(ItemImage::Audit(old)) if old.ended_at.is_some());
            audit.ended_at.filter(|_| !had_ended).map(|ended_at| audit_event(audit, ended_at)).into_iter().collect()
        }
        (old, Some(ItemImage::Reconciliation(day))) => {
            let had_ended = matches!(old, Some(ItemImage::Reconciliation(old)) if old.ended_at.is_some());
            day.ended_at
                .filter(|_| !had_ended)
                .map(|ended_at| reconciliation_event(day, ended_at))
                .into_iter()
                .collect()
        }
        (old, Some(ItemImage::Action(entry))) => {
            let old = match old {
                Some(ItemImage::Action(old)) => Some(old.as_ref()),
                _ => None,
            };
            action_event(old, entry, at).into_iter().collect()
        }
        // The records of attempts and waived periods never change, and their expiry publishes no event.
        _ => Vec::new(),
    }
}

/// Returns the event of a new or changed account; `None` if no public data has changed.
fn account_event(old: Option<&Account>, new: &Account, at: DateTime<Utc>) -> Option<Event> {
    let is_unchanged = |old: &Account| {
        (&old.email, &old.name, &old.locale, old.mail_status) == (&new.email, &new.name, &new.locale, new.mail_status)
    };
    match old {
        None => {
            Some(new_account_event(new, EventData::AccountCreated(AccountEventData::from_account(new)), new.created_at))
        }
        Some(old) if is_unchanged(old) => None,
        Some(_) => Some(new_account_event(new, EventData::AccountChanged(AccountEventData::from_account(new)), at)),
    }
}

/// Creates an event of an account. The id of the event must not contain the account, because ids are in URLs, headers and
/// logs: it contains a hash of the account and of the time at which the account was created. The time is necessary because
/// earlier versions of Dueday allowed an erased account to be created again with version 1.
fn new_account_event(account: &Account, data: EventData, at: DateTime<Utc>) -> Event {
    let hash = Sha256::digest(format!("{}.{}", account.id, account.created_at.timestamp_millis()));
    let number = hash.iter().take(16).fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
    let id = format!("{}.{}.{}", Ulid(number), account.version, data.event_type());
    Event { id, subject: account.id.to_string(), at, data }
}

/// Creates the event of a subscription with `data`. The id of the event contains the version of the subscription.
fn new_subscription_event(subscription: &Subscription, data: EventData, at: DateTime<Utc>) -> Event {
    let id = format!("{}.{}.{}", subscription.id, subscription.version, data.event_type());
    Event { id, subject: subscription.account.to_string(), at, data }
}

/// Returns the event of the payment with the new receipt `receipt`.
fn payment_succeeded_event(receipt: &Receipt) -> Event {
    let data = EventData::PaymentSucceeded(PaymentEventData::from_receipt(receipt));
    new_receipt_event(receipt, data, receipt.processed_at)
}

/// Returns the event of a receipt that expired at the time `at`.
fn receipt_expired_event(receipt: &Receipt, at: DateTime<Utc>) -> Event {
    let data = EventData::ReceiptExpired(ExpiredReceiptEventData::from_receipt(receipt));
    new_receipt_event(receipt, data, at)
}

/// Creates an event of a receipt. The id of the event contains the gateway's id of the payment, so that the events of
/// two receipts never have the same id, even if both receipts are for the same due date.
fn new_receipt_event(receipt: &Receipt, data: EventData, at: DateTime<Utc>) -> Event {
    let Receipt { subscription, due_on, payment, .. } = receipt;
    let id = format!("{subscription}.{due_on}.{}.{}", payment.as_str(), data.event_type());
    Event { id, subject: receipt.account.to_string(), at, data }
}

/// Returns the event of a refund whose status has changed; `None` if the new status has no event. A successful refund
/// can fail later, if the bank of the customer returns the money.
fn refund_event(refund: &Refund, at: DateTime<Utc>) -> Option<Event> {
    let data = match refund.status {
        RefundStatus::Pending => return None,
        // The gateway refused the request before processing it, so there was no refund. The caller got an error, and
        // may repeat the request.
        RefundStatus::Failed if refund.is_refused_by_gateway() => return None,
        RefundStatus::Succeeded => EventData::PaymentRefunded(RefundEventData::from_refund(refund)),
        RefundStatus::Failed => EventData::RefundFailed(RefundEventData::from_refund(refund)),
    };
    let id = format!("{}.{}", refund.id, data.event_type());
    Some(Event { id, subject: refund.account.to_string(), at: refund.settled_at.unwrap_or(at), data })
}

/// Returns the events of a dispute whose status has changed: disputed, dispute closed, payment reversed. If a new
/// dispute is already closed, returns both `payment.disputed` and `payment.dispute_closed`. The ids of the events
/// contain the version of the dispute, because the same event can happen twice: `payment.disputed` for an inquiry, and
/// again when the inquiry becomes a formal dispute; `payment.dispute_closed` again when the bank changes its decision.
fn dispute_events(old: Option<&Dispute>, new: &Dispute, at: DateTime<Utc>) -> Vec<Event> {
    if old.is_some_and(|old| old.status == new.status) {
        return Vec::new();
    }
    let event = |data: EventData, at: DateTime<Utc>| {
        let id = format!("{}.{}.{}", new.id, new.version, data.event_type());
        Event { id, subject: new.account.to_string(), at, data }
    };
    let closed_at = new.closed_at.unwrap_or(at);
    // A debit that was returned by the bank was never disputed.
    let is_dispute = new.status != DisputeStatus::Returned;
    let is_opened = is_dispute && (old.is_none() || !new.status.is_closed());
    let opened =
        is_opened.then(|| event(EventData::PaymentDisputed(DisputeEventData::from_dispute(new)), new.opened_at));
    let is_closed = is_dispute && new.status.is_closed();
    let closed = is_closed.then(|| event(EventData::DisputeClosed(DisputeEventData::from_dispute(new)), closed_at));
    let reversed = new
        .status
        .is_reversal()
        .then(|| event(EventData::PaymentReversed(ReversalEventData::from_dispute(new)), closed_at));
    opened.into_iter().chain(closed).chain(reversed).collect()
}

/// Returns the event of an audit that ended at `ended_at`.
fn audit_event(audit: &AuditRecord, ended_at: DateTime<Utc>) -> Event {
    let data = EventData::AuditCompleted(AuditEventData::from_audit(audit, ended_at));
    let id = format!("{}.{}", audit.id, data.event_type());
    Event { id, subject: format!("audit/{}", audit.id), at: ended_at, data }
}

/// Returns the event of the comparison of a day that ended at `ended_at`. The id contains the start of the comparison,
/// because a day can be compared again.
fn reconciliation_event(day: &DayReconciliation, ended_at: DateTime<Utc>) -> Event {
    let data = EventData::DayReconciled(ReconciliationEventData::from_reconciliation(day, ended_at));
    let id = format!("{}.{}.{}.{}", day.on, day.started_at.timestamp_millis(), day.version, data.event_type());
    Event { id, subject: format!("reconciliation/{}", day.on), at: ended_at, data }
}

/// Returns the event of a new record of a waived period.
fn period_waived_event(waived: &WaivedPeriod) -> Event {
    let data = EventData::PeriodWaived(WaivedPeriodEventData::from_waived_period(waived));
    let id = format!("{}.{}.{}", waived.subscription, waived.due_on, data.event_type());
    Event { id, subject: waived.account.to_string(), at: waived.waived_at, data }
}

/// Returns the event of an unsuccessful attempt; `None` for a dropped attempt.
fn attempt_event(record: &AttemptRecord) -> Option<Event> {
    let data = match record.outcome {
        AttemptEnd::Declined => EventData::PaymentDeclined(DeclineEventData::from_attempt_record(record)),
        AttemptEnd::Rejected => EventData::PaymentRejected(DeclineEventData::from_attempt_record(record)),
        // The subscription was paused or cancelled before the gateway had created a payment: there is nothing to
        // publish.
        AttemptEnd::Dropped => return None,
    };
    let id = format!("{}.{}.{}", record.subscription, record.attempt_no, data.event_type());
    Some(Event { id, subject: record.account.to_string(), at: record.processed_at, data })
}

/// Returns the event for the write of `entry`, an entry of the action log, at the time `at`. `old` is the entry that
/// this write replaced; `None` if the entry is new. A job writes its entry twice: when it begins, and with its counts
/// when it ends. Both writes have an event. Returns `None` if `entry` and `old` have the same changed fields. Then the
/// same entry was written again, or its reason or name was removed because the account was erased.
fn action_event(old: Option<&LoggedAction>, entry: &LoggedAction, at: DateTime<Utc>) -> Option<Event> {
    let (number, at) = match old {
        None => (1, entry.at),
        Some(old) if old.after == entry.after => return None,
        Some(_) => (2, at),
    };
    let data = EventData::ActionTaken(ActionEventData::from_entry(entry));
    let id = format!("{}.{number}.{}", entry.id, data.event_type());
    let subject = entry.account.as_ref().map_or_else(|| format!("action/{}", entry.id), AccountId::to_string);
    Some(Event { id, subject, at, data })
}
