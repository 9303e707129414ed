//! The sandbox: a gateway that moves no money and otherwise behaves like a real one from outside. It keeps an
//! append-only ledger of its own, honours idempotency keys for a day, and knows the test payment methods by Stripe's names.

mod client;
mod ledger;
mod methods;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::{ChargeAnswer, ChargeRequest, LookUpError, PaymentGateway};
use crate::billing::{GatewayAccount, GatewayToken, Payment, PaymentStatus};
use crate::clock::Clock;

pub use client::{ACCOUNT, CLOCK, ListQuery, PAYMENTS, SandboxClient};
pub use ledger::{Entry, Ledger, LedgerError, PaymentMade};
use methods::Behaviour;

/// An idempotency key is forgotten when it is this old, as Stripe may do ("Idempotent requests" in its API reference):
/// the same key is a new charge then.
pub const KEY_LIFE: TimeDelta = TimeDelta::hours(24);

/// The sandbox gateway.
#[derive(Debug)]
pub struct Sandbox {
    clock: Arc<dyn Clock>,
    ledger: Mutex<Ledger>,
}

impl Sandbox {
    /// A sandbox on `ledger`, with the time of `clock`.
    pub fn new(ledger: Ledger, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ledger: Mutex::new(ledger) }
    }

    /// Everything the ledger holds, in the order it was written.
    pub fn entries(&self) -> Vec<Entry> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).entries().to_vec()
    }

    /// Makes a charge as of `now`.
    ///
    /// # Errors
    /// [`LedgerError`]: whether it was made is unknown.
    pub fn charge_at(&self, request: &ChargeRequest, now: DateTime<Utc>) -> Result<ChargeAnswer, LedgerError> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let made: Vec<PaymentMade> =
            ledger.by_customer(customer).filter(|made| made.created_at >= since).cloned().collect();
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
    async fn account(&self) -> Result<GatewayAccount, LookUpError> {
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(GatewayAccount { kind: "sandbox".to_owned(), account: ledger.account().to_owned(), live: false })
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        self.charge_at(request, self.clock.now())
            .unwrap_or_else(|error| ChargeAnswer::Unknown { reason: error.to_string() })
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, LookUpError> {
        self.payments_at(customer, since, self.clock.now())
            .map_err(|error| LookUpError::Unknown { reason: error.to_string() })
    }
}
