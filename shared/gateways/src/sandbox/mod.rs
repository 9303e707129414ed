//! The sandbox: a gateway that moves no money and otherwise behaves like a real gateway. It stores everything in its
//! own append-only ledger, remembers idempotency keys for a day, and has test payment methods with the names of
//! Stripe's test payment methods.

mod ledger;
mod methods;
mod pages;
mod refunds;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
use billing::{GatewayAccount, GatewayToken, Money, Payment, PaymentStatus};
use clock::Clock;

pub use ledger::{Ledger, LedgerEntry, LedgerError, LedgerPayment, PageOpened};
use methods::Behaviour;

/// How long the sandbox remembers an idempotency key. After this time the same key makes a new charge, which is also
/// possible at Stripe ("Idempotent requests" in Stripe's API reference).
pub const IDEMPOTENCY_KEY_LIFETIME: TimeDelta = TimeDelta::hours(24);

/// A gateway that moves no money, for tests and demonstrations.
#[derive(Debug)]
pub struct Sandbox {
    clock: Arc<dyn Clock>,
    ledger: Mutex<Ledger>,
    /// The base URL of the sandbox's checkout pages. It is set only if the sandbox is served over HTTP.
    url: OnceLock<String>,
}

impl Sandbox {
    /// Creates a sandbox that stores its payments in `ledger` and reads the time from `clock`.
    pub fn new(ledger: Ledger, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ledger: Mutex::new(ledger), url: OnceLock::new() }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all ledger entries about payments, in the order in which they were written.
    pub fn entries(&self) -> Vec<LedgerEntry> {
        self.ledger().entries().to_vec()
    }

    /// Makes a charge at the time `now`.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger could not be written: the outcome of the charge is unknown.
    pub fn charge_at(&self, request: &ChargeRequest, now: DateTime<Utc>) -> Result<ChargeResponse, LedgerError> {
        let mut ledger = self.ledger();
        let is_remembered =
            |made: &&LedgerPayment| now.signed_duration_since(made.created_at) < IDEMPOTENCY_KEY_LIFETIME;
        if let Some(made) = ledger.payment_by_key(&request.idempotency_key).filter(is_remembered) {
            return Ok(if made.request == *request { first_response(made) } else { ChargeResponse::KeyReused });
        }
        if let Some(code) = refused_amount(request.amount) {
            return Ok(ChargeResponse::Rejected { code: code.to_owned() });
        }
        let status = match methods::behaviour_of_method(&request.payment_method.payment_method) {
            None => return Ok(ChargeResponse::Rejected { code: "resource_missing".to_owned() }),
            Some(Behaviour::Succeeds) => PaymentStatus::Succeeded,
            Some(Behaviour::Processes { .. }) => PaymentStatus::Processing,
            Some(Behaviour::Declines(decline)) => PaymentStatus::Declined(decline),
        };
        let id: GatewayToken = format!("pay_{}", self.clock.ulid()).parse().expect("a ULID is a token");
        let made = LedgerPayment { id, request: request.clone(), status, created_at: now };
        let response = first_response(&made);
        ledger.append(LedgerEntry::Payment(made))?;
        Ok(response)
    }

    /// Lists all payments of `customer` that were made at or after `since`, with their status at the time `now`.
    ///
    /// # Errors
    /// [`LedgerError`] if the final status of a payment could not be written to the ledger.
    pub fn payments_at(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Payment>, LedgerError> {
        let made: Vec<LedgerPayment> =
            self.ledger().payments_by_customer(customer).filter(|made| made.created_at >= since).cloned().collect();
        self.with_status_at(made, now)
    }

    /// Returns the payment `id` with its status at the time `now`; `None` if there is no such payment.
    ///
    /// # Errors
    /// [`LedgerError`] if the final status of the payment could not be written to the ledger.
    pub fn payment_at(&self, id: &GatewayToken, now: DateTime<Utc>) -> Result<Option<Payment>, LedgerError> {
        let made = self.ledger().payment_by_id(id).cloned();
        Ok(self.with_status_at(made.into_iter().collect(), now)?.pop())
    }

    /// Returns the payments `made` with their status at the time `now`. First stores the final status of each bank
    /// debit whose processing time is over.
    fn with_status_at(&self, made: Vec<LedgerPayment>, now: DateTime<Utc>) -> Result<Vec<Payment>, LedgerError> {
        let mut ledger = self.ledger();
        let mut payments = Vec::with_capacity(made.len());
        for made in made {
            if ledger.status_of_payment(&made) == PaymentStatus::Processing
                && let Some(Behaviour::Processes { time, then }) =
                    methods::behaviour_of_method(&made.request.payment_method.payment_method)
                && now >= made.created_at + time
            {
                ledger.append(LedgerEntry::Resolved {
                    id: made.id.clone(),
                    status: then,
                    at: made.created_at + time,
                })?;
            }
            payments.push(made.payment(ledger.status_of_payment(&made)));
        }
        Ok(payments)
    }
}

/// Returns the code with which the sandbox rejects `amount`, named like the code of Stripe; `None` if the amount is the
/// price of a product.
fn refused_amount(amount: Money) -> Option<&'static str> {
    match amount.currency().price(amount.minor()) {
        Ok(_) => None,
        Err(_) if amount.minor() <= 0 => Some("amount_too_small"),
        Err(_) => Some("amount_too_large"),
    }
}

