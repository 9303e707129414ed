//! A created subscription in a response, with what is known of its first payment.

use payments::{FirstPayment, SignUp};
use serde::{Deserialize, Serialize};
use store::KeptAnswer;
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
    /// The state of its first payment; absent without `charge_now`. Its `status` does not say whether anything was paid.
    #[schema(required = false)]
    payment: PaymentState,
    /// Why the first payment was declined or rejected, as the payment gateway calls it; absent without `charge_now`. It is for the
    /// merchant: a thief who holds a stolen card must not read that it was reported.
    decline_code: Option<String>,
    /// The receipt of the first payment, if it is `paid`; absent without `charge_now`.
    receipt: Option<ReceiptView>,
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
        let subscription = SubscriptionView::from(sign_up.subscription.clone());
        Self { subscription, payment, decline_code, receipt }
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
    let json = serde_json::to_string(&CreatedView::from(sign_up)).expect("a view is representable");
    KeptAnswer { json, version: sign_up.subscription.version }
}
