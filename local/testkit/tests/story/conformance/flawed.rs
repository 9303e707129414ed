//! Gateways for the tests of `gateway check`: the sandbox with one of the flaws that the check must find.

mod charges;
mod lists;
mod refunds;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Payment};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use gateways::{
    ChargeRequest, ChargeResponse, CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages, GatewayDispute,
    GatewayError, GatewayRefund, ListPage, PaymentGateway, RefundRequest, RefundResponse, Refunds, TimeRange,
};
use sandbox::{LedgerEntry, LedgerPayment, Sandbox};
use ulid::Ulid;

/// A flaw of a gateway, which its name describes. In these names, "keys" are idempotency keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// No flaw. The gateway refuses the first request of some charges and refunds because of its rate limit, and makes
    /// no payment and no refund for them.
    None,
    ReturnsNewAccountEachTime,
    ChangesAccountAfterOneHundredCharges,
    ChangesAccountAfterFiveMinutes,
    ReportsWrongAmounts,
    ForgetsKeys,
    ForgetsKeysAfterSixtyRequests,
    ForgetsKeysAfterFiveMinutes,
    ForgetsKeysOfDeclines,
    ForgetsKeysOfDebitsAfterFiveMinutes,
    ForgetsKeysOfRejections,
    ScopesKeysByCustomer,
    TruncatesKeys,
    AcceptsReusedKeys,
    ComparesOnlyTheAmount,
    DeclinesWhileTheKeyIsInUse,
    RejectsWhileTheCustomerIsBusy,
    ListsDeclinesAsProcessing,
    PaysDeclinesAfterThreeSeconds,
    PaysDeclinesAfterTwoMinutes,
    RespondsUnknownToInvalidRequests,
    PaysRejectedRequestsLater,
    PaysRepeatedRejectedRequests,
    PaysRejectedRequestsRepeatedAfterFiveMinutes,
    PaysAndRespondsThrottled,
    RepeatsPaymentsWithNewTime,
    ReportsLocalTimeAsUtc,
    StoresDayOfChargeAsDueDate,
    StoresAccountsInLowerCase,
    StoresFortyCharactersOfAccounts,
    StoresAmountsInSinglePrecision,
    RoundsAmountsDown,
    ListsOnlyTheFirstPage,
    ListsAPaymentOnTwoPages,
    ListsAllCustomers,
    ListsOnlyTheLastTenMinutes,
    ReadsSinceAsLocalTime,
    RoundsSinceUpToSeconds,
    RoundsSinceUpToDays,
    ListsWrongAmounts,
    ListsAmountsAfterRefunds,
    HidesRefundedPayments,
    HidesProcessingPayments,
    MatchesCustomersByPrefix,
    MatchesCustomersWithoutCase,
    ReturnsWrongPaymentById,
    ConfirmsDeclinesWhenRead,
    ChangesCreationTimeWhenRead,
    SkipsAPaymentBetweenRangePages,
    RepeatsAPaymentOnTheNextRangePage,
    RefersToTheLastRangePageForever,
    AddsEmptyRangePagesForever,
    ExcludesStartOfRange,
    IncludesEndOfRange,
    OmitsDeclinesFromRange,
    OmitsRefundsFromRange,
    IgnoresRangeOfRefunds,
    RepeatsRefunds,
    MakesConcurrentCopiesOfRefunds,
    ForgetsRefundsAfterFiveMinutes,
    RefundsAndRespondsThrottled,
    RefundsDeclinedPayments,
    RefundsReusedKeysWithOtherAmounts,
    RefundsMoreThanPaid,
    RefundsConcurrentlyMoreThanPaid,
    OpensNewCheckoutPageEachTime,
}

/// The data that a flawed gateway needs in addition to the sandbox's ledger.
#[derive(Default, Debug)]
struct State {
    /// The number of requests that the gateway has received.
    requests: u32,
    /// The latest number that [`FlawedGateway::next_number`] returned.
    calls: u32,
    /// The idempotency keys of all charges, the oldest first.
    keys: Vec<String>,
    /// The number of times that the gateway has forgotten each key.
    forgotten: HashMap<String, u32>,
    /// The locked names: idempotency keys or customers of charges in progress, and payments of refunds in progress.
    in_use: BTreeSet<String>,
    /// The charge requests that the gateway rejected, with their times.
    rejected: Vec<(ChargeRequest, DateTime<Utc>)>,
    /// The idempotency keys and the refund ids of the requests that the gateway has refused because of its rate limit.
    throttled: BTreeSet<String>,
    /// The payments that were read by their id.
    read: BTreeSet<GatewayToken>,
    /// The first response to each refund id, with its time.
    refunds: HashMap<Ulid, (RefundResponse, DateTime<Utc>)>,
    /// The ids in the sandbox of the second refunds of repeated requests, each with the id in the request.
    second_refunds: HashMap<Ulid, Ulid>,
}

