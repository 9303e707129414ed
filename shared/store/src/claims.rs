//! Claims: the conditional writes by which one worker, and no other, gets to act on a subscription.
//!
//! A claim starts from the index's hint and not from the item: it copies what it freezes inside the expression, from
//! the item itself, and returns the whole fresh item.

use std::sync::LazyLock;

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, NaiveDate, Utc};
use ulid::Ulid;

use super::items::subscription::names::*;
use super::{SubscriptionKey, Table, TableError};
use billing::{Attempt, Status, Subscription, Token};
use dynamo::{Entity as _, Holder, Instant, Lease, Leased, Terms, Values, n, s, values};

/// Held by the worker that settles an open attempt. Unlike other leases it is not available once it has expired: an open
/// attempt of any age refuses a claim, and [`Table::take_over`] requires the very lease that the worker has seen expire, so
/// that the attempt is always looked up at the gateway before it is charged.
const ATTEMPT: Lease = Lease { holder: ATTEMPT_BY, expires: ATTEMPT_LEASE, is_renewable: false };

/// Held while a reminder is sent.
const REMINDER: Lease = Lease { holder: REMINDER_BY, expires: REMINDER_LEASE, is_renewable: false };

/// Numbers the attempt, and freezes its amount, currency and payment method from the item.
static FREEZE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "#{ATTEMPT_TABLE} = :table, #{ATTEMPT_SEQ} = #{ATTEMPT_SEQ} + :one, #{ATTEMPT_NO} = #{ATTEMPT_SEQ} + :one, \
         #{ATTEMPT_DUE} = #{DUE_DATE}, #{ATTEMPT_AMOUNT} = #{PAYMENT_AMOUNT}, #{ATTEMPT_CURRENCY} = #{CURRENCY}, \
         #{ATTEMPT_PAYMENT} = #{PAYMENT_DETAILS}, #{ATTEMPT_AT} = :now, {}",
        *NEXT_VERSION
    )
});

/// What must be true of a subscription whose payment is claimed. A month such as 2026-03 sorts before every date in it.
static PAYABLE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "#{NEXT_PAYMENT_DATE} = :seen AND #{STATUS} IN (:active, :past_due) \
         AND attribute_not_exists(#{ATTEMPT_NO}) AND attribute_not_exists(#{DISPUTED_DATE}) \
         AND attribute_not_exists(#{OPEN_FINDINGS}) \
         AND (attribute_not_exists(#{CANCEL_PERIOD}) OR #{CANCEL_PERIOD} > #{DUE_DATE})"
    )
});

/// What must be true of an attempt that is taken over: it is the one that was seen, under the lease that was seen.
static SEEN_ATTEMPT: LazyLock<String> =
    LazyLock::new(|| format!("#{ATTEMPT_NO} = :no AND #{ATTEMPT_LEASE} = :lapsed AND #{ATTEMPT_BY} = :holder"));

static SEEN_REMINDER: LazyLock<String> = LazyLock::new(|| format!("#{NEXT_REMINDER_DATE} = :seen"));

/// A claim writes the item, and so raises its version.
static NEXT_VERSION: LazyLock<String> = LazyLock::new(|| format!("#{VERSION} = #{VERSION} + :one"));

/// Who claims, as of when, and until when nobody else may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// New for every call, so that a lost response can be told from another worker's claim.
    pub token: Token,
    pub now: DateTime<Utc>,
    pub leased_until: DateTime<Utc>,
}

impl Claim {
    /// The holder of the lease that it takes.
    pub(super) fn holder(&self) -> Holder {
        Holder { token: self.token.0.to_string(), now: self.now, until: self.leased_until }
    }
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
        let values = values([
            (":seen", s(seen)),
            (":active", s(Status::Active)),
            (":past_due", s(Status::PastDue)),
            (":table", s(table_id)),
            (":now", s(Instant(claim.now).text())),
        ]);
        let terms = terms(&PAYABLE, &FREEZE, values);
        claimed(self.claim_lease(of.key(), &ATTEMPT, &claim.holder(), terms).await?)
    }

    /// Takes over `attempt`, whose lease has expired: on condition of this attempt and its old lease, in any status.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn take_over(
        &self,
        of: &SubscriptionKey,
        attempt: &Attempt,
        claim: Claim,
    ) -> Result<Claimed, TableError> {
        let values = values([
            (":no", n(attempt.no)),
            (":lapsed", s(Instant(attempt.leased_until).text())),
            (":holder", s(attempt.held_by.0)),
        ]);
        let terms = terms(&SEEN_ATTEMPT, &NEXT_VERSION, values);
        claimed(self.claim_lease(of.key(), &ATTEMPT, &claim.holder(), terms).await?)
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
        let terms = terms(&SEEN_REMINDER, &NEXT_VERSION, values([(":seen", s(seen))]));
        claimed(self.take_lease(of.key(), &REMINDER, &claim.holder(), terms).await?)
    }
}

fn terms<'a>(condition: &'a str, set: &'a str, mut values: Values) -> Terms<'a> {
    values.insert(":one".to_owned(), n(1));
    Terms { condition, set, values, returned: ReturnValue::AllNew }
}

fn claimed(leased: Leased) -> Result<Claimed, TableError> {
    let read = |item| Subscription::from_item(&item).map(Box::new);
    match leased {
        Leased::Held(item) => read(item).map(Claimed::Held),
        Leased::Refused(stored) => stored.map(read).transpose().map(Claimed::Refused),
    }
}