/// Returns the response to the request that made the payment `made`. A repeated request gets the same response, even if
/// the payment is no longer processing.
fn first_response(made: &LedgerPayment) -> ChargeResponse {
    match made.status.clone() {
        PaymentStatus::Succeeded => ChargeResponse::Succeeded(made.payment(PaymentStatus::Succeeded)),
        PaymentStatus::Processing => ChargeResponse::Processing,
        PaymentStatus::Declined(decline) => ChargeResponse::Declined(decline),
    }
}

#[async_trait]
impl PaymentGateway for Sandbox {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        let ledger = self.ledger();
        Ok(GatewayAccount { kind: "sandbox".to_owned(), account: ledger.account().to_owned(), live: false })
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        self.charge_at(request, self.clock.now())
            .unwrap_or_else(|error| ChargeResponse::Unknown { reason: error.to_string() })
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        self.payments_at(customer, since, self.clock.now())
            .map_err(|error| GatewayError::Unknown { reason: error.to_string() })
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.payment_at(id, self.clock.now()).map_err(|error| GatewayError::Unknown { reason: error.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use billing::MAX_PRICE_MINOR;
    use clock::SimulatedClock;
    use serde_json::json;

    use super::*;
    use crate::{RefundRequest, RefundResponse};

    /// Returns a request for a charge of `minor` minor units, under an idempotency key of its own.
    fn charge_request(minor: i64) -> ChargeRequest {
        let request = json!({
            "idempotency_key": format!("key of {minor}"), "account": "acme",
            "subscription": "01JZXCVBNM0123456789ABCDEG", "sku": "gold", "due_on": "2027-01-31", "attempt_no": 1,
            "amount": minor, "currency": "EUR", "customer": "cus_acme", "payment_method": "pm_card_visa",
        });
        serde_json::from_value(request).unwrap()
    }

    #[test]
    fn charges_and_refunds_of_impossible_amounts_are_rejected_and_stored_nowhere() {
        let now = "2027-01-31T06:00:00Z".parse().unwrap();
        let sandbox = Sandbox::new(Ledger::memory(), Arc::new(SimulatedClock::new(now, 1)));
        let Ok(ChargeResponse::Succeeded(paid)) = sandbox.charge_at(&charge_request(1299), now) else { panic!() };
        for (minor, code) in [
            (0, "amount_too_small"),
            (-1, "amount_too_small"),
            (i64::MIN, "amount_too_small"),
            (MAX_PRICE_MINOR + 1, "amount_too_large"),
            (i64::MAX, "amount_too_large"),
        ] {
            let charged = sandbox.charge_at(&charge_request(minor), now).unwrap();
            assert_eq!(charged, ChargeResponse::Rejected { code: code.to_owned() }, "charge of {minor}");
            let amount = Money::new(minor, paid.amount.currency());
            let request = RefundRequest { refund: sandbox.clock.ulid(), payment: paid.id.clone(), amount };
            let refunded = sandbox.refund_at(&request, now).unwrap();
            assert_eq!(refunded, RefundResponse::Rejected { code: code.to_owned() }, "refund of {minor}");
        }
        assert_eq!((sandbox.entries().len(), sandbox.refunds_made(&paid.id)), (1, vec![]));
        let largest = sandbox.charge_at(&charge_request(MAX_PRICE_MINOR), now).unwrap();
        assert!(matches!(largest, ChargeResponse::Succeeded(_)), "{largest:?}");
    }
}
