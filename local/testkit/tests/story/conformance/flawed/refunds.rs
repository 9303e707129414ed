//! Refunds of the flawed gateways.

use std::time::Duration;

use billing::Money;
use clock::Clock as _;
use gateways::{GatewayError, GatewayRefund, RefundRequest, RefundResponse, RefundState, Refunds as _};
use ulid::Ulid;

use super::{Flaw, FlawedGateway};

/// Returns the response to `request` that a refund was made.
fn made(request: &RefundRequest) -> RefundResponse {
    let id = format!("re_{}", request.refund).parse().unwrap();
    let (refund, amount) = (Some(request.refund), request.amount);
    RefundResponse::Made(GatewayRefund { id, refund, amount, state: RefundState::Succeeded })
}

impl FlawedGateway {
    /// Makes the refund `request`, or does what the flaw of this gateway is.
    pub(super) async fn refund_with_flaw(&self, request: &RefundRequest) -> RefundResponse {
        let throttled = RefundResponse::Unknown(GatewayError::Throttled { retry_after: Some(Duration::ZERO) });
        match self.flaw {
            Flaw::None if self.is_first_with(&request.refund.to_string()) => return throttled,
            Flaw::RefundsAndRespondsThrottled if self.is_first_with(&request.refund.to_string()) => {
                self.sandbox.refund(request).await;
                return throttled;
            }
            Flaw::MakesConcurrentCopiesOfRefunds | Flaw::ForgetsRefundsAfterFiveMinutes => {
                return self.refund_unless_remembered(request).await;
            }
            _ => {}
        }
        let other = RefundRequest { refund: Ulid::from_parts(2, self.next_number().into()), ..request.clone() };
        let concurrent = format!("{} has concurrent refunds", request.payment);
        if self.flaw == Flaw::RefundsConcurrentlyMoreThanPaid && self.is_locked_or_lock(request.payment.as_str()).await
        {
            self.state().in_use.insert(concurrent.clone());
        }
        let response = self.sandbox.refund(if self.flaw == Flaw::RepeatsRefunds { &other } else { request }).await;
        match response {
            RefundResponse::Rejected { .. } if self.flaw == Flaw::RefundsMoreThanPaid => {
                let less = RefundRequest { amount: Money::new(1, request.amount.currency()), ..request.clone() };
                self.sandbox.refund(&less).await
            }
            RefundResponse::Rejected { code }
                if self.flaw == Flaw::RefundsReusedKeysWithOtherAmounts && code == "idempotency_error" =>
            {
                self.sandbox.refund(&other).await
            }
            RefundResponse::Rejected { .. } if self.state().in_use.remove(&concurrent) => {
                self.remove_lock(request.payment.as_str());
                made(request)
            }
            RefundResponse::Rejected { code }
                if self.flaw == Flaw::RefundsDeclinedPayments && code == "charge_not_refundable" =>
            {
                made(request)
            }
            response => {
                // During concurrent refunds, keep the payment locked until the sandbox rejects one of them.
                if !self.state().in_use.contains(&concurrent) {
                    self.remove_lock(request.payment.as_str());
                }
                response
            }
        }
    }

    /// Returns the first response to the refund id of `request`, if the gateway remembers it. Otherwise makes a refund.
    async fn refund_unless_remembered(&self, request: &RefundRequest) -> RefundResponse {
        let earlier = self.state().refunds.get(&request.refund).cloned();
        // Let a concurrent copy of the request also find no earlier response.
        tokio::task::yield_now().await;
        if let Some((first, at)) = earlier {
            let is_remembered = self.flaw == Flaw::MakesConcurrentCopiesOfRefunds || at > self.five_minutes_ago();
            match first {
                RefundResponse::Made(first) if is_remembered && first.amount != request.amount => {
                    return RefundResponse::Rejected { code: "idempotency_error".to_owned() };
                }
                first if is_remembered => return first,
                _ => {}
            }
        }
        if !self.state().refunds.contains_key(&request.refund) {
            let response = self.sandbox.refund(request).await;
            self.state().refunds.insert(request.refund, (response.clone(), self.clock.now()));
            return response;
        }
        let second = Ulid::from_parts(request.refund.timestamp_ms(), self.next_number().into());
        self.state().second_refunds.insert(second, request.refund);
        match self.sandbox.refund(&RefundRequest { refund: second, ..request.clone() }).await {
            RefundResponse::Made(refund) => RefundResponse::Made(self.with_requested_id(refund)),
            response => response,
        }
    }

    /// Returns `refund` with the id of its request, if it is the second refund of this request.
    pub(super) fn with_requested_id(&self, refund: GatewayRefund) -> GatewayRefund {
        let requested = refund.refund.and_then(|id| self.state().second_refunds.get(&id).copied());
        GatewayRefund { refund: requested.or(refund.refund), ..refund }
    }
}
