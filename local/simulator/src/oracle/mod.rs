//! The oracle: what each subscription owes, worked out from what happened and when, by rules and a calendar of its own.
//!
//! It is told of everything in the order in which it took effect: each write to the table with the images before and
//! after, each charge at the gateway, each mail, each answer to a request, each run that ended. After each of them it
//! predicts what must be stored, and what differs is wrong.

mod agreement;
mod changes;
mod ledger;
mod outcome;
mod payments;
mod reminders;
mod rules;
mod runs;
mod terms;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;

use crate::calendar::month_of;
use crate::history::Change;
use crate::json::text;
use crate::lagging_index::MAX_LAG;
use crate::schedule::ActorId;
use crate::stored::{Who, name};

pub use agreement::{Act, Agreement};
use ledger::Ledger;
pub use rules::Rules;
pub use runs::Walked;

/// A row is worked on for no longer than this, freezes and all.
const LONGEST_ROW: TimeDelta = TimeDelta::hours(3);

/// Who acts, and what the oracle has to know of it.
#[derive(Clone, Debug)]
pub struct Actor {
    pub role: Role,
    /// How far its clock is ahead.
    pub skew: TimeDelta,
    /// The day on which it began, by its clock.
    pub today: NaiveDate,
    /// It must charge nothing when more than so many payments are due on that date.
    pub ceiling: Option<(usize, NaiveDate)>,
}

/// What somebody is there for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    Payments,
    Reminders,
    /// Somebody who resolves a payment by hand.
    Resolver,
    /// A request to the API about a subscription.
    Request {
        who: Who,
        act: Act,
    },
    /// Whoever does what concerns no subscription.
    Operator,
}

/// The answer to a request that is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answered {
    Done,
    Refused,
}

/// What an actor has done so far.
struct Present {
    actor: Actor,
    /// It has written.
    has_written: bool,
    /// What it read last allowed what it asks for.
    was_allowed: Option<bool>,
    /// It has read that charging is switched off, or more was due than its ceiling allows.
    holds_back: bool,
    is_over: bool,
}

/// How much the oracle has judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    pub writes: u64,
    pub charges: u64,
    pub mails: u64,
    pub done: u64,
    pub refused: u64,
}

/// The oracle of one play.
pub struct Oracle {
    rules: Rules,
    zone: Tz,
    agreements: BTreeMap<Who, Agreement>,
    present: BTreeMap<ActorId, Present>,
    ledger: Ledger,
    pub judged: Judged,
    /// What was wrong, each with its instant.
    pub wrong: Vec<String>,
}

impl Oracle {
    /// The oracle of a deployment with these settings.
    pub fn new(rules: Rules, zone: Tz) -> Self {
        Self {
            rules,
            zone,
            agreements: BTreeMap::new(),
            present: BTreeMap::new(),
            ledger: Ledger::default(),
            judged: Judged::default(),
            wrong: Vec::new(),
        }
    }

    /// An actor begins.
    pub fn begins(&mut self, id: ActorId, now: DateTime<Utc>, actor: Actor) {
        let is_over = actor.ceiling.is_some_and(|(most, date)| self.due_for_long(date, now) > most);
        let present = Present { actor, has_written: false, was_allowed: None, holds_back: false, is_over };
        self.present.insert(id, present);
    }

    /// An actor has come to its end, or a crash has ended it.
    pub fn ends(&mut self, id: ActorId) {
        self.present.remove(&id);
    }

    /// Payments that are due on `date`, and that every index shows.
    fn due_for_long(&self, date: NaiveDate, now: DateTime<Utc>) -> usize {
        let is_due = |agreement: &&Agreement| {
            agreement.open.is_none()
                && agreement.is_chargeable()
                && agreement.next.is_some_and(|next| next <= date)
                && agreement.changed_at + MAX_LAG < now
        };
        self.agreements.values().filter(is_due).count()
    }

