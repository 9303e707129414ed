//! What one subscription owes from day to day.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Days, NaiveDate};
use shared::billing::{AfterLastRetry, CatchUp, PaymentStatus};
use shared::gateway::PaymentMade;

use super::{Begun, Event, Evidence};
use crate::calendar::{Month, month_of, next_month, payment_date};
use crate::customers::{ActKind, CustomerAct};
use crate::stored::{StoredAttempt, StoredOutcome, StoredReceipt, StoredStatus, StoredSubscription, StoredWaiver};

/// Why a month was waived that an outage of ours has missed.
pub const MISSED: &str = "missed";

/// What one subscription owes, as events tell it.
pub struct Agreement<'a> {
    evidence: &'a Evidence<'a>,
    status: StoredStatus,
    day: u32,
    due: NaiveDate,
    /// Prices and cards since the last settlement: a charge may have frozen any of them.
    prices: Vec<i64>,
    cards: Vec<String>,
    /// The card of each attempt.
    tried_with: BTreeMap<u32, String>,
    /// The day of a charge that the bank has not answered yet.
    under_way: Option<NaiveDate>,
    /// The day before which nothing may be tried.
    not_before: NaiveDate,
    failed: u32,
    was_unpaid: bool,
    /// The first month that is not charged.
    ends: Option<Month>,
    /// Months that were waived since the last settlement, but for missed ones.
    waived: BTreeSet<NaiveDate>,
    pub wrong: Vec<String>,
}

impl<'a> Agreement<'a> {
    pub fn new(evidence: &'a Evidence<'a>, begun: &Begun) -> Self {
        Self {
            evidence,
            status: StoredStatus::Active,
            day: begun.day,
            due: begun.due,
            prices: vec![begun.price],
            cards: vec![begun.card.clone()],
            tried_with: BTreeMap::new(),
            under_way: None,
            not_before: begun.due,
            failed: 0,
            was_unpaid: false,
            ends: None,
            waived: BTreeSet::new(),
            wrong: Vec::new(),
        }
    }

    pub fn follow(&mut self, today: NaiveDate, event: Event) {
        match event {
            Event::Act(act) => self.act(today, act),
            Event::Charge(made) => self.charge(today, made),
            Event::Tried(tried) => self.tried(today, tried),
            Event::Paid(receipt) => self.paid(today, receipt),
            Event::Waived(waived) if waived.reason == MISSED => self.missed(today, waived),
            // Checked with the payment that it comes with.
            Event::Waived(waived) => {
                self.waived.insert(waived.due);
            }
        }
    }

    fn act(&mut self, today: NaiveDate, act: &CustomerAct) {
        match &act.kind {
            ActKind::Price(price) => self.price(*price, act.is_paying),
            ActKind::Card(card) => self.card(today, card, act.is_paying),
            ActKind::Day(day) => self.payment_day(today, *day, act.is_paying),
            ActKind::Paused => self.status = StoredStatus::Paused,
            ActKind::Cancelled => self.status = StoredStatus::Cancelled,
            ActKind::Resumed => self.resumed(today, act.is_paying),
            ActKind::Ending => self.ending(today, act.is_paying),
            ActKind::Kept => self.ends = None,
        }
    }

    fn price(&mut self, price: i64, is_paying: bool) {
        // A payment under way may have frozen the old one.
        if !is_paying {
            self.prices.clear();
        }
        self.prices.push(price);
    }

    fn card(&mut self, today: NaiveDate, card: &str, is_paying: bool) {
        let is_new = self.cards.last().is_none_or(|last| last != card);
        if !is_paying {
            self.cards.clear();
        }
        self.cards.push(card.to_owned());
        if is_new && !is_paying && matches!(self.status, StoredStatus::PastDue | StoredStatus::Unpaid) {
            (self.status, self.failed, self.not_before) = (StoredStatus::PastDue, 0, today);
        }
    }

    fn payment_day(&mut self, today: NaiveDate, day: u32, is_paying: bool) {
        self.day = day;
        let moved = self.in_month(month_of(self.due));
        if self.due > today && moved > today && !is_paying {
            (self.due, self.not_before) = (moved, moved);
        }
    }

    fn resumed(&mut self, today: NaiveDate, is_paying: bool) {
        self.status = StoredStatus::Active;
        if !is_paying {
            if self.due < today {
                self.due = self.first_from(today);
            }
            self.not_before = self.due;
        }
    }

    fn ending(&mut self, today: NaiveDate, is_paying: bool) {
        let is_ahead = self.due > today && !is_paying;
        let tomorrow = today.max(self.due) + Days::new(1);
        self.ends = Some(if is_ahead {
            month_of(self.due)
        } else {
            month_of(self.first_from(tomorrow)).max(next_month(month_of(self.due)))
        });
    }

    fn missed(&mut self, today: NaiveDate, waived: &StoredWaiver) {
        self.expect_due(waived.due, "waived");
        let following = self.in_month(next_month(month_of(self.due)));
        // Waived is what a later month that is owed as well stands in for.
        let is_missed = self.status == StoredStatus::Active
            && following <= today
            && self.ends.is_none_or(|ends| month_of(following) < ends);
        if self.evidence.policy.catch_up == CatchUp::Each || !is_missed {
            self.wrong.push(format!("{} was waived on {today}, and was not missed", self.due));
        }
        (self.due, self.not_before) = (following, following);
    }

