//! The gateway's ledger as the oracle keeps it: what was charged, and whether it may have been.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use shared::billing::{Payment, PaymentStatus};
use shared::gateway::{ChargeAnswer, ChargeRequest};

use super::{Oracle, Role};
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
    pub status: PaymentStatus,
    pub at: DateTime<Utc>,
}

/// All that the gateway has made or rejected.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub made: BTreeMap<String, Made>,
    /// Attempts of which the gateway said that it made nothing.
    pub rejected: BTreeSet<(Who, u32)>,
    /// The key of each attempt.
    keys: BTreeMap<String, (Who, u32)>,
    by_attempt: BTreeMap<(Who, u32), String>,
    /// Payments that are receipted.
    pub receipted: BTreeSet<String>,
}

impl Made {
    fn of(payment: &Payment) -> Self {
        Self {
            who: (payment.account.to_string(), payment.subscription.to_string()),
            due: payment.due_on,
            no: payment.attempt_no,
            amount: payment.amount.minor(),
            currency: payment.amount.currency().to_string(),
            status: payment.status.clone(),
            at: payment.created_at,
        }
    }
}

impl Ledger {
    /// What was made of a subscription's month.
    pub fn of_month<'a>(&'a self, who: &'a Who, due: NaiveDate) -> impl Iterator<Item = (&'a String, &'a Made)> {
        self.made.iter().filter(move |(_, made)| made.who == *who && month_of(made.due) == month_of(due))
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

    /// The gateway has answered `request`, and `made` is what it has made of it by now.
    pub fn charged(
        &mut self,
        id: ActorId,
        now: DateTime<Utc>,
        request: &ChargeRequest,
        answer: &ChargeAnswer,
        made: Option<&Payment>,
    ) {
        let who = (request.account.to_string(), request.subscription.to_string());
        if matches!(answer, ChargeAnswer::Rejected { .. } | ChargeAnswer::KeyReused) {
            self.ledger.rejected.insert((who.clone(), request.attempt_no));
        }
        let Some(made) = made.filter(|made| !self.ledger.made.contains_key(made.id.as_str())) else { return };
        if let Err(reason) = self.may_charge((id, now), &who, request) {
            self.is_wrong(now, &who, reason);
        }
        let is_open = |made: &Made| !matches!(made.status, PaymentStatus::Declined(_));
        let others: Vec<&String> =
            self.ledger.of_month(&who, request.due_on).filter(|(_, made)| is_open(made)).map(|(id, _)| id).collect();
        if let (Some(other), false) = (others.first(), matches!(made.status, PaymentStatus::Declined(_))) {
            let reason = format!("{} was charged again by {}, after {other}", request.due_on, made.id);
            self.is_wrong(now, &who, reason);
        }
        self.ledger.made.insert(made.id.to_string(), Made::of(made));
    }

    fn may_charge(
        &self,
        (id, now): (ActorId, DateTime<Utc>),
        who: &Who,
        request: &ChargeRequest,
    ) -> Result<(), String> {
        let due = request.due_on;
        let agreement = self.agreements.get(who).ok_or("nobody has subscribed to what was charged")?;
        let open = agreement.open.as_ref().filter(|open| open.no == request.attempt_no);
        let open =
            open.ok_or_else(|| format!("attempt {} of {due} was charged, and is not open", request.attempt_no))?;
        let asked = (due, request.amount.minor(), request.payment_method.payment_method.as_str());
        if asked != (open.due, open.amount, open.card.as_str()) {
            return Err(format!("charged {asked:?}, and frozen was {open:?}"));
        }
        if request.amount.currency().to_string() != agreement.currency {
            return Err(format!("charged {}, and agreed was {}", request.amount, agreement.currency));
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
            let is_paid = |made: &Made| made.status == PaymentStatus::Succeeded;
            if self.ledger.of_month(&who, due).filter(|(_, made)| is_paid(made)).count() > 1 {
                self.is_wrong(now, &who, format!("{due} was paid twice"));
            }
        }
    }
}
