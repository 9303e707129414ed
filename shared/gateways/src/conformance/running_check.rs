//! The state of one run of the conformance check, and the functions for charges and lists that several checks of the
//! gateway's promises use.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest as _, Sha256};
use ulid::Ulid;

use super::throttled_requests::ThrottledRequests;
use super::{CheckObserver, CheckParameters, CheckStep, ConformanceProgress, PromiseVerdict};
use crate::{ChargeRequest, ChargeResponse, FullGateway, GatewayError};
use billing::{Currency, GatewayAccount, GatewayToken, Money, Payment, PaymentMethod, PaymentStatus, SubscriptionId};
use clock::Timer;

/// The largest number of times that the check sends the same request while its outcome is unknown or the gateway limits
/// the rate of requests.
pub(super) const MAX_REQUESTS: u32 = 8;
/// How long to wait before a request is repeated, if the gateway does not return a time to wait.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// The longest wait before a request is repeated, even if the gateway returns a longer time.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(30);

/// Amounts in minor units that change if a gateway converts them to floating-point major units and back without
/// rounding.
const ROUNDING_SENSITIVE_AMOUNTS: [i64; 3] = [1_999, 1_606, 1_940];

/// How long before the start of the check the charge with unusual metadata fell due.
const TIME_SINCE_UNUSUAL_DUE_DATE: TimeDelta = TimeDelta::days(400);
/// The smallest amount in minor units that a floating-point number in single precision (with 24 binary digits) cannot
/// represent: 2^24 + 1.
const LARGE_AMOUNT: i64 = 16_777_217;

// Each charge of the check has its own number, which is the attempt number in its request.
/// The attempt number of the first charge, which later checks repeat.
pub(super) const FIRST_CHARGE_NO: u32 = 1;
/// The attempt number of the charge whose request is sent several times concurrently.
pub(super) const CONCURRENT_COPIES_CHARGE_NO: u32 = 2;
/// The attempt number of the charge that the gateway must decline.
pub(super) const DECLINED_CHARGE_NO: u32 = 3;
/// The attempt number of the charge of an unknown payment method, which the gateway must reject.
pub(super) const REJECTED_CHARGE_NO: u32 = 4;
/// The attempt number of the charge in a currency with zero decimals.
pub(super) const ZERO_DECIMALS_CHARGE_NO: u32 = 5;
/// The attempt number of the charge in a currency with three decimals.
pub(super) const THREE_DECIMALS_CHARGE_NO: u32 = 6;
/// The attempt number of the charge that the bank is still processing.
pub(super) const PROCESSING_CHARGE_NO: u32 = 7;
/// The attempt number of the charge whose payment is refunded in part.
pub(super) const PARTLY_REFUNDED_CHARGE_NO: u32 = 8;
/// The attempt number of the charge whose payment is refunded in full.
pub(super) const REFUNDED_CHARGE_NO: u32 = 9;
/// The attempt number of the charge whose payment is refunded in full by two concurrent requests.
pub(super) const CONCURRENTLY_REFUNDED_CHARGE_NO: u32 = 10;
/// The attempt numbers of two charges whose idempotency keys differ only in the last character.
pub(super) const SIMILAR_KEYS_CHARGE_NOS: [u32; 2] = [11, 12];
/// The attempt number of the charge of the second customer.
pub(super) const OTHER_CUSTOMER_CHARGE_NO: u32 = 13;
/// The attempt number of the charge with unusual metadata: the longest account and SKU, and a due date long ago.
pub(super) const UNUSUAL_METADATA_CHARGE_NO: u32 = 14;
/// The attempt number of the charge that is first rejected, and then sent under the same key with another payment
/// method.
pub(super) const CORRECTED_CHARGE_NO: u32 = 15;
/// The attempt number of the charge of a large amount.
pub(super) const LARGE_AMOUNT_CHARGE_NO: u32 = 16;
/// The attempt number of the charge whose payment is refunded in part by concurrent copies of one request.
pub(super) const REFUNDED_BY_COPIES_CHARGE_NO: u32 = 17;
/// The attempt number of the charge whose request has a field that the gateway does not know.
pub(super) const UNKNOWN_FIELD_CHARGE_NO: u32 = 18;
/// The attempt numbers of the charges whose requests are sent concurrently.
pub(super) const CONCURRENT_CHARGE_NOS: std::ops::Range<u32> = 20..26;
/// The attempt number of a request that reuses the idempotency key of the first charge.
pub(super) const KEY_REUSED_ATTEMPT: u32 = 90;
/// The attempt numbers of more than 100 charges, so that a gateway does not return all their payments in one list page.
pub(super) const MANY_CHARGE_NOS: std::ops::Range<u32> = 100..205;

