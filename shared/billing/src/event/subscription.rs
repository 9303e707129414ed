//! The events of a changed subscription.

use super::super::{Period, Status, Subscription};
use super::{EventData, SubscriptionData};

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
