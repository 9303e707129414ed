//! The sandbox's refunds: they succeed immediately, and all refunds of a payment together never exceed its amount.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::ledger::LedgerEntry;
use super::{LedgerError, Sandbox, refused_amount};
use crate::{GatewayError, GatewayRefund, RefundRequest, RefundResponse, RefundState, Refunds};
use billing::{GatewayToken, PaymentStatus};

fn succeeded_refund(request: &RefundRequest, id: &GatewayToken) -> GatewayRefund {
    GatewayRefund {
        id: id.clone(),
        refund: Some(request.refund),
        amount: request.amount,
        state: RefundState::Succeeded,
    }
}

impl Sandbox {
    /// Makes a refund at the time `now`.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger could not be written: the outcome of the refund is unknown.
    pub fn refund_at(&self, request: &RefundRequest, now: DateTime<Utc>) -> Result<RefundResponse, LedgerError> {
        let rejected = |code: &str| RefundResponse::Rejected { code: code.to_owned() };
        let id: GatewayToken = format!("re_{}", request.refund).parse().expect("a ULID is a token");
        let mut ledger = self.ledger();
        if let Some((before, id)) = ledger.refunds().iter().find(|(before, _)| before.refund == request.refund) {
            let is_same = before == request;
            return Ok(if is_same {
                RefundResponse::Made(succeeded_refund(before, id))
            } else {
                rejected("idempotency_error")
            });
        }
        if let Some(code) = refused_amount(request.amount) {
            return Ok(rejected(code));
        }
        let Some(payment) = ledger.payment_by_id(&request.payment) else { return Ok(rejected("resource_missing")) };
        if ledger.status_of_payment(payment) != PaymentStatus::Succeeded {
            return Ok(rejected("charge_not_refundable"));
        }
        let refunds = ledger.refunds().iter().filter(|(before, _)| before.payment == request.payment);
        let refunded: i64 = refunds.map(|(before, _)| before.amount.minor()).sum();
        let left = payment.request.amount.minor().saturating_sub(refunded);
        if request.amount.currency() != payment.request.amount.currency() || request.amount.minor() > left {
            return Ok(rejected("amount_too_large"));
        }
        ledger.append(LedgerEntry::Refunded { request: request.clone(), id: id.clone(), at: now })?;
        Ok(RefundResponse::Made(succeeded_refund(request, &id)))
    }

    /// Lists the refunds of `payment`.
    pub fn refunds_made(&self, payment: &GatewayToken) -> Vec<GatewayRefund> {
        let ledger = self.ledger();
        let of_payment = ledger.refunds().iter().filter(|(request, _)| request.payment == *payment);
        of_payment.map(|(request, id)| succeeded_refund(request, id)).collect()
    }
}

#[async_trait]
impl Refunds for Sandbox {
    async fn refund(&self, request: &RefundRequest) -> RefundResponse {
        let unknown = |error: LedgerError| RefundResponse::Unknown(GatewayError::Unknown { reason: error.to_string() });
        self.refund_at(request, self.clock.now()).unwrap_or_else(unknown)
    }

    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        Ok(self.refunds_made(payment))
    }
}