/// The result of checking a promise, or of one step of this check. `Ok` means that the gateway keeps the promise. The
/// error is the verdict if the promise is broken or could not be checked.
pub(super) type CheckResult<T = ()> = Result<T, PromiseVerdict>;

/// Returns the verdict of a broken promise; `how` describes the violation.
pub(super) fn broken_promise(how: impl Into<String>) -> PromiseVerdict {
    PromiseVerdict::Broken(how.into())
}

/// Returns `Ok` if `condition` is true. Otherwise returns the verdict of a broken promise; `how` describes the
/// violation.
pub(super) fn ensure_promise(condition: bool, how: impl FnOnce() -> String) -> CheckResult {
    if condition { Ok(()) } else { Err(broken_promise(how())) }
}

/// Returns the verdict of a promise that is broken because `response` is not the `expected` response.
pub(super) fn unexpected_response<T: Debug>(expected: &str, response: T) -> PromiseVerdict {
    broken_promise(format!("{expected} was expected, and the response was {response:?}"))
}

/// Returns the verdict of a promise that is broken because the gateway returned `error`.
pub(super) fn broken_by_gateway_error(error: GatewayError) -> PromiseVerdict {
    broken_promise(error.to_string())
}

/// Returns `request` with a due date in another year, and with the longest account and SKU. Both begin with zeros and
/// contain every kind of character that an account or a SKU can contain.
fn with_unusual_metadata(request: ChargeRequest) -> ChargeRequest {
    let longest = format!("{:Z<64}", "007.Conformance_Check-");
    ChargeRequest {
        account: longest.parse().expect("an account id"),
        sku: longest.parse().expect("a SKU"),
        due_on: request.due_on - TIME_SINCE_UNUSUAL_DUE_DATE,
        ..request
    }
}

/// A running check of one gateway: its parameters, and the payments and refunds that it has made so far.
pub(super) struct ConformanceCheck<'a> {
    pub gateway: &'a dyn FullGateway,
    pub parameters: &'a CheckParameters,
    timer: &'a dyn Timer,
    observer: &'a dyn CheckObserver,
    pub started_at: DateTime<Utc>,
    state: Mutex<CheckState>,
}

/// The payments and refunds of the check, and its waiting time so far.
#[derive(Default)]
pub(super) struct CheckState {
    /// The successful payments, by charge number.
    paid: BTreeMap<u32, Payment>,
    /// All payments that the gateway returned or listed.
    payments: BTreeSet<GatewayToken>,
    /// All refunds that the gateway returned or listed.
    refunds: BTreeSet<GatewayToken>,
    /// How many seconds the check has waited so far.
    waited_seconds: u64,
    /// The account that the first request for the account returned.
    pub account: Option<GatewayAccount>,
    /// The requests that were refused because of the gateway's rate limit.
    pub throttling: ThrottledRequests,
}

impl<'a> ConformanceCheck<'a> {
    /// Creates the check of `gateway`, which has made no charge yet.
    pub fn new(
        gateway: &'a dyn FullGateway,
        parameters: &'a CheckParameters,
        timer: &'a dyn Timer,
        observer: &'a dyn CheckObserver,
    ) -> Self {
        Self { gateway, parameters, timer, observer, started_at: timer.now(), state: Mutex::default() }
    }

