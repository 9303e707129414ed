//! Values without rules about payments: identifiers, money, dates, and what is stored about a customer and a card.

pub(crate) mod account;
pub(crate) mod amount_rules;
pub(crate) mod calendar;
pub(crate) mod card;
pub(crate) mod card_number;
pub(crate) mod character_checks;
pub(crate) mod contact_data;
pub(crate) mod ids;
pub(crate) mod money;
pub(crate) mod money_sums;
