//! The oracle: what each subscription owed on each day, worked out from what its customer did and what the gateway and the
//! records say, with a calendar of its own. Every charge in the ledger is checked against it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};
use chrono_tz::Tz;
use shared::billing::{AfterLastRetry, CatchUp, PaymentStatus, Policy};
use shared::gateway::{Entry, PaymentMade};

use crate::books::{Books, Receipt, Subscription, Tried, Waived, Who};
use crate::check::{Finding, name, payment_date};
use crate::customers::{Act, ActKind};

/// A subscription as it began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Begun {
    pub who: Who,
    pub day: u32,
    pub due: NaiveDate,
    pub price: i64,
    pub card: String,
}

/// All that the oracle goes by.
pub struct Evidence<'a> {
    pub begun: &'a [Begun],
    pub acts: &'a [Act],
    pub ledger: &'a [Entry],
    pub books: &'a Books,
    pub policy: &'a Policy,
    pub zone: Tz,
    /// The first day without trouble: from then on nothing is charged late.
    pub calm_from: NaiveDate,
    /// The last day that was played.
    pub as_of: NaiveDate,
}

type Month = (i32, u32);

/// Why a month was waived that an outage of ours has missed.
const MISSED: &str = "missed";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Active,
    PastDue,
    Unpaid,
    Paused,
    Cancelled,
}

/// What one subscription owes, as events tell it.
struct Agreement<'a> {
    evidence: &'a Evidence<'a>,
    status: Status,
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
    waived: BTreeSet<NaiveDate>,
    wrong: Vec<String>,
}

