//! Checks of single charges: successes, metadata, declines, amounts, and processing payments.

use chrono::TimeDelta;

use super::PromiseVerdict;
use super::payment_lists::describe_difference;
use super::running_check::{
    CheckResult, ConformanceCheck, DECLINED_CHARGE_NO, FIRST_CHARGE_NO, LARGE_AMOUNT_CHARGE_NO, PROCESSING_CHARGE_NO,
    THREE_DECIMALS_CHARGE_NO, UNUSUAL_METADATA_CHARGE_NO, ZERO_DECIMALS_CHARGE_NO, broken_by_gateway_error,
    broken_promise, ensure_promise, unexpected_response,
};
use crate::{ChargeRequest, ChargeResponse};
use billing::{Decline, GatewayAccount, PaymentStatus};

/// The largest accepted difference between the time at which a payment was made and its creation time. The clocks of
/// the gateway and of the check differ by less; a local time differs from UTC by at least fifteen minutes.
const MAX_CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(10);

impl ConformanceCheck<'_> {
    /// Reads the account. Repeats the request if the gateway refuses it because of too many requests.
    async fn read_account(&self) -> CheckResult<GatewayAccount> {
        self.repeat_if_throttled(async || self.gateway.account().await).await.map_err(broken_by_gateway_error)
    }

    /// Checks that the gateway account has an id, which is the same in every response.
    pub async fn check_gateway_account_id(&self) -> CheckResult {
        let first = self.read_account().await?;
        self.state().account = Some(first.clone());
        self.check_account_is_unchanged().await?;
        ensure_promise(!first.kind.is_empty() && !first.account.is_empty(), || {
            format!("the kind or the id of the account is empty: {first:?}")
        })?;
        let rules = self.repeat_if_throttled(async || self.gateway.amount_rules().await).await;
        rules.map(drop).map_err(broken_by_gateway_error)
    }

    /// Checks that the account is the same as at the start of this check.
    pub async fn check_account_is_unchanged(&self) -> CheckResult {
        let now = self.read_account().await?;
        let first = self.state().account.clone();
        ensure_promise(first.as_ref() == Some(&now), || {
            let first = first.map_or_else(|| "no account".to_owned(), |first| first.to_string());
            format!("an earlier response named {first}, and a later response {now}: Dueday refuses to charge then")
        })
    }

    /// Checks that a successful payment has the metadata, the amount and the currency of its request, and that it was
    /// created now.
    pub async fn check_success(&self) -> CheckResult {
        let payment = self.make_payment(FIRST_CHARGE_NO).await?;
        let (created_at, now) = (payment.created_at, self.now());
        ensure_promise((created_at - now).abs() <= MAX_CLOCK_DIFFERENCE, || {
            format!(
                "a payment was made at {now}, and its created_at is {created_at}: return the time of the payment in UTC"
            )
        })
    }

    /// Checks that a payment has the metadata of its request, in the response and in the list, if its account and its
    /// SKU are as long as possible and its due date is long ago.
    pub async fn check_unusual_metadata(&self) -> CheckResult {
        let made = self.make_payment(UNUSUAL_METADATA_CHARGE_NO).await?;
        match describe_difference(&made, &self.list_payments_of_charge(UNUSUAL_METADATA_CHARGE_NO).await?) {
            Some(how) => Err(broken_promise(how)),
            None => Ok(()),
        }
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

    /// Checks that amounts are charged and listed exactly: a large amount, and amounts in a currency with zero decimals
    /// and in a currency with three decimals.
    pub async fn check_amounts(&self) -> CheckResult {
        self.check_amount_unless_rejected(LARGE_AMOUNT_CHARGE_NO).await?;
        let mut rejected = Vec::new();
        for no in [ZERO_DECIMALS_CHARGE_NO, THREE_DECIMALS_CHARGE_NO] {
            if !self.check_amount_unless_rejected(no).await? {
                rejected.push(self.charge_request(no).amount.currency().to_string());
            }
        }
        match rejected.as_slice() {
            [_, _] => {
                Err(PromiseVerdict::NotChecked(format!("the gateway accepts neither {}", rejected.join(" nor "))))
            }
            _ => Ok(()),
        }
    }

    /// Makes the charge `no`, and checks that its amount is charged and listed exactly. Returns false if the gateway
    /// rejects the charge. A rejection is not a broken promise: the merchant's account at the gateway does not have to
    /// accept every currency and every amount.
    async fn check_amount_unless_rejected(&self, no: u32) -> CheckResult<bool> {
        let request = self.charge_request(no);
        if matches!(self.send_charge(&request).await, ChargeResponse::Rejected { .. }) {
            return Ok(false);
        }
        self.make_payment(no).await?;
        let listed = self.list_payments_of_charge(no).await?;
        ensure_promise(listed.iter().all(|payment| payment.amount == request.amount), || {
            format!("{} was charged, and the list has {listed:?}: do not store amounts as floats", request.amount)
        })?;
        Ok(true)
    }

    /// Checks that the list contains one payment for a charge that the bank is still processing.
    pub async fn check_processing_status(&self) -> CheckResult {
        let Some(request) = self.processing_charge() else {
            let reason = "no payment method was given whose charges stay in progress";
            return Err(PromiseVerdict::NotChecked(reason.to_owned()));
        };
        for _ in 0..2 {
            let response = self.send_charge(&request).await;
            if response != ChargeResponse::Processing {
                return Err(unexpected_response("processing", response));
            }
        }
        self.check_one_processing_payment(&request).await
    }

    /// Returns the request for the charge that stays in progress; `None` if the check has no payment method for it.
    fn processing_charge(&self) -> Option<ChargeRequest> {
        let method = self.parameters.processing_method.as_ref()?;
        Some(self.charge_request_with_method(PROCESSING_CHARGE_NO, method))
    }

    /// Checks that the list contains one payment of `request`, the charge that stays in progress.
    async fn check_one_processing_payment(&self, request: &ChargeRequest) -> CheckResult {
        let listed = self.list_payments_of_charge(PROCESSING_CHARGE_NO).await?;
        ensure_promise(listed.len() == 1, || {
            format!("the list has {} payments of the processing charge", listed.len())
        })?;
        ensure_promise(listed.iter().all(|payment| payment.amount == request.amount), || {
            format!("{} was requested, and the list has {listed:?}", request.amount)
        })
    }

    /// Repeats the charge that stays in progress, whose payment may have got its outcome, and checks that the list
    /// still contains one payment of this charge.
    pub async fn check_repeated_processing_charge(&self) -> CheckResult {
        let Some(request) = self.processing_charge() else { return Ok(()) };
        let response = self.send_charge(&request).await;
        let is_of_payment =
            matches!(response, ChargeResponse::Processing | ChargeResponse::Succeeded(_) | ChargeResponse::Declined(_));
        ensure_promise(is_of_payment, || {
            format!("the processing charge was repeated, and the response was {response:?}")
        })?;
        self.check_one_processing_payment(&request).await
    }
}
