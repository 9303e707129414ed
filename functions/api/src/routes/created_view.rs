//! A created subscription in a response, with what is known of its first payment.

use serde::{Deserialize, Serialize};
use shared::billing::Subscription;
use shared::payments::{FirstPayment, SignUp};
use shared::table::KeptAnswer;
use utoipa::{IntoResponses, ToSchema};

use super::receipts::ReceiptView;
use super::subscription_view::SubscriptionView;

/// The state of a first payment that was to be charged now. Deliver when it is `paid`, and not before.
///
/// `paid`: the customer has paid. `declined`: the customer has not; the runs try again, unless the decline is final. `rejected`: the
/// payment gateway refused the request and took nothing; a run tries again tomorrow. `processing`: the bank is working on it; days may
/// pass. `unknown`: it was begun, and a run will look up its outcome. `not_attempted`: nothing was begun; a run will charge it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FirstPaymentState)]
pub enum PaymentState {
    Paid,
    Declined,
    Rejected,
    Processing,
    Unknown,
    NotAttempted,
}

/// A subscription that was created, with what is known of its first payment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedSubscription)]
pub struct CreatedView {
    /// The subscription.
    #[serde(flatten)]
    subscription: SubscriptionView,
    /// The state of its first payment; null without `charge_now`. Its `status` does not say whether anything was paid.
    payment: Option<PaymentState>,
    /// Why the first payment was declined or rejected, as the payment gateway calls it. It is for the merchant: a thief who holds a stolen
    /// card must not read that it was reported.
    decline_code: Option<String>,
    /// The receipt of the first payment, if it is `paid`.
    receipt: Option<ReceiptView>,
}

impl CreatedView {
    fn without_charge(subscription: &Subscription) -> Self {
        let subscription = SubscriptionView::from(subscription.clone());
        Self { subscription, payment: None, decline_code: None, receipt: None }
    }
}

impl From<&SignUp> for CreatedView {
    fn from(sign_up: &SignUp) -> Self {
        let (payment, decline_code, receipt) = match sign_up.payment.clone() {
            FirstPayment::Paid(receipt) => (PaymentState::Paid, None, Some(ReceiptView::from(*receipt))),
            FirstPayment::Declined { code } => (PaymentState::Declined, Some(code), None),
            FirstPayment::Rejected { code } => (PaymentState::Rejected, Some(code), None),
            FirstPayment::Processing => (PaymentState::Processing, None, None),
            FirstPayment::Unknown => (PaymentState::Unknown, None, None),
            FirstPayment::NotAttempted => (PaymentState::NotAttempted, None, None),
        };
        Self { payment: Some(payment), decline_code, receipt, ..Self::without_charge(&sign_up.subscription) }
    }
}

/// The response to a request that created a subscription.
#[derive(IntoResponses)]
#[response(
    status = 201,
    description = "The subscription is created. With `charge_now`, its first payment was paid, declined or rejected, as `payment` says",
    headers(("ETag" = String, description = "Its version, in quotes"))
)]
#[allow(dead_code, reason = "only its description is used")]
pub struct CreatedSubscription(CreatedView);

/// The response for `sign_up`.
pub(super) fn created(sign_up: &SignUp) -> KeptAnswer {
    kept(&CreatedView::from(sign_up), &sign_up.subscription)
}

/// The response for `subscription`, which was not to be charged now.
pub(super) fn created_without_charge(subscription: &Subscription) -> KeptAnswer {
    kept(&CreatedView::without_charge(subscription), subscription)
}

fn kept(view: &CreatedView, subscription: &Subscription) -> KeptAnswer {
    let json = serde_json::to_string(view).expect("a view is representable");
    KeptAnswer { json, version: subscription.version }
}
