//! Stripe's refunds ("Refunds" in Stripe's API reference).

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use serde::Deserialize;

use super::lists::ListedObject;
use super::wire_format::Error;
use super::wire_format::PaymentIntent;
use super::{RequestFailure, Stripe, amount};
use crate::{
    GatewayDispute, GatewayError, GatewayRefund, ListPage, RefundRequest, RefundResponse, RefundState, Refunds,
    TimeRange,
};
use billing::{GatewayToken, Payment};

/// The metadata key of a refund at Stripe. Its value is our id of the refund.
const REFUND_METADATA_KEY: &str = "dueday_refund";

/// A refund in Stripe's wire format.
#[derive(Debug, Deserialize)]
pub(super) struct Refund {
    id: GatewayToken,
    amount: i64,
    currency: String,
    #[serde(default)]
    pub payment_intent: Option<GatewayToken>,
    status: Status,
    #[serde(default)]
    failure_reason: Option<String>,
    #[serde(default)]
    metadata: HashMap<String, String>,
}

/// The status of a refund at Stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    RequiresAction,
    Succeeded,
    Failed,
    Canceled,
}

impl ListedObject for Refund {
    fn id(&self) -> &GatewayToken {
        &self.id
    }
}

impl Refund {
    /// Converts the amount and the status. Fails if the amount or the currency is not valid.
    fn into_gateway_refund(self) -> Result<GatewayRefund, GatewayError> {
        let refund = self;
        let currency = refund.currency.to_ascii_uppercase().parse().ok();
        let amount = currency.and_then(|currency| amount::from_stripe(refund.amount, currency));
        let invalid = || GatewayError::Unknown {
            reason: format!("Stripe returned the refund {} with an invalid amount or currency", refund.id),
        };
        let amount = amount.ok_or_else(invalid)?;
        let state = match refund.status {
            Status::Succeeded => RefundState::Succeeded,
            Status::Pending | Status::RequiresAction => RefundState::Pending,
            Status::Failed => {
                RefundState::Failed { code: refund.failure_reason.unwrap_or_else(|| "failed".to_owned()) }
            }
            Status::Canceled => RefundState::Failed { code: "canceled".to_owned() },
        };
        let our_id = refund.metadata.get(REFUND_METADATA_KEY).and_then(|name| name.parse().ok());
        Ok(GatewayRefund { id: refund.id, refund: our_id, amount, state })
    }
}

/// Returns whether an error proves that no refund was made. Only `invalid_request_error` with status 400 or 404 proves
/// this. With other error types, such as `api_error`, or other statuses, Stripe may have made the refund ("Error codes"
/// and "Advanced error handling" in Stripe's documentation).
fn is_rejection(status: StatusCode, error: &Error) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND) && error.kind == "invalid_request_error"
}

#[async_trait]
impl Refunds for Stripe {
    async fn refund(&self, request: &RefundRequest) -> RefundResponse {
        let Ok(amount) = amount::to_stripe(request.amount) else {
            return RefundResponse::Rejected { code: "amount_not_representable".to_owned() };
        };
        let parameters = [
            ("payment_intent", request.payment.to_string()),
            ("amount", amount.to_string()),
            (&format!("metadata[{REFUND_METADATA_KEY}]"), request.refund.to_string()),
        ];
        let create = self.http.post(self.api_url("refunds")).form(&parameters);
        let create = create.header("Idempotency-Key", format!("refund-{}", request.refund));
        match self.send::<Refund>(create).await {
            Ok(refund) => refund.into_gateway_refund().map_or_else(RefundResponse::Unknown, RefundResponse::Made),
            Err(RequestFailure::Refused(status, error)) if is_rejection(status, &error) => {
                RefundResponse::Rejected { code: error.most_specific_code().to_owned() }
            }
            Err(failure) => RefundResponse::Unknown(failure.into()),
        }
    }

    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        let refunds: Vec<Refund> = self.list_all("refunds", Some(("payment_intent", payment.as_str()))).await?;
        refunds.into_iter().map(Refund::into_gateway_refund).collect()
    }

    async fn refunds_since(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Option<Vec<(GatewayToken, GatewayRefund)>>, GatewayError> {
        let since = since.timestamp().to_string();
        let refunds: Vec<Refund> = self.list_all("refunds", Some(("created[gte]", &since))).await?;
        // Ignore refunds of charges without a PaymentIntent: this software creates only PaymentIntents, so such a
        // charge belongs to another program.
        let of_intents = refunds.into_iter().filter_map(|refund| Some((refund.payment_intent.clone()?, refund)));
        of_intents
            .map(|(payment, refund)| Ok((payment, refund.into_gateway_refund()?)))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    async fn disputes_since(&self, since: DateTime<Utc>) -> Result<Option<Vec<GatewayDispute>>, GatewayError> {
        self.disputes_opened_since(since).await.map(Some)
    }

    async fn payments_in(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<Payment>>, GatewayError> {
        let expand = Some("data.latest_charge");
        let page: ListPage<PaymentIntent> = self.list_range("payment_intents", range, after, expand).await?;
        let mut items = Vec::new();
        for intent in &page.items {
            let Some(payment) = intent.payment(intent.reported_status()) else { continue };
            if let Some(reason) = intent.contradiction() {
                return Err(GatewayError::Unknown { reason });
            }
            items.push(payment);
        }
        Ok(Some(ListPage { items, next: page.next }))
    }

    async fn refunds_in(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        let page: ListPage<Refund> = self.list_range("refunds", range, after, None).await?;
        let of_intents = page.items.into_iter().filter_map(|refund| Some((refund.payment_intent.clone()?, refund)));
        let items = of_intents.map(|(payment, refund)| Ok((payment, refund.into_gateway_refund()?)));
        Ok(Some(ListPage { items: items.collect::<Result<_, GatewayError>>()?, next: page.next }))
    }

    async fn disputes_in(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        self.disputes_opened_in(range, after).await.map(Some)
    }
}
