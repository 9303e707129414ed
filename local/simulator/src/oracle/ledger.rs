//! The oracle's own ledger of the gateway's payments, and the checks of each charge.

use std::collections::{BTreeMap, BTreeSet};

use billing::{Payment, PaymentStatus};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use gateways::ChargeRequest;

use super::{ActorRole, MAX_ROW_TIME, Oracle};
use crate::calendar::month_of;
use crate::schedule::{ActorId, SLOWEST_REQUEST};
use crate::stored_items::SubscriptionName;

/// The maximum time between the claim or take-over of an attempt and the arrival of its charge: five minutes until the
/// request is sent, `SLOWEST_REQUEST` until the request arrives, and one second of tolerance.
const MAX_TIME_FROM_CLAIM_TO_CHARGE: TimeDelta = TimeDelta::seconds(5 * 60 + SLOWEST_REQUEST.num_seconds() + 1);

/// A payment that the gateway has made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LedgerPayment {
    pub subscription: SubscriptionName,
    pub due: NaiveDate,
    /// The number of the attempt.
    pub no: u32,
    pub amount: i64,
    pub currency: String,
    /// The payment method.
    pub card: String,
    pub status: PaymentStatus,
    /// The creation time of the payment at the gateway.
    pub at: DateTime<Utc>,
    /// The instant at which the gateway made a late payment, long after its error response; `None` for a payment that
    /// is not late.
    pub made_late_at: Option<DateTime<Utc>>,
    /// Whether another attempt charged the same month before a look-up could find this payment.
    pub is_undetectable: bool,
}

/// All payments that the gateway has made, and the oracle's data about their attempts.
#[derive(Clone, Debug, Default)]
pub struct PaymentLedger {
    pub payments: BTreeMap<String, LedgerPayment>,
    /// The attempts that the gateway rejected.
    pub rejected: BTreeSet<(SubscriptionName, u32)>,
    /// The attempts whose charge request arrived at the gateway. Only used if the gateway is Stripe: for Stripe, the
    /// oracle reads the payments and not the responses.
    pub received: BTreeSet<(SubscriptionName, u32)>,
    /// The attempt of each idempotency key.
    attempt_by_key: BTreeMap<String, (SubscriptionName, u32)>,
    /// The idempotency key of each attempt.
    key_by_attempt: BTreeMap<(SubscriptionName, u32), String>,
    /// The payments that have a receipt.
    pub receipted: BTreeSet<String>,
    /// The payments for which a finding (a successful payment without a receipt) is recorded.
    pub findings: BTreeSet<String>,
}

impl LedgerPayment {
    /// Converts `payment`, which the gateway made with the payment method `card`. The result is not a late payment.
    pub(super) fn from_payment(payment: &Payment, card: &str) -> Self {
        Self {
            subscription: (payment.account.to_string(), payment.subscription.to_string()),
            due: payment.due_on,
            no: payment.attempt_no,
            amount: payment.amount.minor(),
            currency: payment.amount.currency().to_string(),
            card: card.to_owned(),
            status: payment.status.clone(),
            at: payment.created_at,
            made_late_at: None,
            is_undetectable: false,
        }
    }
}

impl PaymentLedger {
    /// Returns the payments of a subscription in the month of `due`.
    pub fn payments_of_month<'a>(
        &'a self,
        subscription: &'a SubscriptionName,
        due: NaiveDate,
    ) -> impl Iterator<Item = (&'a String, &'a LedgerPayment)> {
        self.payments.iter().filter(move |(_, ledger_payment)| {
            ledger_payment.subscription == *subscription && month_of(ledger_payment.due) == month_of(due)
        })
    }

    /// Returns whether an attempt may be settled as rejected: the gateway rejected the charge, or the gateway received
    /// the charge request but a look-up may have found no payment of the attempt.
    pub fn may_be_settled_as_rejected(&self, subscription: &SubscriptionName, no: u32, now: DateTime<Utc>) -> bool {
        let attempt = (subscription.clone(), no);
        let is_shown = || {
            self.payments_of_attempt(subscription, no)
                .any(|ledger_payment| ledger_payment.was_visible_at_gateway(now, MAX_ROW_TIME))
        };
        self.rejected.contains(&attempt) || (self.received.contains(&attempt) && !is_shown())
    }

    /// Returns the payments of an attempt.
    pub fn payments_of_attempt<'a>(
        &'a self,
        subscription: &'a SubscriptionName,
        no: u32,
    ) -> impl Iterator<Item = &'a LedgerPayment> {
        self.payments
            .values()
            .filter(move |ledger_payment| ledger_payment.subscription == *subscription && ledger_payment.no == no)
    }
}

impl Oracle {
    /// Records a charge request before its response is known. Checks that each attempt has one idempotency key, and
    /// that no two attempts have the same key.
    pub fn record_charge_request(&mut self, now: DateTime<Utc>, request: &ChargeRequest) {
        self.counts.charges += 1;
        let subscription = (request.account.to_string(), request.subscription.to_string());
        let attempt = (subscription.clone(), request.attempt_no);
        let attempt_of_key = self
            .ledger
            .attempt_by_key
            .entry(request.idempotency_key.clone())
            .or_insert_with(|| attempt.clone())
            .clone();
        let key_of_attempt =
            self.ledger.key_by_attempt.entry(attempt.clone()).or_insert_with(|| request.idempotency_key.clone());
        if *key_of_attempt != request.idempotency_key || attempt_of_key != attempt {
            self.report_violation(
                now,
                &subscription,
                format!(
                    "attempt {} was charged with two idempotency keys, or two attempts with the same key",
                    attempt.1
                ),
            );
        }
    }

