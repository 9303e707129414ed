//! Stripe's refunds ("Refunds" in Stripe's API reference).

use std::collections::HashMap;

use async_trait::async_trait;
use reqwest::StatusCode;
use serde::Deserialize;

use super::wire::Error;
use super::{Failed, PAGE_ITEMS, Stripe, amount};
use crate::billing::GatewayToken;
use crate::gateway::{GatewayError, RefundAnswer, RefundMade, RefundRequest, RefundState, Refunds};

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

#[derive(Debug, Deserialize)]
struct Page {
    data: Vec<Refund>,
    has_more: bool,
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
        let (mut made, mut after) = (Vec::new(), None::<GatewayToken>);
        loop {
            let mut query = vec![("payment_intent", payment.as_str()), ("limit", PAGE_ITEMS)];
            query.extend(after.as_ref().map(|after| ("starting_after", after.as_str())));
            let page: Page = self.send(self.http.get(self.at("refunds")).query(&query)).await?;
            let last = page.data.last().map(|refund| refund.id.clone());
            for refund in page.data {
                made.push(refund.made()?);
            }
            match last {
                Some(last) if page.has_more => after = Some(last),
                _ => return Ok(made),
            }
        }
    }
}
