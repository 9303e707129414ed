//! The sandbox with one flaw, for each flaw that `gateway check` has to find.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use billing::{Decline, GatewayAccount, GatewayToken, Money, Payment, PaymentStatus};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use gateways::{
    ChargeAnswer, ChargeRequest, Entry, GatewayError, Page, PageRequest, PageState, PaymentGateway, PaymentMade,
    PaymentMethodPages, RefundAnswer, RefundMade, RefundRequest, RefundState, Refunds, Sandbox,
};
use ulid::Ulid;

/// A flaw of a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// No flaw.
    Sound,
    AnotherAccountEachTime,
    OtherAmount,
    ForgetsKeys,
    ForgetsKeysAfterSixtyRequests,
    ForgetsKeysAfterFiveMinutes,
    ForgetsKeysOfDeclines,
    ScopesKeysByCustomer,
    TruncatesKeys,
    TakesReusedKeys,
    ComparesOnlyTheAmount,
    DeclinesWhileTheKeyIsInUse,
    RejectsWhileTheCustomerIsBusy,
    DeclinesWhatCanStillBePaid,
    PaysDeclinesAfterThreeSeconds,
    PaysDeclinesAfterTwoMinutes,
    TakesWhatIsNone,
    PaysRejectionsLater,
    RoundsAmountsDown,
    ListsOnePage,
    ListsAPaymentOnTwoPages,
    ListsEverybody,
    ListsTenMinutes,
    ListsSinceInLocalTime,
    ListsWrongAmounts,
    ListsAmountsThatAreLeft,
    HidesRefundedPayments,
    HidesProcessingPayments,
    MatchesCustomersByPrefix,
    MatchesCustomersWithoutCase,
    ReadsAnotherPayment,
    RefundsAgain,
    RefundsAnotherAmountAgain,
    RefundsTooMuch,
    RefundsTooMuchAtOnce,
    OpensAnotherPage,
}

#[derive(Default, Debug)]
struct State {
    calls: u32,
    /// The keys of all charges, the oldest first.
    keys: Vec<String>,
    /// How often each key was forgotten.
    forgotten: HashMap<String, u32>,
    /// What is being worked on: keys, customers, payments that are refunded.
    in_use: BTreeSet<String>,
    /// What was rejected, and when.
    rejected: Vec<(ChargeRequest, DateTime<Utc>)>,
}

/// The sandbox, with a flaw.
#[derive(Debug)]
pub struct Flawed {
    sandbox: Arc<Sandbox>,
    clock: Arc<SimulatedClock>,
    flaw: Flaw,
    state: Mutex<State>,
}

