//! The outcome of a PaymentIntent: a PaymentIntent that has not succeeded is cancelled, and a decline is confirmed.

use super::wire_format::{PaymentIntent, StripePaymentStatus};
use super::{ChargeResponse, GatewayError, RequestFailure, Stripe};
use billing::PaymentStatus;

impl Stripe {
    /// Returns the status of `intent`: succeeded, declined or processing. If the PaymentIntent has not succeeded but
    /// still could, cancels it first, so that a decline is final.
    pub(super) async fn resolve_status(&self, intent: &PaymentIntent) -> Result<PaymentStatus, GatewayError> {
        match intent.status {
            StripePaymentStatus::Succeeded | StripePaymentStatus::Processing | StripePaymentStatus::Canceled => {
                intent.status_after_cancel(intent)
            }
            StripePaymentStatus::RequiresPaymentMethod
            | StripePaymentStatus::RequiresConfirmation
            | StripePaymentStatus::RequiresAction
            | StripePaymentStatus::RequiresCapture => {
                intent.ensure_consistent()?;
                let path = self.api_url(&format!("payment_intents/{}/cancel", intent.id));
                // Send the cancellation without an idempotency key. With a key, Stripe would return an error of the
                // first request again for a day. A repeated cancellation has no effect, and its error contains the
                // PaymentIntent.
                match self.send::<PaymentIntent>(self.http.post(path)).await {
                    Ok(cancelled) => cancelled.status_after_cancel(intent),
                    // The status of the PaymentIntent changed after it was read, so Stripe refused to cancel it. The
                    // error contains the current status.
                    Err(RequestFailure::Refused(status, error)) => match &error.payment_intent {
                        Some(current) => current.status_after_cancel(intent),
                        None => Err(RequestFailure::Refused(status, error).into()),
                    },
                    Err(failure) => Err(failure.into()),
                }
            }
        }
    }

    /// Returns the status of `intent` like [`Self::resolve_status`], but confirms a decline first: reads the canceled
    /// PaymentIntent once, because the money may have moved although a response says `canceled`.
    async fn resolve_and_confirm_status(&self, intent: &PaymentIntent) -> Result<PaymentStatus, GatewayError> {
        match self.resolve_status(intent).await? {
            PaymentStatus::Declined(_) => {
                let current: PaymentIntent = self.send(self.payment_intent_request(&intent.id)).await?;
                current.status_after_cancel(intent)
            }
            status => Ok(status),
        }
    }

    /// Returns the response to the charge that created `intent`.
    pub(super) async fn charge_response(&self, intent: &PaymentIntent) -> ChargeResponse {
        let payment = match self.resolve_and_confirm_status(intent).await {
            Ok(PaymentStatus::Processing) => return ChargeResponse::Processing,
            Ok(PaymentStatus::Declined(decline)) => return ChargeResponse::Declined(decline),
            Ok(PaymentStatus::Succeeded) => intent.payment(PaymentStatus::Succeeded).map_err(GatewayError::from),
            Err(error) => Err(error),
        };
        match payment {
            Ok(payment) => ChargeResponse::Succeeded(payment),
            // The PaymentIntent exists, but its outcome is unknown, so the caller must look it up.
            Err(error) => {
                ChargeResponse::Unknown { reason: format!("the outcome of {} is unknown: {error}", intent.id) }
            }
        }
    }
}

impl PaymentIntent {
    /// Checks that the PaymentIntent does not contradict itself.
    ///
    /// # Errors
    /// [`GatewayError::Unreadable`] with the contradiction.
    fn ensure_consistent(&self) -> Result<(), GatewayError> {
        self.contradiction().map_or(Ok(()), |contradiction| Err(self.unreadable(contradiction).into()))
    }

    /// Returns the payment status of `before` after the attempt to cancel it. `self` is the same PaymentIntent after
    /// that attempt.
    fn status_after_cancel(&self, before: &Self) -> Result<PaymentStatus, GatewayError> {
        self.ensure_consistent()?;
        match self.status {
            StripePaymentStatus::Succeeded => Ok(PaymentStatus::Succeeded),
            StripePaymentStatus::Processing => Ok(PaymentStatus::Processing),
            StripePaymentStatus::Canceled => Ok(PaymentStatus::Declined(before.decline())),
            StripePaymentStatus::RequiresPaymentMethod
            | StripePaymentStatus::RequiresConfirmation
            | StripePaymentStatus::RequiresAction
            | StripePaymentStatus::RequiresCapture => {
                Err(GatewayError::Unknown { reason: format!("{} could not be cancelled", self.id) })
            }
        }
    }
}
