//! The idempotency key of an attempt, and what another worker may do with an attempt whose outcome is unknown.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use sha2::{Digest, Sha256};

use super::{Attempt, Outcome, Payment, PaymentStatus, Period, Status, Subscription, Token};

/// An attempt the gateway does not know after this time is settled as rejected: under its key nothing but a failure has
/// come back for two days. Nothing of it is under way then, because its lease has lapsed and the gateway was just asked.
pub const MAX_ATTEMPT_AGE: TimeDelta = TimeDelta::hours(48);

impl Attempt {
    /// The idempotency key: the same for every request of this attempt, different for every other attempt of any table.
    pub fn idempotency_key(&self, subscription: &Subscription) -> String {
        let Subscription { account, id, sku, .. } = subscription;
        let name = format!("{account}\n{id}\n{sku}\n{}\n{}", self.due_on, self.no);
        let name = self.table.map_or_else(|| name.clone(), |table| format!("{table}\n{name}"));
        format!("{:x}", Sha256::digest(name))
    }
}

/// What a worker whose claim was refused finds in the stored item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The stored claim is our own: its answer was lost.
    Ours,
    /// Somebody else's attempt is under lease.
    HeldElsewhere,
    /// An attempt that belongs to nobody: take it over, look it up.
    InDoubt(Attempt),
    /// It is due under another date than the index showed: claim again with this one.
    DueOn(NaiveDate),
    /// Nothing to charge: already settled, or not due any more.
    NotDue,
    /// Its payment method is disputed, and is not charged.
    Disputed,
    /// A payment of it has no receipt: a person must decide before it is charged again.
    Found,
    /// It was to be cancelled when this due date comes: end it.
    Ended,
    /// It must not be charged and yet is in the index: take it out.
    Stranded,
}

/// Judges `subscription`, as stored when a claim with `token` was refused. Pure: `today` and `now` are handed in.
pub fn standing(
    subscription: &Subscription,
    token: Token,
    seen: NaiveDate,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> Standing {
    match (&subscription.attempt, subscription.next_payment_on) {
        (Some(attempt), _) if attempt.held_by == token => Standing::Ours,
        (Some(attempt), _) if attempt.is_in_doubt(now) => Standing::InDoubt(attempt.clone()),
        (Some(_), _) => Standing::HeldElsewhere,
        (None, Some(_)) if !subscription.status.is_chargeable() => Standing::Stranded,
        (None, Some(next_on)) if next_on <= today && subscription.is_ending() => Standing::Ended,
        (None, Some(next_on)) if next_on <= today && subscription.open_findings > 0 => Standing::Found,
        (None, Some(next_on)) if next_on <= today && subscription.disputed_at.is_some() => Standing::Disputed,
        (None, Some(next_on)) if next_on <= today && next_on != seen => Standing::DueOn(next_on),
        (None, _) => Standing::NotDue,
    }
}

/// What to do with an attempt in doubt once the gateway was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// The gateway's knowledge, or its lasting ignorance, settles it.
    Settle(Outcome),
    /// It is still under way at the bank.
    Processing,
    /// The gateway knows nothing of it: the same charge again, under the same key.
    ChargeAgain,
}

/// Judges the attempt in doubt of `subscription` by `known`, the payments of its frozen customer.
///
/// A payment of this subscription and month counts under *any* attempt number when it succeeded or is under way:
/// an earlier attempt may have succeeded after all. A decline counts only for this very attempt.
pub fn resolve(subscription: &Subscription, attempt: &Attempt, known: &[Payment], now: DateTime<Utc>) -> Resolution {
    let ours = || known.iter().filter(|payment| is_of_month(payment, subscription, attempt));
    if let Some(paid) = successes(subscription, attempt, known).first() {
        return Resolution::Settle(Outcome::Succeeded((*paid).clone()));
    }
    if ours().any(|p| p.status == PaymentStatus::Processing) {
        return Resolution::Processing;
    }
    let declined = ours().filter(|p| p.attempt_no == attempt.no).find_map(|p| match &p.status {
        PaymentStatus::Declined(decline) => Some(decline.clone()),
        _ => None,
    });
    match (declined, subscription.status) {
        (Some(decline), _) => Resolution::Settle(Outcome::Declined(decline)),
        (None, Status::Paused | Status::Cancelled) => Resolution::Settle(Outcome::Dropped),
        (None, _) if now.signed_duration_since(attempt.claimed_at) > MAX_ATTEMPT_AGE => {
            Resolution::Settle(Outcome::Rejected { code: "unknown_to_gateway".to_owned() })
        }
        (None, _) => Resolution::ChargeAgain,
    }
}

/// Those of `known` that paid the month of `attempt`: this attempt's own first. More than one is one too many.
pub fn successes<'a>(subscription: &Subscription, attempt: &Attempt, known: &'a [Payment]) -> Vec<&'a Payment> {
    let is_success =
        |payment: &&Payment| payment.status == PaymentStatus::Succeeded && is_of_month(payment, subscription, attempt);
    let mut successes: Vec<&Payment> = known.iter().filter(is_success).collect();
    successes.sort_by_key(|payment| (payment.attempt_no != attempt.no, payment.attempt_no));
    successes
}

/// A month may have been tried under another due date, before the payment day was changed. Another table may hold a
/// subscription of the same id, at the same gateway.
fn is_of_month(payment: &Payment, subscription: &Subscription, attempt: &Attempt) -> bool {
    (payment.table.is_none() || payment.table == attempt.table)
        && payment.account == subscription.account
        && payment.subscription == subscription.id
        && Period::of(payment.due_on) == Period::of(attempt.due_on)
}
