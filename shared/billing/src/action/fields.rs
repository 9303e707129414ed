//! The fields of a changed item that an entry of the action log contains, with their values before and after the
//! change. The log contains no names, no e-mail addresses, no tokens of payment methods or customers, and no card data:
//! if a field with such content has changed, the log contains only this fact.

use std::collections::BTreeMap;

use strum::IntoEnumIterator as _;

use crate::settings::payment_limits::{PaymentLimit, PaymentLimits};
use crate::settings::policy::Policy;
use crate::settings::policy_setting::StoredPolicy;
use crate::subscriptions::subscription::Subscription;
use crate::values::account::Account;

/// The text that the action log contains instead of the value of a hidden field that has changed.
pub(super) const HIDDEN_FIELD_CHANGED: &str = "changed";

/// One field of an item: its name and its value as text.
pub(crate) enum ActionField {
    /// The value is stored in the action log.
    Logged(&'static str, Option<String>),
    /// Only the fact that the value has changed is stored in the action log.
    Hidden(&'static str, Option<String>),
}

/// The fields that a change of an item has changed, by name, with their values before and after the change.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct FieldDifference {
    pub before: BTreeMap<String, String>,
    pub after: BTreeMap<String, String>,
}

impl FieldDifference {
    /// Creates the difference for a new item, which has `fields` and had no fields before.
    pub(crate) fn of_new<const N: usize>(fields: [(&str, String); N]) -> Self {
        let after = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { before: BTreeMap::new(), after }
    }

    /// Compares the fields of an item before and after its change. `before` is `None` if the item is new; `after` is
    /// `None` if the item was removed.
    pub(crate) fn between<T>(before: Option<&T>, after: Option<&T>, fields: impl Fn(&T) -> Vec<ActionField>) -> Self {
        let fields_of = |item: Option<&T>| item.map(&fields).unwrap_or_default();
        let (old, new) = (fields_of(before), fields_of(after));
        let mut difference = Self::default();
        for field in &old {
            if let ActionField::Logged(name, Some(value)) = field
                && field_value(&new, name) != Some(value)
            {
                difference.before.insert((*name).to_owned(), value.clone());
            }
        }
        for field in &new {
            match field {
                ActionField::Logged(name, Some(value)) if field_value(&old, name) != Some(value) => {
                    difference.after.insert((*name).to_owned(), value.clone());
                }
                ActionField::Hidden(name, value) if before.is_some() && field_value(&old, name) != value.as_ref() => {
                    difference.after.insert((*name).to_owned(), HIDDEN_FIELD_CHANGED.to_owned());
                }
                _ => {}
            }
        }
        difference
    }
}

/// Returns the value of the field `name`; `None` if the field is absent or has no value.
fn field_value<'a>(fields: &'a [ActionField], name: &str) -> Option<&'a String> {
    fields.iter().find_map(|field| match field {
        ActionField::Logged(other, value) | ActionField::Hidden(other, value) if *other == name => value.as_ref(),
        _ => None,
    })
}

/// Returns the fields of an account.
pub(super) fn fields_of_account(account: &Account) -> Vec<ActionField> {
    vec![
        ActionField::Logged("locale", Some(account.locale.as_str().to_owned())),
        ActionField::Logged("mail_status", Some(account.mail_status.to_string())),
        ActionField::Logged("erasure_requested_at", account.erasure_requested_at.map(|at| at.to_rfc3339())),
        ActionField::Hidden("email", Some(account.email.as_str().to_owned())),
        ActionField::Hidden("name", Some(account.name.as_str().to_owned())),
    ]
}

/// Returns the fields of a subscription. A new price or payment day that applies only from a later month on is in the
/// field `waiting_terms`.
pub(super) fn fields_of_subscription(subscription: &Subscription) -> Vec<ActionField> {
    let waiting: Vec<String> = subscription
        .waiting_terms
        .iter()
        .map(|terms| format!("from {}: {} on day {}", terms.from, terms.price, terms.payment_day))
        .collect();
    let method = &subscription.payment_method;
    vec![
        ActionField::Logged("status", Some(subscription.status.to_string())),
        ActionField::Logged("sku", Some(subscription.sku.to_string())),
        ActionField::Logged("price", Some(subscription.price.to_string())),
        ActionField::Logged("payment_day", Some(subscription.payment_day.to_string())),
        ActionField::Logged("waiting_terms", (!waiting.is_empty()).then(|| waiting.join("; "))),
        ActionField::Logged("due_on", Some(subscription.due_on.to_string())),
        ActionField::Logged("next_payment_on", subscription.next_payment_on.map(|on| on.to_string())),
        ActionField::Logged("cancels_on", subscription.cancels_on().map(|on| on.to_string())),
        ActionField::Logged("disputed_at", subscription.disputed_at.map(|at| at.to_rfc3339())),
        ActionField::Hidden("payment_method", Some(format!("{} {}", method.customer, method.payment_method))),
        ActionField::Hidden("product_name", Some(subscription.product_name.as_str().to_owned())),
        ActionField::Hidden("email", subscription.email.as_ref().map(|email| email.as_str().to_owned())),
    ]
}

/// Returns the fields of the limits of the payment batch.
pub(super) fn fields_of_limits(limits: &PaymentLimits) -> Vec<ActionField> {
    PaymentLimit::iter().map(|limit| ActionField::Logged(limit.into(), Some(limits.value_text(limit)))).collect()
}

/// Returns the fields of the policy.
pub(super) fn fields_of_policy(policy: &StoredPolicy) -> Vec<ActionField> {
    Policy::setting_names()
        .map(|setting| ActionField::Logged(setting.into(), Some(policy.value_text(setting))))
        .collect()
}
