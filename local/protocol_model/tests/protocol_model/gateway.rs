//! A model of the gateway. The payment protocol relies on two properties of the gateway: until the gateway forgets an
//! idempotency key, all requests with this key make at most one payment; and the list of payments contains all
//! payments.

use billing::{Decline, Payment, PaymentStatus};
use chrono::{DateTime, Utc};
use gateways::{ChargeRequest, ChargeResponse};

/// The gateway's decision about a charge request with a new idempotency key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GatewayDecision {
    Succeeds,
    DeclinesSoftly,
    DeclinesHard,
    /// The payment is processing and gets its final status later, like a bank debit.
    AcceptsForProcessing,
    /// The gateway makes no payment.
    Rejects,
}

/// The state of the gateway: its payments, and the charge requests that have not arrived yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Gateway {
    pub payments: Vec<GatewayPayment>,
    /// The charge requests that were sent, but have not arrived at the gateway.
    pub in_flight: Vec<RequestInFlight>,
}

/// A payment that the gateway made, and the charge request that caused it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GatewayPayment {
    pub request: ChargeRequest,
    /// The status in the response to the first request. Repeated requests with the same key get the same response.
    pub first_status: PaymentStatus,
    pub payment: Payment,
    /// Whether the gateway has forgotten the idempotency key of `request`.
    pub is_forgotten: bool,
}

/// A charge request that has not arrived at the gateway, and its sender.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RequestInFlight {
    /// The index of the worker that sent the request.
    pub sender: usize,
    pub sent_at: DateTime<Utc>,
    pub request: ChargeRequest,
}

impl GatewayDecision {
    /// Returns the status of a payment that the gateway makes with this decision.
    pub fn status(self) -> PaymentStatus {
        let declined = |code: &str, hard| PaymentStatus::Declined(Decline { code: code.to_owned(), hard });
        match self {
            GatewayDecision::Succeeds => PaymentStatus::Succeeded,
            GatewayDecision::AcceptsForProcessing => PaymentStatus::Processing,
            GatewayDecision::DeclinesHard => declined("lost_card", true),
            GatewayDecision::DeclinesSoftly | GatewayDecision::Rejects => declined("insufficient_funds", false),
        }
    }
}

impl Gateway {
    /// Processes the charge request `request`, which arrives at `now`, and returns the response. If the idempotency key
    /// is new, `decision` decides the outcome. If the key is known, the first response is repeated, or the request is
    /// refused because its parameters differ.
    pub fn accept_charge(
        &mut self,
        request: &ChargeRequest,
        decision: GatewayDecision,
        now: DateTime<Utc>,
    ) -> ChargeResponse {
        let is_same = |payment: &&GatewayPayment| {
            !payment.is_forgotten && payment.request.idempotency_key == request.idempotency_key
        };
        if let Some(payment) = self.payments.iter().find(is_same) {
            return if payment.request == *request { first_response(payment) } else { ChargeResponse::KeyReused };
        }
        if decision == GatewayDecision::Rejects {
            return ChargeResponse::Rejected { code: "resource_missing".to_owned() };
        }
        let payment = Payment {
            table: None,
            id: format!("pay_{}", self.payments.len()).parse().unwrap(),
            account: request.account.clone(),
            subscription: request.subscription,
            due_on: request.due_on,
            attempt_no: request.attempt_no,
            amount: request.amount,
            status: decision.status(),
            card: None,
            created_at: now,
        };
        let payment =
            GatewayPayment { request: request.clone(), first_status: decision.status(), payment, is_forgotten: false };
        let response = first_response(&payment);
        self.payments.push(payment);
        response
    }
}

/// Returns the gateway's response to the first charge request of `payment`, which repeated requests also get.
fn first_response(payment: &GatewayPayment) -> ChargeResponse {
    match payment.first_status.clone() {
        PaymentStatus::Succeeded => {
            ChargeResponse::Succeeded(Payment { status: PaymentStatus::Succeeded, ..payment.payment.clone() })
        }
        PaymentStatus::Processing => ChargeResponse::Processing,
        PaymentStatus::Declined(decline) => ChargeResponse::Declined(decline),
    }
}
