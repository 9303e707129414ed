//! An example account and example subscriptions for tests.

use billing::{
    Account, AccountRecords, ActionKind, Actor, Currency, LeadDays, MailStatus, NewAction, NewSubscription,
    PaymentMethod, Subscription, SubscriptionId,
};
use chrono::{NaiveDate, NaiveTime};
use ulid::Ulid;

/// Returns the account `acme`.
///
/// # Panics
/// Never, because all values are valid.
pub fn sample_account() -> Account {
    Account {
        id: "acme".parse().expect("an account id"),
        email: "billing@acme.example.com".parse().expect("an address"),
        name: "Acme".parse().expect("a name"),
        locale: Default::default(),
        mail_status: MailStatus::default(),
        created_at: chrono::DateTime::UNIX_EPOCH,
        erasure_requested_at: None,
        version: 1,
    }
}

/// Returns a subscription of `acme` to the Gold plan, in shard 0: 12.99 EUR on the day `payment_day` of each month,
/// created on `created_on` at 06:00 UTC. The payment day determines the subscription's id.
///
/// # Panics
/// If `payment_day` is not a valid payment day.
pub fn sample_subscription(payment_day: i64, created_on: NaiveDate) -> Subscription {
    let new = NewSubscription {
        account: sample_account().id,
        id: SubscriptionId::new(Ulid::from_parts(1, u128::from(payment_day.unsigned_abs()))),
        external_id: None,
        sku: "gold".parse().expect("a SKU"),
        product_name: "Gold plan".parse().expect("a name"),
        email: None,
        payment_day: payment_day.try_into().expect("a payment day"),
        price: "EUR".parse().and_then(|eur: Currency| eur.price(1299)).expect("a price"),
        payment_method: PaymentMethod {
            customer: "cus_1".parse().expect("a token"),
            payment_method: "pm_card_visa".parse().expect("a token"),
        },
        first_payment_on: None,
        allow_second: false,
    };
    let six = NaiveTime::from_hms_opt(6, 0, 0).unwrap_or_default();
    new.into_subscription(
        &AccountRecords::default(),
        0,
        LeadDays::default(),
        created_on,
        created_on.and_time(six).and_utc(),
    )
    .expect("a subscription")
}

/// Returns an action of the kind `kind` that an anonymous caller takes.
pub fn sample_action(kind: ActionKind) -> NewAction {
    NewAction { at: chrono::DateTime::UNIX_EPOCH, actor: Actor::Anonymous, kind, reason: None }
}
