//! Images of items before and after a change, for the tests of published events.

use billing::{
    ActionKind, Actor, ActorName, Attempt, AttemptEnd, AttemptRecord, AuditRecord, ClaimToken, DayReconciliation,
    DifferenceKind, Dispute, DisputeStatus, GatewayDifference, GatewayList, ItemImage, LoggedAction, Money, NewAction,
    Period, REFUSED_BY_GATEWAY, Receipt, Refund, RefundStatus, Subscription, SubscriptionStatus, WaivedPeriod,
    WaivedReason,
};
use chrono::{DateTime, NaiveDate, Utc};
use testkit::sample_subscription;
use ulid::Ulid;

/// Parses a date such as `2028-01-31`.
pub fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// The time of all example events.
pub fn event_time() -> DateTime<Utc> {
    "2028-01-31T06:00:00.123Z".parse().unwrap()
}

/// Parses a period such as `2028-01`.
pub fn period(text: &str) -> Period {
    text.parse().unwrap()
}

/// Returns an active subscription that is due on January 31, 2028.
pub fn active_subscription() -> Subscription {
    let subscription = sample_subscription(31, date("2028-01-02"));
    Subscription { email: Some("desk@acme.example.com".parse().unwrap()), ..subscription }
}

/// Returns [`active_subscription`] after `set` changed it.
pub fn changed_subscription(set: impl FnOnce(&mut Subscription)) -> Subscription {
    let mut subscription = active_subscription();
    set(&mut subscription);
    subscription
}

/// Returns an open payment attempt for the current due date of `subscription`.
pub fn open_attempt(subscription: &Subscription) -> Attempt {
    Attempt {
        table: Some(Ulid::from_parts(1, 1)),
        no: 1,
        due_on: subscription.due_on,
        amount: subscription.price,
        payment_method: subscription.payment_method.clone(),
        claimed_at: event_time(),
        leased_until: event_time(),
        claim_token: ClaimToken(Ulid::from_parts(2, 2)),
    }
}

/// Returns the receipt of a payment of [`active_subscription`].
pub fn receipt() -> Receipt {
    let Subscription { account, id, sku, product_name, email, due_on, price, .. } = active_subscription();
    let payment = "pay_4711".parse().unwrap();
    let refunded = Money::new(0, price.currency());
    Receipt {
        account,
        subscription: id,
        sku,
        product_name,
        email,
        due_on,
        amount: price,
        payment,
        customer: None,
        card: None,
        processed_at: event_time(),
        refunded,
        refunded_at: None,
        reversal: None,
    }
}

/// Returns the image of a refund of the whole [`receipt`].
pub fn refund_image(status: RefundStatus) -> ItemImage {
    let receipt = receipt();
    ItemImage::Refund(Refund {
        id: Ulid::from_parts(3, 3),
        account: receipt.account.clone(),
        receipt: receipt.id(),
        payment: receipt.payment.clone(),
        amount: receipt.amount,
        requested: None,
        status,
        gateway_refund: None,
        code: None,
        created_at: event_time(),
        leased_until: event_time(),
        settled_at: Some(event_time()),
        expires: 0,
        version: 1,
    })
}

/// Returns a refund that the gateway rejected before it started.
pub fn refund_rejected_by_gateway() -> ItemImage {
    match refund_image(RefundStatus::Failed) {
        ItemImage::Refund(refund) => ItemImage::Refund(Refund { code: Some(REFUSED_BY_GATEWAY.to_owned()), ..refund }),
        other => other,
    }
}

/// Returns the image of a dispute of the payment of [`receipt`].
pub fn dispute_image(status: DisputeStatus) -> ItemImage {
    let receipt = receipt();
    ItemImage::Dispute(Dispute {
        id: "dp_4711".parse().unwrap(),
        account: receipt.account.clone(),
        receipt: receipt.id(),
        payment: receipt.payment.clone(),
        payment_method: "pm_1".parse().unwrap(),
        amount: receipt.amount,
        reason: "fraudulent".to_owned(),
        status,
        opened_at: event_time(),
        closed_at: Some(event_time()),
        version: 1,
    })
}

/// Returns the record of an ended payment attempt of [`active_subscription`].
pub fn attempt_record(outcome: AttemptEnd) -> AttemptRecord {
    let Subscription { account, id, due_on, price, .. } = active_subscription();
    let code = "insufficient_funds".to_owned();
    AttemptRecord {
        account,
        subscription: id,
        due_on,
        attempt_no: 3,
        amount: price,
        customer: None,
        outcome,
        code,
        hard: false,
        is_decline: outcome == AttemptEnd::Declined,
        processed_at: event_time(),
    }
}

/// Returns a period that was waived because of a pause.
pub fn waived_period() -> WaivedPeriod {
    let Subscription { account, id, due_on, .. } = active_subscription();
    WaivedPeriod { account, subscription: id, due_on, reason: WaivedReason::Paused, waived_at: event_time() }
}

/// Returns the record of an audit that found a violation. `ended_at` is `None` while the audit runs.
pub fn audit_record(ended_at: Option<DateTime<Utc>>) -> AuditRecord {
    let mut audit = AuditRecord::new(Ulid::from_parts(4, 4), false, event_time());
    audit.add_violation("indexed", "ACC#acme", "the payment index does not contain it");
    AuditRecord { ended_at, accounts: 2, subscriptions: 3, ..audit }
}

/// Returns the image of a day's comparison with one difference. `ended_at` is `None` while the comparison runs.
pub fn reconciliation_image(ended_at: Option<DateTime<Utc>>) -> ItemImage {
    let mut day = DayReconciliation::new(date("2028-01-31"), event_time());
    day.add_difference(GatewayDifference {
        kind: DifferenceKind::PaidTwice,
        id: "pi_2".to_owned(),
        what: "paid twice".to_owned(),
    });
    day.not_compared.insert(GatewayList::Disputes);
    ItemImage::Reconciliation(Box::new(DayReconciliation { ended_at, ..day }))
}

/// Returns the image of the item of `subscription`.
pub fn subscription_image(subscription: Subscription) -> ItemImage {
    ItemImage::Subscription(Box::new(subscription))
}

/// Returns the image of an entry in the action log: the operator `desk` took an action of the kind `kind`. Unless the
/// action is an import, the entry shows a subscription that was paused. `counts` are further fields of the entry.
pub fn action_image(kind: ActionKind, counts: &[(&str, &str)]) -> ItemImage {
    let actor = Actor::Operator(ActorName::new("desk"));
    let action = NewAction { at: event_time(), actor, kind, reason: Some("asked by phone".parse().unwrap()) };
    let entry = match kind {
        ActionKind::ImportSubscriptions => action.on_job([]),
        _ => action.on_subscription(
            Some(&active_subscription()),
            &changed_subscription(|s| s.status = SubscriptionStatus::Paused),
        ),
    };
    let counts = counts.iter().map(|(name, count)| (name.to_string(), count.to_string()));
    ItemImage::Action(Box::new(LoggedAction {
        after: entry.after.clone().into_iter().chain(counts).collect(),
        ..entry
    }))
}
