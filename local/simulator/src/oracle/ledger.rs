//! The gateway's ledger as the oracle keeps it: what was charged, and whether it may have been.

use std::collections::{BTreeMap, BTreeSet};

use billing::{Payment, PaymentStatus};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use gateways::ChargeRequest;

use super::{LONGEST_ROW, Oracle, Role};
use crate::calendar::month_of;
use crate::schedule::{ActorId, SLOWEST_REQUEST};
use crate::stored::Who;

/// A charge is sent within five minutes of the claim or the take-over, and is on its way for a time.
const LATEST_CHARGE: TimeDelta = TimeDelta::seconds(5 * 60 + SLOWEST_REQUEST.num_seconds() + 1);

/// A payment that the gateway has made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    pub who: Who,
    pub due: NaiveDate,
    pub no: u32,
    pub amount: i64,
    pub currency: String,
    /// The payment method.
    pub card: String,
    pub status: PaymentStatus,
    pub at: DateTime<Utc>,
    /// When the gateway made it, if it answered the request with an error long before.
    pub repaired_at: Option<DateTime<Utc>>,
    /// Whether it was made after the month had been charged by a later attempt, so that no look-up could have found it.
    pub is_too_late: bool,
}

/// All that the gateway has made or rejected.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub made: BTreeMap<String, Made>,
    /// Attempts that the gateway rejected.
    pub rejected: BTreeSet<(Who, u32)>,
    /// Attempts whose request the gateway has received, of a gateway that is judged by its books and not by its responses.
    pub received: BTreeSet<(Who, u32)>,
    /// The key of each attempt.
    keys: BTreeMap<String, (Who, u32)>,
    by_attempt: BTreeMap<(Who, u32), String>,
    /// Payments that are receipted.
    pub receipted: BTreeSet<String>,
    /// Payments that are findings.
    pub found: BTreeSet<String>,
}

impl Made {
    pub(super) fn of(payment: &Payment, card: &str) -> Self {
        Self {
            who: (payment.account.to_string(), payment.subscription.to_string()),
            due: payment.due_on,
            no: payment.attempt_no,
            amount: payment.amount.minor(),
            currency: payment.amount.currency().to_string(),
            card: card.to_owned(),
            status: payment.status.clone(),
            at: payment.created_at,
            repaired_at: None,
            is_too_late: false,
        }
    }
}

impl Ledger {
    /// What was made of a subscription's month.
    pub fn of_month<'a>(&'a self, who: &'a Who, due: NaiveDate) -> impl Iterator<Item = (&'a String, &'a Made)> {
        self.made.iter().filter(move |(_, made)| made.who == *who && month_of(made.due) == month_of(due))
    }

    /// Whether an attempt may be settled as rejected: the gateway has rejected it, or its books show nothing of it.
    pub fn has_nothing_of(&self, who: &Who, no: u32, now: DateTime<Utc>) -> bool {
        let attempt = (who.clone(), no);
        let is_shown = || self.of_attempt(who, no).any(|made| made.was_there(now, LONGEST_ROW));
        self.rejected.contains(&attempt) || (self.received.contains(&attempt) && !is_shown())
    }

    /// What was made of an attempt.
    pub fn of_attempt<'a>(&'a self, who: &'a Who, no: u32) -> impl Iterator<Item = &'a Made> {
        self.made.values().filter(move |made| made.who == *who && made.no == no)
    }
}

impl Oracle {
    /// The gateway is asked for a charge, whatever becomes of it.
    pub fn asked(&mut self, now: DateTime<Utc>, request: &ChargeRequest) {
        self.judged.charges += 1;
        let who = (request.account.to_string(), request.subscription.to_string());
        let attempt = (who.clone(), request.attempt_no);
        let of_key = self.ledger.keys.entry(request.idempotency_key.clone()).or_insert_with(|| attempt.clone()).clone();
        let of_attempt =
            self.ledger.by_attempt.entry(attempt.clone()).or_insert_with(|| request.idempotency_key.clone());
        if *of_attempt != request.idempotency_key || of_key != attempt {
            self.is_wrong(now, &who, format!("attempt {} was charged under two keys, or two under one", attempt.1));
        }
    }

