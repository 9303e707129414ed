//! The check that the gateway makes no payment and no refund for a request that it refuses because of its rate limit
//! (HTTP status 429).

use chrono::TimeDelta;

use super::PromiseVerdict;
use super::running_check::{CheckResult, ConformanceCheck, broken_promise};
use crate::{ChargeRequest, ChargeResponse, GatewayError, RefundRequest, RefundResponse};

impl ConformanceCheck<'_> {
    /// If the gateway refused `request` because of its rate limit, looks for a payment of `request` in the list of the
    /// customer's payments. `response` is the response to `request`.
    pub async fn check_throttled_charge(&self, request: &ChargeRequest, response: &ChargeResponse) {
        let key = &request.idempotency_key;
        if !matches!(response, ChargeResponse::Throttled { .. }) {
            return self.state().throttling.record_possible_object(key);
        }
        if !self.state().throttling.begin_check(key) {
            return;
        }
        let since = self.started_at - TimeDelta::days(1);
        // A list that cannot be read proves nothing about the refused request.
        let listed = self.list_payments(&request.payment_method.customer, since).await.unwrap_or_default();
        if let Some(payment) = listed.iter().find(|payment| payment.attempt_no == request.attempt_no) {
            let made = format!("the payment {} for the refused request of attempt {}", payment.id, payment.attempt_no);
            self.state().throttling.made.push(made);
        }
    }

    /// If the gateway refused `request` because of its rate limit, looks for the refund in the list of the payment's
    /// refunds. `response` is the response to `request`.
    pub async fn check_throttled_refund(&self, request: &RefundRequest, response: &RefundResponse) {
        let id = request.refund.to_string();
        if !matches!(response, RefundResponse::Unknown(GatewayError::Throttled { .. })) {
            return self.state().throttling.record_possible_object(id);
        }
        if !self.state().throttling.begin_check(&id) {
            return;
        }
        let listed = self.list_refunds(&request.payment).await.unwrap_or_default();
        if let Some(refund) = listed.iter().find(|refund| refund.refund == Some(request.refund)) {
            let made = format!("the refund {} for the refused request of the payment {}", refund.id, request.payment);
            self.state().throttling.made.push(made);
        }
    }

    /// Checks that no list contained a payment or a refund of a request that the gateway had refused because of its
    /// rate limit.
    pub fn check_throttled_requests(&self) -> CheckResult {
        let state = self.state();
        match (state.throttling.made.first(), state.throttling.checked) {
            (Some(first), checked) => Err(broken_promise(format!(
                "the gateway made {first}; {} of {checked} requests with the response 429 made a payment or a refund: \
                 refuse a request before it has an effect",
                state.throttling.made.len()
            ))),
            (None, 0) => Err(PromiseVerdict::NotChecked("the gateway refused no request with 429".to_owned())),
            (None, _) => Ok(()),
        }
    }
}