    /// Records that the gateway rejected `request`.
    pub fn record_charge_rejection(&mut self, request: &ChargeRequest) {
        let subscription = (request.account.to_string(), request.subscription.to_string());
        self.ledger.rejected.insert((subscription, request.attempt_no));
    }

    /// Records that a charge request with the idempotency key `key` arrived at the gateway.
    pub fn record_received_charge(&mut self, key: &str) {
        self.ledger.received.extend(self.ledger.attempt_by_key.get(key).cloned());
    }

    /// Records and checks `payment`, which the gateway made with the payment method `card` for a request of actor `id`.
    /// A payment that is already recorded is ignored.
    pub fn record_payment(&mut self, id: ActorId, now: DateTime<Utc>, payment: &Payment, card: &str) {
        if self.ledger.payments.contains_key(payment.id.as_str()) {
            return;
        }
        let ledger_payment = LedgerPayment::from_payment(payment, card);
        if let Err(reason) = self.check_charge(id, now, &ledger_payment) {
            self.report_violation(now, &ledger_payment.subscription, reason);
        }
        if ledger_payment.is_succeeded_or_pending() {
            self.check_only_payment_of_month(now, payment, &ledger_payment);
        }
        self.ledger.payments.insert(payment.id.to_string(), ledger_payment);
    }

    /// Reports `payment` as a second charge of its month if the month has another payment that a look-up before this
    /// charge could have found.
    fn check_only_payment_of_month(&mut self, now: DateTime<Utc>, payment: &Payment, ledger_payment: &LedgerPayment) {
        let is_other = |other: &LedgerPayment| {
            other.subscription == ledger_payment.subscription
                && month_of(other.due) == month_of(ledger_payment.due)
                && other.is_succeeded_or_pending()
        };
        let mut violations = Vec::new();
        for (id, other) in self.ledger.payments.iter_mut().filter(|(_, other)| is_other(other)) {
            if other.was_visible_at_gateway(now, MAX_TIME_FROM_CLAIM_TO_CHARGE) {
                violations.push(format!(
                    "the payment due on {} was charged again by {}, after {id}: {ledger_payment:?} after {other:?}",
                    ledger_payment.due, payment.id
                ));
            } else if !other.is_undetectable {
                other.is_undetectable = true;
                self.counts.late_duplicates += 1;
            }
        }
        violations.into_iter().for_each(|reason| self.report_second_charge(now, &ledger_payment.subscription, reason));
    }

    /// Checks that a charge belongs to the open attempt, and that the actor was allowed to send this charge. The actor
    /// id is 0 if the charge request timed out and arrived later.
    fn check_charge(&self, id: ActorId, now: DateTime<Utc>, ledger_payment: &LedgerPayment) -> Result<(), String> {
        let LedgerPayment { subscription, due, no, .. } = ledger_payment;
        let expected =
            self.expected_subscriptions.get(subscription).ok_or("the charged subscription does not exist")?;
        let open = expected.open.as_ref().filter(|open| open.no == *no);
        let open = open.ok_or_else(|| format!("attempt {no} of {due} was charged, but is not open"))?;
        let charged = (*due, ledger_payment.amount, ledger_payment.card.as_str());
        if charged != (open.due, open.amount, open.card.as_str()) {
            return Err(format!("the charge was {charged:?}, but the attempt is {open:?}"));
        }
        if ledger_payment.currency != expected.currency {
            return Err(format!(
                "the currency of the charge is {}, but the currency of the subscription is {}",
                ledger_payment.currency, expected.currency
            ));
        }
        if !open.is_chargeable {
            return Err(format!(
                "the payment due on {due} was charged, although the subscription was stopped before the take-over"
            ));
        }
        // If the actor id is 0, the sender is not checked: the gateway received the request after the sender had
        // stopped waiting for the response.
        if id != 0 && open.holder != id {
            return Err(format!("the payment due on {due} was charged by an actor that does not hold the claim"));
        }
        if id != 0 && now - open.held_since > MAX_TIME_FROM_CLAIM_TO_CHARGE {
            return Err(format!(
                "the payment due on {due} was charged at {now}, too late after the claim or take-over at {}",
                open.held_since
            ));
        }
        match self.active_actors.get(&id) {
            Some(active) if active.actor.role != ActorRole::Payments => {
                Err(format!("the payment due on {due} was charged by the role {:?}", active.actor.role))
            }
            Some(active) if active.has_read_row_after_charging_off(subscription) => {
                Err(format!("the payment due on {due} was charged while charging is switched off"))
            }
            _ => Ok(()),
        }
    }

    /// Updates the recorded statuses of `payments`, and checks that each month is paid only once.
    pub fn record_payment_statuses(&mut self, now: DateTime<Utc>, payments: &[Payment]) {
        for payment in payments {
            let Some(ledger_payment) = self.ledger.payments.get_mut(payment.id.as_str()) else { continue };
            if ledger_payment.status == payment.status {
                continue;
            }
            ledger_payment.status = payment.status.clone();
            let (subscription, due) = (ledger_payment.subscription.clone(), ledger_payment.due);
            let is_paid = |ledger_payment: &LedgerPayment| {
                ledger_payment.status == PaymentStatus::Succeeded && !ledger_payment.is_undetectable
            };
            if self
                .ledger
                .payments_of_month(&subscription, due)
                .filter(|(_, ledger_payment)| is_paid(ledger_payment))
                .count()
                > 1
            {
                self.report_second_charge(now, &subscription, format!("the payment due on {due} was paid twice"));
            }
        }
    }
}
