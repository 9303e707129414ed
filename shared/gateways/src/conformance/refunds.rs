//! Checks of refunds: the gateway makes at most one refund for each id, and never refunds more than was paid.

use futures::future::join;

use super::PromiseVerdict;
use super::running_check::{
    CONCURRENTLY_REFUNDED_CHARGE_NO, CheckResult, ConformanceCheck, DECLINED_CHARGE_NO, MAX_REQUESTS,
    PARTLY_REFUNDED_CHARGE_NO, REFUNDED_BY_COPIES_CHARGE_NO, REFUNDED_CHARGE_NO, broken_by_gateway_error,
    broken_promise, ensure_promise, unexpected_response,
};
use crate::{GatewayRefund, RefundRequest, RefundResponse, RefundState};
use billing::{GatewayToken, Money, Payment};

/// Returns whether the customer gets money back through `refund`, now or later: it has succeeded or is pending.
fn is_succeeded_or_pending(refund: &GatewayRefund) -> bool {
    matches!(refund.state, RefundState::Succeeded | RefundState::Pending)
}

impl ConformanceCheck<'_> {
    /// Returns the request for the refund `no` of this check: `amount` minor units of `payment`.
    pub fn refund_request(&self, no: u128, payment: &Payment, amount: i64) -> RefundRequest {
        let amount = Money::new(amount, payment.amount.currency());
        RefundRequest { refund: self.derived_id(no), payment: payment.id.clone(), amount }
    }

    /// Sends `request`. Repeats it with the same id if there is no usable response. If the gateway refuses the request
    /// because of too many requests, first checks that the request made no refund.
    async fn send_refund(&self, request: &RefundRequest) -> RefundResponse {
        let mut response = self.gateway.refund(request).await;
        for _ in 1..MAX_REQUESTS {
            self.check_throttled_refund(request, &response).await;
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
    pub async fn list_refunds(&self, payment: &GatewayToken) -> CheckResult<Vec<GatewayRefund>> {
        let listed = self.repeat_if_throttled(async || self.gateway.refunds_of_payment(payment).await).await;
        let listed = listed.map_err(broken_by_gateway_error)?;
        listed.iter().for_each(|refund| self.record_refund(&refund.id));
        Ok(listed)
    }

    /// Returns the request for the first refund of this check, a partial refund of `paid`.
    pub fn first_refund_request(&self, paid: &Payment) -> RefundRequest {
        self.refund_request(1, paid, 502)
    }

    /// Checks that repeated requests for a partial refund make one refund.
    pub async fn check_refunds(&self) -> CheckResult {
        let paid = self.make_payment(PARTLY_REFUNDED_CHARGE_NO).await?;
        let request = self.first_refund_request(&paid);
        let (first, second) = (self.make_refund(&request).await?, self.make_refund(&request).await?);
        ensure_promise(first.id == second.id, || {
            format!("the same request made the refunds {} and {}", first.id, second.id)
        })?;
        // The gateway can respond in any way to a request with the same id and another amount, but must not make a
        // second refund.
        let other = self.send_refund(&self.refund_request(1, &paid, 503)).await;
        self.check_one_refund(&request).await.map_err(|verdict| match verdict {
            PromiseVerdict::Broken(how) => broken_promise(format!("the same id with another amount: {other:?}; {how}")),
            other => other,
        })
    }

    /// Checks that the list of the refunds of a payment contains only the refund of `request`.
    async fn check_one_refund(&self, request: &RefundRequest) -> CheckResult {
        let listed = self.list_refunds(&request.payment).await?;
        let is_one =
            listed.len() == 1 && listed[0].refund == Some(request.refund) && listed[0].amount == request.amount;
        ensure_promise(is_one, || format!("one refund of {} was expected, and the list has {listed:?}", request.amount))
    }

    /// Checks that concurrent copies of one request for a partial refund make one refund.
    pub async fn check_concurrent_copies_of_a_refund(&self) -> CheckResult {
        let paid = self.make_payment(REFUNDED_BY_COPIES_CHARGE_NO).await?;
        let request = self.refund_request(7, &paid, 503);
        let (first, second) = join(self.send_refund(&request), self.send_refund(&request)).await;
        self.check_one_refund(&request).await.map_err(|verdict| match verdict {
            PromiseVerdict::Broken(how) => {
                broken_promise(format!("two copies of one request got the responses {first:?} and {second:?}; {how}"))
            }
            other => other,
        })
    }

    /// Checks, after the wait, that the repeated request for the first refund still makes no second refund.
    pub async fn check_refund_is_remembered(&self) -> CheckResult {
        let Some(paid) = self.payments().get(&PARTLY_REFUNDED_CHARGE_NO).cloned() else {
            return Err(broken_promise("no payment could be refunded"));
        };
        let request = self.first_refund_request(&paid);
        self.make_refund(&request).await?;
        self.check_one_refund(&request).await
    }

    /// Checks that the gateway makes no refund of the declined payment, which took no money.
    pub async fn check_refund_of_decline(&self) -> CheckResult {
        let declined = self.list_payments_of_charge(DECLINED_CHARGE_NO).await?;
        let Some(declined) = declined.first() else {
            return Err(PromiseVerdict::NotChecked("the list has no payment of the declined charge".to_owned()));
        };
        let response = self.send_refund(&self.refund_request(8, declined, declined.amount.minor())).await;
        ensure_promise(matches!(response, RefundResponse::Rejected { .. }), || {
            format!("the declined payment {} took no money, and its refund got {response:?}: reject it", declined.id)
        })
    }

    /// Checks that the gateway makes no refund in another currency than the payment. Only a gateway over HTTP receives
    /// the currency of a refund: Stripe refunds in the currency of the payment.
    pub async fn check_refund_currency(&self) -> CheckResult {
        let paid = self.make_payment(PARTLY_REFUNDED_CHARGE_NO).await?;
        let currency = self.other_currency();
        let request = RefundRequest { amount: Money::new(100, currency), ..self.refund_request(9, &paid, 100) };
        let response = self.send_refund(&request).await;
        ensure_promise(matches!(response, RefundResponse::Rejected { .. }), || {
            format!("a payment of {} must not be refunded in {currency}: the response was {response:?}", paid.amount)
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
