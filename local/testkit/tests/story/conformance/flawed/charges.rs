//! Charges of the flawed gateways.

use std::time::Duration;

use billing::{Decline, Money, Payment, PaymentMethod};
use chrono::TimeDelta;
use clock::Clock as _;
use gateways::{ChargeRequest, ChargeResponse, PaymentGateway as _};
use sandbox::LedgerPayment;

use super::{Flaw, FlawedGateway};

impl FlawedGateway {
    /// Returns the idempotency key with which the sandbox charges for `request`.
    fn sandbox_key(&self, request: &ChargeRequest) -> String {
        let key = request.idempotency_key.clone();
        let is_declining = request.payment_method.payment_method.as_str().contains("Declined");
        let is_debit = request.payment_method.payment_method.as_str().contains("BankAccount");
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
                let earlier =
                    self.payments().into_iter().rfind(|payment| payment.request.idempotency_key.starts_with(&key));
                match earlier {
                    Some(earlier) if earlier.created_at > self.five_minutes_ago() => earlier.request.idempotency_key,
                    Some(_) => format!("{key}/{}", self.next_number()),
                    None => key,
                }
            }
            Flaw::ForgetsKeysOfDebitsAfterFiveMinutes if is_debit => {
                let earlier =
                    self.payments().into_iter().rfind(|payment| payment.request.idempotency_key.starts_with(&key));
                match earlier {
                    Some(earlier) if earlier.created_at <= self.five_minutes_ago() => {
                        format!("{key}/{}", self.next_number())
                    }
                    _ => key,
                }
            }
            Flaw::ForgetsKeysOfRejections if self.has_rejected(request, TimeDelta::zero()) => {
                format!("{key}/{}", self.next_number())
            }
            Flaw::ScopesKeysByCustomer => format!("{key}/{}", request.payment_method.customer),
            Flaw::TruncatesKeys => key.chars().take(40).collect(),
            _ => key,
        }
    }

    /// Returns whether the gateway rejected a request with the idempotency key of `request` at least `age` ago.
    fn has_rejected(&self, request: &ChargeRequest, age: TimeDelta) -> bool {
        let latest = self.clock.now() - age;
        let state = self.state();
        state.rejected.iter().any(|(rejected, at)| rejected.idempotency_key == request.idempotency_key && *at <= latest)
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

    /// Makes the charge `request`, or does what the flaw of this gateway is.
    pub(super) async fn charge_with_flaw(&self, request: &ChargeRequest) -> ChargeResponse {
        let is_throttled = request.attempt_no.is_multiple_of(10) && self.is_first_with(&request.idempotency_key);
        let throttled = ChargeResponse::Throttled { retry_after: Some(Duration::ZERO) };
        match self.flaw {
            Flaw::None if is_throttled => return throttled,
            Flaw::PaysAndRespondsThrottled if is_throttled => {
                self.sandbox.charge(request).await;
                return throttled;
            }
            _ => {}
        }
        let original = request;
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
            (_, ChargeResponse::Rejected { .. }) if self.pays_rejected_request(original) => {
                let succeeding = "pm_card_visa".parse().unwrap();
                let payment_method = PaymentMethod { payment_method: succeeding, ..request.payment_method.clone() };
                self.sandbox.charge(&ChargeRequest { payment_method, ..request }).await
            }
            (_, rejected @ ChargeResponse::Rejected { .. }) => {
                self.state().rejected.push((original.clone(), self.clock.now()));
                rejected
            }
            (Flaw::RepeatsPaymentsWithNewTime, ChargeResponse::Succeeded(payment)) => {
                ChargeResponse::Succeeded(Payment { created_at: self.clock.now(), ..payment })
            }
            (_, ChargeResponse::Succeeded(payment)) => ChargeResponse::Succeeded(self.change_metadata_or_time(payment)),
            (_, response) => response,
        }
    }

    /// Returns whether the gateway makes a payment for `request`, which it must reject.
    fn pays_rejected_request(&self, request: &ChargeRequest) -> bool {
        match self.flaw {
            Flaw::PaysRepeatedRejectedRequests => self.has_rejected(request, TimeDelta::zero()),
            Flaw::PaysRejectedRequestsRepeatedAfterFiveMinutes => self.has_rejected(request, TimeDelta::minutes(5)),
            _ => false,
        }
    }
}
