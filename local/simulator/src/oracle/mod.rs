//! The oracle: what each subscription owed on each day, worked out from what its customer did and what the gateway and the
//! records say, by rules of its own. Every charge in the ledger is checked against it.

mod agreement;

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use shared::billing::Policy;
use shared::gateway::{Entry, PaymentMade};

use crate::books::Books;
use crate::customers::CustomerAct;
use crate::invariant::{Finding, Invariant};
use crate::stored::{StoredAttempt, StoredReceipt, StoredSubscription, StoredWaiver, Who, name};
use agreement::{Agreement, MISSED};

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
    pub acts: &'a [CustomerAct],
    pub ledger: &'a [Entry],
    pub books: &'a Books,
    pub policy: &'a Policy,
    pub zone: Tz,
    /// The first day without trouble: from then on nothing is charged late.
    pub calm_from: NaiveDate,
    /// The last day that was played.
    pub as_of: NaiveDate,
}

/// What happened to a subscription.
#[derive(Clone, Copy)]
enum Event<'a> {
    Act(&'a CustomerAct),
    Charge(&'a PaymentMade),
    Tried(&'a StoredAttempt),
    Paid(&'a StoredReceipt),
    Waived(&'a StoredWaiver),
}

/// Checks every charge, and that nothing is owed any more.
pub fn check(evidence: &Evidence<'_>) -> Finding {
    let mut events = events(evidence);
    let stored: BTreeMap<&Who, &StoredSubscription> =
        evidence.books.subscriptions.iter().map(|s| (&s.who, s)).collect();
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
    Finding::new(Invariant::ChargedAsOwed, wrong)
}

type Events<'a> = BTreeMap<Who, Vec<(DateTime<Utc>, u8, Event<'a>)>>;

/// What happened to each subscription, each with its instant and its rank among what happened at one instant: first a
/// customer's act, then what is passed over before a charge, then the gateway's, and last what is written of it.
fn events<'a>(evidence: &Evidence<'a>) -> Events<'a> {
    let mut events: Events<'a> = BTreeMap::new();
    let mut add = |who: &Who, at, rank, event| events.entry(who.clone()).or_default().push((at, rank, event));
    evidence.acts.iter().for_each(|act| add(&act.who, act.at, 0, Event::Act(act)));
    for waived in &evidence.books.waivers {
        add(&waived.who, waived.at, if waived.reason == MISSED { 1 } else { 3 }, Event::Waived(waived));
    }
    for entry in evidence.ledger {
        if let Entry::Payment(made) = entry {
            let who = (made.request.account.to_string(), made.request.subscription.to_string());
            add(&who, made.created_at, 2, Event::Charge(made));
        }
    }
    evidence.books.attempts.iter().for_each(|tried| add(&tried.who, tried.at, 4, Event::Tried(tried)));
    evidence.books.receipts.iter().for_each(|receipt| add(&receipt.who, receipt.at, 4, Event::Paid(receipt)));
    events
}

#[cfg(test)]
mod tests;