impl Flawed {
    pub fn new(flaw: Flaw, sandbox: Arc<Sandbox>, clock: Arc<SimulatedClock>) -> Self {
        Self { sandbox, clock, flaw, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn call(&self) -> u32 {
        let mut state = self.state();
        state.calls += 1;
        state.calls
    }

    fn made(&self) -> Vec<PaymentMade> {
        let entries = self.sandbox.entries().into_iter();
        entries.filter_map(|entry| if let Entry::Payment(made) = entry { Some(made) } else { None }).collect()
    }

    /// The key under which the sandbox makes the charge.
    fn key(&self, request: &ChargeRequest) -> String {
        let key = request.idempotency_key.clone();
        let is_declining = request.payment_method.payment_method.as_str().contains("Declined");
        match self.flaw {
            Flaw::ForgetsKeys => self.call().to_string(),
            Flaw::ForgetsKeysOfDeclines if is_declining => self.call().to_string(),
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
                let made = self.made().into_iter().rfind(|made| made.request.idempotency_key.starts_with(&key));
                match made {
                    Some(made) if made.created_at > five_minutes_ago => made.request.idempotency_key,
                    Some(_) => format!("{key}/{}", self.call()),
                    None => key,
                }
            }
            Flaw::ScopesKeysByCustomer => format!("{key}/{}", request.payment_method.customer),
            Flaw::TruncatesKeys => key.chars().take(40).collect(),
            _ => key,
        }
    }

    /// What is held while a charge or refund is worked on; and whether it was held already.
    async fn hold(&self, name: &str) -> bool {
        let is_free = self.state().in_use.insert(name.to_owned());
        if is_free {
            tokio::task::yield_now().await;
        }
        !is_free
    }

    fn release(&self, name: &str) {
        self.state().in_use.remove(name);
    }

    async fn charge_held(&self, name: &str, request: &ChargeRequest, otherwise: ChargeAnswer) -> ChargeAnswer {
        if self.hold(name).await {
            return otherwise;
        }
        let answer = self.sandbox.charge(request).await;
        self.release(name);
        answer
    }

    /// Those customers whose payments are listed for `customer`.
    fn customers(&self, customer: &GatewayToken) -> BTreeSet<GatewayToken> {
        let everybody = || self.made().into_iter().map(|made| made.request.payment_method.customer);
        match self.flaw {
            Flaw::ListsEverybody => everybody().collect(),
            Flaw::MatchesCustomersByPrefix => {
                everybody().filter(|other| other.as_str().starts_with(customer.as_str())).collect()
            }
            Flaw::MatchesCustomersWithoutCase => {
                everybody().filter(|other| other.as_str().eq_ignore_ascii_case(customer.as_str())).collect()
            }
            _ => BTreeSet::from([customer.clone()]),
        }
    }

    fn refunded(&self, payment: &Payment) -> i64 {
        self.sandbox.refunds_made(&payment.id).iter().map(|refund| refund.amount.minor()).sum()
    }

    fn listed(&self, payment: Payment) -> Option<Payment> {
        let with = |minor: i64| Payment { amount: Money::new(minor, payment.amount.currency()), ..payment.clone() };
        let is_declined = matches!(payment.status, PaymentStatus::Declined(_));
        let age = self.clock.now() - payment.created_at;
        match self.flaw {
            Flaw::DeclinesWhatCanStillBePaid if is_declined => {
                Some(Payment { status: PaymentStatus::Processing, ..payment })
            }
            Flaw::PaysDeclinesAfterThreeSeconds if is_declined && age >= TimeDelta::seconds(3) => {
                Some(Payment { status: PaymentStatus::Succeeded, ..payment })
            }
            Flaw::PaysDeclinesAfterTwoMinutes if is_declined && age >= TimeDelta::minutes(2) => {
                Some(Payment { status: PaymentStatus::Succeeded, ..payment })
            }
            Flaw::HidesRefundedPayments if self.refunded(&payment) > 0 => None,
            Flaw::HidesProcessingPayments if payment.status == PaymentStatus::Processing => None,
            Flaw::ListsWrongAmounts => Some(with(payment.amount.minor() - 1)),
            Flaw::ListsAmountsThatAreLeft => Some(with(payment.amount.minor() - self.refunded(&payment))),
            _ => Some(payment),
        }
    }

    /// A payment of a request that was rejected.
    fn paid_later(&self, (request, at): &(ChargeRequest, DateTime<Utc>)) -> Payment {
        let id = format!("pay_late_{}", request.attempt_no).parse().unwrap();
        PaymentMade { id, request: request.clone(), status: PaymentStatus::Succeeded, created_at: *at }
            .payment(PaymentStatus::Succeeded)
    }
}

#[async_trait]
impl PaymentGateway for Flawed {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        let account = self.sandbox.account().await?;
        let other = GatewayAccount { account: format!("{}{}", account.account, self.call()), ..account.clone() };
        Ok(if self.flaw == Flaw::AnotherAccountEachTime { other } else { account })
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        let asked = ChargeRequest { idempotency_key: self.key(request), ..request.clone() };
        let declined = ChargeAnswer::Declined(Decline { code: "in_use".to_owned(), hard: false });
        let rejected = ChargeAnswer::Rejected { code: "busy".to_owned() };
        let answer = match self.flaw {
            Flaw::DeclinesWhileTheKeyIsInUse => {
                self.charge_held(&asked.idempotency_key.clone(), &asked, declined).await
            }
            Flaw::RejectsWhileTheCustomerIsBusy => {
                self.charge_held(asked.payment_method.customer.as_str(), &asked, rejected).await
            }
            Flaw::RoundsAmountsDown => {
                let rounded = (asked.amount.minor() as f64 / 100.0 * 100.0) as i64;
                let rounded = Money::new(rounded, asked.amount.currency());
                match self.sandbox.charge(&ChargeRequest { amount: rounded, ..asked.clone() }).await {
                    ChargeAnswer::Succeeded(made) => ChargeAnswer::Succeeded(Payment { amount: asked.amount, ..made }),
                    answer => answer,
                }
            }
            _ => self.sandbox.charge(&asked).await,
        };
        match (self.flaw, answer) {
            (Flaw::OtherAmount, ChargeAnswer::Succeeded(payment)) => {
                let amount = Money::new(payment.amount.minor() / 10, payment.amount.currency());
                ChargeAnswer::Succeeded(Payment { amount, ..payment })
            }
            (Flaw::TakesReusedKeys, ChargeAnswer::KeyReused) => {
                let other = ChargeRequest { idempotency_key: self.call().to_string(), ..asked };
                self.sandbox.charge(&other).await
            }
            (Flaw::ComparesOnlyTheAmount, ChargeAnswer::KeyReused) => {
                let made = self.made().into_iter().find(|made| made.request.idempotency_key == asked.idempotency_key);
                match made {
                    Some(made) if made.request.amount.minor() == asked.amount.minor() => {
                        self.sandbox.charge(&made.request).await
                    }
                    _ => ChargeAnswer::KeyReused,
                }
            }
            (Flaw::TakesWhatIsNone, ChargeAnswer::Rejected { .. }) => ChargeAnswer::Unknown { reason: "?".to_owned() },
            (Flaw::PaysRejectionsLater, rejected @ ChargeAnswer::Rejected { .. }) => {
                self.state().rejected.push((asked, self.clock.now()));
                rejected
            }
            (_, answer) => answer,
        }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        let since = match self.flaw {
            Flaw::ListsTenMinutes => since.max(self.clock.now() - TimeDelta::minutes(10)),
            Flaw::ListsSinceInLocalTime => since + TimeDelta::hours(2),
            _ => since,
        };
        let mut listed = Vec::new();
        for customer in self.customers(customer) {
            listed.extend(self.sandbox.payments_of(&customer, since).await?);
        }
        let mut listed: Vec<Payment> = listed.into_iter().filter_map(|payment| self.listed(payment)).collect();
        match self.flaw {
            Flaw::ListsOnePage => listed.truncate(100),
            Flaw::ListsAPaymentOnTwoPages => listed.extend(listed.get(99).cloned()),
            _ => {}
        }
        let three_seconds_ago = self.clock.now() - TimeDelta::seconds(3);
        let state = self.state();
        let late = state
            .rejected
            .iter()
            .filter(|(request, at)| *at <= three_seconds_ago && request.payment_method.customer == *customer);
        listed.extend(late.map(|rejected| self.paid_later(rejected)));
        Ok(listed)
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        if self.flaw == Flaw::ReadsAnotherPayment {
            return Ok(self.made().first().map(|made| made.payment(PaymentStatus::Succeeded)));
        }
        Ok(self.sandbox.payment(id).await?.and_then(|payment| self.listed(payment)))
    }
}