    /// What was agreed with each subscriber, as of now.
    pub fn agreements(&self) -> impl Iterator<Item = &Agreement> {
        self.agreements.values()
    }

    /// A request of `id` to the table took effect at `now`, and wrote `changes`.
    pub fn saw(&mut self, id: ActorId, now: DateTime<Utc>, changes: &[Change]) {
        let mut whose = BTreeSet::new();
        for change in changes {
            whose.extend(subscription_of(change));
        }
        for who in &whose {
            self.judged.writes += 1;
            self.wrote(id, now, who, changes);
        }
        self.consider(id, &whose);
    }

    fn wrote(&mut self, id: ActorId, now: DateTime<Utc>, who: &Who, changes: &[Change]) {
        let is_its = |change: &&Change| subscription_of(change).as_ref() == Some(who);
        let written: Vec<&Change> = changes.iter().filter(is_its).collect();
        let item = written.iter().find(|change| change.key.1.starts_with("SUB#"));
        let Some(after) = item.and_then(|change| change.after.as_ref()) else {
            return self.is_wrong(now, who, "a record was written without the subscription".to_owned());
        };
        let Some(agreement) = self.agreements.get(who).cloned() else {
            return self.begin(id, now, who, after);
        };
        let before = item.and_then(|change| change.before.as_ref());
        let records = outcome::Records::of(&written);
        match self.judge(id, now, agreement, (before, after), &records) {
            Ok(agreement) => drop(self.agreements.insert(who.clone(), agreement)),
            Err(reason) => self.is_wrong(now, who, reason),
        }
        if let Some(present) = self.present.get_mut(&id) {
            present.has_written = true;
        }
    }

    /// A subscription begins as it is stored first, with its first payment day after today.
    fn begin(&mut self, id: ActorId, now: DateTime<Utc>, who: &Who, item: &serde_json::Value) {
        let Some(begun) = Agreement::begun(who, item) else {
            return self.is_wrong(now, who, "its item cannot be read".to_owned());
        };
        let today = self.present.get(&id).map(|present| present.actor.today);
        if let Some(expected) = today.map(|today| begun.first_payment_after(today)).filter(|due| *due != begun.due) {
            self.is_wrong(now, who, format!("it should be due on {expected} first, and is on {}", begun.due));
        }
        self.agreements.insert(who.clone(), begun);
    }

    /// The agreement after a write, or what is wrong with that.
    fn judge(
        &mut self,
        id: ActorId,
        now: DateTime<Utc>,
        agreement: Agreement,
        (before, after): (Option<&serde_json::Value>, &serde_json::Value),
        records: &outcome::Records,
    ) -> Result<Agreement, String> {
        let actor = self.present.get(&id).map(|present| present.actor.clone());
        let actor = actor.ok_or("nobody is there who could have written")?;
        let judged = self.days_of(&actor, now).into_iter().map(|today| {
            let predicted = self.predict(id, &actor, (now, today), agreement.clone(), (before, after), records)?;
            let mut differences = predicted.differences(after);
            differences.extend(predicted.is_waived(records));
            if differences.is_empty() { Ok(predicted) } else { Err(differences.join("; ")) }
        });
        let mut agreement =
            judged.reduce(|first, other| first.or(other)).unwrap_or(Err("there is no day".to_owned()))?;
        for (due, reason) in std::mem::take(&mut agreement.waives) {
            agreement.waived.insert(month_of(due), reason.to_owned());
        }
        for receipt in &records.receipts {
            if !self.ledger.receipted.insert(receipt.payment.clone()) {
                return Err(format!("{} was receipted twice", receipt.payment));
            }
        }
        Ok(Agreement { changed_at: now, ..agreement })
    }

    /// The days on which an actor may have begun what it writes now: a run crosses midnight.
    fn days_of(&self, actor: &Actor, now: DateTime<Utc>) -> Vec<NaiveDate> {
        if matches!(actor.role, Role::Request { .. }) {
            return vec![actor.today];
        }
        let mut days: Vec<NaiveDate> = [now, now - LONGEST_ROW].map(|at| self.clock_of(actor, at).1).into();
        days.dedup();
        days
    }

