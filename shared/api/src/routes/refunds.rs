//! `POST /accounts/{account}/receipts/{receipt}/refund`: a payment, or a part of it, given back. For the operator.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::{Currency, GatewayToken, ReceiptId, Refund, RefundStatus, SubscriptionId};
use chrono::{DateTime, Utc};
use rest::Problem;
use rest::body::{Body, MinorUnits};
use rest::caller::Operator;
use rest::idempotency::RequiredIdempotencyKey;
use rest::parameters::{NoParameters, Path, Query};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::parameters::ReceiptPath;
use crate::{Api, missing};

/// What is to be given back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateRefund)]
pub struct NewRefund {
    /// In minor units; all that is left of the payment if absent.
    #[serde(default)]
    amount: Option<MinorUnits>,
}

/// A payment, or a part of it, given back.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Refund)]
pub struct RefundView {
    /// The refund's id.
    #[schema(value_type = SubscriptionId)]
    id: String,
    /// The receipt of the payment.
    #[schema(value_type = ReceiptId)]
    receipt: String,
    /// How much is given back, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// The state of the refund. A pending refund may have been made: it counts against what is left of the payment, and repeating the
    /// request under the same key looks it up at the gateway.
    status: RefundStatus,
    /// What the payment gateway calls it.
    #[schema(value_type = Option<String>)]
    gateway_refund_id: Option<GatewayToken>,
    /// The gateway's own word for why it has failed.
    code: Option<String>,
    /// When it was asked for.
    created_at: DateTime<Utc>,
}

impl From<Refund> for RefundView {
    fn from(refund: Refund) -> Self {
        Self {
            id: refund.id.to_string(),
            receipt: refund.receipt.to_string(),
            amount: refund.amount.into(),
            currency: refund.amount.currency(),
            status: refund.status,
            gateway_refund_id: refund.gateway_refund,
            code: refund.code,
            created_at: refund.created_at,
        }
    }
}

/// Refund a payment
///
/// Refunds the whole payment or a part of it. The header Idempotency-Key is required, and the same key is the same refund for as long as
/// the receipt is kept: repeat the request under the same key when there was no response, and while the refund is pending. A key that was
/// used with another body is refused with 422.
#[utoipa::path(
    post,
    path = "/accounts/{account}/receipts/{receipt}/refund",
    operation_id = "refund_receipt",
    tag = "receipts",
    params(ReceiptPath, RequiredIdempotencyKey),
    request_body = NewRefund,
    responses(
        (status = 201, description = "It has succeeded, or has failed and says why", body = RefundView),
        (status = 202, description = "The refund is pending: the gateway has not finished it, or its outcome is unknown", body = RefundView)
    )
)]
pub async fn create(
    State(api): State<Api>,
    Path(path): Path<ReceiptPath>,
    _: Operator,
    _: Query<NoParameters>,
    key: RequiredIdempotencyKey,
    body: Body<NewRefund>,
) -> Result<(StatusCode, Json<RefundView>), Problem> {
    let receipt = path.id.or(missing::receipt)?;
    let refunds = api.refunds.as_ref().ok_or_else(Problem::unavailable)?;
    let amount = body.value.amount.map(|MinorUnits(minor)| minor);
    let refund = refunds.refund(&path.account, &receipt, key.id(), amount).await?;
    let status = match refund.status {
        RefundStatus::Pending => StatusCode::ACCEPTED,
        RefundStatus::Succeeded | RefundStatus::Failed => StatusCode::CREATED,
    };
    Ok((status, Json(refund.into())))
}
