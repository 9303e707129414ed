//! The oracle: what each subscription owes, worked out from what happened and when, by rules and a calendar of its own.
//!
//! It is told of everything in the order in which it took effect: each write to the table with the images before and
//! after, each charge at the gateway, each mail, each answer to a request, each run that ended. After each of them it
//! predicts what must be stored, and what differs is wrong.

mod actors;
mod agreement;
mod changes;
mod ledger;
mod outcome;
mod payments;
mod reminders;
mod repairs;
mod rules;
mod runs;
mod settlements;
mod terms;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;

use crate::calendar::month_of;
use crate::change::{Change, ItemKey};
use crate::json::text;
use crate::schedule::ActorId;
use crate::stored::{Who, name};

use actors::Present;
pub use actors::{Actor, Answered, Role};
pub use agreement::{Act, Agreement};
use ledger::Ledger;
pub use rules::Rules;
pub use runs::Walked;

/// A row is worked on for no longer than this, freezes and all.
const LONGEST_ROW: TimeDelta = TimeDelta::hours(3);

/// How much the oracle has judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    pub writes: u64,
    pub charges: u64,
    pub mails: u64,
    pub done: u64,
    pub refused: u64,
    /// Payments that the gateway made hours after it had answered with an error.
    pub repaired: u64,
    /// Those of them that no look-up could find before the month was charged by a later attempt.
    pub too_late: u64,
    /// Receipts that were written because of an event of the gateway.
    pub receipted_by_event: u64,
    /// Successful payments without a receipt that are a finding for a person.
    pub found: u64,
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

    /// What was agreed with each subscriber, as of now.
    pub fn agreements(&self) -> impl Iterator<Item = &Agreement> {
        self.agreements.values()
    }

    /// A request of `id` to the table took effect at `now`, and wrote `changes`.
    pub fn saw(&mut self, id: ActorId, now: DateTime<Utc>, changes: &[Change]) {
        let mut whose = BTreeSet::new();
        for change in changes {
            whose.extend(subscription_of(&change.key));
        }
        for who in &whose {
            self.judged.writes += 1;
            self.wrote(id, now, who, changes);
        }
        // What it writes last may be only the answer to what it has read before.
        if changes.is_empty() {
            self.consider(id);
        }
    }

    fn wrote(&mut self, id: ActorId, now: DateTime<Utc>, who: &Who, changes: &[Change]) {
        let is_its = |change: &&Change| subscription_of(&change.key).as_ref() == Some(who);
        let written: Vec<&Change> = changes.iter().filter(is_its).collect();
        let item = written.iter().find(|change| change.key.1.starts_with("SUB#"));
        let records = outcome::Records::of(&written);
        if item.is_none() && records.are_findings() {
            return self.found(now, who, &records);
        }
        let Some(after) = item.and_then(|change| change.after.as_ref()) else {
            return self.is_wrong(now, who, "a record was written without the subscription".to_owned());
        };
        let Some(agreement) = self.agreements.get(who).cloned() else {
            return self.begin(id, now, who, after);
        };
        let before = item.and_then(|change| change.before.as_ref());
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
        if actor.role == Role::Webhook {
            self.judged.receipted_by_event += records.receipts.len() as u64;
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
            Role::Payments | Role::Resolver | Role::Webhook => {
                self.paid(id, actor, (now, today), agreement, (before, after), records)
            }
            Role::Reminders => reminders::written(id, (now + actor.skew, today), agreement, (before, after)),
            Role::Operator => Err("it was written by an operator".to_owned()),
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
fn subscription_of((pk, sk): &ItemKey) -> Option<Who> {
    let account = pk.strip_prefix("ACC#")?;
    let parts: Vec<&str> = sk.split('#').collect();
    let place = match *parts.first()? {
        "SUB" => 1,
        "REC" => 5,
        "ATT" | "WAV" | "FND" => 3,
        _ => return None,
    };
    Some((account.to_owned(), (*parts.get(place)?).to_owned()))
}

/// The name of a status as it is stored.
fn status_of(item: &serde_json::Value) -> Option<crate::stored::StoredStatus> {
    crate::stored::StoredStatus::read(text(item, "Status")?)
}

#[cfg(test)]
mod repairs_tests;
#[cfg(test)]
mod tests;