    fn predict(
        &self,
        id: ActorId,
        actor: &Actor,
        (now, today): (DateTime<Utc>, NaiveDate),
        agreement: Agreement,
        (before, after): (Option<&serde_json::Value>, &serde_json::Value),
        records: &outcome::Records,
    ) -> Result<Agreement, String> {
        match &actor.role {
            Role::Request { act, .. } => {
                if !records.is_empty() && !records.are_waivers() {
                    return Err(format!("{act:?} has written a receipt or an attempt"));
                }
                agreement
                    .after(act, today, &self.rules)
                    .ok_or_else(|| format!("{act:?} was done, and had to be refused"))
            }
            Role::Payments | Role::Resolver => self.paid(id, actor, (now, today), agreement, (before, after), records),
            Role::Reminders => reminders::written(id, (now + actor.skew, today), agreement, (before, after)),
            Role::Operator => Err("it was written by an operator".to_owned()),
        }
    }

    /// Notes whether what a request asks for is allowed, by what it has just read.
    fn consider(&mut self, id: ActorId, written: &BTreeSet<Who>) {
        let Some(present) = self.present.get_mut(&id) else { return };
        let Role::Request { who, act } = &present.actor.role else { return };
        if written.contains(who) || present.has_written {
            return;
        }
        let agreement = self.agreements.get(who);
        present.was_allowed =
            agreement.map(|agreement| agreement.after(act, present.actor.today, &self.rules).is_some());
    }

    /// The request of `id` was answered.
    pub fn answered(&mut self, id: ActorId, now: DateTime<Utc>, answer: Answered) {
        let Some(present) = self.present.get(&id) else { return };
        let Role::Request { who, act } = present.actor.role.clone() else { return };
        let was_allowed = present.was_allowed;
        match (answer, was_allowed) {
            (Answered::Refused, Some(true)) if !present.has_written => {
                self.is_wrong(now, &who, format!("{act:?} was refused, and is allowed"));
            }
            (Answered::Done, Some(false)) if !present.has_written => {
                self.is_wrong(now, &who, format!("{act:?} was answered as done, and had to be refused"));
            }
            _ => {}
        }
        match answer {
            Answered::Done => self.judged.done += 1,
            Answered::Refused => self.judged.refused += 1,
        }
    }

    /// An actor has read whether charging is switched on.
    pub fn read_settings(&mut self, id: ActorId, is_charging: bool) {
        if let Some(present) = self.present.get_mut(&id) {
            present.holds_back = !is_charging;
        }
    }

    /// The instant and the day of `actor`'s clock.
    fn clock_of(&self, actor: &Actor, now: DateTime<Utc>) -> (DateTime<Utc>, NaiveDate) {
        let its_now = now + actor.skew;
        (its_now, its_now.with_timezone(&self.zone).date_naive())
    }

    fn is_wrong(&mut self, now: DateTime<Utc>, who: &Who, what: String) {
        self.wrong.push(format!("{} {}: {what}", now.format("%Y-%m-%d %H:%M:%S"), name(who)));
    }
}

/// Whose item or record a change is of: account and subscription.
fn subscription_of(change: &Change) -> Option<Who> {
    let account = change.key.0.strip_prefix("ACC#")?;
    let parts: Vec<&str> = change.key.1.split('#').collect();
    let place = match *parts.first()? {
        "SUB" => 1,
        "REC" => 5,
        "ATT" | "WAV" => 3,
        _ => return None,
    };
    Some((account.to_owned(), (*parts.get(place)?).to_owned()))
}

/// The name of a status as it is stored.
fn status_of(item: &serde_json::Value) -> Option<crate::stored::StoredStatus> {
    crate::stored::StoredStatus::read(text(item, "Status")?)
}

#[cfg(test)]
mod tests;
