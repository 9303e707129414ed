//! The conformance check: verifies that a gateway keeps the promises that the payment protocol relies on
//! (`docs/gateways.md`). It is for authors of gateway adapters.
//!
//! The check makes real payments and refunds at the gateway, so run it in the gateway's test mode only. It does not
//! delete these payments and refunds.

mod after_wait;
mod charges;
mod checkout_page;
mod http_json;
mod idempotency_keys;
mod payment_lists;
mod reading;
mod refunds;
mod rejections;
mod running_check;
mod signatures;
mod throttled_requests;
mod throttling;
mod time_ranges;

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
    /// The client of a gateway over HTTP, which can also send requests with wrong signatures and with unknown fields.
    /// `None` for a gateway with another API, like Stripe.
    pub http_client: Option<HttpGateway>,
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
pub struct ConformanceProgress {
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
    fn report_checked_promise(&self, result: &PromiseResult);

    /// Receives the progress of a long step.
    fn report_progress(&self, progress: &ConformanceProgress);
}

/// The results of a check, and the payments and refunds that it made at the gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConformanceReport {
    pub results: Vec<PromiseResult>,
    /// The ids of all payments that the gateway returned or listed, in any status.
    pub payment_ids: BTreeSet<GatewayToken>,
    /// The number of refunds that the gateway returned or listed.
    pub refunds: usize,
}

impl ConformanceReport {
    /// Returns the number of broken promises.
    pub fn count_broken_promises(&self) -> usize {
        self.results.iter().filter(|result| matches!(result.verdict, PromiseVerdict::Broken(_))).count()
    }

    /// Returns the number of promises that were not checked.
    pub fn count_unchecked_promises(&self) -> usize {
        self.results.iter().filter(|result| matches!(result.verdict, PromiseVerdict::NotChecked(_))).count()
    }
}

/// Checks every promise of `gateway`, one after the other. Uses `timer` to wait, and passes each result and the
/// progress to `observer`.
pub async fn check_conformance(
    gateway: &dyn FullGateway,
    parameters: &CheckParameters,
    timer: &dyn Timer,
    observer: &dyn CheckObserver,
) -> ConformanceReport {
    let check = ConformanceCheck::new(gateway, parameters, timer, observer);
    let mut results = PromiseResults { observer, results: Vec::new() };
    results.add("the account has an id, which is the same in every response", check.check_gateway_account_id().await);
    if let Some(client) = &parameters.http_client {
        for (promise, forgeries) in signatures::FORGERIES_TO_REFUSE {
            results.add(promise, signatures::check_refusal_of_forgeries(client, forgeries).await);
        }
    }
    check_charges(&check, &mut results).await;
    check_lists(&check, &mut results).await;
    check_refunds(&check, &mut results).await;
    results.add(
        "a payment can be read by its id, and an unknown id returns no payment",
        check.check_payment_by_id().await,
    );
    results.add(
        "reading a payment changes nothing, neither a successful nor a declined or processing one",
        check.check_reading_changes_nothing().await,
    );
    results.add(
        "a setup has one checkout page, which is open until the customer enters a payment method",
        check.check_checkout_page().await,
    );
    check_lists_of_time_ranges(&check, &mut results).await;
    if let Some(client) = &parameters.http_client {
        check_http_json(&check, client, &mut results).await;
    }
    results.add("after more than 100 charges, the account is still the same", check.check_account_is_unchanged().await);
    check_promises_after_waits(&check, &mut results).await;
    results.add(
        "a request that is refused with the status 429 makes no payment and no refund",
        check.check_throttled_requests(),
    );
    let (payment_ids, refunds) = check.created_objects();
    ConformanceReport { results: results.results, payment_ids, refunds }
}

/// The results of a running check.
struct PromiseResults<'a> {
    observer: &'a dyn CheckObserver,
    results: Vec<PromiseResult>,
}

impl PromiseResults<'_> {
    /// Adds the result of `promise`, and passes it to the observer.
    fn add(&mut self, promise: &'static str, outcome: CheckResult) {
        let result = PromiseResult { promise, verdict: outcome.err().unwrap_or(PromiseVerdict::Kept) };
        self.observer.report_checked_promise(&result);
        self.results.push(result);
    }
}

