//! Checks of single charges: successes, declines, rejections, amounts, and processing payments.

use super::PromiseVerdict;
use super::running_check::{
    CheckResult, ConformanceCheck, DECLINED_CHARGE_NO, FIRST_CHARGE_NO, PROCESSING_CHARGE_NO, REJECTED_CHARGE_NO,
    THREE_DECIMALS_CHARGE_NO, ZERO_DECIMALS_CHARGE_NO, broken, ensure_promise, unexpected_response,
};
use crate::{ChargeRequest, ChargeResponse, GatewayError};
use billing::{Decline, PaymentStatus};

impl ConformanceCheck<'_> {
    /// Checks that the gateway account has an id, which is the same in every response.
    pub async fn check_gateway_account_id(&self) -> CheckResult {
        let failed = |error: GatewayError| broken(error.to_string());
        let first = self.gateway.account().await.map_err(failed)?;
        let second = self.gateway.account().await.map_err(failed)?;
        ensure_promise(first == second, || format!("the first response named {first}, and the second {second}"))?;
        ensure_promise(!first.kind.is_empty() && !first.account.is_empty(), || {
            format!("the kind or the id of the account is empty: {first:?}")
        })
    }

    /// Checks that a successful payment has the metadata, the amount and the currency of its request.
    pub async fn check_success(&self) -> CheckResult {
        self.make_payment(FIRST_CHARGE_NO).await.map(drop)
    }

    /// Returns the request for the charge that the gateway must decline.
    fn declined_charge(&self) -> ChargeRequest {
        self.charge_request_with_method(DECLINED_CHARGE_NO, &self.parameters.declining_method)
    }

    /// Sends the charge that the gateway must decline, and returns the decline.
    pub async fn send_declined_charge(&self) -> CheckResult<Decline> {
        match self.send_charge(&self.declined_charge()).await {
            ChargeResponse::Declined(decline) => Ok(decline),
            other => Err(unexpected_response("a decline", other)),
        }
    }

    /// Checks that the declined charge made at most one payment, and that this payment can no longer succeed.
    pub async fn check_decline_is_final(&self) -> CheckResult {
        let listed = self.list_payments_of_charge(DECLINED_CHARGE_NO).await?;
        let is_final = listed.iter().all(|payment| matches!(&payment.status, PaymentStatus::Declined(_)));
        ensure_promise(is_final, || format!("the declined payment has succeeded, or can still succeed: {listed:?}"))?;
        ensure_promise(listed.len() <= 1, || format!("the same request made {} payments", listed.len()))
    }

    /// Checks that a repeated request returns the same decline, and that the decline is final.
    pub async fn check_decline(&self) -> CheckResult {
        let (first, second) = (self.send_declined_charge().await?, self.send_declined_charge().await?);
        ensure_promise(first == second, || format!("the first response was {first:?}, and the second {second:?}"))?;
        self.check_decline_is_final().await
    }

    /// Checks that a charge of an unknown payment method is rejected and makes no payment.
    pub async fn check_rejection(&self) -> CheckResult {
        let unknown = format!("pm_{}", self.parameters.run);
        let unknown = unknown.parse().map_err(|_| broken("the id of an unknown payment method is no token"))?;
        let response = self.send_charge(&self.charge_request_with_method(REJECTED_CHARGE_NO, &unknown)).await;
        ensure_promise(matches!(response, ChargeResponse::Rejected { .. }), || {
            format!("a rejection was expected, and the response was {response:?}")
        })?;
        self.check_rejection_made_no_payment().await
    }

    /// Checks that the list contains no payment of the rejected charge.
    pub async fn check_rejection_made_no_payment(&self) -> CheckResult {
        let listed = self.list_payments_of_charge(REJECTED_CHARGE_NO).await?;
        ensure_promise(listed.is_empty(), || format!("the rejected request made {listed:?}"))
    }

    /// Checks that amounts are charged exactly in a currency with zero decimals and in a currency with three decimals.
    pub async fn check_decimals(&self) -> CheckResult {
        let mut rejected = Vec::new();
        for no in [ZERO_DECIMALS_CHARGE_NO, THREE_DECIMALS_CHARGE_NO] {
            let request = self.charge_request(no);
            match self.send_charge(&request).await {
                // A rejection is not a broken promise: the merchant's account at the gateway does not have to accept
                // every currency.
                ChargeResponse::Rejected { .. } => rejected.push(request.amount.currency().to_string()),
                _ => drop(self.make_payment(no).await?),
            }
        }
        match rejected.as_slice() {
            [_, _] => {
                Err(PromiseVerdict::NotChecked(format!("the gateway accepts neither {}", rejected.join(" nor "))))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the list contains one payment for a charge that the bank is still processing.
    pub async fn check_processing_status(&self) -> CheckResult {
        let Some(method) = &self.parameters.processing_method else {
            let reason = "no payment method was given whose charges stay in progress";
            return Err(PromiseVerdict::NotChecked(reason.to_owned()));
        };
        let request = self.charge_request_with_method(PROCESSING_CHARGE_NO, method);
        for _ in 0..2 {
            let response = self.send_charge(&request).await;
            if response != ChargeResponse::Processing {
                return Err(unexpected_response("processing", response));
            }
        }
        let listed = self.list_payments_of_charge(PROCESSING_CHARGE_NO).await?;
        ensure_promise(listed.len() == 1, || {
            format!("the list has {} payments of the processing charge", listed.len())
        })?;
        ensure_promise(listed.iter().all(|payment| payment.amount == request.amount), || {
            format!("{} was requested, and the list has {listed:?}", request.amount)
        })
    }
}
