//! An event consumer, as a merchant would write it: it knows subscriptions and receipts only from events. The events
//! are derived from each change of the table, as in production.

use std::collections::{BTreeMap, HashMap, HashSet};

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Event, EventData, ItemImage, Status, SubscriptionData, SubscriptionId, events_between_images};
use chrono::{DateTime, Utc};
use serde_json::Value;
use store::read_stream_image;

use crate::change::Change;

/// A consumer that records all events, in the order of the changes that caused them.
#[derive(Default)]
pub struct EventConsumer {
    events: Vec<Event>,
    /// The status of each subscription in the subscription's last event.
    statuses: HashMap<SubscriptionId, Status>,
    /// Changes that could not be converted to events, and status changes without an event.
    errors: Vec<String>,
}

/// The state that events can publish: the status of each subscription, and the amount of each receipt in minor units
/// with its currency.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PublishedState {
    subscriptions: BTreeMap<String, Status>,
    receipts: BTreeMap<String, (i64, String)>,
}

impl EventConsumer {
    /// Records the events of one changed item; the write took effect at `now`.
    pub fn record_change(&mut self, now: DateTime<Utc>, change: &Change) {
        match (read_if_exists(change.before.as_ref()), read_if_exists(change.after.as_ref())) {
            (Ok(old), Ok(new)) => {
                self.record_events(events_between_images(old.as_ref(), new.as_ref(), now), new.as_ref())
            }
            (Err(error), _) | (_, Err(error)) => self.errors.push(error),
        }
    }

    fn record_events(&mut self, events: Vec<Event>, new: Option<&ItemImage>) {
        let changed = events.iter().filter_map(|event| subscription_data(&event.data));
        self.statuses.extend(changed.map(|data| (data.subscription, data.status)));
        if let Some(ItemImage::Subscription(new)) = new
            && self.statuses.get(&new.id) != Some(&new.status)
        {
            self.errors.push(format!("the subscription {} got the status {} without an event", new.id, new.status));
        }
        self.events.extend(events);
    }

    /// Returns the number of recorded events.
    pub fn event_count(&self) -> usize {
        self.events.len()
    }

    /// Returns the differences between the state that follows from all events and the stored `items`, and the
    /// contradictions between events.
    pub fn find_contradictions<'a>(&self, items: impl Iterator<Item = &'a Value>) -> Vec<String> {
        let mut errors = self.errors.clone();
        let mut ids = HashSet::new();
        let twice = self.events.iter().filter(|event| !ids.insert(&event.id));
        errors.extend(twice.map(|event| format!("two events have the id {}", event.id)));
        errors.extend(self.first_version_decrease());
        let (published, stored) = (state_from_events(&self.events), state_from_items(items));
        if published != stored {
            errors.push(format!("the state after all events is {published:?}, and the stored state is {stored:?}"));
        }
        // Events delivered late and repeatedly must give the same state: the second half first, then the first half,
        // then all events again.
        let (first, second) = self.events.split_at(self.events.len() / 2);
        let late = [second, first, &self.events].concat();
        if state_from_events(&late) != published {
            errors.push("late and repeated events give a different state".to_owned());
        }
        errors
    }

    /// Describes the first event that has a lower version than an earlier event of the same subscription.
    fn first_version_decrease(&self) -> Option<String> {
        let mut versions = HashMap::new();
        let all = self.events.iter().filter_map(|event| subscription_data(&event.data));
        let mut decreases = all.filter(|data| {
            let before = versions.insert(data.subscription, data.version);
            before.is_some_and(|before| before > data.version)
        });
        decreases.next().map(|data| {
            format!(
                "the subscription {} has an event with version {} after a higher version",
                data.subscription, data.version
            )
        })
    }
}

/// Returns the state of a consumer that ignores repeated event ids and applies the newest version of each item.
fn state_from_events(events: &[Event]) -> PublishedState {
    let (mut seen, mut expired) = (HashSet::new(), Vec::new());
    let (mut newest, mut receipts) = (BTreeMap::new(), BTreeMap::new());
    for event in events.iter().filter(|event| seen.insert(&event.id)) {
        if let Some(data) = subscription_data(&event.data) {
            let received = (data.version, data.status);
            let name = format!("{} {}", event.account, data.subscription);
            let known = newest.entry(name).or_insert(received);
            *known = if received.0 > known.0 { received } else { *known };
        }
        match &event.data {
            EventData::PaymentSucceeded(paid) => {
                let amount = (paid.amount.minor(), paid.amount.currency().to_string());
                receipts.insert(format!("{} {}", event.account, paid.receipt), amount);
            }
            EventData::ReceiptExpired(gone) => expired.push(format!("{} {}", event.account, gone.receipt)),
            _ => {}
        }
    }
    expired.iter().for_each(|receipt| drop(receipts.remove(receipt)));
    PublishedState { subscriptions: newest.into_iter().map(|(name, (_, status))| (name, status)).collect(), receipts }
}

fn subscription_data(data: &EventData) -> Option<&SubscriptionData> {
    match data {
        EventData::SubscriptionCreated(data)
        | EventData::SubscriptionChanged(data)
        | EventData::SubscriptionPaused(data)
        | EventData::SubscriptionResumed(data)
        | EventData::SubscriptionEnding(data)
        | EventData::SubscriptionPastDue(data)
        | EventData::SubscriptionUnpaid(data)
        | EventData::SubscriptionRevived(data)
        | EventData::SubscriptionCancelled(data)
        | EventData::SubscriptionReminded(data) => Some(data),
        _ => None,
    }
}

/// Returns the state that follows from the items of the table.
fn state_from_items<'a>(items: impl Iterator<Item = &'a Value>) -> PublishedState {
    let mut known = PublishedState::default();
    for item in items {
        match read_if_exists(Some(item)) {
            Ok(Some(ItemImage::Subscription(s))) => {
                known.subscriptions.insert(format!("{} {}", s.account, s.id), s.status);
            }
            Ok(Some(ItemImage::Receipt(receipt))) => {
                let amount = (receipt.amount.minor(), receipt.amount.currency().to_string());
                known.receipts.insert(format!("{} {}", receipt.account, receipt.id()), amount);
            }
            _ => {}
        }
    }
    known
}

/// Reads the subscription or receipt that `item` contains; `None` if there is no item, or the item is of another kind.
fn read_if_exists(item: Option<&Value>) -> Result<Option<ItemImage>, String> {
    let Some(item) = item else { return Ok(None) };
    let item: serde_dynamo::Item = serde_json::from_value(item.clone()).map_err(|error| error.to_string())?;
    let item: HashMap<String, AttributeValue> = item.into();
    read_stream_image(&item).map_err(|error| error.to_string())
}
