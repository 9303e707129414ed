//! Checks of rejected charges: the gateway makes no payment for a rejected request, not even if it is repeated.

use super::running_check::{
    CORRECTED_CHARGE_NO, CheckResult, ConformanceCheck, REJECTED_CHARGE_NO, broken_promise, ensure_promise,
    unexpected_response,
};
use crate::{ChargeRequest, ChargeResponse};

impl ConformanceCheck<'_> {
    /// Returns the request for the charge `no` of an unknown payment method, which the gateway must reject.
    fn rejected_charge(&self, no: u32) -> CheckResult<ChargeRequest> {
        let unknown = format!("pm_{}", self.parameters.run);
        let unknown = unknown.parse().map_err(|_| broken_promise("the id of an unknown payment method is no token"))?;
        Ok(self.charge_request_with_method(no, &unknown))
    }

    /// Sends the request for the charge `no` of an unknown payment method. The gateway must reject it.
    async fn send_rejected_charge(&self, no: u32) -> CheckResult {
        match self.send_charge(&self.rejected_charge(no)?).await {
            ChargeResponse::Rejected { .. } => Ok(()),
            other => Err(unexpected_response("a rejection", other)),
        }
    }

    /// Checks that a charge of an unknown payment method is rejected and makes no payment.
    pub async fn check_rejection(&self) -> CheckResult {
        self.send_rejected_charge(REJECTED_CHARGE_NO).await?;
        self.check_rejection_made_no_payment().await
    }

    /// Checks that the repeated request for the rejected charge is rejected again and makes no payment.
    pub async fn check_repeated_rejection(&self) -> CheckResult {
        self.check_rejection().await.map_err(|verdict| match verdict {
            super::PromiseVerdict::Broken(how) => broken_promise(format!("the rejected request was repeated: {how}")),
            other => other,
        })
    }

    /// Checks that the list contains no payment of the rejected charge.
    pub async fn check_rejection_made_no_payment(&self) -> CheckResult {
        let listed = self.list_payments_of_charge(REJECTED_CHARGE_NO).await?;
        ensure_promise(listed.is_empty(), || format!("the rejected request made {listed:?}"))
    }

    /// Checks that a repeated rejected request makes no payment. Also checks that an idempotency key whose first
    /// request was rejected makes at most one payment: the gateway may make a payment for another request under this
    /// key, as Stripe does ("Idempotent requests" in Stripe's API reference), but must then remember the key.
    pub async fn check_keys_of_rejections(&self) -> CheckResult {
        self.check_repeated_rejection().await?;
        self.send_rejected_charge(CORRECTED_CHARGE_NO).await?;
        let corrected = self.charge_request(CORRECTED_CHARGE_NO);
        if let ChargeResponse::Succeeded(payment) = self.send_charge(&corrected).await {
            self.record_payment(CORRECTED_CHARGE_NO, &payment);
            self.make_payment(CORRECTED_CHARGE_NO).await?;
        }
        let repeated = self.send_charge(&self.rejected_charge(CORRECTED_CHARGE_NO)?).await;
        let listed = self.list_payments_of_charge(CORRECTED_CHARGE_NO).await?;
        ensure_promise(listed.len() <= 1 && !matches!(repeated, ChargeResponse::Succeeded(_)), || {
            format!(
                "a key whose first request was rejected made {} payments, and the repeated rejected request got \
                 {repeated:?}: one key makes at most one payment",
                listed.len()
            )
        })
    }
}
