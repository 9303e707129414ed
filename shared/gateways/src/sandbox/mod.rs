//! The sandbox: a gateway that moves no money and otherwise behaves like a real one from outside. It keeps an
//! append-only ledger of its own, honours idempotency keys for a day, and knows the test payment methods by Stripe's names.

mod ledger;
mod methods;
mod pages;
mod refunds;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::{ChargeAnswer, ChargeRequest, GatewayError, PaymentGateway};
use billing::{GatewayAccount, GatewayToken, Payment, PaymentStatus};
use clock::Clock;

pub use ledger::{Entry, Ledger, LedgerError, PageOpened, PaymentMade};
use methods::Behaviour;

/// An idempotency key is forgotten when it is this old, as Stripe may do ("Idempotent requests" in its API reference):
/// the same key is a new charge then.
pub const KEY_LIFE: TimeDelta = TimeDelta::hours(24);

/// The sandbox gateway.
#[derive(Debug)]
pub struct Sandbox {
    clock: Arc<dyn Clock>,
    ledger: Mutex<Ledger>,
    /// Where it is served.
    url: OnceLock<String>,
}

impl Sandbox {
    /// A sandbox on `ledger`, with the time of `clock`.
    pub fn new(ledger: Ledger, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ledger: Mutex::new(ledger), url: OnceLock::new() }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything the ledger holds of payments, in the order it was written.
    pub fn entries(&self) -> Vec<Entry> {
        self.ledger().entries().to_vec()
    }

    /// Makes a charge as of `now`.
    ///
    /// # Errors
    /// [`LedgerError`]: whether it was made is unknown.
    pub fn charge_at(&self, request: &ChargeRequest, now: DateTime<Utc>) -> Result<ChargeAnswer, LedgerError> {
        let mut ledger = self.ledger();
        let is_kept = |made: &&PaymentMade| now.signed_duration_since(made.created_at) < KEY_LIFE;
        if let Some(made) = ledger.by_key(&request.idempotency_key).filter(is_kept) {
            return Ok(if made.request == *request { answered(made) } else { ChargeAnswer::KeyReused });
        }
        let status = match methods::behaviour(&request.payment_method.payment_method) {
            None => return Ok(ChargeAnswer::Rejected { code: "resource_missing".to_owned() }),
            Some(Behaviour::Succeeds) => PaymentStatus::Succeeded,
            Some(Behaviour::Processes { .. }) => PaymentStatus::Processing,
            Some(Behaviour::Declines(decline)) => PaymentStatus::Declined(decline),
        };
        let id: GatewayToken = format!("pay_{}", self.clock.ulid()).parse().expect("a ULID is a token");
        let made = PaymentMade { id, request: request.clone(), status, created_at: now };
        let answer = answered(&made);
        ledger.append(Entry::Payment(made))?;
        Ok(answer)
    }

    /// All payments of `customer` made since an instant, as they stand `now`.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn payments_at(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Payment>, LedgerError> {
        let made: Vec<PaymentMade> =
            self.ledger().by_customer(customer).filter(|made| made.created_at >= since).cloned().collect();
        self.as_of(made, now)
    }

    /// The payment `id` as it stands `now`.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn payment_at(&self, id: &GatewayToken, now: DateTime<Utc>) -> Result<Option<Payment>, LedgerError> {
        let made = self.ledger().by_id(id).cloned();
        Ok(self.as_of(made.into_iter().collect(), now)?.pop())
    }

    /// `made` as they stand `now`; bank debits end when their time has come.
    fn as_of(&self, made: Vec<PaymentMade>, now: DateTime<Utc>) -> Result<Vec<Payment>, LedgerError> {
        let mut ledger = self.ledger();
        let mut payments = Vec::with_capacity(made.len());
        for made in made {
            if ledger.status(&made) == PaymentStatus::Processing
                && let Some(Behaviour::Processes { time, then }) =
                    methods::behaviour(&made.request.payment_method.payment_method)
                && now >= made.created_at + time
            {
                ledger.append(Entry::Resolved { id: made.id.clone(), status: then, at: made.created_at + time })?;
            }
            payments.push(made.payment(ledger.status(&made)));
        }
        Ok(payments)
    }
}

/// The first answer of a key, for ever.
fn answered(made: &PaymentMade) -> ChargeAnswer {
    match made.status.clone() {
        PaymentStatus::Succeeded => ChargeAnswer::Succeeded(made.payment(PaymentStatus::Succeeded)),
        PaymentStatus::Processing => ChargeAnswer::Processing,
        PaymentStatus::Declined(decline) => ChargeAnswer::Declined(decline),
    }
}

#[async_trait]
impl PaymentGateway for Sandbox {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        let ledger = self.ledger();
        Ok(GatewayAccount { kind: "sandbox".to_owned(), account: ledger.account().to_owned(), live: false })
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        self.charge_at(request, self.clock.now())
            .unwrap_or_else(|error| ChargeAnswer::Unknown { reason: error.to_string() })
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        self.payments_at(customer, since, self.clock.now())
            .map_err(|error| GatewayError::Unknown { reason: error.to_string() })
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.payment_at(id, self.clock.now()).map_err(|error| GatewayError::Unknown { reason: error.to_string() })
    }
}
