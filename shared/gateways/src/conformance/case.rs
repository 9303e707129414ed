//! The requests that all checks share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest as _, Sha256};
use ulid::Ulid;

use super::{Observer, Progress, Sample, Step, Verdict};
use crate::{ChargeAnswer, ChargeRequest, GatewayError, Processor};
use billing::{Currency, GatewayToken, Money, Payment, PaymentMethod, PaymentStatus, SubscriptionId};
use clock::Timer;

/// How often a request is sent whose outcome is unknown, or which the gateway refuses for its rate.
pub(super) const MAX_TRIES: u32 = 8;
/// How long to wait before it is sent again, if the gateway does not say so; and at most.
const RETRY_WAIT: Duration = Duration::from_secs(1);
const MAX_RETRY_WAIT: Duration = Duration::from_secs(30);

/// Whole amounts of minor units that become another one when they are converted to floating-point units and back carelessly.
const AMOUNTS: [i64; 3] = [1_999, 1_606, 1_940];

/// The numbers of the charges, which are their attempt numbers.
pub(super) const FIRST: u32 = 1;
pub(super) const SAME_AT_ONCE: u32 = 2;
pub(super) const DECLINED: u32 = 3;
pub(super) const REJECTED: u32 = 4;
pub(super) const NO_DECIMALS: u32 = 5;
pub(super) const THREE_DECIMALS: u32 = 6;
pub(super) const PROCESSING: u32 = 7;
pub(super) const REFUNDED_IN_PART: u32 = 8;
pub(super) const REFUNDED: u32 = 9;
pub(super) const REFUNDED_AT_ONCE: u32 = 10;
pub(super) const SIMILAR_KEYS: [u32; 2] = [11, 12];
pub(super) const OTHER_CUSTOMER: u32 = 13;
pub(super) const DIFFERENT_AT_ONCE: std::ops::Range<u32> = 20..26;
/// The attempt number of a request that reuses a key.
pub(super) const REUSED: u32 = 90;
/// More charges than one page of any gateway's list has.
pub(super) const MANY: std::ops::Range<u32> = 100..205;

/// The result of a check, or of a step of it: `Ok` if the promise is kept.
pub(super) type Outcome<T = ()> = Result<T, Verdict>;

/// A broken promise.
pub(super) fn broken(how: impl Into<String>) -> Verdict {
    Verdict::Broken(how.into())
}

/// Fails with `how` unless `holds`.
pub(super) fn ensure(holds: bool, how: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(broken(how())) }
}

/// Fails because the gateway should have returned something else than `response`.
pub(super) fn unexpected<T: Debug>(expected: &str, response: T) -> Verdict {
    broken(format!("{expected} was expected, and the response was {response:?}"))
}

fn no_response(error: &GatewayError) -> Verdict {
    broken(error.to_string())
}

/// One check of a gateway.
pub(super) struct Case<'a> {
    pub gateway: &'a dyn Processor,
    pub sample: &'a Sample,
    timer: &'a dyn Timer,
    observer: &'a dyn Observer,
    pub began: DateTime<Utc>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The successful payments, by the numbers of their charges.
    paid: BTreeMap<u32, Payment>,
    /// All payments that the gateway returned or listed.
    payments: BTreeSet<GatewayToken>,
    refunds: BTreeSet<GatewayToken>,
    /// In seconds.
    waited: u64,
}

