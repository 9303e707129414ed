//! Claims: the conditional writes by which one worker, and no other, gets to act on a subscription.
//!
//! A claim starts from the index's hint and not from the item: it copies what it freezes inside the expression, from
//! the item itself, and answers with the whole fresh item.

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use chrono::{DateTime, NaiveDate, Utc};

use super::expression::names;
use super::items::Instant;
use super::subscriptions::{read, refused};
use super::{Key, SubscriptionKey, Table, TableError, n, s};
use crate::billing::{Attempt, Status, Subscription, Token};

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
    /// cancelled by then, and no attempt of any age is open. The number comes from `AttemptSeq`, which is never reset; amount, currency and payment
    /// method are frozen from the item.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn claim_payment(
        &self,
        of: &SubscriptionKey,
        seen: NaiveDate,
        claim: Claim,
    ) -> Result<Claimed, TableError> {
        const FREEZE: &str = "SET #AttemptSeq = #AttemptSeq + :one, #AttemptNo = #AttemptSeq + :one, \
             #AttemptDue = #DueDate, #AttemptAmount = #PaymentAmount, #AttemptCurrency = #Currency, \
             #AttemptPayment = #PaymentDetails, #AttemptAt = :now, #AttemptLease = :lease, #AttemptBy = :token, \
             #Version = #Version + :one";
        // A month such as 2026-03 sorts before every date in it.
        const DUE: &str = "#NextPaymentDate = :seen AND #Status IN (:active, :past_due) \
             AND attribute_not_exists(#AttemptNo) \
             AND (attribute_not_exists(#CancelPeriod) OR #CancelPeriod > #DueDate)";
        let request = self
            .claim(of, FREEZE, DUE, claim)
            .expression_attribute_values(":seen", s(seen))
            .expression_attribute_values(":active", s(Status::Active.as_str()))
            .expression_attribute_values(":past_due", s(Status::PastDue.as_str()))
            .expression_attribute_values(":now", s(Instant(claim.now).text()));
        send(request).await
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
        let request = self
            .claim(of, HOLD, LAPSED, claim)
            .expression_attribute_values(":no", n(attempt.no))
            .expression_attribute_values(":lapsed", s(Instant(attempt.leased_until).text()))
            .expression_attribute_values(":holder", s(attempt.held_by.0));
        send(request).await
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
        let request = self
            .claim(of, HOLD, DUE, claim)
            .expression_attribute_values(":seen", s(seen))
            .expression_attribute_values(":now", s(Instant(claim.now).text()));
        send(request).await
    }

    /// What every claim has: the item, the lease, the token, and the version raised by one.
    fn claim(&self, of: &SubscriptionKey, update: &str, condition: &str, claim: Claim) -> UpdateItemFluentBuilder {
        let Key { pk, sk } = of.key();
        self.client
            .update_item()
            .table_name(&self.name)
            .key("PK", s(pk))
            .key("SK", s(sk))
            .update_expression(update)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[update, condition])))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":lease", s(Instant(claim.leased_until).text()))
            .expression_attribute_values(":token", s(claim.token.0))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }
}

async fn send(request: UpdateItemFluentBuilder) -> Result<Claimed, TableError> {
    match request.send().await {
        Ok(answer) => Ok(Claimed::Held(Box::new(read(answer.attributes.unwrap_or_default())?))),
        Err(error) => match refused(&error) {
            Some(stored) => Ok(Claimed::Refused(stored.map(read).transpose()?.map(Box::new))),
            None => Err(TableError::request("UpdateItem", error)),
        },
    }
}
