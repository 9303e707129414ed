//! `POST /accounts/{account}/receipts/{receipt}/refund`: refunds a payment or a part of it. For operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::{
    ActionKind, Currency, GatewayToken, Label, NewAction, ReceiptId, ReceiptReference, Refund, RefundDemand,
    RefundStatus,
};
use chrono::{DateTime, Utc};
use rest::body::{Body, MinorUnits};
use rest::idempotency::RequiredIdempotencyKey;
use rest::openapi::UlidText;
use rest::parameters::{NoParameters, Path, Query};
use rest::{OperatorAccess, Problem, RequestActor, RequestTime, Role};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::actions::new_action;
use crate::error_responses::refund_problem;
use crate::parameters::ReceiptPath;
use crate::{Api, problems};

/// The amount to refund, and the reason.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateRefund)]
pub struct NewRefund {
    /// The amount to refund, in minor units; if absent, the whole amount that can be refunded: the paid amount minus the
    /// refunds, minus the amount that the bank took back, and minus the amount of open disputes.
    #[serde(default)]
    amount: Option<MinorUnits>,
    /// Refund the money even if the bank took it back, or may still take it back because of an open dispute. The
    /// customer then gets this money twice.
    #[serde(default)]
    although_disputed: bool,
    /// The reason for the refund, for the action log. Do not write personal data into it.
    reason: Label,
}

/// A refund of a payment or of a part of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Refund)]
pub struct RefundView {
    /// The id of the refund.
    #[schema(value_type = UlidText)]
    id: String,
    /// The id of the payment's receipt.
    #[schema(value_type = ReceiptId)]
    receipt: String,
    /// The refunded amount, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// The state of the refund. A pending refund may have succeeded: its amount cannot be refunded again. Repeat the
    /// request under the same key to look the refund up at the gateway.
    status: RefundStatus,
    /// The id of the refund at the payment gateway; null while it is unknown.
    #[schema(value_type = Option<String>)]
    gateway_refund_id: Option<GatewayToken>,
    /// The gateway's code for a failed refund; null otherwise.
    code: Option<String>,
    /// The time of the request.
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
/// Refunds the whole payment or a part of it. The header Idempotency-Key and a reason are required. Requests with the
/// same key are the same refund, for as long as the receipt is stored. Repeat the request under the same key if there was
/// no response, and while the refund is pending. A key that was used with another body is refused with 422. Money that
/// the bank took back, or may still take back because of an open dispute, is only refunded with `although_disputed`, which
/// needs the role admin. An operator with the role support may refund up to the sum per day of the setting
/// `support-refunds`; a higher refund is refused with 403.
#[utoipa::path(
    post,
    path = "/accounts/{account}/receipts/{receipt}/refund",
    operation_id = "refund_receipt",
    tag = "receipts",
    params(ReceiptPath, RequiredIdempotencyKey),
    request_body = NewRefund,
    responses(
        (status = 201, description = "The refund has succeeded or failed, as `status` says", body = RefundView),
        (status = 202, description = "The refund is pending: the gateway has not finished it, or its outcome is unknown", body = RefundView)
    )
)]
pub async fn refund_receipt(
    State(api): State<Api>,
    now: RequestTime,
    Path(path): Path<ReceiptPath>,
    (OperatorAccess { role }, actor): (OperatorAccess, RequestActor),
    _: Query<NoParameters>,
    key: RequiredIdempotencyKey,
    body: Body<NewRefund>,
) -> Result<(StatusCode, Json<RefundView>), Problem> {
    let has_daily_limit = role.has_refund_limit();
    if has_daily_limit && body.value.although_disputed {
        // The customer would get the money twice.
        return Err(Problem::missing_role(role, Role::Admin).with_field("although_disputed"));
    }
    let reference = path.receipt.ok_or_else(problems::receipt_not_found)?;
    let receipt = match reference {
        ReceiptReference::Id(id) => id,
        ReceiptReference::Number(_) => api
            .table
            .find_receipt(&path.account, &reference, now.at)
            .await?
            .ok_or_else(problems::receipt_not_found)?
            .id(),
    };
    let key = key.with_path_segment_after("receipts", &receipt.to_string());
    let refunds = api.refunds.as_ref().ok_or_else(Problem::unavailable)?;
    let NewRefund { amount, although_disputed, reason } = body.value;
    let demand = RefundDemand { minor: amount.map(|MinorUnits(minor)| minor), although_disputed, has_daily_limit };
    let action = new_action(ActionKind::CreateRefund, actor, now);
    let action = NewAction { reason: Some(reason), ..action };
    let refund = refunds
        .refund(&path.account, &receipt, key.derive_request_id(), demand, Some(&action))
        .await
        .map_err(refund_problem)?;
    let status = match refund.status {
        RefundStatus::Pending => StatusCode::ACCEPTED,
        RefundStatus::Succeeded | RefundStatus::Failed => StatusCode::CREATED,
    };
    Ok((status, Json(refund.into())))
}
