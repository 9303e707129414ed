//! Creating a subscription with `charge_now`: the first payment is charged while the customer waits for the response.

use axum::http::StatusCode;
use axum::response::Response;
use billing::{AccountId, Subscription, SubscriptionId};
use charging::{FirstPayment, SubscriptionWithFirstPayment};
use chrono::NaiveDate;
use rest::Problem;
use rest::idempotency::{json_response, mark_response_as_replayed};
use serde::Deserialize;
use store::{IdempotencyKeyReuse, IdempotentRequest};

use super::created_view::{FirstPaymentState, stored_response_with_payment};
use crate::{Api, problems};

/// The fields that are read from the stored response of an earlier request: the created subscription and its first
/// payment.
#[derive(Deserialize)]
struct StoredSignUpFields {
    id: SubscriptionId,
    #[serde(default)]
    payment: Option<FirstPaymentState>,
}

impl Api {
    /// Charges the first payment of the subscription `created`, which `request` has just created. Returns the
    /// subscription with the state of that payment: 201 if it was paid, declined or rejected, 202 otherwise.
    ///
    /// # Errors
    /// 503 if this deployment has no gateway; 409, 500 or 503 if a request to the table fails.
    pub(super) async fn charge_created_subscription(
        &self,
        created: Subscription,
        request: &IdempotentRequest,
        today: NaiveDate,
    ) -> Result<Response, Problem> {
        self.first_payment_response(created, request, false, today).await
    }

    /// Returns the response to a repeated sign-up request, with the current state of the first payment. If the first
    /// request crashed before it charged the payment, the payment is charged now.
    ///
    /// # Errors
    /// 422 if the key was used with another body; 503 if this deployment has no gateway; 409, 500 or 503 if a request
    /// to the table fails.
    pub(super) async fn respond_to_repeated_sign_up(
        &self,
        account: &AccountId,
        replayed: IdempotencyKeyReuse,
        request: &IdempotentRequest,
        today: NaiveDate,
    ) -> Result<Response, Problem> {
        let IdempotencyKeyReuse::SameRequest(stored) = replayed else { return Err(Problem::idempotency_key_reused()) };
        let StoredSignUpFields { id, payment } =
            serde_json::from_str(&stored.json).map_err(|_| Problem::internal_error())?;
        let was_processing = payment == Some(FirstPaymentState::Processing);
        let stored = self.table.get_subscription(account, id).await?.ok_or_else(problems::subscription_not_found)?;
        Ok(mark_response_as_replayed(self.first_payment_response(stored, request, was_processing, today).await?))
    }

    /// Charges the first payment of `stored` if it was not attempted yet. Returns the response with the state of this
    /// payment. `was_processing` is true if the stored response to an earlier request has the state `processing`.
    async fn first_payment_response(
        &self,
        stored: Subscription,
        request: &IdempotentRequest,
        was_processing: bool,
        today: NaiveDate,
    ) -> Result<Response, Problem> {
        let charges = self.charges.as_ref().ok_or_else(Problem::unavailable)?;
        // After a first attempt, only the daily runs retry the payment.
        let created = match stored.attempt_seq {
            0 => charges.charge_now(&stored, today).await?.ok_or_else(problems::subscription_not_found)?,
            _ => charges.engine().read_first_payment_state(stored, was_processing).await?,
        };
        let response = stored_response_with_payment(&created);
        // The table does not store whether an open payment is `processing`. Therefore store this state in the response
        // that repeated requests get.
        if created.payment == FirstPayment::Processing
            && !was_processing
            && let Err(error) = self.table.replace_stored_response(request, &response).await
        {
            tracing::warn!(%error, error_type = "Table", "a repeated sign-up request will return the state unknown instead of processing");
        }
        Ok(json_response(first_payment_status_code(&created), response))
    }
}

/// Returns the status code of the response: 201 if the first payment was paid, declined or rejected, 202 otherwise.
fn first_payment_status_code(created: &SubscriptionWithFirstPayment) -> StatusCode {
    match created.payment {
        FirstPayment::Paid(_) | FirstPayment::Declined { .. } | FirstPayment::Rejected { .. } => StatusCode::CREATED,
        FirstPayment::Processing | FirstPayment::Unknown | FirstPayment::NotAttempted => StatusCode::ACCEPTED,
    }
}
