//! Gateways for the tests of `gateway check`: the sandbox with one of the flaws that the check must find.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use billing::{Decline, GatewayAccount, GatewayToken, Money, Payment, PaymentStatus};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use gateways::{
    ChargeRequest, ChargeResponse, CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages, GatewayError,
    GatewayRefund, PaymentGateway, RefundRequest, RefundResponse, RefundState, Refunds,
};
use sandbox::{LedgerEntry, LedgerPayment, Sandbox};
use ulid::Ulid;

/// A flaw of a gateway, which its name describes. In these names, "keys" are idempotency keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// No flaw.
    None,
    ReturnsNewAccountEachTime,
    ReportsWrongAmounts,
    ForgetsKeys,
    ForgetsKeysAfterSixtyRequests,
    ForgetsKeysAfterFiveMinutes,
    ForgetsKeysOfDeclines,
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
    RoundsAmountsDown,
    ListsOnlyTheFirstPage,
    ListsAPaymentOnTwoPages,
    ListsAllCustomers,
    ListsOnlyTheLastTenMinutes,
    ReadsSinceAsLocalTime,
    ListsWrongAmounts,
    ListsAmountsAfterRefunds,
    HidesRefundedPayments,
    HidesProcessingPayments,
    MatchesCustomersByPrefix,
    MatchesCustomersWithoutCase,
    ReturnsWrongPaymentById,
    RepeatsRefunds,
    RefundsReusedKeysWithOtherAmounts,
    RefundsMoreThanPaid,
    RefundsConcurrentlyMoreThanPaid,
    OpensNewCheckoutPageEachTime,
}

/// The data that a flawed gateway needs in addition to the sandbox's ledger.
#[derive(Default, Debug)]
struct State {
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
}

/// The sandbox gateway with a flaw.
#[derive(Debug)]
pub struct FlawedGateway {
    sandbox: Arc<Sandbox>,
    clock: Arc<SimulatedClock>,
    flaw: Flaw,
    state: Mutex<State>,
}

