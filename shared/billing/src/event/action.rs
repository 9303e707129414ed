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
    /// The name of the actor: the subject of the token, the name of the user who ran the command, or the id of the
    /// payment method setup. `None` if the actor has no name, or is an account. A name that contains `@` is replaced by
    /// a hash.
    pub actor_name: Option<String>,
    /// The account that the change concerns; `None` if it concerns no account.
    pub account: Option<AccountId>,
    pub subscription: Option<SubscriptionId>,
    /// The id of the changed item if it is neither an account nor a subscription, such as the id of a refund.
    pub item: Option<String>,
    /// The values of the changed fields before the change, without personal data.
    pub before: BTreeMap<String, String>,
    /// The values of the changed fields after the change. The text `changed` replaces a value that must not be in the
    /// log.
    pub after: BTreeMap<String, String>,
    /// The reason that the actor gave; `None` if the actor gave no reason, or is an account.
    pub reason: Option<Label>,
}

impl ActionData {
    /// Creates the data from `entry`, an entry of the action log.
    fn from_entry(entry: &LoggedAction) -> Self {
        let LoggedAction { id: _, at: _, actor, kind, account, subscription, item, before, after, reason } =
            entry.clone();
        // Consumers keep events for years, even after the account was erased. The name and the reason of a customer's
        // own change may be personal data, so the event does not contain them.
        let (actor_name, reason) = match &actor {
            Actor::Account(_) => (None, None),
            _ => (actor.name().map(str::to_owned), reason),
        };
        Self { action: kind, actor: actor.kind(), actor_name, account, subscription, item, before, after, reason }
    }
}

/// Returns the event for the write of `entry`, an entry of the action log, at the time `at`. `old` is the entry that
/// this write replaced; `None` if the entry is new. A job writes its entry twice: when it begins, and with its counts
/// when it ends. Both writes have an event. Returns `None` if `entry` and `old` have the same changed fields. Then the
/// same entry was written again, or its reason or name was removed because the account was erased.
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
