//! Those who act, and how what they do is judged besides what they write.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::agreement::{Act, Agreement};
use super::{Oracle, subscription_of};
use crate::change::ItemKey;
use crate::lagging_index::MAX_LAG;
use crate::schedule::ActorId;
use crate::stored::Who;

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
    /// The receiver of the gateway's events.
    Webhook,
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
pub(super) struct Present {
    pub actor: Actor,
    /// It has written.
    pub has_written: bool,
    /// What it read last allowed what it asks for.
    pub was_allowed: Option<bool>,
    /// It has read that charging is switched off.
    is_switched_off: bool,
    /// The index has shown it these, when it had not read that yet.
    in_hand: BTreeSet<Who>,
    pub began_at: DateTime<Utc>,
}

impl Oracle {
    /// An actor begins.
    pub fn begins(&mut self, id: ActorId, now: DateTime<Utc>, actor: Actor) {
        let present = Present {
            actor,
            has_written: false,
            was_allowed: None,
            is_switched_off: false,
            in_hand: BTreeSet::new(),
            began_at: now,
        };
        self.present.insert(id, present);
    }

    /// An actor has come to its end, or a crash has ended it.
    pub fn ends(&mut self, id: ActorId) {
        self.present.remove(&id);
    }

    /// Whether more is due than the ceiling of `present` allows, and was all the time since it began.
    pub(super) fn is_over(&self, present: &Present) -> bool {
        let Some((most, date)) = present.actor.ceiling else { return false };
        let is_due = |agreement: &&Agreement| {
            agreement.open.is_none()
                && agreement.is_chargeable()
                && !agreement.is_ending()
                && agreement.next.is_some_and(|next| next <= date)
                && agreement.changed_at + MAX_LAG < present.began_at
        };
        self.agreements.values().filter(is_due).count() > most
    }

    /// Notes whether what a request asks for is allowed, by what it has just read.
    pub(super) fn consider(&mut self, id: ActorId) {
        let Some(present) = self.present.get_mut(&id) else { return };
        let Role::Request { who, act } = &present.actor.role else { return };
        if present.has_written {
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
            present.is_switched_off = !is_charging;
        }
    }

    /// An index has shown these rows to an actor.
    pub fn shown(&mut self, id: ActorId, rows: &[ItemKey]) {
        if let Some(present) = self.present.get_mut(&id)
            && !present.is_switched_off
        {
            present.in_hand.extend(rows.iter().filter_map(subscription_of));
        }
    }
}

impl Present {
    /// Whether it must not charge `who`, because charging was switched off before it saw the row.
    pub fn holds_back(&self, who: &Who) -> bool {
        self.is_switched_off && !self.in_hand.contains(who)
    }
}