/// What happened to a subscription.
#[derive(Clone, Copy)]
enum Event<'a> {
    Act(&'a Act),
    Charge(&'a PaymentMade),
    Tried(&'a Tried),
    Paid(&'a Receipt),
    Waived(&'a Waived),
}

/// Checks every charge, and that nothing is owed any more.
pub fn check(evidence: &Evidence<'_>) -> Finding {
    let mut events: BTreeMap<Who, Vec<(DateTime<Utc>, u8, Event)>> = BTreeMap::new();
    let mut add = |who: &Who, at, rank, event| events.entry(who.clone()).or_default().push((at, rank, event));
    // At one moment: a customer, what is passed over before a charge, the gateway, and then what is written of it.
    evidence.acts.iter().for_each(|act| add(&act.who, act.at, 0, Event::Act(act)));
    for waived in &evidence.books.waived {
        add(&waived.who, waived.at, if waived.reason == MISSED { 1 } else { 3 }, Event::Waived(waived));
    }
    for entry in evidence.ledger {
        if let Entry::Payment(made) = entry {
            let who = (made.request.account.to_string(), made.request.subscription.to_string());
            add(&who, made.created_at, 2, Event::Charge(made));
        }
    }
    evidence.books.tried.iter().for_each(|tried| add(&tried.who, tried.at, 4, Event::Tried(tried)));
    evidence.books.receipts.iter().for_each(|receipt| add(&receipt.who, receipt.at, 4, Event::Paid(receipt)));

    let stored: BTreeMap<&Who, &Subscription> = evidence.books.subscriptions.iter().map(|s| (&s.who, s)).collect();
    let mut wrong = Vec::new();
    for begun in evidence.begun {
        let mut agreement = Agreement::new(evidence, begun);
        let mut events = events.remove(&begun.who).unwrap_or_default();
        events.sort_by_key(|(at, rank, _)| (*at, *rank));
        events
            .into_iter()
            .for_each(|(at, _, event)| agreement.follow(at.with_timezone(&evidence.zone).date_naive(), event));
        agreement.close(stored.get(&begun.who).copied());
        wrong.extend(agreement.wrong.into_iter().map(|text| format!("{}: {text}", name(&begun.who))));
    }
    wrong.extend(events.into_keys().map(|who| format!("{}: nobody subscribed to it", name(&who))));
    Finding::new("every charge is the one that was owed on that day, and nothing owed is left", wrong)
}

impl<'a> Agreement<'a> {
    fn new(evidence: &'a Evidence<'a>, begun: &Begun) -> Self {
        Self {
            evidence,
            status: Status::Active,
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

    fn follow(&mut self, today: NaiveDate, event: Event) {
        match event {
            Event::Act(act) => self.act(today, act),
            Event::Charge(made) => self.charge(today, made),
            Event::Tried(tried) => self.tried(today, tried),
            Event::Paid(receipt) => self.paid(today, receipt),
            Event::Waived(waived) if waived.reason == MISSED => {
                self.expect_due(waived.due, "waived");
                let following = self.in_month(next(month(self.due)));
                // Waived is what a later month that is owed as well stands in for.
                let is_missed = self.status == Status::Active
                    && following <= today
                    && self.ends.is_none_or(|ends| month(following) < ends);
                if self.evidence.policy.catch_up == CatchUp::Each || !is_missed {
                    self.wrong.push(format!("{} was waived on {today}, and was not missed", self.due));
                }
                (self.due, self.not_before) = (following, following);
            }
            // Checked with the payment that it comes with.
            Event::Waived(waived) => {
                self.waived.insert(waived.due);
            }
        }
    }

    fn act(&mut self, today: NaiveDate, act: &Act) {
        match &act.kind {
            ActKind::Price(price) => {
                if !act.is_paying {
                    self.prices.clear();
                }
                self.prices.push(*price);
            }
            ActKind::Card(card) => {
                let is_new = self.cards.last() != Some(card);
                if !act.is_paying {
                    self.cards.clear();
                }
                self.cards.push(card.clone());
                if is_new && !act.is_paying && matches!(self.status, Status::PastDue | Status::Unpaid) {
                    (self.status, self.failed, self.not_before) = (Status::PastDue, 0, today);
                }
            }
            ActKind::Day(day) => {
                self.day = *day;
                let moved = self.in_month(month(self.due));
                if self.due > today && moved > today && !act.is_paying {
                    (self.due, self.not_before) = (moved, moved);
                }
            }
            ActKind::Paused => self.status = Status::Paused,
            ActKind::Cancelled => self.status = Status::Cancelled,
            ActKind::Resumed => {
                self.status = Status::Active;
                if !act.is_paying {
                    if self.due < today {
                        self.due = self.first_from(today);
                    }
                    self.not_before = self.due;
                }
            }
            ActKind::Ending => {
                let is_ahead = self.due > today && !act.is_paying;
                let tomorrow = today.max(self.due) + Days::new(1);
                self.ends = Some(if is_ahead {
                    month(self.due)
                } else {
                    month(self.first_from(tomorrow)).max(next(month(self.due)))
                });
            }
            ActKind::Kept => self.ends = None,
        }
    }

    fn charge(&mut self, today: NaiveDate, made: &PaymentMade) {
        let (request, card) = (&made.request, made.request.payment_method.payment_method.to_string());
        self.expect_due(request.due_on, "charged");
        if !matches!(self.status, Status::Active | Status::PastDue) {
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
        if self.ends.is_some_and(|ends| month(self.due) >= ends) {
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

    fn tried(&mut self, today: NaiveDate, tried: &Tried) {
        self.expect_due(tried.due, "tried");
        let is_same_card = self.tried_with.get(&tried.no) == self.cards.last();
        self.forget_earlier();
        if matches!(self.status, Status::Paused | Status::Cancelled) {
            return;
        }
        match tried.outcome.as_str() {
            "declined" if !is_same_card => {
                (self.status, self.failed, self.not_before) = (Status::PastDue, 0, today + Days::new(1));
            }
            "declined" => {
                self.failed += 1;
                let gap = self.evidence.policy.dunning.gap_days(self.failed).filter(|_| !tried.is_hard);
                match gap {
                    Some(days) => (self.status, self.not_before) = (Status::PastDue, today + Days::new(days.into())),
                    None if self.evidence.policy.after_last_retry == AfterLastRetry::Cancelled => {
                        self.status = Status::Cancelled;
                    }
                    None => (self.status, self.was_unpaid) = (Status::Unpaid, true),
                }
            }
            _ => self.not_before = today + Days::new(1),
        }
    }

    fn paid(&mut self, today: NaiveDate, receipt: &Receipt) {
        self.expect_due(receipt.due, "receipted");
        let paid = month(self.due);
        self.due = self.in_month(next(paid));
        if std::mem::take(&mut self.was_unpaid) {
            self.due = self.due.max(self.first_from(today + Days::new(1)));
            let months = std::iter::successors(Some(next(paid)), |month| Some(next(*month)));
            let owed: BTreeSet<NaiveDate> =
                months.take_while(|between| *between < month(self.due)).map(|between| self.in_month(between)).collect();
            if owed != self.waived {
                self.wrong.push(format!("{owed:?} were to be waived, and {:?} were", self.waived));
            }
        } else if !self.waived.is_empty() {
            self.wrong.push(format!("{:?} were waived, and owed", self.waived));
        }
        self.waived.clear();
        if matches!(self.status, Status::PastDue | Status::Unpaid) {
            self.status = Status::Active;
        }
        (self.failed, self.not_before) = (0, self.due.max(today + Days::new(1)));
        self.forget_earlier();
    }

    /// What is stored at the end is what all this comes to, and nothing owed is left.
    fn close(&mut self, stored: Option<&Subscription>) {
        let as_of = self.evidence.as_of;
        if self.status == Status::Active && self.ends.is_some_and(|ends| month(self.due) >= ends) && self.due <= as_of {
            self.status = Status::Cancelled;
        }
        let is_due = self.due.max(self.not_before) <= as_of && matches!(self.status, Status::Active | Status::PastDue);
        // A bank debit may take two days.
        let is_under_way = self.under_way.is_some_and(|made_on| made_on + Days::new(2) >= as_of);
        if is_due && !is_under_way {
            self.wrong.push(format!("{} is owed, and was not charged by {as_of}", self.due));
        }
        let word = match self.status {
            Status::Active => "active",
            Status::PastDue => "past_due",
            Status::Unpaid => "unpaid",
            Status::Paused => "paused",
            Status::Cancelled => "cancelled",
        };
        let found = stored.map(|stored| (stored.status.as_str(), stored.due));
        if found != Some((word, self.due)) {
            self.wrong.push(format!("it should be {word} and due on {}, and is {found:?}", self.due));
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

    fn in_month(&self, (year, month): Month) -> NaiveDate {
        payment_date(year, month, self.day).unwrap_or(NaiveDate::MAX)
    }

    /// The first payment date that is not before `today`.
    fn first_from(&self, today: NaiveDate) -> NaiveDate {
        let this = self.in_month(month(today));
        if this >= today { this } else { self.in_month(next(month(today))) }
    }
}

fn month(date: NaiveDate) -> Month {
    (date.year(), date.month())
}

fn next((year, month): Month) -> Month {
    if month == 12 { (year + 1, 1) } else { (year, month + 1) }
}

#[cfg(test)]
mod tests;