/// Checks the promises about charges and idempotency keys.
async fn check_charges(check: &ConformanceCheck<'_>, results: &mut PromiseResults<'_>) {
    results.add(
        "a successful payment has the metadata, amount and currency of its request, and the time of the payment",
        check.check_success().await,
    );
    results.add(
        "the metadata of a payment is stored unchanged: an old due date, and the longest account and SKU",
        check.check_unusual_metadata().await,
    );
    results.add("a repeated request returns the same payment", check.check_repeated_request().await);
    results.add(
        "idempotency keys that differ only in their last character make different payments",
        check.check_similar_keys().await,
    );
    results.add(
        "concurrent copies of one request make one payment, and no response denies it",
        check.check_concurrent_copies().await,
    );
    results.add(
        "concurrent requests for different charges of one customer make one payment each",
        check.check_concurrent_charges().await,
    );
    results.add(
        "a request that reuses the idempotency key of another request makes no payment",
        check.check_key_reuse().await,
    );
    results.add("a decline is final, and a repeated request returns the same decline", check.check_decline().await);
    results.add("a request that cannot be carried out is rejected and makes no payment", check.check_rejection().await);
    results.add(
        "a rejected request makes no payment when it is repeated, and its key makes at most one payment",
        check.check_keys_of_rejections().await,
    );
    results.add(
        "amounts are charged exactly, also large ones, and in currencies with zero and with three decimals",
        check.check_amounts().await,
    );
    results.add("the list contains payments that the bank is still processing", check.check_processing_status().await);
}

/// Makes many payments, and checks the promises about the list of a customer's payments.
async fn check_lists(check: &ConformanceCheck<'_>, results: &mut PromiseResults<'_>) {
    results.add(
        "the list contains every payment exactly once, with unchanged data, across all list pages",
        check.check_list().await,
    );
    results
        .add("idempotency keys still work after more than 100 other requests", check.check_keys_are_remembered().await);
    results.add(
        "a list since an instant contains every later payment, also if the instant is long ago",
        check.check_list_since().await,
    );
    results
        .add("the list of one customer contains no payment of another customer", check.check_list_by_customer().await);
}

/// Checks the promises about refunds.
async fn check_refunds(check: &ConformanceCheck<'_>, results: &mut PromiseResults<'_>) {
    results.add("a repeated request for a partial refund makes one refund", check.check_refunds().await);
    results.add(
        "concurrent copies of one refund request make one refund",
        check.check_concurrent_copies_of_a_refund().await,
    );
    results.add("refunds never exceed the amount of the payment", check.check_refund_limit().await);
    results.add("a declined payment cannot be refunded", check.check_refund_of_decline().await);
    results
        .add("the list contains refunded payments with their original amounts", check.check_list_after_refunds().await);
}

/// Checks the promises about the lists of a time range, which a gateway does not have to offer.
async fn check_lists_of_time_ranges(check: &ConformanceCheck<'_>, results: &mut PromiseResults<'_>) {
    results.add(
        "the list of the payments of a time range contains every payment exactly once, also declined ones",
        check.check_payments_in_range().await,
    );
    results.add("a time range contains its start and not its end", check.check_ends_of_ranges().await);
    results.add(
        "the list of the refunds of a time range contains every refund exactly once",
        check.check_refunds_in_range().await,
    );
    results
        .add("the list of the disputes of a time range can be read to its end", check.check_disputes_in_range().await);
}

/// Checks the promises that only a gateway over HTTP makes. `client` is the client of the gateway.
async fn check_http_json(check: &ConformanceCheck<'_>, client: &HttpGateway, results: &mut PromiseResults<'_>) {
    results.add("unknown fields and query parameters are ignored", check.check_unknown_fields(client).await);
    results.add("amounts in responses are integers in minor units", check.check_integer_amounts(client).await);
    results.add("a refund in another currency than its payment is rejected", check.check_refund_currency().await);
}

/// Waits, and checks the promises that a gateway may break only after some time.
async fn check_promises_after_waits(check: &ConformanceCheck<'_>, results: &mut PromiseResults<'_>) {
    // Wait a few seconds first. If a gateway makes a payment for a declined, rejected or refused request after all, the
    // payment mostly appears within seconds, so the author of an adapter sees the broken promise before the long wait
    // ends.
    let waited = check.wait_until(FIRST_WAIT).await;
    results.add(
        "some seconds later, no declined, rejected or refused request has become a payment",
        check_after_wait(&waited, check.check_nothing_was_paid_later()).await,
    );
    let waited = check.wait_until(check.parameters.wait).await;
    results.add(
        "after the wait, no declined, rejected or refused request has become a payment",
        check_after_wait(&waited, check.check_nothing_was_paid_later()).await,
    );
    results.add(
        "after the wait, the list contains every payment with unchanged data",
        check_after_wait(&waited, check.check_list_again()).await,
    );
    results.add(
        "after the wait, repeated requests return the same payments",
        check_after_wait(&waited, check.check_keys_are_remembered()).await,
    );
    results.add(
        "after the wait, a repeated refund request makes no second refund",
        check_after_wait(&waited, check.check_refund_is_remembered()).await,
    );
    results.add(
        "after the wait, the account is still the same",
        check_after_wait(&waited, check.check_account_is_unchanged()).await,
    );
}

/// Runs the check `next` if `waited`, the result of the wait, is `Ok`. Otherwise returns `waited`, which contains the
/// reason why the check did not wait.
async fn check_after_wait(waited: &CheckResult, next: impl Future<Output = CheckResult>) -> CheckResult {
    waited.clone()?;
    next.await
}
