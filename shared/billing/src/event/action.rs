//! The event of a change that a person or a program made with the API or with a command.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::super::{AccountId, ActionKind, Actor, ActorKind, Label, LoggedAction, SubscriptionId};
use super::{Event, EventData};

/// The data of the event of a change that a person or a program made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ActionData {
    /// The kind of the change, such as `subscription.pause`.
    pub action: ActionKind,
    pub actor: ActorKind,
    /// The subject of the token, the name of the user who ran the command, or the id of the payment method setup; `None` if
    /// there is no name, or if the actor is an account. A name that contains `@` is replaced by a hash.
    pub actor_name: Option<String>,
    /// The account that the change concerns; `None` if it concerns no account.
    pub account: Option<AccountId>,
    pub subscription: Option<SubscriptionId>,
    /// The id of the changed item if it is neither an account nor a subscription, such as the id of a refund.
    pub item: Option<String>,
    /// The changed fields before the change, without personal data.
    pub before: BTreeMap<String, String>,
    /// The changed fields after the change. The value `changed` stands for content that is not in the log.
    pub after: BTreeMap<String, String>,
    /// The reason that the actor gave; `None` if the actor gave no reason, or is an account.
    pub reason: Option<Label>,
}

impl ActionData {
    fn from_entry(entry: &LoggedAction) -> Self {
        let LoggedAction { id: _, at: _, actor, kind, account, subscription, item, before, after, reason } =
            entry.clone();
        // Consumers keep events for years, even after the account was erased. So the event of a customer's own change
        // contains no name and no reason, which may be personal data.
        let (actor_name, reason) = match &actor {
            Actor::Account(_) => (None, None),
            _ => (actor.name().map(str::to_owned), reason),
        };
        Self { action: kind, actor: actor.kind(), actor_name, account, subscription, item, before, after, reason }
    }
}

/// Returns the event for `entry`, an entry of the action log that was stored at `at` and replaced the entry `old`
/// (`None` if the entry is new). A job stores its entry when it begins, and again, with its counts, when it ends: both
/// writes have an event. Returns `None` if the changed fields are those of `old`: the same entry was written again, or
/// a reason or a name was removed because the account was erased.
pub(super) fn action_event(old: Option<&LoggedAction>, entry: &LoggedAction, at: DateTime<Utc>) -> Option<Event> {
    let (number, at) = match old {
        None => (1, entry.at),
        Some(old) if old.after == entry.after => return None,
        Some(_) => (2, at),
    };
    let data = EventData::ActionTaken(ActionData::from_entry(entry));
    let id = format!("{}.{number}.{}", entry.id, data.event_type());
    let subject = entry.account.as_ref().map_or_else(|| format!("action/{}", entry.id), AccountId::to_string);
    Some(Event { id, subject, at, data })
}