    /// The gateway has rejected `request`.
    pub fn rejected(&mut self, request: &ChargeRequest) {
        let who = (request.account.to_string(), request.subscription.to_string());
        self.ledger.rejected.insert((who, request.attempt_no));
    }

    /// The gateway has received a charge under `key`.
    pub fn received(&mut self, key: &str) {
        self.ledger.received.extend(self.ledger.keys.get(key).cloned());
    }

    /// The gateway has made `payment` with the payment method `card`, of a request of `id`. It may have been told before.
    pub fn made(&mut self, id: ActorId, now: DateTime<Utc>, payment: &Payment, card: &str) {
        if self.ledger.made.contains_key(payment.id.as_str()) {
            return;
        }
        let made = Made::of(payment, card);
        if let Err(reason) = self.may_charge((id, now), &made) {
            self.is_wrong(now, &made.who, reason);
        }
        if made.is_alive() {
            self.is_only_one(now, payment, &made);
        }
        self.ledger.made.insert(payment.id.to_string(), made);
    }

    /// Judges that `made` is not the only payment of its month.
    fn is_only_one(&mut self, now: DateTime<Utc>, payment: &Payment, made: &Made) {
        let is_other =
            |other: &Made| other.who == made.who && month_of(other.due) == month_of(made.due) && other.is_alive();
        let mut wrong = Vec::new();
        for (id, other) in self.ledger.made.iter_mut().filter(|(_, other)| is_other(other)) {
            if other.was_there(now, LATEST_CHARGE) {
                wrong.push(format!(
                    "{} was charged again by {}, after {id}: {made:?} after {other:?}",
                    made.due, payment.id
                ));
            } else if !other.is_too_late {
                other.is_too_late = true;
                self.judged.too_late += 1;
            }
        }
        wrong.into_iter().for_each(|reason| self.is_wrong(now, &made.who, reason));
    }

    fn may_charge(&self, (id, now): (ActorId, DateTime<Utc>), made: &Made) -> Result<(), String> {
        let Made { who, due, no, .. } = made;
        let agreement = self.agreements.get(who).ok_or("nobody has subscribed to what was charged")?;
        let open = agreement.open.as_ref().filter(|open| open.no == *no);
        let open = open.ok_or_else(|| format!("attempt {no} of {due} was charged, and is not open"))?;
        let asked = (*due, made.amount, made.card.as_str());
        if asked != (open.due, open.amount, open.card.as_str()) {
            return Err(format!("charged {asked:?}, and frozen was {open:?}"));
        }
        if made.currency != agreement.currency {
            return Err(format!("charged {}, and agreed was {}", made.currency, agreement.currency));
        }
        if !open.is_chargeable {
            return Err(format!(
                "{due} was charged, though the subscription was stopped before the attempt was taken over"
            ));
        }
        // What was given up arrives without an actor.
        if id != 0 && open.holder != id {
            return Err(format!("{due} was charged by somebody who does not hold its attempt"));
        }
        if id != 0 && now - open.held_at > LATEST_CHARGE {
            return Err(format!(
                "{due} was charged at {now}, and its attempt was begun or taken over at {}",
                open.held_at
            ));
        }
        match self.present.get(&id) {
            Some(present) if present.actor.role != Role::Payments => {
                Err(format!("{due} was charged by {:?}", present.actor.role))
            }
            Some(present) if present.holds_back(who) => {
                Err(format!("{due} was charged while charging is switched off"))
            }
            _ => Ok(()),
        }
    }

    /// What the gateway knows by now of `payments`.
    pub fn known(&mut self, now: DateTime<Utc>, payments: &[Payment]) {
        for payment in payments {
            let Some(made) = self.ledger.made.get_mut(payment.id.as_str()) else { continue };
            if made.status == payment.status {
                continue;
            }
            made.status = payment.status.clone();
            let (who, due) = (made.who.clone(), made.due);
            let is_paid = |made: &Made| made.status == PaymentStatus::Succeeded && !made.is_too_late;
            if self.ledger.of_month(&who, due).filter(|(_, made)| is_paid(made)).count() > 1 {
                self.is_wrong(now, &who, format!("{due} was paid twice"));
            }
        }
    }
}
