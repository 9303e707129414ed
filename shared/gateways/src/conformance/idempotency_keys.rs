//! Checks of idempotency keys: all requests with the same key make one payment, at any time and in any number.

use std::collections::BTreeSet;

use chrono::Days;
use futures::future::join_all;

use super::running_check::{
    CONCURRENT_CHARGE_NOS, CONCURRENT_COPIES_CHARGE_NO, CheckResult, ConformanceCheck, FIRST_CHARGE_NO,
    KEY_REUSED_ATTEMPT, MANY_CHARGE_NOS, SIMILAR_KEYS_CHARGE_NOS, broken_promise, ensure_promise,
};
use crate::{ChargeRequest, ChargeResponse};
use billing::{Currency, GatewayToken, Money, SubscriptionId};

/// How many copies of the same request are sent concurrently.
const CONCURRENT_COPY_COUNT: usize = 6;

/// Returns whether `response` states that no payment was made. Such a response is wrong while a concurrent copy of the
/// request may still succeed.
fn denies_payment(response: &ChargeResponse) -> bool {
    match response {
        ChargeResponse::Succeeded(_)
        | ChargeResponse::Processing
        | ChargeResponse::Unknown { .. }
        | ChargeResponse::Inconclusive { .. }
        | ChargeResponse::Throttled { .. } => false,
        ChargeResponse::Declined(_)
        | ChargeResponse::Rejected { .. }
        | ChargeResponse::KeyReused
        | ChargeResponse::Unusable { .. } => true,
    }
}