/// The sandbox gateway with a flaw.
#[derive(Debug)]
pub struct FlawedGateway {
    sandbox: Arc<Sandbox>,
    clock: Arc<SimulatedClock>,
    started_at: DateTime<Utc>,
    flaw: Flaw,
    state: Mutex<State>,
}

impl FlawedGateway {
    pub fn new(flaw: Flaw, sandbox: Arc<Sandbox>, clock: Arc<SimulatedClock>) -> Self {
        Self { sandbox, started_at: clock.now(), clock, flaw, state: Mutex::default() }
    }

    /// Returns the number of requests that the gateway has received.
    pub fn request_count(&self) -> u32 {
        self.state().requests
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn count_request(&self) {
        self.state().requests += 1;
    }

    /// Returns a new number in each call. Unique keys, setup ids and refund ids contain the number.
    fn next_number(&self) -> u32 {
        let mut state = self.state();
        state.calls += 1;
        state.calls
    }

    /// Returns the time five minutes ago.
    fn five_minutes_ago(&self) -> DateTime<Utc> {
        self.clock.now() - TimeDelta::minutes(5)
    }

    /// Returns all payments in the sandbox's ledger, the oldest first.
    fn payments(&self) -> Vec<LedgerPayment> {
        let entries = self.sandbox.entries().into_iter();
        entries
            .filter_map(|entry| if let LedgerEntry::Payment(payment) = entry { Some(payment) } else { None })
            .collect()
    }

    /// Locks `name` for a charge or refund, and returns false. Returns true, without an effect, if the name was already
    /// locked.
    async fn is_locked_or_lock(&self, name: &str) -> bool {
        let is_free = self.state().in_use.insert(name.to_owned());
        if is_free {
            tokio::task::yield_now().await;
        }
        !is_free
    }

    fn remove_lock(&self, name: &str) {
        self.state().in_use.remove(name);
    }

    /// Returns whether this request is the first one with `name`, an idempotency key or a refund id. The gateway
    /// refuses such a request because of its rate limit.
    fn is_first_with(&self, name: &str) -> bool {
        self.state().throttled.insert(name.to_owned())
    }
}

#[async_trait]
impl PaymentGateway for FlawedGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.count_request();
        let account = self.sandbox.account().await?;
        let is_other = match self.flaw {
            Flaw::ReturnsNewAccountEachTime => true,
            Flaw::ChangesAccountAfterOneHundredCharges => self.payments().len() > 100,
            Flaw::ChangesAccountAfterFiveMinutes => self.started_at < self.five_minutes_ago(),
            _ => false,
        };
        let other = GatewayAccount { account: format!("{}{}", account.account, self.next_number()), ..account.clone() };
        Ok(if is_other { other } else { account })
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        self.count_request();
        self.charge_with_flaw(request).await
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        self.count_request();
        self.list_with_flaw(customer, since).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.count_request();
        self.read_with_flaw(id).await
    }
}

#[async_trait]
impl CheckoutPages for FlawedGateway {
    async fn create_checkout_page(&self, request: &CheckoutPageRequest) -> Result<CheckoutPage, GatewayError> {
        self.count_request();
        let other = CheckoutPageRequest { setup: Ulid::from_parts(1, self.next_number().into()), ..request.clone() };
        self.sandbox
            .create_checkout_page(if self.flaw == Flaw::OpensNewCheckoutPageEachTime { &other } else { request })
            .await
    }

    async fn checkout_page_state(&self, id: &GatewayToken) -> Result<CheckoutPageState, GatewayError> {
        self.count_request();
        self.sandbox.checkout_page_state(id).await
    }
}

#[async_trait]
impl Refunds for FlawedGateway {
    async fn refund(&self, request: &RefundRequest) -> RefundResponse {
        self.count_request();
        self.refund_with_flaw(request).await
    }

    async fn refunds_of_payment(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        self.count_request();
        let refunds = self.sandbox.refunds_of_payment(payment).await?;
        Ok(refunds.into_iter().map(|refund| self.with_requested_id(refund)).collect())
    }

    async fn payments_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<Payment>>, GatewayError> {
        self.count_request();
        self.payments_in_range_with_flaw(range, after).await.map(Some)
    }

    async fn refunds_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        self.count_request();
        self.refunds_in_range_with_flaw(range, after).await.map(Some)
    }

    async fn disputes_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        self.count_request();
        self.sandbox.disputes_in_range(range, after).await
    }
}
