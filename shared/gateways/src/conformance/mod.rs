//! The conformance check: verifies that a gateway keeps the promises that the payment protocol relies on
//! (`docs/gateways.md`). It is for authors of gateway adapters.
//!
//! The check makes real payments and refunds at the gateway, so run it in the gateway's test mode only. It does not
//! delete these payments and refunds.

mod after_wait;
mod charges;
mod checkout_page;
mod idempotency_keys;
mod payment_lists;
mod refunds;
mod running_check;
mod signatures;

use std::collections::BTreeSet;
use std::time::Duration;

use ulid::Ulid;

use super::{FullGateway, HttpGateway};
use billing::{Currency, GatewayToken};
use clock::Timer;
use running_check::{CheckResult, ConformanceCheck};

/// How long the check waits before it checks for the first time that no declined, rejected or refused request has
/// become a payment.
const FIRST_WAIT: Duration = Duration::from_secs(15);

/// The parameters of a gateway check: the test customers and test payment methods of the gateway, and how long the
/// check waits before it repeats its look-ups.
#[derive(Clone, Debug)]
pub struct CheckParameters {
    /// The customer of almost all charges.
    pub customer: GatewayToken,
    /// A second customer, whose payments the gateway must not confuse with those of the first customer.
    pub other_customer: GatewayToken,
    /// A payment method whose charges succeed immediately.
    pub succeeding_method: GatewayToken,
    /// A payment method whose charges are declined immediately.
    pub declining_method: GatewayToken,
    /// A payment method whose charges stay in progress, such as a bank debit. `None` if the gateway has no such payment
    /// method.
    pub processing_method: Option<GatewayToken>,
    /// The currency of almost all charges.
    pub currency: Currency,
    /// The client of the gateway that sends requests with missing and wrong signatures. `None` if the gateway has no
    /// signatures, like Stripe.
    pub signing_client: Option<HttpGateway>,
    /// The id of this run of the check. Every payment of the run contains the id, so payments of earlier runs can be
    /// ignored.
    pub run: Ulid,
    /// How long to wait before the lists, the idempotency keys and the declines are checked again.
    pub wait: Duration,
}

/// The result of checking one promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PromiseResult {
    /// The promise, as a sentence for the author of the gateway.
    pub promise: &'static str,
    pub verdict: PromiseVerdict,
}

/// Whether a gateway keeps a promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PromiseVerdict {
    /// The check found no violation of the promise.
    Kept,
    /// The gateway breaks the promise; the text describes how.
    Broken(String),
    /// The promise could not be checked; the text is the reason.
    NotChecked(String),
}

/// The progress of a long step of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub step: CheckStep,
    pub done: u64,
    pub total: u64,
}

/// A step of a check that takes a long time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckStep {
    /// Makes payments. The progress is counted in payments.
    Charging,
    /// Waits. The progress is counted in seconds.
    Waiting,
}

/// Receives the results and the progress of a running check.
pub trait CheckObserver {
    /// Receives the result of one promise.
    fn promise_checked(&self, result: &PromiseResult);

    /// Receives the progress of a long step.
    fn progress(&self, progress: &Progress);
}

/// The results of a check, and the payments and refunds that it made at the gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    pub results: Vec<PromiseResult>,
    /// The ids of all payments that the gateway returned or listed, in any status.
    pub payment_ids: BTreeSet<GatewayToken>,
    /// The number of refunds that the gateway returned or listed.
    pub refunds: usize,
}

impl Report {
    /// Returns the number of broken promises.
    pub fn broken(&self) -> usize {
        self.results.iter().filter(|result| matches!(result.verdict, PromiseVerdict::Broken(_))).count()
    }

    /// Returns the number of promises that were not checked.
    pub fn not_checked(&self) -> usize {
        self.results.iter().filter(|result| matches!(result.verdict, PromiseVerdict::NotChecked(_))).count()
    }
}

