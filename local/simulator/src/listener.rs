//! Somebody who knows the subscriptions by their events alone, made of each change of the table as it took effect.

use std::collections::{BTreeMap, HashMap, HashSet};

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Event, Image, News, Status, SubscriptionId, SubscriptionNews, events};
use chrono::{DateTime, Utc};
use serde_json::Value;
use store::image;

use crate::change::Change;

/// Everything that was heard, in the order in which it happened.
#[derive(Default)]
pub struct Listener {
    heard: Vec<Event>,
    /// As they were told last.
    statuses: HashMap<SubscriptionId, Status>,
    /// What could not be made into events, and what nobody was told of.
    wrong: Vec<String>,
}

/// What a listener knows: the status of each subscription, and the amount of each receipt.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Known {
    subscriptions: BTreeMap<String, Status>,
    receipts: BTreeMap<String, (i64, String)>,
}

impl Listener {
    /// A write took effect at `now`.
    pub fn hear(&mut self, now: DateTime<Utc>, change: &Change) {
        match (read(change.before.as_ref()), read(change.after.as_ref())) {
            (Ok(old), Ok(new)) => self.hear_all(events(old.as_ref(), new.as_ref(), now), new.as_ref()),
            (Err(error), _) | (_, Err(error)) => self.wrong.push(error),
        }
    }

    fn hear_all(&mut self, events: Vec<Event>, new: Option<&Image>) {
        let told = events.iter().filter_map(|event| of_subscription(&event.news));
        self.statuses.extend(told.map(|news| (news.subscription, news.status)));
        if let Some(Image::Subscription(new)) = new
            && self.statuses.get(&new.id) != Some(&new.status)
        {
            self.wrong.push(format!("{} became {}, and nobody was told", new.id, new.status));
        }
        self.heard.extend(events);
    }

    /// How many events were heard.
    pub fn heard(&self) -> usize {
        self.heard.len()
    }

    /// In what the events differ from `items`, or contradict each other.
    pub fn contradictions<'a>(&self, items: impl Iterator<Item = &'a Value>) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        let mut ids = HashSet::new();
        let twice = self.heard.iter().filter(|event| !ids.insert(&event.id));
        wrong.extend(twice.map(|event| format!("there are two events {}", event.id)));
        wrong.extend(self.falling_versions());
        let (heard, stored) = (known(&self.heard), stored(items));
        if heard != stored {
            wrong.push(format!("the events tell {heard:?}, and stored is {stored:?}"));
        }
        // Late, and again: the first half after the second, and then all of it once more.
        let (first, second) = self.heard.split_at(self.heard.len() / 2);
        let late = [second, first, &self.heard].concat();
        if known(&late) != heard {
            wrong.push("events that are late or come again tell something else".to_owned());
        }
        wrong
    }

    fn falling_versions(&self) -> Option<String> {
        let mut versions = HashMap::new();
        let told = self.heard.iter().filter_map(|event| of_subscription(&event.news));
        let mut falls = told.filter(|news| {
            let before = versions.insert(news.subscription, news.version);
            before.is_some_and(|before| before > news.version)
        });
        falls.next().map(|news| format!("{} went back to version {}", news.subscription, news.version))
    }
}

/// What somebody knows who goes by the ids of events and by the versions of items.
fn known(events: &[Event]) -> Known {
    let (mut seen, mut expired) = (HashSet::new(), Vec::new());
    let (mut newest, mut receipts) = (BTreeMap::new(), BTreeMap::new());
    for event in events.iter().filter(|event| seen.insert(&event.id)) {
        if let Some(news) = of_subscription(&event.news) {
            let told = (news.version, news.status);
            let name = format!("{} {}", event.account, news.subscription);
            let known = newest.entry(name).or_insert(told);
            *known = if told.0 > known.0 { told } else { *known };
        }
        match &event.news {
            News::PaymentSucceeded(paid) => {
                let amount = (paid.amount.minor(), paid.amount.currency().to_string());
                receipts.insert(format!("{} {}", event.account, paid.receipt), amount);
            }
            News::ReceiptExpired(gone) => expired.push(format!("{} {}", event.account, gone.receipt)),
            _ => {}
        }
    }
    expired.iter().for_each(|receipt| drop(receipts.remove(receipt)));
    Known { subscriptions: newest.into_iter().map(|(name, (_, status))| (name, status)).collect(), receipts }
}

fn of_subscription(news: &News) -> Option<&SubscriptionNews> {
    match news {
        News::SubscriptionCreated(news)
        | News::SubscriptionChanged(news)
        | News::SubscriptionPaused(news)
        | News::SubscriptionResumed(news)
        | News::SubscriptionEnding(news)
        | News::SubscriptionPastDue(news)
        | News::SubscriptionUnpaid(news)
        | News::SubscriptionRevived(news)
        | News::SubscriptionCancelled(news)
        | News::SubscriptionReminded(news) => Some(news),
        _ => None,
    }
}

/// What the items of the table say themselves.
fn stored<'a>(items: impl Iterator<Item = &'a Value>) -> Known {
    let mut known = Known::default();
    for item in items {
        match read(Some(item)) {
            Ok(Some(Image::Subscription(s))) => {
                known.subscriptions.insert(format!("{} {}", s.account, s.id), s.status);
            }
            Ok(Some(Image::Receipt(receipt))) => {
                let amount = (receipt.amount.minor(), receipt.amount.currency().to_string());
                known.receipts.insert(format!("{} {}", receipt.account, receipt.id()), amount);
            }
            _ => {}
        }
    }
    known
}

fn read(item: Option<&Value>) -> Result<Option<Image>, String> {
    let Some(item) = item else { return Ok(None) };
    let item: serde_dynamo::Item = serde_json::from_value(item.clone()).map_err(|error| error.to_string())?;
    let item: HashMap<String, AttributeValue> = item.into();
    image(&item).map_err(|error| error.to_string())
}
