//! The requester: the person or program that requests changes of the order desk. Each requested change writes an entry
//! of the action log in the same transaction. The action log is in the payments table.

use std::fmt;
use std::sync::Arc;

use aws_sdk_dynamodb::types::TransactWriteItem;
use chrono::{DateTime, Utc};

use crate::OrdersTable;
use billing::{AccountId, ActionKind, Actor, ItemChange, Label, LoggedAction, NewAction};

/// Builds the writes and checks in the payments table that are part of transactions of the order desk.
pub trait PaymentsTable: fmt::Debug + Send + Sync {
    /// Builds the write that stores `entry` in the action log.
    fn build_action_put(&self, entry: &LoggedAction) -> TransactWriteItem;

    /// Builds the condition check that `account` exists, and that its erasure was not requested.
    fn build_account_check(&self, account: &AccountId) -> TransactWriteItem;
}

/// The person or program that requests changes. All changes of the request use the date of `at`, even if
/// midnight passes while the request is processed.
#[derive(Clone, Debug)]
pub struct Requester {
    pub payments: Arc<dyn PaymentsTable>,
    pub actor: Actor,
    pub at: DateTime<Utc>,
}

impl Requester {
    /// Builds the write that stores the entry for `change` in the action log.
    pub(crate) fn build_action_put(
        &self,
        kind: ActionKind,
        reason: Option<Label>,
        change: ItemChange,
    ) -> TransactWriteItem {
        let action = NewAction { at: self.at, actor: self.actor.clone(), kind, reason };
        self.payments.build_action_put(&action.on_item(change))
    }

    /// Builds the write that stores the entry for a change of the setting `name` from `before` to `after` in the action
    /// log.
    pub(crate) fn build_setting_put(
        &self,
        kind: ActionKind,
        name: &str,
        before: String,
        after: String,
    ) -> TransactWriteItem {
        let action = NewAction { at: self.at, actor: self.actor.clone(), kind, reason: None };
        self.payments.build_action_put(&action.on_setting(name, Some(before), after))
    }
}

impl OrdersTable {
    /// Returns this table with `requester`: each change writes an entry of the action log with this person or program.
    /// The jobs of the order desk use a table without a requester, whose changes write no entries.
    pub fn requested_by(&self, requester: Requester) -> Self {
        Self { requester: Some(requester), ..self.clone() }
    }

    /// Returns the time of the request; `None` if the table has no requester.
    pub fn requested_at(&self) -> Option<DateTime<Utc>> {
        self.requester.as_ref().map(|requester| requester.at)
    }

    /// Returns this table without a requester, for jobs whose changes write no entries of the action log.
    pub fn without_requester(&self) -> Self {
        Self { requester: None, ..self.clone() }
    }
}