    fn charge(&mut self, today: NaiveDate, made: &PaymentMade) {
        let (request, card) = (&made.request, made.request.payment_method.payment_method.to_string());
        self.expect_due(request.due_on, "charged");
        if !matches!(self.status, StoredStatus::Active | StoredStatus::PastDue) {
            self.wrong.push(format!("charged on {today}, being {:?}", self.status));
        }
        self.under_way = (made.status == PaymentStatus::Processing).then_some(today);
        if today < self.due || today < self.not_before {
            self.wrong
                .push(format!("charged for {} on {today}, and not before {} was allowed", self.due, self.not_before));
        }
        let latest = self.due.max(self.not_before).max(self.evidence.calm_from);
        if today > latest {
            self.wrong.push(format!("charged for {} on {today}, and could have been on {latest}", self.due));
        }
        if self.ends.is_some_and(|ends| month_of(self.due) >= ends) {
            self.wrong.push(format!("charged for {}, which was to be its end", self.due));
        }
        if !self.prices.contains(&request.amount.minor()) {
            self.wrong.push(format!("charged {} on {today}, and agreed were {:?}", request.amount, self.prices));
        }
        if !self.cards.contains(&card) {
            self.wrong.push(format!("charged on {today} with {card}, and named were {:?}", self.cards));
        }
        if self.tried_with.insert(request.attempt_no, card).is_some() {
            self.wrong.push(format!("attempt {} was charged twice", request.attempt_no));
        }
    }

    fn tried(&mut self, today: NaiveDate, tried: &StoredAttempt) {
        self.expect_due(tried.due, "tried");
        let is_same_card = self.tried_with.get(&tried.no) == self.cards.last();
        self.forget_earlier();
        if matches!(self.status, StoredStatus::Paused | StoredStatus::Cancelled) {
            return;
        }
        match tried.outcome {
            StoredOutcome::Declined { .. } if !is_same_card => {
                (self.status, self.failed, self.not_before) = (StoredStatus::PastDue, 0, today + Days::new(1));
            }
            StoredOutcome::Declined { is_hard } => {
                self.failed += 1;
                let gap = self.evidence.policy.dunning.gap_days(self.failed).filter(|_| !is_hard);
                match gap {
                    Some(days) => {
                        (self.status, self.not_before) = (StoredStatus::PastDue, today + Days::new(days.into()))
                    }
                    None if self.evidence.policy.after_last_retry == AfterLastRetry::Cancelled => {
                        self.status = StoredStatus::Cancelled;
                    }
                    None => (self.status, self.was_unpaid) = (StoredStatus::Unpaid, true),
                }
            }
            StoredOutcome::Rejected | StoredOutcome::Dropped => self.not_before = today + Days::new(1),
        }
    }

    fn paid(&mut self, today: NaiveDate, receipt: &StoredReceipt) {
        self.expect_due(receipt.due, "receipted");
        let paid = month_of(self.due);
        self.due = self.in_month(next_month(paid));
        if std::mem::take(&mut self.was_unpaid) {
            self.due = self.due.max(self.first_from(today + Days::new(1)));
        }
        // Only after it was unpaid is there a month between the one that is paid and the one that is due.
        let months = std::iter::successors(Some(next_month(paid)), |month| Some(next_month(*month)));
        let between = months.take_while(|month| *month < month_of(self.due));
        let expected: BTreeSet<NaiveDate> = between.map(|month| self.in_month(month)).collect();
        let waived = std::mem::take(&mut self.waived);
        if waived != expected {
            self.wrong.push(format!("{expected:?} were to be waived, and {waived:?} were"));
        }
        if matches!(self.status, StoredStatus::PastDue | StoredStatus::Unpaid) {
            self.status = StoredStatus::Active;
        }
        (self.failed, self.not_before) = (0, self.due.max(today + Days::new(1)));
        self.forget_earlier();
    }

    /// What is stored at the end is what all this comes to, and nothing owed is left.
    pub fn close(&mut self, stored: Option<&StoredSubscription>) {
        let as_of = self.evidence.as_of;
        if self.status == StoredStatus::Active
            && self.ends.is_some_and(|ends| month_of(self.due) >= ends)
            && self.due <= as_of
        {
            self.status = StoredStatus::Cancelled;
        }
        let is_due = self.due.max(self.not_before) <= as_of
            && matches!(self.status, StoredStatus::Active | StoredStatus::PastDue);
        // A bank debit may take two days.
        let is_under_way = self.under_way.is_some_and(|made_on| made_on + Days::new(2) >= as_of);
        if is_due && !is_under_way {
            self.wrong.push(format!("{} is owed, and was not charged by {as_of}", self.due));
        }
        let found = stored.map(|stored| (stored.status, stored.due));
        if found != Some((self.status, self.due)) {
            self.wrong.push(format!("it should be {:?} and due on {}, and is {found:?}", self.status, self.due));
        }
    }

    fn expect_due(&mut self, due: NaiveDate, what: &str) {
        if due != self.due {
            self.wrong.push(format!("{what} for {due}, and due was {}", self.due));
        }
    }

    /// The next attempt freezes what is agreed now or later.
    fn forget_earlier(&mut self) {
        self.under_way = None;
        self.prices.drain(..self.prices.len() - 1);
        self.cards.drain(..self.cards.len() - 1);
    }

    fn in_month(&self, month: Month) -> NaiveDate {
        payment_date(month, self.day).unwrap_or(NaiveDate::MAX)
    }

    /// The first payment date that is not before `today`.
    fn first_from(&self, today: NaiveDate) -> NaiveDate {
        let this = self.in_month(month_of(today));
        if this >= today { this } else { self.in_month(next_month(month_of(today))) }
    }
}
