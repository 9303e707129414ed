//! Checks of refunds: the gateway makes at most one refund for each id, and never refunds more than was paid.

use futures::future::join;

use super::running_check::{
    CONCURRENTLY_REFUNDED_CHARGE_NO, CheckResult, ConformanceCheck, MAX_REQUESTS, PARTLY_REFUNDED_CHARGE_NO,
    REFUNDED_CHARGE_NO, broken, ensure_promise, unexpected_response,
};
use crate::{GatewayRefund, RefundRequest, RefundResponse, RefundState};
use billing::{GatewayToken, Money, Payment};

/// Returns whether the customer gets money back through `refund`, now or later: it has succeeded or is pending.
fn is_succeeded_or_pending(refund: &GatewayRefund) -> bool {
    matches!(refund.state, RefundState::Succeeded | RefundState::Pending)
}

impl ConformanceCheck<'_> {
    /// Returns the request for the refund `no` of this check: `amount` minor units of `payment`.
    fn refund_request(&self, no: u128, payment: &Payment, amount: i64) -> RefundRequest {
        let amount = Money::new(amount, payment.amount.currency());
        RefundRequest { refund: self.derived_id(no), payment: payment.id.clone(), amount }
    }

    /// Sends `request`. Repeats it with the same id if there is no usable response.
    async fn send_refund(&self, request: &RefundRequest) -> RefundResponse {
        let mut response = self.gateway.refund(request).await;
        for _ in 1..MAX_REQUESTS {
            let RefundResponse::Unknown(error) = &response else { break };
            self.wait_to_retry(error).await;
            response = self.gateway.refund(request).await;
        }
        if let RefundResponse::Made(made) = &response {
            self.record_refund(&made.id);
        }
        response
    }

    /// Makes a refund that the gateway must accept.
    async fn make_refund(&self, request: &RefundRequest) -> CheckResult<GatewayRefund> {
        match self.send_refund(request).await {
            RefundResponse::Made(made) if made.amount == request.amount && is_succeeded_or_pending(&made) => Ok(made),
            other => Err(unexpected_response("a refund of that amount", other)),
        }
    }

    /// Lists the refunds of `payment`, and records their ids.
    async fn list_refunds(&self, payment: &GatewayToken) -> CheckResult<Vec<GatewayRefund>> {
        let listed = self.gateway.refunds_of(payment).await.map_err(|error| broken(error.to_string()))?;
        listed.iter().for_each(|refund| self.record_refund(&refund.id));
        Ok(listed)
    }

    /// Checks that repeated requests for a partial refund make one refund.
    pub async fn check_refunds(&self) -> CheckResult {
        let paid = self.make_payment(PARTLY_REFUNDED_CHARGE_NO).await?;
        let request = self.refund_request(1, &paid, 502);
        let (first, second) = (self.make_refund(&request).await?, self.make_refund(&request).await?);
        ensure_promise(first.id == second.id, || {
            format!("the same request made the refunds {} and {}", first.id, second.id)
        })?;
        // The gateway can respond in any way to a request with the same id and another amount, but must not make a
        // second refund.
        let other = self.send_refund(&self.refund_request(1, &paid, 503)).await;
        let listed = self.list_refunds(&paid.id).await?;
        let is_one =
            listed.len() == 1 && listed[0].refund == Some(request.refund) && listed[0].amount == request.amount;
        ensure_promise(is_one, || {
            format!(
                "the same id with another amount: {other:?}; one refund of {} was expected, and the list has {listed:?}",
                request.amount
            )
        })
    }

    /// Checks that the refunds of a payment never exceed its amount.
    pub async fn check_refund_limit(&self) -> CheckResult {
        let paid = self.make_payment(PARTLY_REFUNDED_CHARGE_NO).await?;
        let response = self.send_refund(&self.refund_request(2, &paid, paid.amount.minor())).await;
        if !matches!(response, RefundResponse::Rejected { .. }) {
            return Err(unexpected_response("a rejection", response));
        }
        let paid = self.make_payment(REFUNDED_CHARGE_NO).await?;
        self.make_refund(&self.refund_request(3, &paid, paid.amount.minor())).await?;
        let response = self.send_refund(&self.refund_request(4, &paid, 1)).await;
        if !matches!(response, RefundResponse::Rejected { .. }) {
            return Err(unexpected_response("a rejection", response));
        }
        self.check_concurrent_refunds().await
    }

    /// Checks that the gateway makes at most one of two concurrent refunds of the whole payment.
    async fn check_concurrent_refunds(&self) -> CheckResult {
        let paid = self.make_payment(CONCURRENTLY_REFUNDED_CHARGE_NO).await?;
        let requests = [5, 6].map(|no| self.refund_request(no, &paid, paid.amount.minor()));
        let (first, second) = join(self.send_refund(&requests[0]), self.send_refund(&requests[1])).await;
        let is_made =
            |response: &RefundResponse| matches!(response, RefundResponse::Made(made) if is_succeeded_or_pending(made));
        let listed = self.list_refunds(&paid.id).await?;
        let refunded: i64 =
            listed.iter().filter(|refund| is_succeeded_or_pending(refund)).map(|refund| refund.amount.minor()).sum();
        ensure_promise(!(is_made(&first) && is_made(&second)) && refunded <= paid.amount.minor(), || {
            format!(
                "two concurrent refunds of the full amount {} must refund it once: the responses were {first:?} and {second:?}",
                paid.amount
            )
        })
    }
}
