//! Payments that the gateway makes hours after it has answered the request with an error.
//!
//! Nothing can prevent them. A look-up finds them from that moment on, so what is judged is whatever is done later.

use chrono::{DateTime, TimeDelta, Utc};
use shared::billing::{Payment, PaymentStatus};

use super::Oracle;
use super::ledger::Made;

impl Made {
    /// Whether it has succeeded or may still succeed.
    pub fn is_alive(&self) -> bool {
        !matches!(self.status, PaymentStatus::Declined(_))
    }

    /// Whether a look-up at any time in the last `time` before `now` has shown it.
    pub fn was_there(&self, now: DateTime<Utc>, time: TimeDelta) -> bool {
        self.repaired_at.is_none_or(|at| now - at > time)
    }
}

impl Oracle {
    /// The gateway has made `payment` with the payment method `card` now, of a request that it answered with an error before.
    pub fn repaired(&mut self, now: DateTime<Utc>, payment: &Payment, card: &str) {
        let made = Made::of(payment, card);
        let is_charged = |(_, other): (&String, &Made)| other.is_alive();
        let is_too_late = self.ledger.of_month(&made.who, made.due).any(is_charged);
        self.judged.repaired += 1;
        self.judged.too_late += u64::from(is_too_late && made.is_alive());
        self.ledger.made.insert(payment.id.to_string(), Made { repaired_at: Some(now), is_too_late, ..made });
    }
}
