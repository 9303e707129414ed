//! The wire format of a subscription, and the responses that contain it.

use billing::{
    AccountId, Attempt, Currency, EmailAddress, ExternalId, Label, PaymentDay, PaymentMethod, Period, Sku,
    Subscription, SubscriptionId, SubscriptionStatus, SubscriptionTerms,
};
use chrono::{DateTime, NaiveDate, Utc};
use rest::body::MinorUnits;
use serde::Serialize;
use store::StoredResponse;
use utoipa::{IntoResponses, ToSchema};

/// A subscription: an amount that an account pays on the same day of each month.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Subscription)]
pub struct SubscriptionView {
    /// The id of the subscription.
    id: SubscriptionId,
    /// The id of the subscription in the merchant's earlier system, from which it was imported; null if it was not
    /// imported.
    external_id: Option<ExternalId>,
    /// The id of the account that pays.
    account: AccountId,
    /// The merchant's identifier of the product.
    sku: Sku,
    /// The name of the product in mails and receipts.
    product_name: Label,
    /// The address for mails about this subscription; null to use the address of the account.
    email: Option<EmailAddress>,
    /// The state of the subscription. `active` does not mean that a payment has succeeded; see `last_payment_at`.
    status: SubscriptionStatus,
    /// The day of the month on which payments are due.
    payment_day: PaymentDay,
    /// The amount of the payment that is due on `due_date`, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// Changes of payment day and amount that take effect in a later month, the earliest first.
    waiting_terms: Vec<TermsView>,
    /// The payment method that is charged.
    payment_method: PaymentMethod,
    /// The time since which the payment method is disputed and therefore not charged; null if it is not disputed.
    disputed_at: Option<DateTime<Utc>>,
    /// The due date of the earliest month that is neither paid nor waived.
    due_date: NaiveDate,
    /// The date of the next charge: the due date or a retry date. Null if no charge is planned, for example because the
    /// payment method is disputed.
    next_payment_date: Option<NaiveDate>,
    /// The date on which the customer will be reminded of the payment; null if no reminder is planned.
    next_reminder_date: Option<NaiveDate>,
    /// The time of the last successful payment; null if there is none.
    last_payment_at: Option<DateTime<Utc>>,
    /// The time of the last reminder; null if there is none.
    last_reminder_at: Option<DateTime<Utc>>,
    /// The number of consecutive declined attempts. A successful payment, a new payment method and a requested
    /// retry set it to 0.
    failed_attempts: u32,
    /// The due date on which the subscription will be cancelled without a charge; null if it will not.
    cancel_date: Option<NaiveDate>,
    /// The open payment attempt; null if there is none. A new amount or payment method applies from the next attempt.
    open_payment: Option<OpenPayment>,
    /// The time at which the subscription was created.
    created_at: DateTime<Utc>,
    /// The version of the subscription. Each write adds one. In quotes it is the `ETag`.
    version: u64,
}

impl SubscriptionView {
    /// Returns the same view with [masked](billing::GatewayToken::masked) tokens of the payment method.
    pub(super) fn with_masked_tokens(self) -> Self {
        let PaymentMethod { customer, payment_method } = &self.payment_method;
        let payment_method = PaymentMethod { customer: customer.masked(), payment_method: payment_method.masked() };
        Self { payment_method, ..self }
    }
}

/// A payment day and an amount, with the first month for which both are valid.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Terms)]
pub struct TermsView {
    /// The first month for which this payment day and amount are valid.
    from: Period,
    /// The day of the month on which payments are due.
    payment_day: PaymentDay,
    /// The amount of each payment, in minor units.
    amount: MinorUnits,
}

impl From<SubscriptionTerms> for TermsView {
    fn from(terms: SubscriptionTerms) -> Self {
        let SubscriptionTerms { from, payment_day, price } = terms;
        Self { from, payment_day, amount: price.into() }
    }
}

/// An open payment attempt: the charge has begun, and its outcome is not final yet.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenPayment {
    /// The due date of the payment.
    due_date: NaiveDate,
    /// The amount of the attempt, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// The time at which the attempt began.
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
        let next_payment_date = s.next_charge_on();
        Self {
            cancel_date: s.cancels_on(),
            id: s.id,
            external_id: s.external_id,
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
            next_payment_date,
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

/// The response of operations that return one subscription.
#[derive(IntoResponses)]
#[response(
    status = 200,
    description = "The current state of the subscription",
    headers(("ETag" = String, description = "The version of the subscription, in quotes"))
)]
#[allow(dead_code, reason = "used only for the OpenAPI document")]
pub struct CurrentSubscription(SubscriptionView);

/// Returns the JSON view of `subscription`.
pub(super) fn subscription_json(subscription: &Subscription) -> String {
    serde_json::to_string(&SubscriptionView::from(subscription.clone())).expect("a view can be serialized")
}

/// Returns the response, with the JSON view and the version of `subscription`, in the form in which idempotency records
/// store it.
pub(super) fn stored_subscription_response(subscription: &Subscription) -> StoredResponse {
    StoredResponse { json: subscription_json(subscription), version: subscription.version }
}