impl FlawedGateway {
    pub fn new(flaw: Flaw, sandbox: Arc<Sandbox>, clock: Arc<SimulatedClock>) -> Self {
        Self { sandbox, clock, flaw, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Returns a new number in each call. Unique keys, setup ids and refund ids contain the number.
    fn next_number(&self) -> u32 {
        let mut state = self.state();
        state.calls += 1;
        state.calls
    }

    /// Returns all payments in the sandbox's ledger, the oldest first.
    fn payments(&self) -> Vec<LedgerPayment> {
        let entries = self.sandbox.entries().into_iter();
        entries
            .filter_map(|entry| if let LedgerEntry::Payment(payment) = entry { Some(payment) } else { None })
            .collect()
    }

    /// Returns the idempotency key with which the sandbox charges for `request`.
    fn sandbox_key(&self, request: &ChargeRequest) -> String {
        let key = request.idempotency_key.clone();
        let is_declining = request.payment_method.payment_method.as_str().contains("Declined");
        match self.flaw {
            Flaw::ForgetsKeys => self.next_number().to_string(),
            Flaw::ForgetsKeysOfDeclines if is_declining => self.next_number().to_string(),
            Flaw::ForgetsKeysAfterSixtyRequests => {
                let mut state = self.state();
                let is_kept = state.keys.iter().rev().take(60).any(|kept| *kept == key);
                if state.keys.contains(&key) && !is_kept {
                    *state.forgotten.entry(key.clone()).or_default() += 1;
                }
                state.keys.push(key.clone());
                format!("{key}/{}", state.forgotten.get(&key).copied().unwrap_or(0))
            }
            Flaw::ForgetsKeysAfterFiveMinutes => {
                let five_minutes_ago = self.clock.now() - TimeDelta::minutes(5);
                let earlier =
                    self.payments().into_iter().rfind(|payment| payment.request.idempotency_key.starts_with(&key));
                match earlier {
                    Some(earlier) if earlier.created_at > five_minutes_ago => earlier.request.idempotency_key,
                    Some(_) => format!("{key}/{}", self.next_number()),
                    None => key,
                }
            }
            Flaw::ScopesKeysByCustomer => format!("{key}/{}", request.payment_method.customer),
            Flaw::TruncatesKeys => key.chars().take(40).collect(),
            _ => key,
        }
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

    /// Locks `name` and charges. Returns `if_locked` without a charge if another charge has locked the name.
    async fn charge_with_lock(&self, name: &str, request: &ChargeRequest, if_locked: ChargeResponse) -> ChargeResponse {
        if self.is_locked_or_lock(name).await {
            return if_locked;
        }
        let response = self.sandbox.charge(request).await;
        self.remove_lock(name);
        response
    }

    /// Returns the customers whose payments this gateway lists in response to a request for the payments of `customer`.
    fn customers_to_list(&self, customer: &GatewayToken) -> BTreeSet<GatewayToken> {
        let all_customers = || self.payments().into_iter().map(|payment| payment.request.payment_method.customer);
        match self.flaw {
            Flaw::ListsAllCustomers => all_customers().collect(),
            Flaw::MatchesCustomersByPrefix => {
                all_customers().filter(|other| other.as_str().starts_with(customer.as_str())).collect()
            }
            Flaw::MatchesCustomersWithoutCase => {
                all_customers().filter(|other| other.as_str().eq_ignore_ascii_case(customer.as_str())).collect()
            }
            _ => BTreeSet::from([customer.clone()]),
        }
    }

    /// Returns the refunded amount of `payment` in minor units.
    fn refunded_amount(&self, payment: &Payment) -> i64 {
        self.sandbox.refunds_made(&payment.id).iter().map(|refund| refund.amount.minor()).sum()
    }

    /// Returns `payment` as this gateway lists it, or `None` if the gateway does not list it.
    fn change_listed_payment(&self, payment: Payment) -> Option<Payment> {
        let with_amount =
            |minor: i64| Payment { amount: Money::new(minor, payment.amount.currency()), ..payment.clone() };
        let is_declined = matches!(payment.status, PaymentStatus::Declined(_));
        let age = self.clock.now() - payment.created_at;
        match self.flaw {
            Flaw::ListsDeclinesAsProcessing if is_declined => {
                Some(Payment { status: PaymentStatus::Processing, ..payment })
            }
            Flaw::PaysDeclinesAfterThreeSeconds if is_declined && age >= TimeDelta::seconds(3) => {
                Some(Payment { status: PaymentStatus::Succeeded, ..payment })
            }
            Flaw::PaysDeclinesAfterTwoMinutes if is_declined && age >= TimeDelta::minutes(2) => {
                Some(Payment { status: PaymentStatus::Succeeded, ..payment })
            }
            Flaw::HidesRefundedPayments if self.refunded_amount(&payment) > 0 => None,
            Flaw::HidesProcessingPayments if payment.status == PaymentStatus::Processing => None,
            Flaw::ListsWrongAmounts => Some(with_amount(payment.amount.minor() - 1)),
            Flaw::ListsAmountsAfterRefunds => {
                Some(with_amount(payment.amount.minor() - self.refunded_amount(&payment)))
            }
            _ => Some(payment),
        }
    }

    /// Returns the successful payment that [`Flaw::PaysRejectedRequestsLater`] lists for a rejected request.
    fn payment_of_rejected_request(&self, (request, at): &(ChargeRequest, DateTime<Utc>)) -> Payment {
        let id = format!("pay_late_{}", request.attempt_no).parse().unwrap();
        LedgerPayment { id, request: request.clone(), status: PaymentStatus::Succeeded, created_at: *at }
            .payment(PaymentStatus::Succeeded)
    }
}

#[async_trait]
impl PaymentGateway for FlawedGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        let account = self.sandbox.account().await?;
        let other = GatewayAccount { account: format!("{}{}", account.account, self.next_number()), ..account.clone() };
        Ok(if self.flaw == Flaw::ReturnsNewAccountEachTime { other } else { account })
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        let request = ChargeRequest { idempotency_key: self.sandbox_key(request), ..request.clone() };
        let declined = ChargeResponse::Declined(Decline { code: "in_use".to_owned(), hard: false });
        let rejected = ChargeResponse::Rejected { code: "busy".to_owned() };
        let response = match self.flaw {
            Flaw::DeclinesWhileTheKeyIsInUse => {
                self.charge_with_lock(&request.idempotency_key.clone(), &request, declined).await
            }
            Flaw::RejectsWhileTheCustomerIsBusy => {
                self.charge_with_lock(request.payment_method.customer.as_str(), &request, rejected).await
            }
            Flaw::RoundsAmountsDown => {
                let rounded = (request.amount.minor() as f64 / 100.0 * 100.0) as i64;
                let rounded = Money::new(rounded, request.amount.currency());
                match self.sandbox.charge(&ChargeRequest { amount: rounded, ..request.clone() }).await {
                    ChargeResponse::Succeeded(payment) => {
                        ChargeResponse::Succeeded(Payment { amount: request.amount, ..payment })
                    }
                    response => response,
                }
            }
            _ => self.sandbox.charge(&request).await,
        };
        match (self.flaw, response) {
            (Flaw::ReportsWrongAmounts, ChargeResponse::Succeeded(payment)) => {
                let amount = Money::new(payment.amount.minor() / 10, payment.amount.currency());
                ChargeResponse::Succeeded(Payment { amount, ..payment })
            }
            (Flaw::AcceptsReusedKeys, ChargeResponse::KeyReused) => {
                let other = ChargeRequest { idempotency_key: self.next_number().to_string(), ..request };
                self.sandbox.charge(&other).await
            }
            (Flaw::ComparesOnlyTheAmount, ChargeResponse::KeyReused) => {
                let same_key = |payment: &LedgerPayment| payment.request.idempotency_key == request.idempotency_key;
                match self.payments().into_iter().find(same_key) {
                    Some(earlier) if earlier.request.amount.minor() == request.amount.minor() => {
                        self.sandbox.charge(&earlier.request).await
                    }
                    _ => ChargeResponse::KeyReused,
                }
            }
            (Flaw::RespondsUnknownToInvalidRequests, ChargeResponse::Rejected { .. }) => {
                ChargeResponse::Unknown { reason: "?".to_owned() }
            }
            (Flaw::PaysRejectedRequestsLater, rejected @ ChargeResponse::Rejected { .. }) => {
                self.state().rejected.push((request, self.clock.now()));
                rejected
            }
            (_, response) => response,
        }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        let since = match self.flaw {
            Flaw::ListsOnlyTheLastTenMinutes => since.max(self.clock.now() - TimeDelta::minutes(10)),
            Flaw::ReadsSinceAsLocalTime => since + TimeDelta::hours(2),
            _ => since,
        };
        let mut listed = Vec::new();
        for customer in self.customers_to_list(customer) {
            listed.extend(self.sandbox.payments_of(&customer, since).await?);
        }
        let mut listed: Vec<Payment> =
            listed.into_iter().filter_map(|payment| self.change_listed_payment(payment)).collect();
        match self.flaw {
            Flaw::ListsOnlyTheFirstPage => listed.truncate(100),
            Flaw::ListsAPaymentOnTwoPages => listed.extend(listed.get(99).cloned()),
            _ => {}
        }
        let three_seconds_ago = self.clock.now() - TimeDelta::seconds(3);
        let state = self.state();
        let late = state
            .rejected
            .iter()
            .filter(|(request, at)| *at <= three_seconds_ago && request.payment_method.customer == *customer);
        listed.extend(late.map(|rejected| self.payment_of_rejected_request(rejected)));
        Ok(listed)
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        if self.flaw == Flaw::ReturnsWrongPaymentById {
            return Ok(self.payments().first().map(|payment| payment.payment(PaymentStatus::Succeeded)));
        }
        Ok(self.sandbox.payment(id).await?.and_then(|payment| self.change_listed_payment(payment)))
    }
}

#[async_trait]
impl CheckoutPages for FlawedGateway {
    async fn create_checkout_page(&self, request: &CheckoutPageRequest) -> Result<CheckoutPage, GatewayError> {
        let other = CheckoutPageRequest { setup: Ulid::from_parts(1, self.next_number().into()), ..request.clone() };
        self.sandbox
            .create_checkout_page(if self.flaw == Flaw::OpensNewCheckoutPageEachTime { &other } else { request })
            .await
    }

