//! What is news of a subscription.

use super::super::{Period, Status, Subscription};
use super::{News, SubscriptionNews};

/// Makes the event of a subscription as it is now.
type Told = fn(SubscriptionNews) -> News;

/// What is to be told of a subscription that was `old` and is `new`, in this order.
pub fn news(old: Option<&Subscription>, new: &Subscription) -> Vec<Told> {
    let Some(old) = old else { return vec![News::SubscriptionCreated] };
    let mut told: Vec<Told> = Vec::new();
    if is_agreed_anew(old, new) {
        told.push(News::SubscriptionChanged);
    }
    if old.reminded_for != new.reminded_for && new.reminded_for.is_some() {
        told.push(News::SubscriptionReminded);
    }
    told.extend(status(old, new));
    // Once cancelled, the month it ended with says nothing new.
    if old.cancel_from != new.cancel_from && new.status != Status::Cancelled {
        told.push(News::SubscriptionEnding);
    }
    told
}

fn status(old: &Subscription, new: &Subscription) -> Option<Told> {
    use Status::{Active, Cancelled, PastDue, Paused, Unpaid};
    let has_failed_again = new.failed_attempts > old.failed_attempts || new.rejections > old.rejections;
    match (old.status, new.status) {
        (PastDue, PastDue) if has_failed_again => Some(News::SubscriptionPastDue),
        (old, new) if old == new => None,
        (Paused, Active) => Some(News::SubscriptionResumed),
        (_, Active) | (Unpaid, PastDue) => Some(News::SubscriptionRevived),
        (_, PastDue) => Some(News::SubscriptionPastDue),
        (_, Unpaid) => Some(News::SubscriptionUnpaid),
        (_, Paused) => Some(News::SubscriptionPaused),
        (_, Cancelled) => Some(News::SubscriptionCancelled),
    }
}

/// Whether something else is agreed than before. That a month is paid, and the terms that waited for the next one count
/// from then on, was agreed when they were made.
fn is_agreed_anew(old: &Subscription, new: &Subscription) -> bool {
    if (&old.product_name, &old.email, &old.payment_method) != (&new.product_name, &new.email, &new.payment_method) {
        return true;
    }
    let due_next = Period::of(new.due_on);
    let waiting = old.waiting_terms.iter().chain(&new.waiting_terms).map(|terms| terms.from);
    let mut months = waiting.filter(|from| *from > due_next).chain([due_next]);
    let is_moved = old.due_on != new.due_on && Period::of(old.due_on) == due_next;
    is_moved || months.any(|month| old.terms_in(month) != new.terms_in(month))
}
