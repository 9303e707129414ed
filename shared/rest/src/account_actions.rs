//! The changes that accounts may make to their own data themselves (`DUEDAY_ACCOUNT_ACTIONS`).

use strum::{Display, EnumCount, EnumIter, EnumString, IntoEnumIterator as _};

/// A kind of change that an account can make to its own data, if the merchant allows it. An operator can make every
/// change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, EnumCount, EnumIter, EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum AccountAction {
    /// Pause a subscription.
    Pause,
    /// Resume a paused subscription.
    Resume,
    /// Cancel a subscription, now or at the end of the period.
    Cancel,
    /// Undo a cancellation at the end of the period.
    Uncancel,
    /// Retry an owed payment.
    Retry,
    /// Change the payment day of a subscription.
    PaymentDay,
    /// Change the payment method of a subscription, or enter one on the gateway's page.
    PaymentMethod,
    /// Change the shipping address of the order desk.
    Address,
}

impl AccountAction {
    /// Returns the action in words, for the error text of a refused request.
    pub fn description(self) -> &'static str {
        match self {
            Self::Pause => "pause a subscription",
            Self::Resume => "resume a subscription",
            Self::Cancel => "cancel a subscription",
            Self::Uncancel => "undo a cancellation",
            Self::Retry => "retry a payment",
            Self::PaymentDay => "change the payment day",
            Self::PaymentMethod => "change the payment method",
            Self::Address => "change the shipping address",
        }
    }
}

/// A set of [`AccountAction`]s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccountActions([bool; AccountAction::COUNT]);

impl AccountActions {
    /// Returns the set of all actions.
    pub fn all() -> Self {
        Self([true; AccountAction::COUNT])
    }

    /// Returns whether the set contains `action`.
    pub fn contains(&self, action: AccountAction) -> bool {
        self.0[action as usize]
    }

    /// Parses the names of actions, separated by commas. The text `none` stands for the empty set.
    ///
    /// # Errors
    /// If an action is unknown, returns an error text with the known actions.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut actions = Self([false; AccountAction::COUNT]);
        if text == "none" {
            return Ok(actions);
        }
        for name in text.split(',').map(str::trim) {
            let action: AccountAction = name.parse().map_err(|_| {
                let known: Vec<String> = AccountAction::iter().map(|action| action.to_string()).collect();
                format!(
                    "must be none, or actions separated by commas, not {name:?}; the actions are {}",
                    known.join(", ")
                )
            })?;
            actions.0[action as usize] = true;
        }
        Ok(actions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ACCOUNT_ACTIONS;

    #[test]
    fn default_account_actions_are_all_actions_and_the_text_none_is_no_action() {
        assert_eq!(AccountActions::parse(ACCOUNT_ACTIONS.default.unwrap()), Ok(AccountActions::all()));
        let none = AccountActions::parse("none").unwrap();
        assert!(AccountAction::iter().all(|action| !none.contains(action)));
    }

    #[test]
    fn parse_accepts_some_actions_and_names_the_known_actions_in_errors() {
        let some = AccountActions::parse("cancel, payment-method").unwrap();
        let contained: Vec<AccountAction> = AccountAction::iter().filter(|action| some.contains(*action)).collect();
        assert_eq!(contained, [AccountAction::Cancel, AccountAction::PaymentMethod]);
        for (text, named) in
            [("stop", "\"stop\""), ("pause,", "\"\""), ("pause,none", "\"none\""), ("Pause", "\"Pause\"")]
        {
            let error = AccountActions::parse(text).unwrap_err();
            let expected = format!("not {named}; the actions are pause, resume, cancel, uncancel, retry, payment-day");
            assert!(error.starts_with("must be none, or actions") && error.contains(&expected), "{error}");
        }
    }
}
