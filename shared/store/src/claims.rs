//! Claims: the conditional writes by which one worker, and no other, gets to act on a subscription.
//!
//! A claim starts from the index's hint and not from the item: it copies what it freezes inside the expression, from
//! the item itself, and answers with the whole fresh item.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use chrono::{DateTime, NaiveDate, Utc};
use ulid::Ulid;

use super::{SubscriptionKey, Table, TableError};
use billing::{Attempt, Status, Subscription, Token};
use dynamo::Instant;
use dynamo::Versioned as _;
use dynamo::{UpdateAnswer, n, s};

/// Who claims, as of when, and until when nobody else may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// New for every call, so that a lost answer can be told from another worker's claim.
    pub token: Token,
    pub now: DateTime<Utc>,
    pub leased_until: DateTime<Utc>,
}

/// What a claim came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claimed {
    /// It is ours: the fresh item.
    Held(Box<Subscription>),
    /// The condition refused it: the stored item, `None` if there is none.
    Refused(Option<Box<Subscription>>),
}

impl Table {
    /// Opens an attempt for the due date of `of`, if its next payment date is `seen`, it is chargeable, not to be
    /// cancelled by then, its payment method is not disputed, no finding blocks it, and no attempt of any age is open. The number comes from `AttemptSeq`,
    /// which is never reset; amount, currency and payment method are frozen from the item. `table_id` is this table's own.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn claim_payment(
        &self,
        of: &SubscriptionKey,
        seen: NaiveDate,
        table_id: Ulid,
        claim: Claim,
    ) -> Result<Claimed, TableError> {
        const FREEZE: &str = "SET #AttemptTable = :table, #AttemptSeq = #AttemptSeq + :one, #AttemptNo = #AttemptSeq + :one, \
             #AttemptDue = #DueDate, #AttemptAmount = #PaymentAmount, #AttemptCurrency = #Currency, \
             #AttemptPayment = #PaymentDetails, #AttemptAt = :now, #AttemptLease = :lease, #AttemptBy = :token, \
             #Version = #Version + :one";
        // A month such as 2026-03 sorts before every date in it.
        const DUE: &str = "#NextPaymentDate = :seen AND #Status IN (:active, :past_due) \
             AND attribute_not_exists(#AttemptNo) AND attribute_not_exists(#DisputedDate) \
             AND attribute_not_exists(#OpenFindings) \
             AND (attribute_not_exists(#CancelPeriod) OR #CancelPeriod > #DueDate)";
        let values = [
            (":seen", s(seen)),
            (":active", s(Status::Active)),
            (":past_due", s(Status::PastDue)),
            (":table", s(table_id)),
            (":now", s(Instant(claim.now).text())),
        ];
        self.claim(of, FREEZE, DUE, claim, values).await
    }

    /// Takes over `attempt`, whose lease has lapsed: on condition of this attempt and its old lease, in any status.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn take_over(
        &self,
        of: &SubscriptionKey,
        attempt: &Attempt,
        claim: Claim,
    ) -> Result<Claimed, TableError> {
        const HOLD: &str = "SET #AttemptLease = :lease, #AttemptBy = :token, #Version = #Version + :one";
        const LAPSED: &str = "#AttemptNo = :no AND #AttemptLease = :lapsed AND #AttemptBy = :holder";
        let values = [
            (":no", n(attempt.no)),
            (":lapsed", s(Instant(attempt.leased_until).text())),
            (":holder", s(attempt.held_by.0)),
        ];
        self.claim(of, HOLD, LAPSED, claim, values).await
    }

    /// Claims the reminder of `of`, if its next reminder date is `seen` and nobody is sending it.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn claim_reminder(
        &self,
        of: &SubscriptionKey,
        seen: NaiveDate,
        claim: Claim,
    ) -> Result<Claimed, TableError> {
        const HOLD: &str = "SET #ReminderBy = :token, #ReminderLease = :lease, #Version = #Version + :one";
        const DUE: &str =
            "#NextReminderDate = :seen AND (attribute_not_exists(#ReminderLease) OR #ReminderLease <= :now)";
        self.claim(of, HOLD, DUE, claim, [(":seen", s(seen)), (":now", s(Instant(claim.now).text()))]).await
    }

    /// What every claim has: the lease, the token, and the version raised by one.
    async fn claim<const N: usize>(
        &self,
        of: &SubscriptionKey,
        update: &str,
        condition: &str,
        claim: Claim,
        values: [(&str, AttributeValue); N],
    ) -> Result<Claimed, TableError> {
        let common = [(":one", n(1)), (":lease", s(Instant(claim.leased_until).text())), (":token", s(claim.token.0))];
        let values = common.into_iter().chain(values).map(|(name, value)| (name.to_owned(), value)).collect();
        let read = |item| Subscription::from_item(&item).map(Box::new);
        match self.update(self.update_of(of.key(), update, condition, values), ReturnValue::AllNew).await? {
            UpdateAnswer::Done(item) => read(item).map(Claimed::Held),
            UpdateAnswer::Refused(stored) => stored.map(read).transpose().map(Claimed::Refused),
        }
    }
}
