//! The creation of a subscription, with the checks of its first due date and of the account's other subscriptions.

use chrono::{DateTime, NaiveDate, Utc};

use crate::records::dispute::Dispute;
use crate::records::payment::PaymentMethod;
use crate::settings::policy::LeadDays;
use crate::subscriptions::refusal::ChangeRefusal;
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::values::calendar::days_after;
use crate::values::calendar::{PaymentDay, Period};
use crate::values::contact_data::{EmailAddress, Label};
use crate::values::ids::{AccountId, ExternalId, Sku, SubscriptionId};
use crate::values::money::Money;

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
    /// Whether the account may have another subscription of the same SKU that is not cancelled. Without this permission,
    /// a repeated sign-up or a changed file would charge the customer twice.
    pub allow_second: bool,
}

/// The records of an account that decide about a new subscription: its other subscriptions and its disputes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccountRecords {
    pub subscriptions: Vec<Subscription>,
    pub disputes: Vec<Dispute>,
}

/// The reason why a subscription is not created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CreationRefusal {
    /// The requested date of the first payment is not allowed.
    #[error("first_payment_date {0}")]
    FirstPayment(#[from] ChangeRefusal),
    /// The account has a subscription of the same SKU that is not cancelled.
    #[error(
        "the account already has the subscription {id} of {sku}, which is {status}; cancel it first, or state allow_second if the customer really wants two"
    )]
    AlreadySubscribed { id: SubscriptionId, sku: Sku, status: SubscriptionStatus },
}

/// Returns the first due date of a subscription that is created on `today`: `requested`, or the first payment day after
/// `today` if `requested` is `None`.
///
/// # Errors
/// - [`ChangeRefusal::FirstPaymentPast`] if the requested date is in the past
/// - [`ChangeRefusal::FirstPaymentFar`] if the requested date is too far in the future
/// - [`ChangeRefusal::NotOnPaymentDay`] if the requested date is not the payment day of its month
pub fn first_due_on(
    payment_day: PaymentDay,
    requested: Option<NaiveDate>,
    today: NaiveDate,
) -> Result<NaiveDate, ChangeRefusal> {
    let Some(requested) = requested else { return Ok(payment_day.first_due_date_after(today)) };
    let (latest, expected) = (days_after(today, MAX_DAYS_AHEAD), payment_day.due_in(Period::from_day(requested)));
    if requested < today {
        Err(ChangeRefusal::FirstPaymentPast { requested, today })
    } else if requested > latest {
        Err(ChangeRefusal::FirstPaymentFar { requested, latest })
    } else if requested != expected {
        Err(ChangeRefusal::NotOnPaymentDay { requested, expected })
    } else {
        Ok(requested)
    }
}

impl NewSubscription {
    /// Creates the subscription on `today`. `existing` are the records of the account. If a dispute stops charges of the
    /// payment method, the subscription has the dispute mark. `shard` is the number of the index partition that will
    /// contain the subscription.
    ///
    /// # Errors
    /// - [`CreationRefusal::FirstPayment`] with the errors of [`first_due_on`]
    /// - [`CreationRefusal::AlreadySubscribed`] if the account has another subscription of the SKU that is not
    ///   cancelled, and [`NewSubscription::allow_second`] is false
    pub fn into_subscription(
        self,
        existing: &AccountRecords,
        shard: u32,
        lead: LeadDays,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<Subscription, CreationRefusal> {
        let due_on = first_due_on(self.payment_day, self.first_payment_on, today)?;
        let is_same = |other: &&Subscription| {
            other.sku == self.sku && other.id != self.id && other.status != SubscriptionStatus::Cancelled
        };
        if let Some(first) = existing.subscriptions.iter().find(is_same).filter(|_| !self.allow_second) {
            let (id, sku, status) = (first.id, first.sku.clone(), first.status);
            return Err(CreationRefusal::AlreadySubscribed { id, sku, status });
        }
        let subscription = Subscription {
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
            status: SubscriptionStatus::Active,
            first_due_on: due_on,
            due_on,
            next_payment_on: Some(due_on),
            chargeable_from: None,
            last_payment_at: None,
            next_reminder_on: Some(lead.date_before(due_on)),
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
        };
        Ok(subscription.with_dispute_mark(&existing.disputes))
    }
}