/// Checks every promise of `gateway`, one after the other. Uses `timer` to wait, and passes each result and the
/// progress to `observer`.
pub async fn check(
    gateway: &dyn FullGateway,
    parameters: &CheckParameters,
    timer: &dyn Timer,
    observer: &dyn CheckObserver,
) -> Report {
    let check = ConformanceCheck::new(gateway, parameters, timer, observer);
    let mut results = Vec::new();
    let mut report = |promise, outcome: CheckResult| {
        let result = PromiseResult { promise, verdict: outcome.err().unwrap_or(PromiseVerdict::Kept) };
        observer.promise_checked(&result);
        results.push(result);
    };
    report("the account has an id, which is the same in every response", check.check_gateway_account_id().await);
    if let Some(client) = &parameters.signing_client {
        for (promise, forgeries) in signatures::FORGERIES_TO_REFUSE {
            report(promise, signatures::check_refusal(client, forgeries).await);
        }
    }
    report("a successful payment has the metadata, amount and currency of its request", check.check_success().await);
    report("a repeated request returns the same payment", check.check_repeated_request().await);
    report(
        "idempotency keys that differ only in their last character make different payments",
        check.check_similar_keys().await,
    );
    report(
        "concurrent copies of one request make one payment, and no response denies it",
        check.check_concurrent_copies().await,
    );
    report(
        "concurrent requests for different charges of one customer make one payment each",
        check.check_concurrent_charges().await,
    );
    report(
        "a request that reuses the idempotency key of another request makes no payment",
        check.check_key_reuse().await,
    );
    report("a decline is final, and a repeated request returns the same decline", check.check_decline().await);
    report("a request that cannot be carried out is rejected and makes no payment", check.check_rejection().await);
    report(
        "amounts are charged exactly, in currencies with zero and with three decimals",
        check.check_decimals().await,
    );
    report("the list contains payments that the bank is still processing", check.check_processing_status().await);
    report(
        "the list contains every payment exactly once, with unchanged data, across all list pages",
        check.check_list().await,
    );
    report("idempotency keys still work after more than 100 other requests", check.check_keys_are_remembered().await);
    report(
        "a list since an instant contains every later payment, also if the instant is long ago",
        check.check_list_since().await,
    );
    report("the list of one customer contains no payment of another customer", check.check_list_by_customer().await);
    report("a repeated request for a partial refund makes one refund", check.check_refunds().await);
    report("refunds never exceed the amount of the payment", check.check_refund_limit().await);
    report("the list contains refunded payments with their original amounts", check.check_list_after_refunds().await);
    report("a payment can be read by its id, and an unknown id returns no payment", check.check_payment_by_id().await);
    report(
        "a setup has one checkout page, which is open until the customer enters a payment method",
        check.check_checkout_page().await,
    );
    // Wait a few seconds first. If a gateway makes a payment for a declined, rejected or refused request after all, the
    // payment mostly appears within seconds, so the author of an adapter sees the broken promise before the long wait
    // ends.
    let waited = check.wait_until(FIRST_WAIT).await;
    report(
        "some seconds later, no declined, rejected or refused request has become a payment",
        check_after_wait(&waited, check.check_nothing_was_paid_later()).await,
    );
    let waited = check.wait_until(parameters.wait).await;
    report(
        "after the wait, no declined, rejected or refused request has become a payment",
        check_after_wait(&waited, check.check_nothing_was_paid_later()).await,
    );
    report(
        "after the wait, the list contains every payment with unchanged data",
        check_after_wait(&waited, check.check_list_again()).await,
    );
    report(
        "after the wait, repeated requests return the same payments",
        check_after_wait(&waited, check.check_keys_are_remembered()).await,
    );
    let (payment_ids, refunds) = check.created_objects();
    Report { results, payment_ids, refunds }
}

/// Runs the check `next` if `waited`, the result of the wait, is `Ok`. Otherwise returns `waited`, which contains the
/// reason why the check did not wait.
async fn check_after_wait(waited: &CheckResult, next: impl Future<Output = CheckResult>) -> CheckResult {
    waited.clone()?;
    next.await
}