    /// Locks the state of the check, and returns it.
    pub fn state(&self) -> MutexGuard<'_, CheckState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the request for the charge `no` of this check.
    pub fn charge_request(&self, no: u32) -> ChargeRequest {
        let CheckParameters { customer, other_customer, succeeding_method, currency, run, .. } = self.parameters;
        let currency_of = |code: &str| code.parse::<Currency>().ok();
        let amount = match no {
            ZERO_DECIMALS_CHARGE_NO => currency_of("JPY").map(|currency| Money::new(500, currency)),
            THREE_DECIMALS_CHARGE_NO => currency_of("KWD").map(|currency| Money::new(57_500, currency)),
            LARGE_AMOUNT_CHARGE_NO => Some(Money::new(LARGE_AMOUNT, *currency)),
            _ => None,
        };
        let default_amount = ROUNDING_SENSITIVE_AMOUNTS[no as usize % ROUNDING_SENSITIVE_AMOUNTS.len()];
        // The idempotency keys of the check are as long as those of the payment batch.
        let idempotency_key = match no {
            no if SIMILAR_KEYS_CHARGE_NOS.contains(&no) => format!("{run}-{no:0>37}"),
            no => format!("{:x}", Sha256::digest(format!("{run}\n{no}"))),
        };
        let request = ChargeRequest {
            idempotency_key,
            table: Some(*run),
            account: "conformance".parse().expect("an account id"),
            subscription: SubscriptionId::new(*run),
            sku: "check".parse().expect("a SKU"),
            due_on: self.started_at.date_naive(),
            attempt_no: no,
            amount: amount.unwrap_or_else(|| Money::new(default_amount, *currency)),
            payment_method: PaymentMethod {
                customer: if no == OTHER_CUSTOMER_CHARGE_NO { other_customer } else { customer }.clone(),
                payment_method: succeeding_method.clone(),
            },
        };
        if no == UNUSUAL_METADATA_CHARGE_NO { with_unusual_metadata(request) } else { request }
    }

    /// Returns the request for the charge `no` of this check, but with `payment_method` as the payment method to
    /// charge.
    pub fn charge_request_with_method(&self, no: u32, payment_method: &GatewayToken) -> ChargeRequest {
        let mut request = self.charge_request(no);
        request.payment_method.payment_method = payment_method.clone();
        request
    }

    /// Waits before a request that failed with `error` is repeated.
    pub async fn wait_to_retry(&self, error: &GatewayError) {
        let wait = match error {
            GatewayError::Throttled { retry_after: Some(wait) } => *wait,
            _ => RETRY_WAIT,
        };
        self.timer.sleep(wait.min(MAX_RETRY_WAIT)).await;
    }

    /// Sends `request`. If the outcome is unknown, or the gateway refuses the request because of too many requests,
    /// sends the same request again with the same idempotency key. After a refusal, first checks that the request made
    /// no payment.
    pub async fn send_charge(&self, request: &ChargeRequest) -> ChargeResponse {
        for _ in 1..MAX_REQUESTS {
            let response = self.gateway.charge(request).await;
            self.check_throttled_charge(request, &response).await;
            let error = match response {
                ChargeResponse::Throttled { retry_after } => GatewayError::Throttled { retry_after },
                ChargeResponse::Unknown { reason } | ChargeResponse::Inconclusive { code: reason } => {
                    GatewayError::Unknown { reason }
                }
                response => return response,
            };
            self.wait_to_retry(&error).await;
        }
        self.gateway.charge(request).await
    }

    /// Sends a request. Repeats it if the gateway refuses it because of too many requests.
    pub async fn repeat_if_throttled<T>(
        &self,
        send: impl AsyncFn() -> Result<T, GatewayError>,
    ) -> Result<T, GatewayError> {
        for _ in 1..MAX_REQUESTS {
            match send().await {
                Err(error @ GatewayError::Throttled { .. }) => self.wait_to_retry(&error).await,
                result => return result,
            }
        }
        send().await
    }

    /// Makes the charge `no`. The charge must succeed, and its payment must contain the data of the request. If this
    /// check has made the charge before, the gateway must return the same payment again.
    pub async fn make_payment(&self, no: u32) -> CheckResult<Payment> {
        let request = self.charge_request(no);
        let response = self.send_charge(&request).await;
        let ChargeResponse::Succeeded(payment) = response else {
            return Err(unexpected_response("a success", response));
        };
        let first = self.record_payment(no, &payment);
        ensure_promise(first.id == payment.id, || {
            format!("the same request made the payments {} and {}", first.id, payment.id)
        })?;
        ensure_promise(first.created_at == payment.created_at, || {
            format!(
                "the same request returned the payment {} with created_at {} and later with created_at {}: return the \
                 time at which the payment was made",
                payment.id, first.created_at, payment.created_at
            )
        })?;
        let has_metadata = (payment.table, &payment.account, payment.subscription, payment.due_on, payment.attempt_no)
            == (request.table, &request.account, request.subscription, request.due_on, no);
        ensure_promise(has_metadata, || format!("the payment does not have the metadata of the request: {payment:?}"))?;
        ensure_promise(payment.amount == request.amount, || {
            format!("{} was requested, and {} was charged", request.amount, payment.amount)
        })?;
        ensure_promise(payment.status == PaymentStatus::Succeeded, || {
            format!("the payment of a successful charge has the status {:?}", payment.status)
        })?;
        Ok(payment)
    }

