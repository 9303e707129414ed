//! Claims: the conditional writes after which only one worker may charge a payment or send a reminder.
//!
//! A claim does not read the subscription's item first. The worker has only its index entry, which may be stale. So the
//! update expression copies the values that the attempt freezes from the item itself, and the claim returns the whole
//! updated item.

use std::sync::LazyLock;

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, NaiveDate, Utc};
use ulid::Ulid;

use crate::items::subscription::names::*;
use crate::keys::SubscriptionKey;
use crate::table::payments_table::Table;
use billing::{Attempt, ClaimToken, Subscription, SubscriptionStatus};
use dynamo::TableError;
use dynamo::{Entity as _, Instant, Lease, LeaseHolder, LeaseResult, LeaseTerms, Values, n, s, values};

/// The lease of the worker that settles an open attempt. Unlike other leases, this lease does not become available when
/// it expires: a claim fails as long as an attempt is open. Only [`Table::take_over_attempt`] acquires the expired lease, for a
/// worker that has read the open attempt. So the attempt is always looked up at the gateway before it is charged again.
const PAYMENT_CLAIM_LEASE: Lease = Lease { holder: ATTEMPT_BY, expires: ATTEMPT_LEASE, is_renewable: false };

/// The lease of the worker that sends a reminder.
const REMINDER_CLAIM_LEASE: Lease = Lease { holder: REMINDER_BY, expires: REMINDER_LEASE, is_renewable: false };

/// The assignments that open an attempt: they set the number of the attempt, and copy its due date, amount, currency
/// and payment method from the item of the subscription.
static SET_OPEN_ATTEMPT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "#{ATTEMPT_TABLE} = :table, #{ATTEMPT_SEQ} = #{ATTEMPT_SEQ} + :one, #{ATTEMPT_NO} = #{ATTEMPT_SEQ} + :one, \
         #{ATTEMPT_DUE} = #{DUE_DATE}, #{ATTEMPT_AMOUNT} = #{PAYMENT_AMOUNT}, #{ATTEMPT_CURRENCY} = #{CURRENCY}, \
         #{ATTEMPT_PAYMENT} = #{PAYMENT_DETAILS}, #{ATTEMPT_AT} = :now, {}",
        *SET_NEXT_VERSION
    )
});

/// The condition under which a payment can be claimed. The comparisons of `CancelPeriod` and `ChargeableFrom` with
/// `DueDate` work because, as text, a month such as 2026-03 sorts before every date in this month. Three parts of the
/// condition fail only for a damaged item: the due date is after the next payment date, the due date is in a paid
/// month, or an attempt has a holder but no number.
static IS_PAYABLE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "#{NEXT_PAYMENT_DATE} = :seen AND #{DUE_DATE} <= :seen AND #{STATUS} IN (:active, :past_due) \
         AND attribute_not_exists(#{ATTEMPT_NO}) AND attribute_not_exists(#{ATTEMPT_BY}) \
         AND (attribute_not_exists(#{CHARGEABLE_FROM}) OR #{CHARGEABLE_FROM} <= #{DUE_DATE}) \
         AND attribute_not_exists(#{DISPUTED_DATE}) \
         AND attribute_not_exists(#{OPEN_FINDINGS}) \
         AND (attribute_not_exists(#{CANCEL_PERIOD}) OR #{CANCEL_PERIOD} > #{DUE_DATE})"
    )
});

/// The condition of a take-over: the open attempt and its lease are unchanged since they were read.
static IS_SAME_ATTEMPT: LazyLock<String> =
    LazyLock::new(|| format!("#{ATTEMPT_NO} = :no AND #{ATTEMPT_LEASE} = :lapsed AND #{ATTEMPT_BY} = :holder"));

/// The condition of the claim of a reminder: the next reminder date is the date that was read from the index.
static IS_SAME_REMINDER_DATE: LazyLock<String> = LazyLock::new(|| format!("#{NEXT_REMINDER_DATE} = :seen"));

/// The assignment that increments the version of the subscription. Every write of a subscription increments it.
static SET_NEXT_VERSION: LazyLock<String> = LazyLock::new(|| format!("#{VERSION} = #{VERSION} + :one"));

/// A claim of a payment, a reminder or a notice by one worker: its token, its time and the end of its lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// A new token for every claim, by which a worker recognizes its own claim if the response to the claim was lost.
    pub token: ClaimToken,
    /// The time of the claim.
    pub now: DateTime<Utc>,
    /// The time at which the lease of the claim expires.
    pub leased_until: DateTime<Utc>,
}

