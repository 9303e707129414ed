//! The gateway, as far as the protocol relies on it: a key makes one payment while it lives, and the list shows them all.

use billing::{Decline, Payment, PaymentStatus};
use chrono::{DateTime, Utc};
use gateways::{ChargeAnswer, ChargeRequest};

/// What the gateway makes of a charge it has not seen before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    Succeeds,
    DeclinesSoftly,
    DeclinesHard,
    Processes,
    /// It makes nothing.
    Rejects,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Gateway {
    pub made: Vec<Made>,
    /// Requests under way.
    pub in_flight: Vec<Flight>,
}

/// A payment it has made.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Made {
    pub request: ChargeRequest,
    /// What a request under the same key is answered.
    pub first_status: PaymentStatus,
    pub payment: Payment,
    pub is_forgotten: bool,
}

/// A request under way, and who sent it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Flight {
    pub sender: usize,
    pub sent_at: DateTime<Utc>,
    pub request: ChargeRequest,
}

impl Reason {
    pub fn status(self) -> PaymentStatus {
        let declined = |code: &str, hard| PaymentStatus::Declined(Decline { code: code.to_owned(), hard });
        match self {
            Reason::Succeeds => PaymentStatus::Succeeded,
            Reason::Processes => PaymentStatus::Processing,
            Reason::DeclinesHard => declined("lost_card", true),
            Reason::DeclinesSoftly | Reason::Rejects => declined("insufficient_funds", false),
        }
    }
}

impl Gateway {
    /// Takes in `request`, at `now`.
    pub fn accept(&mut self, request: &ChargeRequest, verdict: Reason, now: DateTime<Utc>) -> ChargeAnswer {
        let is_same = |made: &&Made| !made.is_forgotten && made.request.idempotency_key == request.idempotency_key;
        if let Some(made) = self.made.iter().find(is_same) {
            return if made.request == *request { answer(made) } else { ChargeAnswer::KeyReused };
        }
        if verdict == Reason::Rejects {
            return ChargeAnswer::Rejected { code: "resource_missing".to_owned() };
        }
        let payment = Payment {
            table: None,
            id: format!("pay_{}", self.made.len()).parse().unwrap(),
            account: request.account.clone(),
            subscription: request.subscription,
            due_on: request.due_on,
            attempt_no: request.attempt_no,
            amount: request.amount,
            status: verdict.status(),
            card: None,
            created_at: now,
        };
        let made = Made { request: request.clone(), first_status: verdict.status(), payment, is_forgotten: false };
        let answer = answer(&made);
        self.made.push(made);
        answer
    }
}

fn answer(made: &Made) -> ChargeAnswer {
    match made.first_status.clone() {
        PaymentStatus::Succeeded => {
            ChargeAnswer::Succeeded(Payment { status: PaymentStatus::Succeeded, ..made.payment.clone() })
        }
        PaymentStatus::Processing => ChargeAnswer::Processing,
        PaymentStatus::Declined(decline) => ChargeAnswer::Declined(decline),
    }
}
