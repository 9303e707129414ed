//! The entries of the action log about items of other crates, such as the orders and products of the order desk.

use std::collections::BTreeMap;

use crate::action::fields::FieldDifference;
use crate::action::{LoggedAction, NewAction};
use crate::values::ids::AccountId;

/// The change of an item that another crate defines, such as an order: the id of the item, and the values of its
/// changed fields before and after the change, without personal data.
///
/// ```
/// use billing::ItemChange;
/// let change = ItemChange::new("2027-01-31.01JZXCVBNM0123456789ABCDEF", 2).field("status", Some("OPEN"), Some("PICKED"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ItemChange {
    item: String,
    version: u64,
    account: Option<AccountId>,
    difference: FieldDifference,
}

impl ItemChange {
    /// Creates the change of the item with the id `item`. `version` is the version of the item after the change.
    pub fn new(item: impl ToString, version: u64) -> Self {
        Self { item: item.to_string(), version, account: None, difference: FieldDifference::default() }
    }

    /// Sets the account that the change concerns.
    pub fn of_account(self, account: &AccountId) -> Self {
        Self { account: Some(account.clone()), ..self }
    }

    /// Adds the field `name` if its value changes. `None` means that the item does not have the field.
    pub fn field<T: ToString>(mut self, name: &str, before: Option<T>, after: Option<T>) -> Self {
        let [before, after] = [before, after].map(|value| value.map(|value| value.to_string()));
        if before != after {
            let add =
                |fields: &mut BTreeMap<String, String>, value| fields.extend([name.to_owned()].into_iter().zip(value));
            add(&mut self.difference.before, before);
            add(&mut self.difference.after, after);
        }
        self
    }

    /// Adds the field `name` without its values: the action log then contains only the fact that the field has changed.
    pub fn hidden_field(mut self, name: &str) -> Self {
        self.difference.after.insert(name.to_owned(), super::fields::HIDDEN_FIELD_CHANGED.to_owned());
        self
    }
}

impl NewAction {
    /// Returns the entry of the action log for the change of an item of another crate.
    pub fn on_item(&self, change: ItemChange) -> LoggedAction {
        let ItemChange { item, version, account, difference } = change;
        LoggedAction { account, item: Some(item.clone()), ..self.entry(&item, version, difference) }
    }
}
