//! A subscription as it is answered.

use billing::{
    AccountId, Attempt, Currency, EmailAddress, Label, PaymentDay, PaymentMethod, Period, Sku, Status, Subscription,
    SubscriptionId, Terms,
};
use chrono::{DateTime, NaiveDate, Utc};
use rest::body::MinorUnits;
use serde::Serialize;
use store::KeptAnswer;
use utoipa::{IntoResponses, ToSchema};

/// An agreement to pay an amount on the same day each month.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Subscription)]
pub struct SubscriptionView {
    /// Its identifier.
    id: SubscriptionId,
    /// The account that pays.
    account: AccountId,
    /// The merchant's identifier of the product.
    sku: Sku,
    /// What mails call the product.
    product_name: Label,
    /// Where its mail goes; null: to the account's address.
    email: Option<EmailAddress>,
    /// Its state. `active` does not say that anything was paid: `last_payment_at` does.
    status: Status,
    /// The day of the month on which it is paid.
    payment_day: PaymentDay,
    /// How much is paid on the due date, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// Payment days and amounts that count from a later month on, the earliest first.
    waiting_terms: Vec<TermsView>,
    /// What is charged.
    payment_method: PaymentMethod,
    /// Since when that is disputed: it is not charged.
    disputed_at: Option<DateTime<Utc>>,
    /// The due date of the earliest month not yet paid.
    due_date: NaiveDate,
    /// When the payment batch will look: the due date or a retry date.
    next_payment_date: Option<NaiveDate>,
    /// When the customer will be reminded.
    next_reminder_date: Option<NaiveDate>,
    /// When it was last paid.
    last_payment_at: Option<DateTime<Utc>>,
    /// When its customer was last reminded.
    last_reminder_at: Option<DateTime<Utc>>,
    /// Declines in a row.
    failed_attempts: u32,
    /// The due date on which it will be cancelled, uncharged.
    cancel_date: Option<NaiveDate>,
    /// The payment that is being made; a change of amount or payment method counts from the next.
    open_payment: Option<OpenPayment>,
    /// When it was created.
    created_at: DateTime<Utc>,
    /// Raised by one with every write; in quotes it is the ETag.
    version: u64,
}

/// A payment day and an amount, and the month from which they count.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Terms)]
pub struct TermsView {
    /// The first month in which they count.
    from: Period,
    /// The day of the month on which it is paid then.
    payment_day: PaymentDay,
    /// How much is paid each month then, in minor units.
    amount: MinorUnits,
}

impl From<Terms> for TermsView {
    fn from(terms: Terms) -> Self {
        let Terms { from, payment_day, price } = terms;
        Self { from, payment_day, amount: price.into() }
    }
}

/// A payment that is being made.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenPayment {
    /// The due date that is being paid.
    due_date: NaiveDate,
    /// How much is paid each month, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// When it was begun.
    since: DateTime<Utc>,
}

impl From<Attempt> for OpenPayment {
    fn from(attempt: Attempt) -> Self {
        let Attempt { due_on, amount, claimed_at, .. } = attempt;
        Self { due_date: due_on, amount: amount.into(), currency: amount.currency(), since: claimed_at }
    }
}

impl From<Subscription> for SubscriptionView {
    fn from(s: Subscription) -> Self {
        Self {
            cancel_date: s.cancels_on(),
            id: s.id,
            account: s.account,
            sku: s.sku,
            product_name: s.product_name,
            email: s.email,
            status: s.status,
            payment_day: s.payment_day,
            amount: s.price.into(),
            currency: s.price.currency(),
            waiting_terms: s.waiting_terms.into_iter().map(TermsView::from).collect(),
            payment_method: s.payment_method,
            disputed_at: s.disputed_at,
            due_date: s.due_on,
            next_payment_date: s.next_payment_on,
            next_reminder_date: s.next_reminder_on,
            last_payment_at: s.last_payment_at,
            last_reminder_at: s.last_reminder_at,
            failed_attempts: s.failed_attempts,
            open_payment: s.attempt.map(OpenPayment::from),
            created_at: s.created_at,
            version: s.version,
        }
    }
}

/// The answer of what concerns one subscription.
#[derive(IntoResponses)]
#[response(
    status = 200,
    description = "The subscription as it is now",
    headers(("ETag" = String, description = "Its version, in quotes"))
)]
#[allow(dead_code, reason = "only its description is used")]
pub struct CurrentSubscription(SubscriptionView);

pub(super) fn shown(subscription: &Subscription) -> String {
    serde_json::to_string(&SubscriptionView::from(subscription.clone())).expect("a view is representable")
}

/// The answer about a subscription, kept and given with its version.
pub(super) fn kept(subscription: &Subscription) -> KeptAnswer {
    KeptAnswer { json: shown(subscription), version: subscription.version }
}