impl Claim {
    /// Converts the claim to the holder of the lease that it acquires.
    pub(crate) fn holder(&self) -> LeaseHolder {
        LeaseHolder { token: self.token.0.to_string(), now: self.now, until: self.leased_until }
    }
}

/// The result of a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClaimOutcome {
    /// The claim succeeded. Contains the stored subscription.
    Claimed(Box<Subscription>),
    /// The condition of the claim failed. Contains the stored subscription, or `None` if it does not exist.
    Refused(Option<Box<Subscription>>),
}

impl Table {
    /// Opens a payment attempt for the due date of the subscription, if all these conditions are true:
    /// - The next payment date is `expected`, and the due date is not later.
    /// - The month of the due date is not paid.
    /// - The subscription is active or past due.
    /// - No scheduled cancellation takes effect in the month of the due date or earlier.
    /// - The payment method is not disputed, no finding blocks the subscription, and no attempt is open.
    ///
    /// The number of the attempt comes from `AttemptSeq`, which is never reset. The attempt copies the amount, the
    /// currency and the payment method of the subscription. `table_id` is the id of this table, which is stored in the
    /// attempt. Sends one UpdateItem request.
    pub async fn claim_payment(
        &self,
        subscription: &SubscriptionKey,
        expected: NaiveDate,
        table_id: Ulid,
        claim: Claim,
    ) -> Result<ClaimOutcome, TableError> {
        let values = values([
            (":seen", s(expected)),
            (":active", s(SubscriptionStatus::Active)),
            (":past_due", s(SubscriptionStatus::PastDue)),
            (":table", s(table_id)),
            (":now", s(Instant(claim.now).to_text())),
        ]);
        let terms = terms_of_claim(&IS_PAYABLE, &SET_OPEN_ATTEMPT, values);
        claim_outcome(self.acquire_lease_if(subscription.key(), &PAYMENT_CLAIM_LEASE, &claim.holder(), terms).await?)
    }

    /// Takes over the open attempt `attempt`, whose lease has expired, on condition that the attempt and its lease are
    /// unchanged. The status of the subscription does not matter. Sends one UpdateItem request.
    pub async fn take_over_attempt(
        &self,
        subscription: &SubscriptionKey,
        attempt: &Attempt,
        claim: Claim,
    ) -> Result<ClaimOutcome, TableError> {
        let values = values([
            (":no", n(attempt.no)),
            (":lapsed", s(Instant(attempt.leased_until).to_text())),
            (":holder", s(attempt.claim_token.0)),
        ]);
        let terms = terms_of_claim(&IS_SAME_ATTEMPT, &SET_NEXT_VERSION, values);
        claim_outcome(self.acquire_lease_if(subscription.key(), &PAYMENT_CLAIM_LEASE, &claim.holder(), terms).await?)
    }

    /// Claims the reminder of the subscription, if its next reminder date is `expected` and no other worker has leased
    /// the reminder. Sends one UpdateItem request.
    pub async fn claim_reminder(
        &self,
        subscription: &SubscriptionKey,
        expected: NaiveDate,
        claim: Claim,
    ) -> Result<ClaimOutcome, TableError> {
        let terms = terms_of_claim(&IS_SAME_REMINDER_DATE, &SET_NEXT_VERSION, values([(":seen", s(expected))]));
        claim_outcome(self.acquire_lease(subscription.key(), &REMINDER_CLAIM_LEASE, &claim.holder(), terms).await?)
    }
}

/// Creates the terms on which a claim acquires its lease. The request returns the whole updated item.
fn terms_of_claim<'a>(condition: &'a str, set: &'a str, mut values: Values) -> LeaseTerms<'a> {
    values.insert(":one".to_owned(), n(1));
    LeaseTerms { condition, set, values, returned: ReturnValue::AllNew }
}

/// Converts the result of the lease request to the outcome of the claim, with the stored subscription.
fn claim_outcome(leased: LeaseResult) -> Result<ClaimOutcome, TableError> {
    let read = |item| Subscription::from_item(&item).map(Box::new);
    match leased {
        LeaseResult::Acquired(item) => read(item).map(ClaimOutcome::Claimed),
        LeaseResult::Refused(stored) => stored.map(read).transpose().map(ClaimOutcome::Refused),
    }
}
