//! Stripe's refunds ("Refunds" in Stripe's API reference).

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use serde::Deserialize;

use super::lists::Listed;
use super::wire::Error;
use super::{Failed, Stripe, amount};
use crate::{DisputeMade, GatewayError, RefundAnswer, RefundMade, RefundRequest, RefundState, Refunds};
use billing::GatewayToken;

/// The name that a refund carries, and is found by.
const REFUND: &str = "dueday_refund";

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

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    RequiresAction,
    Succeeded,
    Failed,
    Canceled,
}

impl Listed for Refund {
    fn id(&self) -> &GatewayToken {
        &self.id
    }
}

impl Refund {
    fn made(self) -> Result<RefundMade, GatewayError> {
        let refund = self;
        let currency = refund.currency.to_ascii_uppercase().parse().ok();
        let amount = currency.and_then(|currency| amount::from_stripe(refund.amount, currency));
        let unreadable = || GatewayError::Unknown { reason: format!("{} is of an amount that is none", refund.id) };
        let amount = amount.ok_or_else(unreadable)?;
        let state = match refund.status {
            Status::Succeeded => RefundState::Succeeded,
            Status::Pending | Status::RequiresAction => RefundState::Pending,
            Status::Failed => {
                RefundState::Failed { code: refund.failure_reason.unwrap_or_else(|| "failed".to_owned()) }
            }
            Status::Canceled => RefundState::Failed { code: "canceled".to_owned() },
        };
        let named = refund.metadata.get(REFUND).and_then(|name| name.parse().ok());
        Ok(RefundMade { id: refund.id, refund: named, amount, state })
    }
}

/// Returns whether an error proves that no refund was made. Only an invalid request does: errors of other kinds, such as `api_error`, and
/// other statuses may follow the effect ("Error codes" and "Advanced error handling" in Stripe's documentation).
fn is_rejection(status: StatusCode, error: &Error) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND) && error.kind == "invalid_request_error"
}

#[async_trait]
impl Refunds for Stripe {
    async fn refund(&self, request: &RefundRequest) -> RefundAnswer {
        let Ok(amount) = amount::to_stripe(request.amount) else {
            return RefundAnswer::Rejected { code: "amount_not_representable".to_owned() };
        };
        let parameters = [
            ("payment_intent", request.payment.to_string()),
            ("amount", amount.to_string()),
            (&format!("metadata[{REFUND}]"), request.refund.to_string()),
        ];
        let create = self.http.post(self.at("refunds")).form(&parameters);
        let create = create.header("Idempotency-Key", format!("refund-{}", request.refund));
        match self.send::<Refund>(create).await {
            Ok(refund) => refund.made().map_or_else(RefundAnswer::NotKnown, RefundAnswer::Made),
            Err(Failed::Refused(status, error)) if is_rejection(status, &error) => {
                RefundAnswer::Rejected { code: error.name().to_owned() }
            }
            Err(failed) => RefundAnswer::NotKnown(failed.into()),
        }
    }

    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<RefundMade>, GatewayError> {
        let refunds: Vec<Refund> = self.list_all("refunds", ("payment_intent", payment.as_str())).await?;
        refunds.into_iter().map(Refund::made).collect()
    }

    async fn refunds_since(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Option<Vec<(GatewayToken, RefundMade)>>, GatewayError> {
        let since = since.timestamp().to_string();
        let refunds: Vec<Refund> = self.list_all("refunds", ("created[gte]", &since)).await?;
        // A refund of a charge without a PaymentIntent is none of ours.
        let of_intents = refunds.into_iter().filter_map(|refund| Some((refund.payment_intent.clone()?, refund)));
        of_intents.map(|(payment, refund)| Ok((payment, refund.made()?))).collect::<Result<_, _>>().map(Some)
    }

    async fn disputes_since(&self, since: DateTime<Utc>) -> Result<Option<Vec<DisputeMade>>, GatewayError> {
        self.disputes_opened_since(since).await.map(Some)
    }
}
