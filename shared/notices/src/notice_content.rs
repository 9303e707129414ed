//! The content of notices: decides which event needs a notice, and which facts the mail contains.

use billing::{
    Account, ChangedField, EventData, EventType, Money, OrderEventData, Subscription, SubscriptionEventData,
    SubscriptionOutlook, SubscriptionStatus,
};
use chrono::NaiveDate;
use mail::{MailFacts, MailKind};
use store::CardLink;

/// A notice to send.
#[derive(Debug)]
pub(super) struct Notice {
    /// The account of the recipient.
    pub account: Account,
    /// The facts that the mail contains, such as the amount.
    pub facts: MailFacts,
    /// The owed payment for which the mail asks the customer to enter a card; `None` if the mail does not ask for a
    /// card.
    pub owed: Option<CardLink>,
}

impl Notice {
    /// Creates a notice that does not ask for a card.
    pub fn new(account: Account, facts: MailFacts) -> Self {
        Self { account, facts, owed: None }
    }

    /// Creates the notice of `kind` about `amount`, the owed payment of the subscription `stored`.
    pub fn of_owed_payment(kind: MailKind, account: Account, stored: &Subscription, amount: Money) -> Self {
        let facts =
            MailFacts { amount: Some(amount), due_on: Some(stored.due_on), ..mail_facts_of_subscription(kind, stored) };
        let owed = CardLink { account: account.id.clone(), subscription: stored.id, due_on: stored.due_on };
        Self { account, facts, owed: Some(owed) }
    }
}

/// Returns the notice that the order `data` of the subscription `stored` was shipped on `shipped_on`.
pub(super) fn shipment_notice(
    data: &OrderEventData,
    account: Account,
    stored: &Subscription,
    shipped_on: NaiveDate,
) -> Notice {
    let facts = MailFacts {
        order: Some(data.order.clone()),
        shipped_on: Some(shipped_on),
        carrier: data.carrier.clone(),
        tracking_number: data.tracking_number.clone(),
        ..mail_facts_of_subscription(MailKind::Shipped, stored)
    };
    Notice::new(account, facts)
}

/// Returns the facts that a mail of `kind` about the subscription `stored` always contains.
fn mail_facts_of_subscription(kind: MailKind, stored: &Subscription) -> MailFacts {
    MailFacts::new(kind, stored.product_name.clone(), stored.email.clone())
}

/// The types of the events about which a notice may be sent. On AWS, a rule of the event bus passes only events of
/// these types to the queue of notices.
pub const TYPES_WITH_NOTICE: [EventType; 13] = [
    EventType::PaymentSucceeded,
    EventType::PaymentRefunded,
    EventType::PaymentDeclined,
    EventType::PaymentRejected,
    EventType::SubscriptionCreated,
    EventType::SubscriptionChanged,
    EventType::SubscriptionPaused,
    EventType::SubscriptionResumed,
    EventType::SubscriptionEnding,
    EventType::SubscriptionUnpaid,
    EventType::SubscriptionRevived,
    EventType::SubscriptionCancelled,
    EventType::OrderShipped,
];

/// Returns whether a notice may be sent about the event `data`. This depends on the type of the event and, for a
/// changed subscription, on the changed fields.
pub(super) fn is_type_with_notice(data: &EventData) -> bool {
    TYPES_WITH_NOTICE.contains(&data.event_type())
        && match data {
            // The customer gets a mail only about a change of the amount, the payment day or the payment method.
            EventData::SubscriptionChanged(data) | EventData::SubscriptionRevived(data) => {
                data.changes.iter().any(|field| {
                    matches!(field, ChangedField::Amount | ChangedField::PaymentDay | ChangedField::PaymentMethod)
                })
            }
            _ => true,
        }
}

/// Returns the notice about a subscription event of the type `event` with the content `data`. `stored` is the current
/// state of the subscription, `outlook` is what happens next to it, and `on` is the date of the event. Returns `None` if
/// the event needs no notice, or if the current state of the subscription no longer agrees with the event.
pub(super) fn subscription_notice(
    event: EventType,
    data: &SubscriptionEventData,
    account: Account,
    stored: &Subscription,
    outlook: SubscriptionOutlook,
    on: NaiveDate,
) -> Option<Notice> {
    let is_cancelled = stored.status == SubscriptionStatus::Cancelled;
    let has_changed_terms =
        data.changes.iter().any(|field| matches!(field, ChangedField::Amount | ChangedField::PaymentDay));
    let terms = stored.latest_terms();
    let kind = match event {
        // No mail for an imported subscription: the customer subscribed in the merchant's earlier system.
        EventType::SubscriptionCreated if stored.external_id.is_none() && !is_cancelled => MailKind::SignedUp,
        EventType::SubscriptionChanged | EventType::SubscriptionRevived if is_cancelled => return None,
        // No payment will have the new terms.
        EventType::SubscriptionChanged | EventType::SubscriptionRevived
            if has_changed_terms && stored.cancel_from.is_some_and(|from| terms.from >= from) =>
        {
            return None;
        }
        EventType::SubscriptionChanged | EventType::SubscriptionRevived if has_changed_terms => MailKind::TermsChanged,
        EventType::SubscriptionChanged | EventType::SubscriptionRevived => MailKind::CardSaved,
        EventType::SubscriptionPaused if stored.status == SubscriptionStatus::Paused => MailKind::Paused,
        EventType::SubscriptionResumed if stored.status.is_chargeable() => MailKind::Resumed,
        EventType::SubscriptionEnding if is_cancelled => return None,
        EventType::SubscriptionEnding => match (data.cancel_from, outlook.ends_on) {
            (Some(_), Some(_)) => MailKind::CancellationPlanned,
            (None, None) => MailKind::CancellationUndone,
            _ => return None,
        },
        EventType::SubscriptionUnpaid
            if stored.status == SubscriptionStatus::Unpaid && stored.due_on == data.due_on =>
        {
            return Some(Notice::of_owed_payment(MailKind::Unpaid, account, stored, stored.price));
        }
        EventType::SubscriptionCancelled if data.changes.contains(&ChangedField::FailedAttempts) => {
            MailKind::EndedUnpaid
        }
        EventType::SubscriptionCancelled => MailKind::Ended,
        _ => return None,
    };
    let previous_amount = data.previous_amount.map(|minor| Money::new(minor, stored.price.currency()));
    // The monthly amount of a subscription that ends could be read as another payment.
    let has_monthly_amount = matches!(kind, MailKind::TermsChanged | MailKind::EndedUnpaid)
        || (kind != MailKind::Ended && outlook.ends_on.is_none());
    let is_ended = matches!(kind, MailKind::Ended | MailKind::EndedUnpaid);
    let facts = MailFacts {
        amount: has_monthly_amount.then_some(terms.price),
        previous_amount: previous_amount.filter(|_| kind == MailKind::TermsChanged),
        payment_day: (kind == MailKind::TermsChanged).then_some(terms.payment_day),
        ends_on: if is_ended { Some(on) } else { outlook.ends_on },
        outlook: Some(outlook),
        ..mail_facts_of_subscription(kind, stored)
    };
    Some(Notice::new(account, facts))
}