impl<'a> Case<'a> {
    pub fn new(
        gateway: &'a dyn Processor,
        sample: &'a Sample,
        timer: &'a dyn Timer,
        observer: &'a dyn Observer,
    ) -> Self {
        Self { gateway, sample, timer, observer, began: timer.now(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The charge `no` of this check.
    pub fn charge(&self, no: u32) -> ChargeRequest {
        let Sample { customer, other_customer, succeeds, currency, run, .. } = self.sample;
        let known = |code: &str| code.parse::<Currency>().ok();
        let amount = match no {
            NO_DECIMALS => known("JPY").map(|currency| Money::new(500, currency)),
            THREE_DECIMALS => known("KWD").map(|currency| Money::new(57_500, currency)),
            _ => None,
        };
        let varied = AMOUNTS[no as usize % AMOUNTS.len()];
        // As long as the keys of the batch.
        let idempotency_key = match no {
            no if SIMILAR_KEYS.contains(&no) => format!("{run}-{no:0>37}"),
            no => format!("{:x}", Sha256::digest(format!("{run}\n{no}"))),
        };
        ChargeRequest {
            idempotency_key,
            table: Some(*run),
            account: "conformance".parse().expect("an account id"),
            subscription: SubscriptionId::new(*run),
            sku: "check".parse().expect("a SKU"),
            due_on: self.began.date_naive(),
            attempt_no: no,
            amount: amount.unwrap_or_else(|| Money::new(varied, *currency)),
            payment_method: PaymentMethod {
                customer: if no == OTHER_CUSTOMER { other_customer } else { customer }.clone(),
                payment_method: succeeds.clone(),
            },
        }
    }

    /// The charge `no`, to `payment_method`.
    pub fn charge_to(&self, no: u32, payment_method: &GatewayToken) -> ChargeRequest {
        let mut request = self.charge(no);
        request.payment_method.payment_method = payment_method.clone();
        request
    }

    /// Waits before a request is sent again that the gateway refused for its rate, or whose outcome is unknown.
    pub async fn wait_to_retry(&self, error: &GatewayError) {
        let wait = match error {
            GatewayError::Throttled { retry_after: Some(wait) } => *wait,
            _ => RETRY_WAIT,
        };
        self.timer.sleep(wait.min(MAX_RETRY_WAIT)).await;
    }

    /// Sends `request`, and again under the same key if the gateway refuses it for its rate or its outcome is unknown.
    pub async fn send(&self, request: &ChargeRequest) -> ChargeAnswer {
        for _ in 1..MAX_TRIES {
            let error = match self.gateway.charge(request).await {
                ChargeAnswer::Throttled { retry_after } => GatewayError::Throttled { retry_after },
                ChargeAnswer::Unknown { reason } | ChargeAnswer::Unproven { code: reason } => {
                    GatewayError::Unknown { reason }
                }
                response => return response,
            };
            self.wait_to_retry(&error).await;
        }
        self.gateway.charge(request).await
    }

    /// Makes the charge `no`. It must succeed, as it was requested; if it was made before, it must return the same payment.
    pub async fn paid(&self, no: u32) -> Outcome<Payment> {
        let request = self.charge(no);
        let response = self.send(&request).await;
        let ChargeAnswer::Succeeded(made) = response else { return Err(unexpected("a success", response)) };
        let before = self.remember(no, &made);
        ensure(before.id == made.id, || format!("the same request made {} and {}", before.id, made.id))?;
        let has_names = (made.table, &made.account, made.subscription, made.due_on, made.attempt_no)
            == (request.table, &request.account, request.subscription, request.due_on, no);
        ensure(has_names, || format!("it does not have the names of the request: {made:?}"))?;
        ensure(made.amount == request.amount, || {
            format!("{} was requested, and {} charged", request.amount, made.amount)
        })?;
        ensure(made.status == PaymentStatus::Succeeded, || format!("its status is {:?}", made.status))?;
        Ok(made)
    }

    /// Remembers that the charge `no` made `payment`. Returns the first payment that it made.
    fn remember(&self, no: u32, payment: &Payment) -> Payment {
        let mut state = self.state();
        state.payments.insert(payment.id.clone());
        state.paid.entry(no).or_insert_with(|| payment.clone()).clone()
    }

    /// The successful payments so far, by the numbers of their charges.
    pub fn payments(&self) -> BTreeMap<u32, Payment> {
        self.state().paid.clone()
    }

    /// The payments of `customer` since an instant, those of other checks left out.
    pub async fn list(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        let mut tries = 1;
        let listed = loop {
            match self.gateway.payments_of(customer, since).await {
                Err(error @ GatewayError::Throttled { .. }) if tries < MAX_TRIES => {
                    tries += 1;
                    self.wait_to_retry(&error).await;
                }
                listed => break listed?,
            }
        };
        let run = self.sample.run;
        let is_own = |payment: &Payment| payment.table == Some(run) || payment.subscription == SubscriptionId::new(run);
        let listed: Vec<Payment> = listed.into_iter().filter(is_own).collect();
        self.state().payments.extend(listed.iter().map(|payment| payment.id.clone()));
        Ok(listed)
    }

    /// The payments of the customer that this check has made.
    pub async fn listed(&self) -> Outcome<Vec<Payment>> {
        let since = self.began - TimeDelta::days(1);
        self.list(&self.sample.customer, since).await.map_err(|error| no_response(&error))
    }

    /// The payments of the other customer that this check has made.
    pub async fn listed_of_other(&self) -> Outcome<Vec<Payment>> {
        let since = self.began - TimeDelta::days(1);
        self.list(&self.sample.other_customer, since).await.map_err(|error| no_response(&error))
    }

    /// The listed payments of the charge `no`.
    pub async fn listed_of(&self, no: u32) -> Outcome<Vec<Payment>> {
        Ok(self.listed().await?.into_iter().filter(|payment| payment.attempt_no == no).collect())
    }

    /// Remembers the refund `id`.
    pub fn refunded(&self, id: &GatewayToken) {
        self.state().refunds.insert(id.clone());
    }

    pub fn left_behind(&self) -> (BTreeSet<GatewayToken>, usize) {
        let state = self.state();
        (state.payments.clone(), state.refunds.len())
    }

    pub fn progress(&self, step: Step, done: u64, of: u64) {
        self.observer.progress(&Progress { step, done, of });
    }

    /// How many seconds the check has waited.
    pub fn waited(&self) -> u64 {
        self.state().waited
    }

    /// Waits another second. Returns how many the check has waited.
    pub async fn wait_a_second(&self) -> u64 {
        self.timer.sleep(Duration::from_secs(1)).await;
        let mut state = self.state();
        state.waited += 1;
        state.waited
    }

    /// The present instant.
    pub fn now(&self) -> DateTime<Utc> {
        self.timer.now()
    }

    /// A second id of this check.
    pub fn another_id(&self, no: u128) -> Ulid {
        Ulid::from_parts(self.sample.run.timestamp_ms(), self.sample.run.random().wrapping_add(no))
    }
}