#[async_trait]
impl PaymentMethodPages for Flawed {
    async fn open_page(&self, request: &PageRequest) -> Result<Page, GatewayError> {
        let other = PageRequest { setup: Ulid::from_parts(1, self.call().into()), ..request.clone() };
        self.sandbox.open_page(if self.flaw == Flaw::OpensAnotherPage { &other } else { request }).await
    }

    async fn page_state(&self, id: &GatewayToken) -> Result<PageState, GatewayError> {
        self.sandbox.page_state(id).await
    }
}

#[async_trait]
impl Refunds for Flawed {
    async fn refund(&self, request: &RefundRequest) -> RefundAnswer {
        let other = RefundRequest { refund: Ulid::from_parts(2, self.call().into()), ..request.clone() };
        let contended = format!("{} refunded twice at once", request.payment);
        if self.flaw == Flaw::RefundsTooMuchAtOnce && self.hold(request.payment.as_str()).await {
            self.state().in_use.insert(contended.clone());
        }
        let answer = self.sandbox.refund(if self.flaw == Flaw::RefundsAgain { &other } else { request }).await;
        match answer {
            RefundAnswer::Rejected { .. } if self.flaw == Flaw::RefundsTooMuch => {
                let less = RefundRequest { amount: Money::new(1, request.amount.currency()), ..request.clone() };
                self.sandbox.refund(&less).await
            }
            RefundAnswer::Rejected { code }
                if self.flaw == Flaw::RefundsAnotherAmountAgain && code == "idempotency_error" =>
            {
                self.sandbox.refund(&other).await
            }
            RefundAnswer::Rejected { .. } if self.state().in_use.remove(&contended) => {
                self.release(request.payment.as_str());
                let id = format!("re_{}", request.refund).parse().unwrap();
                let (refund, amount) = (Some(request.refund), request.amount);
                RefundAnswer::Made(RefundMade { id, refund, amount, state: RefundState::Succeeded })
            }
            answer => {
                // Both are made before the first of them releases the payment.
                if !self.state().in_use.contains(&contended) {
                    self.release(request.payment.as_str());
                }
                answer
            }
        }
    }

    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<RefundMade>, GatewayError> {
        self.sandbox.refunds_of(payment).await
    }
}
