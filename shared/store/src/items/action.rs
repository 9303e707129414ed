//! The stored entry of the action log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{Actor, ActorName, Label, LoggedAction, SubscriptionId};
use dynamo::{Entity, Instant};
use dynamo::{Key, TableError};
use ulid::Ulid;

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ActionItem {
    action: String,
    actor_kind: String,
    actor_name: Option<String>,
    subscription: Option<SubscriptionId>,
    item: Option<String>,
    setup: Option<Ulid>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    before: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    after: BTreeMap<String, String>,
    reason: Option<Label>,
    processed_date: Instant,
    /// The time at which the entry expires. Not serialized here: `Table::build_action_put` sets it when the entry is
    /// written.
    #[serde(rename = "TTL", skip_serializing)]
    #[allow(dead_code)]
    ttl: i64,
}

impl Entity<PaymentsSchema> for LoggedAction {
    type Attributes = ActionItem;

    fn key(&self) -> Key {
        keys::key_of_action(self)
    }

    fn attributes(&self) -> ActionItem {
        ActionItem {
            action: self.kind.to_string(),
            actor_kind: self.actor.kind().to_string(),
            actor_name: self.actor.name().map(str::to_owned),
            subscription: self.subscription,
            item: self.item.clone(),
            setup: self.setup,
            before: self.before.clone(),
            after: self.after.clone(),
            reason: self.reason.clone(),
            processed_date: Instant(self.at),
            ttl: 0,
        }
    }

    fn read(key: Key, item: ActionItem) -> Result<Self, TableError> {
        let unreadable = |reason: &str| TableError::unreadable(key.clone(), reason);
        let (account, id) =
            keys::parse_action_key(&key).ok_or_else(|| unreadable("its key is not the key of an action"))?;
        let kind = item.action.parse().map_err(|_| unreadable("its attribute Action is unknown"))?;
        let actor = item.actor_kind.parse().map_err(|_| unreadable("its attribute ActorKind is unknown"))?;
        Ok(Self {
            id,
            at: item.processed_date.0,
            actor: Actor::from_parts(actor, item.actor_name.as_deref().and_then(ActorName::new)),
            kind,
            account,
            subscription: item.subscription,
            item: item.item,
            setup: item.setup,
            before: item.before,
            after: item.after,
            reason: item.reason,
        })
    }
}
