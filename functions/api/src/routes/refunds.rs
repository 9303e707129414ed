//! `POST /accounts/{account}/receipts/{receipt}/refund`: a payment, or a part of it, given back. For the operator.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use rest::Problem;
use rest::body::{Body, MinorUnits};
use rest::caller::Operator;
use rest::idempotency::IdempotencyKey;
use rest::parameters::{NoParameters, Path, Query};
use serde::{Deserialize, Serialize};
use shared::billing::{Currency, GatewayToken, Refund, RefundStatus};
use utoipa::ToSchema;

use crate::parameters::ReceiptPath;
use crate::{Api, missing, schema};

/// What is to be given back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateRefund)]
pub struct NewRefund {
    /// In minor units; all that is left of the payment if absent.
    #[serde(default)]
    #[schema(value_type = Option<rest::schema::AmountSchema>)]
    amount: Option<MinorUnits>,
}

/// A payment, or a part of it, given back.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Refund)]
pub struct RefundView {
    /// The refund's id.
    #[schema(value_type = rest::schema::SubscriptionIdSchema)]
    id: String,
    /// The receipt of the payment.
    #[schema(value_type = schema::ReceiptIdSchema)]
    receipt: String,
    /// How much is given back, in minor units.
    #[schema(value_type = rest::schema::AmountSchema)]
    amount: i64,
    /// The currency of the amount.
    #[schema(value_type = rest::schema::CurrencySchema)]
    currency: Currency,
    /// Where it stands. While it is pending, the same request asks again, and gives nothing back twice.
    #[schema(value_type = schema::RefundStatusSchema)]
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
            amount: refund.amount.minor(),
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
/// The whole of it, or a part. The same Idempotency-Key is the same refund, for as long as the receipt is kept: send it again after no
/// answer, or while it is pending.
#[utoipa::path(
    post,
    path = "/accounts/{account}/receipts/{receipt}/refund",
    operation_id = "refund_receipt",
    tag = "receipts",
    params(ReceiptPath, IdempotencyKey),
    request_body = NewRefund,
    responses(
        (status = 201, description = "It has succeeded, or has failed and says why", body = RefundView),
        (status = 202, description = "It is pending: the gateway takes its time, or gave no answer", body = RefundView)
    )
)]
pub async fn create(
    State(api): State<Api>,
    Path(path): Path<ReceiptPath>,
    _: Operator,
    _: Query<NoParameters>,
    key: IdempotencyKey,
    body: Body<NewRefund>,
) -> Result<(StatusCode, Json<RefundView>), Problem> {
    let receipt = path.id.parse().map_err(|_| missing::receipt())?;
    let id = key.id().unwrap_or_else(|| api.clock.ulid());
    let refunds = api.refunds.as_ref().ok_or_else(Problem::unavailable)?;
    let amount = body.value.amount.map(|MinorUnits(minor)| minor);
    let refund = refunds.refund(&path.account, &receipt, id, amount).await?;
    let status = match refund.status {
        RefundStatus::Pending => StatusCode::ACCEPTED,
        RefundStatus::Succeeded | RefundStatus::Failed => StatusCode::CREATED,
    };
    Ok((status, Json(refund.into())))
}
