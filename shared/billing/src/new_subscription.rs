//! The creation of a subscription, and the check of its first due date.

use chrono::{DateTime, NaiveDate, Utc};

use super::calendar::days_after;
use super::{
    AccountId, EmailAddress, ExternalId, Label, LeadDays, Money, PaymentDay, PaymentMethod, Period, Refusal, Sku,
    Status, Subscription, SubscriptionId,
};

/// The maximum number of days (ten years) from the creation of a subscription to its requested first payment. This
/// limit also excludes years with more than four digits, which would break the order of dates in the indexes: the
/// indexes compare dates as text.
const MAX_DAYS_AHEAD: u32 = 3_652;

/// The data from which a new subscription is created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewSubscription {
    pub account: AccountId,
    pub id: SubscriptionId,
    /// The identifier of the subscription in the merchant's earlier system, if the subscription is imported.
    pub external_id: Option<ExternalId>,
    pub sku: Sku,
    pub product_name: Label,
    /// The address for the mails of the subscription; `None` to send them to the address of the account.
    pub email: Option<EmailAddress>,
    pub payment_day: PaymentDay,
    pub price: Money,
    pub payment_method: PaymentMethod,
    /// The requested date of the first payment; `None` for the first payment day strictly after the day of creation.
    pub first_payment_on: Option<NaiveDate>,
}

/// Returns the first due date of a subscription that is created on `today`: `requested`, or the first payment day after
/// `today` if `requested` is `None`.
///
/// # Errors
/// - [`Refusal::FirstPaymentPast`] if the requested date is in the past
/// - [`Refusal::FirstPaymentFar`] if the requested date is too far in the future
/// - [`Refusal::FirstPaymentDay`] if the requested date is not the payment day of its month
pub fn first_due_on(
    payment_day: PaymentDay,
    requested: Option<NaiveDate>,
    today: NaiveDate,
) -> Result<NaiveDate, Refusal> {
    let Some(requested) = requested else { return Ok(payment_day.first_after(today)) };
    let (latest, expected) = (days_after(today, MAX_DAYS_AHEAD), payment_day.due_in(Period::from_day(requested)));
    if requested < today {
        Err(Refusal::FirstPaymentPast { requested, today })
    } else if requested > latest {
        Err(Refusal::FirstPaymentFar { requested, latest })
    } else if requested != expected {
        Err(Refusal::FirstPaymentDay { requested, expected })
    } else {
        Ok(requested)
    }
}

impl NewSubscription {
    /// Creates the subscription on `today`. `shard` is the number of the index partition that will contain the
    /// subscription.
    ///
    /// # Errors
    /// Returns the errors of [`first_due_on`].
    pub fn into_subscription(
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
            external_id: self.external_id,
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
            chargeable_from: None,
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
