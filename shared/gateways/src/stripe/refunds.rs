//! Stripe's refunds ("Refunds" in Stripe's API reference).

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::reading::read_listed_dispute;
use super::wire_format::{PaymentIntent, StripeError, null_as_default};
use super::{RequestFailure, Stripe, StripeDispute, amount};
use crate::{
    DisputeDetails, GatewayDispute, GatewayError, GatewayRefund, ListPage, RefundRequest, RefundResponse, RefundState,
    Refunds, TimeRange, UnreadableObject,
};
use billing::{GatewayToken, Payment};

/// The metadata key of a refund at Stripe. Its value is our id of the refund.
const REFUND_METADATA_KEY: &str = "dueday_refund";

/// A refund in Stripe's wire format. The types of stripe-node (`types/Refunds.d.ts`) state that the status and the
/// metadata can be `null`.
#[derive(Debug, Deserialize)]
struct RefundObject {
    id: GatewayToken,
    amount: i64,
    currency: String,
    #[serde(default)]
    status: Option<RefundProgress>,
    #[serde(default)]
    failure_reason: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    metadata: HashMap<String, String>,
}

/// The status of a refund at Stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RefundProgress {
    Pending,
    RequiresAction,
    Succeeded,
    Failed,
    Canceled,
}

impl RefundObject {
    /// Converts the amount and the status. Fails with the reason if the amount or the currency is not valid.
    fn into_gateway_refund(self) -> Result<GatewayRefund, String> {
        let currency = self.currency.to_ascii_uppercase().parse().map_err(|_| "it has no valid currency".to_owned())?;
        let amount = amount::money_from_stripe_amount(self.amount, currency)
            .ok_or_else(|| "it has no valid amount".to_owned())?;
        let state = match self.status {
            Some(RefundProgress::Succeeded) => RefundState::Succeeded,
            // A refund without a status has neither succeeded nor failed.
            Some(RefundProgress::Pending | RefundProgress::RequiresAction) | None => RefundState::Pending,
            Some(RefundProgress::Failed) => {
                RefundState::Failed { code: self.failure_reason.unwrap_or_else(|| "failed".to_owned()) }
            }
            Some(RefundProgress::Canceled) => RefundState::Failed { code: "canceled".to_owned() },
        };
        let our_id = self.metadata.get(REFUND_METADATA_KEY).and_then(|name| name.parse().ok());
        Ok(GatewayRefund { id: self.id, refund: our_id, amount, state })
    }
}

/// Reads a refund of `payment` from `object`.
///
/// # Errors
/// [`UnreadableObject`] if a field is missing or is not valid.
fn read_refund(object: &Value, payment: GatewayToken) -> Result<(GatewayToken, GatewayRefund), UnreadableObject> {
    let refund = RefundObject::deserialize(object)
        .map_err(|error| error.to_string())
        .and_then(RefundObject::into_gateway_refund);
    match refund {
        Ok(refund) => Ok((payment, refund)),
        Err(reason) => Err(UnreadableObject::new(object, Some(payment), reason)),
    }
}

/// Reads a refund and its payment from `object`. Returns `None` if the refunded charge has no PaymentIntent: this
/// software creates only PaymentIntents, so such a charge belongs to another program.
fn read_listed_refund(object: &Value) -> Option<Result<(GatewayToken, GatewayRefund), UnreadableObject>> {
    let payment = object["payment_intent"].as_str()?.parse().ok()?;
    Some(read_refund(object, payment))
}

/// Returns whether an error proves that no refund was made. Only `invalid_request_error` with status 400 or 404 proves
/// this. With other error types, such as `api_error`, or other statuses, Stripe may have made the refund ("Error codes"
/// and "Advanced error handling" in Stripe's documentation).
fn is_refund_rejection(status: StatusCode, error: &StripeError) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND) && error.kind == "invalid_request_error"
}

#[async_trait]
impl Refunds for Stripe {
    async fn refund(&self, request: &RefundRequest) -> RefundResponse {
        let Ok(amount) = amount::to_stripe_amount(request.amount) else {
            return RefundResponse::Rejected { code: "amount_not_representable".to_owned() };
        };
        let parameters = [
            ("payment_intent", request.payment.to_string()),
            ("amount", amount.to_string()),
            (&format!("metadata[{REFUND_METADATA_KEY}]"), request.refund.to_string()),
        ];
        let create = self.http.post(self.api_url("refunds")).form(&parameters);
        let create = create.header("Idempotency-Key", format!("refund-{}", request.refund));
        match self.send::<Value>(create).await {
            Ok(object) => match read_refund(&object, request.payment.clone()) {
                Ok((_, refund)) => RefundResponse::Made(refund),
                Err(unreadable) => RefundResponse::Unknown(unreadable.into()),
            },
            Err(RequestFailure::Refused(status, error)) if is_refund_rejection(status, &error) => {
                RefundResponse::Rejected { code: error.most_specific_code().to_owned() }
            }
            Err(failure) => RefundResponse::Unknown(failure.into()),
        }
    }

    async fn refunds_of_payment(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        let listed = self.list_all("refunds", &[("payment_intent", payment.as_str())]).await?;
        let refunds = listed.read_items(|object| Some(read_refund(object, payment.clone()))).into_complete_items()?;
        Ok(refunds.into_iter().map(|(_, refund)| refund).collect())
    }

    async fn refunds_since(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        let since = since.timestamp().to_string();
        Ok(Some(self.list_all("refunds", &[("created[gte]", &since)]).await?.read_items(read_listed_refund)))
    }

    async fn disputes_since(&self, since: DateTime<Utc>) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        let since = since.timestamp().to_string();
        Ok(Some(self.list_all("disputes", &[("created[gte]", &since)]).await?.read_items(read_listed_dispute)))
    }

    async fn payments_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<Payment>>, GatewayError> {
        let listed = self.list_range("payment_intents", range, after, Some("data.latest_charge")).await?;
        let read = |object: &Value| Some(PaymentIntent::read_own(object)?.and_then(|own| own.reported_payment()));
        Ok(Some(listed.read_items(read)))
    }

    async fn refunds_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        Ok(Some(self.list_range("refunds", range, after, None).await?.read_items(read_listed_refund)))
    }

    async fn disputes_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        Ok(Some(self.list_range("disputes", range, after, None).await?.read_items(read_listed_dispute)))
    }

    async fn dispute_details(&self, id: &GatewayToken) -> Result<Option<DisputeDetails>, GatewayError> {
        let Some(found) = self.get_dispute(id).await? else { return Ok(None) };
        let StripeDispute { id, payment, amount, reason, status, opened_at } = found;
        let payment_method = match &payment {
            Some(payment) => self.get_payment_intent(payment).await?.and_then(|paid| paid.payment_method),
            None => None,
        };
        let dispute = GatewayDispute { id, payment, amount, status, opened_at };
        Ok(Some(DisputeDetails { dispute, reason, payment_method }))
    }
}
