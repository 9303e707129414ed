//! The event of a changed subscription.
//!
//! Every write that changes public data of a subscription publishes exactly one event of the subscription. The event
//! contains all public data of the subscription after the write, so a consumer needs only the event with the highest
//! version.

use crate::event::data::EventData;
use crate::event::subscription::SubscriptionEventData;
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};

/// The constructor of an [`EventData`] variant with the data of a changed subscription, such as
/// [`EventData::SubscriptionPaused`].
type EventConstructor = fn(SubscriptionEventData) -> EventData;

/// Returns the event for the change of a subscription from `old` to `new`; `None` if no public data has changed. `old`
/// is `None` for a new subscription.
pub fn subscription_event(old: Option<&Subscription>, new: &Subscription) -> Option<EventData> {
    let constructor = match old {
        None => EventData::SubscriptionCreated,
        Some(old) => change_constructor(old, new).or_else(|| {
            let is_changed = has_new_public_state(old, new) || has_new_contact_or_payment_method(old, new);
            is_changed.then_some(EventData::SubscriptionChanged as EventConstructor)
        })?,
    };
    Some(constructor(SubscriptionEventData::from_change(old, new)))
}

/// Returns the constructor of the event for the most important part of a change. The parts, the most important first,
/// are: the status, a planned cancellation, a reminder, and a month that was paid or waived. Returns `None` if none of
/// these parts has changed.
fn change_constructor(old: &Subscription, new: &Subscription) -> Option<EventConstructor> {
    if let Some(event) = status_event(old, new) {
        return Some(event);
    }
    if old.cancel_from != new.cancel_from && new.status != SubscriptionStatus::Cancelled {
        return Some(EventData::SubscriptionEnding);
    }
    if old.reminded_for != new.reminded_for && new.reminded_for.is_some() {
        return Some(EventData::SubscriptionReminded);
    }
    let is_next_month = new.due_period() > old.due_period();
    is_next_month.then_some(EventData::SubscriptionRenewed)
}

/// Returns whether public data other than the version differs between `old` and `new`.
fn has_new_public_state(old: &Subscription, new: &Subscription) -> bool {
    let state_before = SubscriptionEventData { version: new.version, ..SubscriptionEventData::from_state(old) };
    state_before != SubscriptionEventData::from_state(new)
}

/// Returns whether the e-mail address or the payment method has changed. The address and the payment method are not
/// public, but the fact that they have changed is published.
fn has_new_contact_or_payment_method(old: &Subscription, new: &Subscription) -> bool {
    (&old.email, &old.payment_method) != (&new.email, &new.payment_method)
}

/// Returns the constructor of the event for a change of the status, or for another failed payment of a past due
/// subscription; `None` if neither happened.
fn status_event(old: &Subscription, new: &Subscription) -> Option<EventConstructor> {
    use SubscriptionStatus::{Active, Cancelled, PastDue, Paused, Unpaid};
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
