//! Payments that the gateway makes hours after it has answered the request with an error.
//!
//! Nothing can prevent them. A look-up finds them from that moment on, so what is judged is whatever is done later.

use billing::{Payment, PaymentStatus};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::Oracle;
use super::agreement::{Agreement, Open};
use super::ledger::Made;
use super::outcome::{Found, Receipt, Records};
use crate::calendar::month_of;
use crate::stored::Who;

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

    /// Findings were written about payments of `who`. None of them changes the subscription.
    pub(super) fn found(&mut self, now: DateTime<Utc>, who: &Who, records: &Records) {
        for found in &records.found {
            let agreement = self.agreements.get(who).ok_or("nobody has subscribed to that".to_owned());
            match agreement.and_then(|agreement| self.is_finding(agreement, found)) {
                Ok(()) => {
                    self.ledger.found.insert(found.payment.clone());
                }
                Err(reason) => self.is_wrong(now, who, reason),
            }
        }
    }

    /// What the receiver of an event writes about a success of which no attempt is open.
    pub(super) fn late(
        &self,
        (now, today): (DateTime<Utc>, NaiveDate),
        next: &mut Agreement,
        records: &Records,
    ) -> Result<(), String> {
        match (&records.receipts[..], &records.tried[..], &records.found[..]) {
            ([receipt], [], []) => self.settle_late((now, today), next, receipt),
            _ => Err(format!("an event was worked on with {records:?}")),
        }
    }

    fn settle_late(
        &self,
        (now, today): (DateTime<Utc>, NaiveDate),
        next: &mut Agreement,
        receipt: &Receipt,
    ) -> Result<(), String> {
        let made = self.ledger.made.get(&receipt.payment).ok_or("a receipt of what the gateway does not know")?;
        let closed = Open {
            no: made.no,
            due: next.due,
            amount: made.amount,
            card: made.card.clone(),
            holder: 0,
            is_chargeable: false,
            held_at: now,
            leased_until: now,
            claimed_at: now,
        };
        self.is_receipt_of(&closed, next, receipt)?;
        next.paid(&closed, &receipt.payment, today, &self.rules);
        Ok(())
    }

    /// A finding is a success without a receipt whose month is not the one that is due.
    fn is_finding(&self, next: &Agreement, found: &Found) -> Result<(), String> {
        let made = self.ledger.made.get(&found.payment).filter(|made| made.who == next.who);
        let made = made.ok_or_else(|| format!("{found:?} is of a payment that the gateway does not know"))?;
        if made.status != PaymentStatus::Succeeded || self.ledger.receipted.contains(&found.payment) {
            return Err(format!("{found:?} is of a payment that did not succeed or has a receipt: {made:?}"));
        }
        let month = month_of(made.due);
        let expected = if next.paid.contains_key(&month) { "paid_twice" } else { "not_due" };
        if found.reason != expected || found.due != made.due || month == month_of(next.due) {
            return Err(format!("{found:?} should be {expected} of {}, and {} is due", made.due, next.due));
        }
        Ok(())
    }
}