    /// Remembers that the charge `no` made `payment`. Returns the first payment that this charge made.
    pub fn record_payment(&self, no: u32, payment: &Payment) -> Payment {
        let mut state = self.state();
        state.payments.insert(payment.id.clone());
        state.paid.entry(no).or_insert_with(|| payment.clone()).clone()
    }

    /// Returns the successful payments of this check so far, by charge number.
    pub fn payments(&self) -> BTreeMap<u32, Payment> {
        self.state().paid.clone()
    }

    /// Lists the payments of `customer` that were made at or after `since`, without the payments of other checks.
    /// Repeats the request if the gateway refuses it because of too many requests.
    pub async fn list_payments(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        let listed =
            self.repeat_if_throttled(async || self.gateway.payments_of_customer(customer, since).await).await?;
        let listed: Vec<Payment> = listed.into_iter().filter(|payment| self.is_own_payment(payment)).collect();
        self.state().payments.extend(listed.iter().map(|payment| payment.id.clone()));
        Ok(listed)
    }

    /// Returns whether this check requested `payment`.
    pub fn is_own_payment(&self, payment: &Payment) -> bool {
        let run = self.parameters.run;
        payment.table == Some(run) || payment.subscription == SubscriptionId::new(run)
    }

    /// Lists the payments that this check has made with both customers.
    pub async fn list_own_payments(&self) -> CheckResult<Vec<Payment>> {
        let mut listed = self.list_payments_of_first_customer().await?;
        listed.extend(self.list_payments_of_other_customer().await?);
        Ok(listed)
    }

    /// Lists the payments that this check has made with the first customer.
    pub async fn list_payments_of_first_customer(&self) -> CheckResult<Vec<Payment>> {
        let since = self.started_at - TimeDelta::days(1);
        self.list_payments(&self.parameters.customer, since).await.map_err(broken_by_gateway_error)
    }

    /// Lists the payments that this check has made with the second customer, [`CheckParameters::other_customer`].
    pub async fn list_payments_of_other_customer(&self) -> CheckResult<Vec<Payment>> {
        let since = self.started_at - TimeDelta::days(1);
        self.list_payments(&self.parameters.other_customer, since).await.map_err(broken_by_gateway_error)
    }

    /// Lists the payments of the first customer that were made for the charge `no`.
    pub async fn list_payments_of_charge(&self, no: u32) -> CheckResult<Vec<Payment>> {
        Ok(self
            .list_payments_of_first_customer()
            .await?
            .into_iter()
            .filter(|payment| payment.attempt_no == no)
            .collect())
    }

    /// Records the id of a refund that the gateway returned or listed. The report of the check contains the number of
    /// these refunds.
    pub fn record_refund(&self, id: &GatewayToken) {
        self.state().refunds.insert(id.clone());
    }

    /// Returns the ids of all payments, and the number of all refunds, that the gateway returned or listed in this
    /// check.
    pub fn created_objects(&self) -> (BTreeSet<GatewayToken>, usize) {
        let state = self.state();
        (state.payments.clone(), state.refunds.len())
    }

    /// Reports to the observer that `done` of `total` parts of `step` are finished.
    pub fn report_progress(&self, step: CheckStep, done: u64, total: u64) {
        self.observer.report_progress(&ConformanceProgress { step, done, total });
    }

    /// Returns how many seconds this conformance check has waited so far.
    pub fn waited_seconds(&self) -> u64 {
        self.state().waited_seconds
    }

    /// Waits for one second. Returns how many seconds this conformance check has waited so far.
    pub async fn wait_one_second(&self) -> u64 {
        self.timer.sleep(Duration::from_secs(1)).await;
        let mut state = self.state();
        state.waited_seconds += 1;
        state.waited_seconds
    }

    /// Returns the current time of the check's timer.
    pub fn now(&self) -> DateTime<Utc> {
        self.timer.now()
    }

    /// Returns an id that only this run of the check uses, computed from the id of the run and the number `no`.
    pub fn derived_id(&self, no: u128) -> Ulid {
        Ulid::from_parts(self.parameters.run.timestamp_ms(), self.parameters.run.random().wrapping_add(no))
    }
}
