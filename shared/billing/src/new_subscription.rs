//! How a subscription begins.

use chrono::{DateTime, NaiveDate, Utc};

use super::calendar::days_after;
use super::{
    AccountId, EmailAddress, Label, LeadDays, Money, PaymentDay, PaymentMethod, Period, Refusal, Sku, Status,
    Subscription, SubscriptionId,
};

/// A first payment may be named at most this many days (ten years) ahead. Dates of more than four digits of year would
/// not compare as text in the indexes.
const MAX_DAYS_AHEAD: u32 = 3_652;

/// What is needed to begin a subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewSubscription {
    pub account: AccountId,
    pub id: SubscriptionId,
    pub sku: Sku,
    pub product_name: Label,
    pub email: Option<EmailAddress>,
    pub payment_day: PaymentDay,
    pub price: Money,
    pub payment_method: PaymentMethod,
    /// `None`: the first occurrence of the payment day strictly after the day of creation.
    pub first_payment_on: Option<NaiveDate>,
}

/// The first due date of a subscription that is created on `today`: `named`, or else the first payment day after it.
///
/// # Errors
/// A named date that has passed, lies too far ahead or does not fall on the payment day.
pub fn first_due_on(payment_day: PaymentDay, named: Option<NaiveDate>, today: NaiveDate) -> Result<NaiveDate, Refusal> {
    let Some(named) = named else { return Ok(payment_day.first_after(today)) };
    let (latest, expected) = (days_after(today, MAX_DAYS_AHEAD), payment_day.due_in(Period::of(named)));
    if named < today {
        Err(Refusal::FirstPaymentPast { named, today })
    } else if named > latest {
        Err(Refusal::FirstPaymentFar { named, latest })
    } else if named != expected {
        Err(Refusal::FirstPaymentDay { named, expected })
    } else {
        Ok(named)
    }
}

impl NewSubscription {
    /// The subscription as of `today`, to be kept in `shard`.
    ///
    /// # Errors
    /// As [`first_due_on`].
    pub fn begin(
        self,
        shard: u32,
        lead: LeadDays,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<Subscription, Refusal> {
        let due_on = first_due_on(self.payment_day, self.first_payment_on, today)?;
        Ok(Subscription {
            account: self.account,
            id: self.id,
            sku: self.sku,
            product_name: self.product_name,
            email: self.email,
            payment_day: self.payment_day,
            price: self.price,
            waiting_terms: Vec::new(),
            payment_method: self.payment_method,
            payment_method_at: None,
            disputed_at: None,
            charged_though_disputed_at: None,
            open_findings: 0,
            status: Status::Active,
            first_due_on: due_on,
            due_on,
            next_payment_on: Some(due_on),
            last_payment_at: None,
            next_reminder_on: Some(lead.before(due_on)),
            last_reminder_at: None,
            reminded_for: None,
            failed_attempts: 0,
            first_declined_on: None,
            rejections: 0,
            rejected_customer: None,
            attempt_seq: 0,
            cancel_from: None,
            unpaid_since: None,
            attempt: None,
            reminder_claim: None,
            shard,
            created_at: now,
            version: 1,
        })
    }
}
