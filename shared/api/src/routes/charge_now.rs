//! The first payment of a customer who signs up, charged while the customer waits.

use axum::http::StatusCode;
use axum::response::Response;
use billing::{AccountId, SubscriptionId};
use chrono::NaiveDate;
use payments::{FirstPayment, SignUp};
use rest::Problem;
use rest::idempotency::{answer, replayed_answer};
use serde::Deserialize;
use store::{IdempotentRequest, Replayed};

use super::created_view::{PaymentState, created};
use crate::{Api, missing};

/// What a kept response says of the subscription that its request created.
#[derive(Deserialize)]
struct Kept {
    id: SubscriptionId,
    #[serde(default)]
    payment: Option<PaymentState>,
}

impl Api {
    /// Charges the subscription `id`, which `request` has just created, and returns it with what is known of its first payment: 201 if
    /// the payment was paid, declined or rejected, 202 otherwise.
    ///
    /// # Errors
    /// [`Problem`].
    pub(super) async fn charged_now(
        &self,
        account: &AccountId,
        id: SubscriptionId,
        request: &IdempotentRequest,
        today: NaiveDate,
    ) -> Result<Response, Problem> {
        self.first_payment(account, id, request, false, today).await
    }

    /// The response to a repeated request: what is known now. The first request may have crashed before its charge; it is made then.
    ///
    /// # Errors
    /// [`Problem`].
    pub(super) async fn charged_before(
        &self,
        account: &AccountId,
        before: Replayed,
        request: &IdempotentRequest,
        today: NaiveDate,
    ) -> Result<Response, Problem> {
        let Replayed::Answered(kept) = before else { return Err(Problem::key_reused()) };
        let Kept { id, payment } = serde_json::from_str(&kept.json).map_err(|_| Problem::internal())?;
        let was_processing = payment == Some(PaymentState::Processing);
        Ok(replayed_answer(self.first_payment(account, id, request, was_processing, today).await?))
    }

    async fn first_payment(
        &self,
        account: &AccountId,
        id: SubscriptionId,
        request: &IdempotentRequest,
        was_processing: bool,
        today: NaiveDate,
    ) -> Result<Response, Problem> {
        let charges = self.charges.as_ref().ok_or_else(Problem::unavailable)?;
        let stored = self.table.get_subscription(account, id).await?.ok_or_else(missing::subscription)?;
        // A payment that was tried before is tried again by the runs, on their days.
        let sign_up = match stored.attempt_seq {
            0 => charges.charge_now(&stored, today).await?.ok_or_else(missing::subscription)?,
            _ => charges.first_payment(stored, was_processing).await?,
        };
        let response = created(&sign_up);
        // The table does not say that an open payment is processing; the kept response does, for requests that are repeated.
        if sign_up.payment == FirstPayment::Processing
            && !was_processing
            && let Err(error) = self.table.replace_answer(request, &response).await
        {
            tracing::warn!(%error, "a repeated request will say that the payment is unknown, not processing");
        }
        Ok(answer(status(&sign_up), response))
    }
}

fn status(sign_up: &SignUp) -> StatusCode {
    match sign_up.payment {
        FirstPayment::Paid(_) | FirstPayment::Declined { .. } | FirstPayment::Rejected { .. } => StatusCode::CREATED,
        FirstPayment::Processing | FirstPayment::Unknown | FirstPayment::NotAttempted => StatusCode::ACCEPTED,
    }
}
