//! The data of the event of a change that a person or a program made with the API or with a command.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::{ActionKind, Actor, ActorKind, LoggedAction};
use crate::values::contact_data::Label;
use crate::values::ids::{AccountId, SubscriptionId};

/// The data of the event of a change that a person or a program made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ActionData))]
pub struct ActionEventData {
    /// The kind of the change, such as `subscription.pause`.
    pub action: ActionKind,
    pub actor: ActorKind,
    /// The name of the actor: the subject of the token, the name of the user who ran the command, or the public
    /// name of the payment method setup. `None` if the actor has no name, or is an account. A name that contains `@` is replaced by
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

impl ActionEventData {
    /// Creates the data from `entry`, an entry of the action log.
    pub(super) fn from_entry(entry: &LoggedAction) -> Self {
        let LoggedAction { id: _, at: _, actor, kind, account, subscription, item, setup: _, before, after, reason } =
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
