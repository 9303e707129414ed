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
use crate::schedule::ActorId;
use crate::stored::{Who, name};

pub use agreement::{Act, Agreement};
use ledger::Ledger;
pub use rules::Rules;
pub use runs::Walked;

/// Who acts, and what the oracle has to know of it.
#[derive(Clone, Debug)]
pub struct Actor {
    pub role: Role,
    /// How far its clock is ahead.
    pub skew: TimeDelta,
    /// The day on which it began, by its clock.
    pub today: NaiveDate,
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
    /// It has read that charging is switched off.
    holds_back: bool,
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
    pub fn begins(&mut self, id: ActorId, actor: Actor) {
        self.present.insert(id, Present { actor, has_written: false, was_allowed: None, holds_back: false });
    }

    /// An actor has come to its end, or a crash has ended it.
    pub fn ends(&mut self, id: ActorId) {
        self.present.remove(&id);
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
            // Subscriptions begin as they are stored first.
            match Agreement::begun(who, after) {
                Some(begun) => drop(self.agreements.insert(who.clone(), begun)),
                None => self.is_wrong(now, who, "its item cannot be read".to_owned()),
            }
            return;
        };
        let before = item.and_then(|change| change.before.as_ref());
        let records = outcome::Records::of(&written);
        let predicted = match self.present.get(&id).map(|present| present.actor.clone()) {
            None => Err("nobody is there who could have written".to_owned()),
            Some(actor) => self.predict(id, &actor, now, agreement, (before, after), &records),
        };
        match predicted {
            Ok(mut agreement) => {
                let mut differences = agreement.differences(after);
                differences.extend(self.enter(&mut agreement, &records));
                if !differences.is_empty() {
                    self.is_wrong(now, who, differences.join("; "));
                    // What follows is judged by what is stored.
                    if let Some(stored) = Agreement::begun(who, after) {
                        agreement = stored;
                    }
                }
                agreement.changed_at = now;
                self.agreements.insert(who.clone(), agreement);
            }
            Err(reason) => self.is_wrong(now, who, reason),
        }
        if let Some(present) = self.present.get_mut(&id) {
            present.has_written = true;
        }
    }

    /// Enters the months that `records` settle; answers what is wrong with them.
    fn enter(&mut self, agreement: &mut Agreement, records: &outcome::Records) -> Option<String> {
        let expected = std::mem::take(&mut agreement.waives);
        let mut wrong = records.waived.iter().map(|(due, reason)| (*due, reason.as_str())).ne(expected.iter().copied());
        for (due, reason) in expected {
            wrong |= agreement.paid.contains_key(&month_of(due));
            wrong |= agreement.waived.insert(month_of(due), reason.to_owned()).is_some();
            if wrong {
                return Some(format!("{due} was to be waived as {reason} once, and written was {:?}", records.waived));
            }
        }
        for receipt in &records.receipts {
            if !self.ledger.receipted.insert(receipt.payment.clone()) {
                return Some(format!("{} was receipted twice", receipt.payment));
            }
        }
        wrong.then(|| format!("nothing was to be waived, and written was {:?}", records.waived))
    }

    fn predict(
        &mut self,
        id: ActorId,
        actor: &Actor,
        now: DateTime<Utc>,
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
                    .after(act, actor.today, &self.rules)
                    .ok_or_else(|| format!("{act:?} was done, and had to be refused"))
            }
            Role::Payments | Role::Resolver => self.paid(id, actor, now, agreement, (before, after), records),
            Role::Reminders => reminders::written(id, self.clock_of(actor, now), agreement, (before, after)),
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
