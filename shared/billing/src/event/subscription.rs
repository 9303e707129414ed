//! The events of a changed subscription, and their data.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use super::super::{AccountId, Label, Money, PaymentDay, Period, Sku, Status, Subscription, SubscriptionId};
use super::EventData;

/// The data of the events of a subscription: its state after the change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SubscriptionData {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// The version of the subscription after the change.
    pub version: u64,
    pub sku: Sku,
    pub product_name: Label,
    pub status: Status,
    pub payment_day: PaymentDay,
    #[serde(flatten)]
    pub price: Money,
    /// The earliest due date that is neither paid nor waived.
    pub due_on: NaiveDate,
    /// The date on which the payment batch will process the subscription next.
    pub next_payment_on: Option<NaiveDate>,
    /// The number of consecutive declines.
    pub failed_attempts: u32,
    /// The first month that will not be charged, because of a planned or completed cancellation.
    pub cancel_from: Option<Period>,
    /// The terms and facts that the change has changed; empty for a new subscription, and in events of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangedField>,
    /// The price before the change, in minor units of the same currency; absent if the price has not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_amount: Option<i64>,
}

/// A part of a subscription that was changed. A change of price or payment day may take effect in a later month.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangedField {
    Amount,
    PaymentDay,
    ProductName,
    Email,
    PaymentMethod,
    FailedAttempts,
}

impl SubscriptionData {
    /// Creates the data of the change from `old` to `s`. `old` is `None` for a new subscription.
    pub(super) fn from_change(old: Option<&Subscription>, s: &Subscription) -> Self {
        let has_new_price = |old: &&Subscription| old.latest_terms().price != s.latest_terms().price;
        Self {
            account: s.account.clone(),
            subscription: s.id,
            version: s.version,
            sku: s.sku.clone(),
            product_name: s.product_name.clone(),
            status: s.status,
            payment_day: s.payment_day,
            price: s.price,
            due_on: s.due_on,
            next_payment_on: s.next_payment_on,
            failed_attempts: s.failed_attempts,
            cancel_from: s.cancel_from,
            changes: old.map(|old| changed_fields(old, s)).unwrap_or_default(),
            previous_amount: old.filter(has_new_price).map(|old| old.latest_terms().price.minor()),
        }
    }
}

fn changed_fields(old: &Subscription, new: &Subscription) -> Vec<ChangedField> {
    let (terms_before, terms) = (old.latest_terms(), new.latest_terms());
    let changes = [
        (ChangedField::Amount, terms_before.price != terms.price),
        (ChangedField::PaymentDay, terms_before.payment_day != terms.payment_day),
        (ChangedField::ProductName, old.product_name != new.product_name),
        (ChangedField::Email, old.email != new.email),
        (ChangedField::PaymentMethod, old.payment_method != new.payment_method),
        (ChangedField::FailedAttempts, old.failed_attempts != new.failed_attempts),
    ];
    changes.into_iter().filter_map(|(field, is_changed)| is_changed.then_some(field)).collect()
}

/// The constructor of an [`EventData`] variant with the data of a changed subscription, such as
/// [`EventData::SubscriptionPaused`].
type EventConstructor = fn(SubscriptionData) -> EventData;

/// Returns the events of the change of a subscription from `old` to `new`, in the order of their publication. `old` is
/// `None` for a new subscription.
pub fn subscription_events(old: Option<&Subscription>, new: &Subscription) -> Vec<EventConstructor> {
    let Some(old) = old else { return vec![EventData::SubscriptionCreated] };
    let mut events: Vec<EventConstructor> = Vec::new();
    if has_new_agreement(old, new) {
        events.push(EventData::SubscriptionChanged);
    }
    if old.reminded_for != new.reminded_for && new.reminded_for.is_some() {
        events.push(EventData::SubscriptionReminded);
    }
    events.extend(status_event(old, new));
    // For a cancelled subscription, `subscription.cancelled` already contains the new `cancel_from`.
    if old.cancel_from != new.cancel_from && new.status != Status::Cancelled {
        events.push(EventData::SubscriptionEnding);
    }
    events
}

fn status_event(old: &Subscription, new: &Subscription) -> Option<EventConstructor> {
    use Status::{Active, Cancelled, PastDue, Paused, Unpaid};
    let has_failed_again = new.failed_attempts > old.failed_attempts || new.rejections > old.rejections;
    match (old.status, new.status) {
        (PastDue, PastDue) if has_failed_again => Some(EventData::SubscriptionPastDue),
        (old, new) if old == new => None,
        (Paused, Active) => Some(EventData::SubscriptionResumed),
        (_, Active) | (Unpaid, PastDue) => Some(EventData::SubscriptionRevived),
        (_, PastDue) => Some(EventData::SubscriptionPastDue),
        (_, Unpaid) => Some(EventData::SubscriptionUnpaid),
        (_, Paused) => Some(EventData::SubscriptionPaused),
        (_, Cancelled) => Some(EventData::SubscriptionCancelled),
    }
}

/// Returns whether the customer's agreement changed. The agreement does not change if a payment moves the due date to a
/// month from which waiting terms apply: the customer agreed to these terms earlier, and their event was published at
/// that time.
fn has_new_agreement(old: &Subscription, new: &Subscription) -> bool {
    if (&old.product_name, &old.email, &old.payment_method) != (&new.product_name, &new.email, &new.payment_method) {
        return true;
    }
    let due_next = Period::from_day(new.due_on);
    let waiting = old.waiting_terms.iter().chain(&new.waiting_terms).map(|terms| terms.from);
    let mut months = waiting.filter(|from| *from > due_next).chain([due_next]);
    let is_moved = old.due_on != new.due_on && Period::from_day(old.due_on) == due_next;
    is_moved || months.any(|month| old.terms_in(month) != new.terms_in(month))
}
