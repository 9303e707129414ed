//! The sandbox gives back at once what was paid, and not more.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::ledger::Entry;
use super::{LedgerError, Sandbox};
use crate::{GatewayError, RefundAnswer, RefundMade, RefundRequest, RefundState, Refunds};
use billing::{GatewayToken, PaymentStatus};

fn made(request: &RefundRequest, id: &GatewayToken) -> RefundMade {
    RefundMade { id: id.clone(), refund: Some(request.refund), amount: request.amount, state: RefundState::Succeeded }
}

impl Sandbox {
    /// Gives back as of `now`.
    ///
    /// # Errors
    /// [`LedgerError`]: whether it was given back is unknown.
    pub fn refund_at(&self, request: &RefundRequest, now: DateTime<Utc>) -> Result<RefundAnswer, LedgerError> {
        let rejected = |code: &str| RefundAnswer::Rejected { code: code.to_owned() };
        let id: GatewayToken = format!("re_{}", request.refund).parse().expect("a ULID is a token");
        let mut ledger = self.ledger();
        if let Some((before, id)) = ledger.refunds().iter().find(|(before, _)| before.refund == request.refund) {
            let is_same = before == request;
            return Ok(if is_same { RefundAnswer::Made(made(before, id)) } else { rejected("idempotency_error") });
        }
        let Some(payment) = ledger.by_id(&request.payment) else { return Ok(rejected("resource_missing")) };
        if ledger.status(payment) != PaymentStatus::Succeeded {
            return Ok(rejected("charge_not_refundable"));
        }
        let refunds = ledger.refunds().iter().filter(|(before, _)| before.payment == request.payment);
        let before: i64 = refunds.map(|(before, _)| before.amount.minor()).sum();
        let left = payment.request.amount.minor().saturating_sub(before);
        if request.amount.currency() != payment.request.amount.currency() || request.amount.minor() > left {
            return Ok(rejected("amount_too_large"));
        }
        ledger.append(Entry::Refunded { request: request.clone(), id: id.clone(), at: now })?;
        Ok(RefundAnswer::Made(made(request, &id)))
    }

    /// The refunds of `payment`.
    pub fn refunds_made(&self, payment: &GatewayToken) -> Vec<RefundMade> {
        let ledger = self.ledger();
        let of = ledger.refunds().iter().filter(|(request, _)| request.payment == *payment);
        of.map(|(request, id)| made(request, id)).collect()
    }
}

#[async_trait]
impl Refunds for Sandbox {
    async fn refund(&self, request: &RefundRequest) -> RefundAnswer {
        let unknown = |error: LedgerError| RefundAnswer::NotKnown(GatewayError::Unknown { reason: error.to_string() });
        self.refund_at(request, self.clock.now()).unwrap_or_else(unknown)
    }

    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<RefundMade>, GatewayError> {
        Ok(self.refunds_made(payment))
    }
}
