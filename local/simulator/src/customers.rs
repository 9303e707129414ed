//! Customers who act at random between the runs.

use chrono::{DateTime, NaiveDate, Utc};
use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;
use shared::billing::{
    AccountId, Changes, LeadDays, OnResume, PaymentMethod, Settlement, Status, Subscription, SubscriptionId,
};
use shared::table::{Changed, Table, TableError};

use crate::stored::Who;

/// Of so many customers one acts at a time.
const ONE_IN: u32 = 25;

/// What a customer did, and when: the subscription was not as before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CustomerAct {
    pub at: DateTime<Utc>,
    pub who: Who,
    pub kind: ActKind,
    /// A payment was being made at that moment.
    pub is_paying: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ActKind {
    Paused,
    Resumed,
    Cancelled,
    /// To be cancelled at the end of the period, and not.
    Ending,
    Kept,
    Price(i64),
    Day(u32),
    Card(String),
}

/// Good ones more often than others.
const CARDS: [&str; 11] = [
    "pm_card_visa",
    "pm_card_mastercard",
    "pm_card_amex",
    "pm_card_jcb",
    "pm_card_visa_debit",
    "pm_usBankAccount_success",
    "pm_usBankAccount_insufficientFunds",
    "pm_card_visa_chargeDeclined",
    "pm_card_chargeDeclinedInsufficientFunds",
    "pm_card_visa_chargeDeclinedLostCard",
    // The gateway knows no such card, and rejects every charge.
    "pm_card_unknown",
];

/// Lets each of `everyone` act, or not, at `at` on the day `today`.
///
/// # Errors
/// [`TableError`].
pub async fn act(
    table: &Table,
    everyone: &[(AccountId, SubscriptionId)],
    (at, today, lead): (DateTime<Utc>, NaiveDate, LeadDays),
    rng: &mut ChaCha8Rng,
    acts: &mut Vec<CustomerAct>,
) -> Result<(), TableError> {
    for (account, id) in everyone {
        if !rng.random_ratio(1, ONE_IN) {
            continue;
        }
        let Some(stored) = table.get_subscription(account, *id).await? else { continue };
        let Some(kind) = choose(&stored, rng) else { continue };
        // What is refused is not done.
        let is_paying = stored.attempt.is_some();
        let change = |stored: &Subscription| {
            done(stored, &kind, lead, today, at).filter(|done| done.subscription != *stored).ok_or(())
        };
        if let Changed::Applied(_) = table.change_subscription(account, *id, None, |_| String::new(), change).await? {
            acts.push(CustomerAct { at, who: (account.to_string(), id.to_string()), kind, is_paying });
        }
    }
    Ok(())
}

fn choose(stored: &Subscription, rng: &mut ChaCha8Rng) -> Option<ActKind> {
    let card = |rng: &mut ChaCha8Rng| CARDS.choose(rng).map(|card| ActKind::Card((*card).to_owned()));
    match stored.status {
        Status::Cancelled => None,
        Status::Paused => Some(if rng.random_ratio(1, 60) { ActKind::Cancelled } else { ActKind::Resumed }),
        Status::Unpaid | Status::PastDue if rng.random_ratio(9, 10) => card(rng),
        _ => match rng.random_range(0..100) {
            0 => Some(ActKind::Cancelled),
            1..6 => Some(ActKind::Ending),
            6..40 => Some(ActKind::Kept),
            40..48 => Some(ActKind::Paused),
            48..60 => card(rng),
            60..72 => Some(ActKind::Price(rng.random_range(100..5_000))),
            72..88 => Some(ActKind::Day(rng.random_range(1..=31))),
            _ => None,
        },
    }
}

fn done(
    stored: &Subscription,
    kind: &ActKind,
    lead: LeadDays,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> Option<Settlement> {
    let changed = |changes: Changes| stored.change(&changes, lead, today).ok().map(Settlement::from);
    match kind {
        ActKind::Paused => stored.pause(today).ok().map(Settlement::from),
        ActKind::Resumed => stored.resume(OnResume::Charge, lead, today, now).ok(),
        ActKind::Cancelled => Some(stored.cancel(today, now)),
        ActKind::Ending => stored.cancel_at_period_end(today).ok().map(Settlement::from),
        ActKind::Kept => stored.uncancel(lead, today).ok().map(Settlement::from),
        ActKind::Price(minor) => changed(Changes { amount: Some(*minor), ..Changes::default() }),
        ActKind::Day(day) => changed(Changes { payment_day: i64::from(*day).try_into().ok(), ..Changes::default() }),
        ActKind::Card(card) => {
            let customer = stored.payment_method.customer.clone();
            let method = PaymentMethod { customer, payment_method: card.parse().ok()? };
            changed(Changes { payment_method: Some(method), ..Changes::default() })
        }
    }
}