impl ConformanceCheck<'_> {
    /// Makes the charge `no`, and checks that the gateway's list contains exactly one payment of this charge.
    async fn check_makes_one_payment(&self, no: u32) -> CheckResult {
        self.make_payment(no).await?;
        let listed = self.list_payments_of_charge(no).await?;
        ensure_promise(listed.len() == 1, || {
            format!("the gateway lists {} payments for the test charge {no}, instead of 1", listed.len())
        })
    }

    /// Checks that a repeated request returns the same payment.
    pub async fn check_repeated_request(&self) -> CheckResult {
        self.make_payment(FIRST_CHARGE_NO).await?;
        self.check_makes_one_payment(FIRST_CHARGE_NO).await
    }

    /// Checks that idempotency keys that differ only in their last character make different payments.
    pub async fn check_similar_keys(&self) -> CheckResult {
        for no in SIMILAR_KEYS_CHARGE_NOS {
            self.check_makes_one_payment(no).await?;
        }
        Ok(())
    }

    /// Checks that concurrent copies of one request make one payment, and that no response denies this payment.
    pub async fn check_concurrent_copies(&self) -> CheckResult {
        let request = self.charge_request(CONCURRENT_COPIES_CHARGE_NO);
        // If the gateway refuses a copy because of its rate limit, another copy may have made the payment.
        self.state().throttling.record_possible_object(&request.idempotency_key);
        let responses = join_all((0..CONCURRENT_COPY_COUNT).map(|_| self.gateway.charge(&request))).await;
        let denied = responses.iter().find(|response| denies_payment(response));
        ensure_promise(denied.is_none(), || {
            format!("a copy of the request made a payment or may still make it, but one response was {denied:?}")
        })?;
        let ids: BTreeSet<_> = responses.iter().filter_map(payment_id).collect();
        ensure_promise(ids.len() <= 1, || {
            format!("the responses to copies of one request contain {} different payments", ids.len())
        })?;
        self.check_makes_one_payment(CONCURRENT_COPIES_CHARGE_NO).await
    }

    /// Checks that concurrent requests for different charges of one customer make one payment each.
    pub async fn check_concurrent_charges(&self) -> CheckResult {
        let requests: Vec<ChargeRequest> = CONCURRENT_CHARGE_NOS.map(|no| self.charge_request(no)).collect();
        let responses = join_all(requests.iter().map(|request| self.gateway.charge(request))).await;
        let denied = responses.iter().find(|response| denies_payment(response));
        ensure_promise(denied.is_none(), || {
            format!("every one of these charges must succeed, but one response was {denied:?}")
        })?;
        for (request, response) in requests.iter().zip(&responses) {
            self.check_throttled_charge(request, response).await;
        }
        for no in CONCURRENT_CHARGE_NOS {
            self.check_makes_one_payment(no).await?;
        }
        Ok(())
    }

    /// Checks that a request that reuses the idempotency key of another request makes no payment.
    pub async fn check_key_reuse(&self) -> CheckResult {
        let first = self.charge_request(FIRST_CHARGE_NO);
        self.make_payment(FIRST_CHARGE_NO).await?;
        let before = self.listed_payment_ids().await?;
        let mut wrong = Vec::new();
        for (field, request) in self.requests_with_one_change(&first) {
            let response = self.send_charge(&request).await;
            if response != ChargeResponse::KeyReused {
                wrong.push(format!("with another {field} the response was {response:?}"));
            }
        }
        let made = self.listed_payment_ids().await?.difference(&before).count();
        ensure_promise(made == 0, || {
            format!(
                "{made} additional payments were made by changed requests with the idempotency key of an earlier charge; {}",
                wrong.join("; ")
            )
        })?;
        ensure_promise(wrong.is_empty(), || format!("key_reused was expected: {}", wrong.join("; ")))
    }

    /// Returns the ids of the payments in the lists of both customers.
    async fn listed_payment_ids(&self) -> CheckResult<BTreeSet<GatewayToken>> {
        let listed = self
            .list_payments_of_first_customer()
            .await?
            .into_iter()
            .chain(self.list_payments_of_other_customer().await?);
        Ok(listed.map(|payment| payment.id).collect())
    }

    /// Returns requests with the idempotency key of `first`, each with the name of the one field in which it differs
    /// from `first`.
    fn requests_with_one_change(&self, first: &ChargeRequest) -> Vec<(&'static str, ChargeRequest)> {
        let minor = first.amount.minor();
        let with = |change: &dyn Fn(&mut ChargeRequest)| {
            let mut other = first.clone();
            change(&mut other);
            other
        };
        let mut others = vec![
            ("amount", with(&|other| other.amount = Money::new(minor + 100, first.amount.currency()))),
            ("customer", with(&|other| other.payment_method.customer = self.parameters.other_customer.clone())),
            (
                "payment method",
                with(&|other| other.payment_method.payment_method = self.parameters.declining_method.clone()),
            ),
            ("subscription", with(&|other| other.subscription = SubscriptionId::new(self.derived_id(1)))),
            ("due date", with(&|other| other.due_on = first.due_on + Days::new(31))),
            ("attempt number", with(&|other| other.attempt_no = KEY_REUSED_ATTEMPT)),
            ("table", with(&|other| other.table = Some(self.derived_id(2)))),
            ("currency", with(&|other| other.amount = Money::new(minor, self.other_currency()))),
        ];
        if let Ok(account) = "conformance-2".parse() {
            others.push(("account", ChargeRequest { account, ..first.clone() }));
        }
        if let Ok(sku) = "check-2".parse() {
            others.push(("SKU", ChargeRequest { sku, ..first.clone() }));
        }
        others
    }

    /// Returns a currency other than that of this check.
    pub fn other_currency(&self) -> Currency {
        let code = if self.parameters.currency.code() == "USD" { "EUR" } else { "USD" };
        code.parse().expect("a currency")
    }

    /// Checks that the gateway still remembers idempotency keys. Repeats early and late charges of this check, for
    /// which the gateway must return the same payments again. Also repeats the declined charge, which must be declined
    /// again, the rejected charge, which must be rejected again, and the charge that stays in progress.
    pub async fn check_keys_are_remembered(&self) -> CheckResult {
        for no in [FIRST_CHARGE_NO, CONCURRENT_COPIES_CHARGE_NO, MANY_CHARGE_NOS.start, MANY_CHARGE_NOS.end - 1] {
            self.check_makes_one_payment(no).await.map_err(|verdict| with_charge_number(no, verdict))?;
        }
        self.send_declined_charge().await?;
        self.check_decline_is_final().await?;
        self.check_repeated_rejection().await?;
        self.check_repeated_processing_charge().await
    }
}

/// Adds the number of the charge to the text of a broken promise.
fn with_charge_number(no: u32, verdict: super::PromiseVerdict) -> super::PromiseVerdict {
    match verdict {
        super::PromiseVerdict::Broken(how) => broken_promise(format!("the repeated request of attempt {no}: {how}")),
        other => other,
    }
}

/// Returns the id of the payment that a successful response contains; `None` for other responses.
fn payment_id(response: &ChargeResponse) -> Option<GatewayToken> {
    match response {
        ChargeResponse::Succeeded(payment) => Some(payment.id.clone()),
        _ => None,
    }
}