    async fn checkout_page_state(&self, id: &GatewayToken) -> Result<CheckoutPageState, GatewayError> {
        self.sandbox.checkout_page_state(id).await
    }
}

#[async_trait]
impl Refunds for FlawedGateway {
    async fn refund(&self, request: &RefundRequest) -> RefundResponse {
        let other = RefundRequest { refund: Ulid::from_parts(2, self.next_number().into()), ..request.clone() };
        let concurrent = format!("{} has concurrent refunds", request.payment);
        if self.flaw == Flaw::RefundsConcurrentlyMoreThanPaid && self.is_locked_or_lock(request.payment.as_str()).await
        {
            self.state().in_use.insert(concurrent.clone());
        }
        let response = self.sandbox.refund(if self.flaw == Flaw::RepeatsRefunds { &other } else { request }).await;
        match response {
            RefundResponse::Rejected { .. } if self.flaw == Flaw::RefundsMoreThanPaid => {
                let less = RefundRequest { amount: Money::new(1, request.amount.currency()), ..request.clone() };
                self.sandbox.refund(&less).await
            }
            RefundResponse::Rejected { code }
                if self.flaw == Flaw::RefundsReusedKeysWithOtherAmounts && code == "idempotency_error" =>
            {
                self.sandbox.refund(&other).await
            }
            RefundResponse::Rejected { .. } if self.state().in_use.remove(&concurrent) => {
                self.remove_lock(request.payment.as_str());
                let id = format!("re_{}", request.refund).parse().unwrap();
                let (refund, amount) = (Some(request.refund), request.amount);
                RefundResponse::Made(GatewayRefund { id, refund, amount, state: RefundState::Succeeded })
            }
            response => {
                // During concurrent refunds, keep the payment locked until the sandbox rejects one of them.
                if !self.state().in_use.contains(&concurrent) {
                    self.remove_lock(request.payment.as_str());
                }
                response
            }
        }
    }

    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        self.sandbox.refunds_of(payment).await
    }
}
