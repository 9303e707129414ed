//! The response to the creation of a subscription, with the state of its first payment.

use charging::{FirstPayment, SubscriptionWithFirstPayment};
use serde::{Deserialize, Serialize};
use store::StoredResponse;
use utoipa::{IntoResponses, ToSchema};

use super::receipts::ReceiptView;
use super::subscription_view::SubscriptionView;

/// The state of the first payment of a subscription that was created with `charge_now`. Deliver the goods only when it
/// is `paid`.
///
/// `paid`: the customer has paid. `declined`: the bank declined the payment; the daily runs retry it, unless the
/// decline is final. `rejected`: the payment gateway refused the request and charged nothing; a run retries the payment
/// tomorrow. `processing`: the bank is processing the payment, which can take days. `unknown`: the payment was
/// attempted and its outcome is unknown; a run will look it up. `not_attempted`: the payment was not attempted; a run
/// will charge it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FirstPaymentState)]
pub enum FirstPaymentState {
    Paid,
    Declined,
    Rejected,
    Processing,
    Unknown,
    NotAttempted,
}

/// A created subscription, with the state of its first payment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedSubscription)]
pub struct CreatedSubscriptionView {
    /// The subscription.
    #[serde(flatten)]
    subscription: SubscriptionView,
    /// The state of the first payment; absent without `charge_now`. The field `status` does not show
    /// whether the payment succeeded.
    #[schema(required = false)]
    payment: FirstPaymentState,
    /// The gateway's code for a declined or rejected first payment; null otherwise, absent without `charge_now`. Do not
    /// show it to the customer: a thief must not learn that a stolen card was reported.
    decline_code: Option<String>,
    /// The receipt of the first payment; null unless `payment` is `paid`, absent without `charge_now`.
    receipt: Option<ReceiptView>,
}

impl From<&SubscriptionWithFirstPayment> for CreatedSubscriptionView {
    fn from(created: &SubscriptionWithFirstPayment) -> Self {
        let (payment, decline_code, receipt) = match created.payment.clone() {
            FirstPayment::Paid(receipt) => (FirstPaymentState::Paid, None, Some(ReceiptView::from(*receipt))),
            FirstPayment::Declined { code } => (FirstPaymentState::Declined, Some(code), None),
            FirstPayment::Rejected { code } => (FirstPaymentState::Rejected, Some(code), None),
            FirstPayment::Processing => (FirstPaymentState::Processing, None, None),
            FirstPayment::Unknown => (FirstPaymentState::Unknown, None, None),
            FirstPayment::NotAttempted => (FirstPaymentState::NotAttempted, None, None),
        };
        let subscription = SubscriptionView::from(created.subscription.clone());
        Self { subscription, payment, decline_code, receipt }
    }
}

/// The response to a request that created a subscription.
#[derive(IntoResponses)]
#[response(
    status = 201,
    description = "The subscription was created. With `charge_now`, `payment` says whether its first payment was paid, declined or rejected",
    headers(("ETag" = String, description = "The version of the subscription, in quotes"))
)]
#[allow(dead_code, reason = "used only for the OpenAPI document")]
pub struct CreatedSubscription(CreatedSubscriptionView);

/// Returns the response for `created`: the subscription with the state of its first payment.
pub(super) fn stored_response_with_payment(created: &SubscriptionWithFirstPayment) -> StoredResponse {
    let json = serde_json::to_string(&CreatedSubscriptionView::from(created)).expect("a view can be serialized");
    StoredResponse { json, version: created.subscription.version }
}
