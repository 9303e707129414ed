//! The amounts that a payment gateway can charge: a price that the gateway can never charge is refused when it is
//! entered.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::values::money::{Currency, Money};

/// The amounts of one currency that a gateway can charge, in minor units of ISO 4217: all multiples of `step` from
/// `smallest` to `largest`, which are multiples of `step` themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AmountRange {
    smallest: i64,
    largest: i64,
    step: i64,
}

impl AmountRange {
    /// Creates the range of the multiples of `step` that are at least `smallest` and at most `largest`.
    ///
    /// # Errors
    /// [`AmountRangeError`] if there is no such multiple, or if `step` or `smallest` is not positive.
    pub fn new(smallest: i64, largest: i64, step: i64) -> Result<Self, AmountRangeError> {
        let range = || {
            let smallest = next_multiple(smallest, step)?;
            let largest = largest.checked_sub(largest.checked_rem(step)?)?;
            (smallest <= largest).then_some(Self { smallest, largest, step })
        };
        if smallest > 0 && step > 0 { range() } else { None }.ok_or(AmountRangeError)
    }
}

/// Returns the smallest multiple of `step` that is at least `minor`. Returns `None` if it is too large for an `i64`, or
/// if `step` is 0.
fn next_multiple(minor: i64, step: i64) -> Option<i64> {
    match minor.checked_rem(step)? {
        0 => Some(minor),
        rest => minor.checked_add(step.checked_sub(rest)?),
    }
}

/// The error for a range that contains no amount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the smallest amount and the step must be positive, and a multiple of the step must be in the range")]
pub struct AmountRangeError;

/// The amounts that a gateway can charge, by currency. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AmountRules {
    /// The name of the gateway and the range of each currency that the gateway accepts; `None` if the gateway states no
    /// rules.
    stated: Option<(&'static str, Arc<BTreeMap<Currency, AmountRange>>)>,
}

impl AmountRules {
    /// Returns the rules of a gateway that states none: every amount is allowed.
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates the rules of a gateway that accepts only the amounts in `ranges`. `gateway` is the name of the gateway
    /// inside of a sentence.
    pub fn new(gateway: &'static str, ranges: BTreeMap<Currency, AmountRange>) -> Self {
        Self { stated: Some((gateway, Arc::new(ranges))) }
    }

    /// Checks that the gateway can charge `amount`.
    ///
    /// # Errors
    /// [`AmountRefusal`] if the gateway accepts no amount in this currency, or not this amount.
    pub fn check_amount(&self, amount: Money) -> Result<(), AmountRefusal> {
        let Some((gateway, ranges)) = &self.stated else { return Ok(()) };
        let (gateway, currency, minor) = (*gateway, amount.currency(), amount.minor());
        let money = |minor| Money::new(minor, currency);
        let Some(&AmountRange { smallest, largest, step }) = ranges.get(&currency) else {
            return Err(AmountRefusal::Currency { gateway, currency });
        };
        if minor < smallest {
            Err(AmountRefusal::TooSmall { gateway, smallest: money(smallest) })
        } else if minor > largest {
            Err(AmountRefusal::TooLarge { gateway, largest: money(largest) })
        } else if minor.checked_rem(step) != Some(0) {
            let example = next_multiple(minor, step).unwrap_or(largest);
            Err(AmountRefusal::Step { gateway, step: money(step), example: money(example) })
        } else {
            Ok(())
        }
    }
}

/// The reason why a gateway can never charge an amount. The texts are the end of a sentence that begins with the name
/// of a field. `gateway` is the name of the gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AmountRefusal {
    #[error("must be in a currency that {gateway} accepts; {gateway} does not accept {currency}")]
    Currency { gateway: &'static str, currency: Currency },
    #[error("must be at least {smallest}, the smallest amount in {} that {gateway} accepts", smallest.currency())]
    TooSmall { gateway: &'static str, smallest: Money },
    #[error("must be at most {largest}, the largest amount in {} that {gateway} accepts", largest.currency())]
    TooLarge { gateway: &'static str, largest: Money },
    #[error(
        "must be a multiple of {step}, because {gateway} accepts no other amounts in {}; for example {example}",
        step.currency()
    )]
    Step { gateway: &'static str, step: Money, example: Money },
}

impl AmountRefusal {
    /// Returns an amount in the same currency that the gateway accepts; `None` if the gateway does not accept the
    /// currency.
    pub fn example(self) -> Option<Money> {
        match self {
            Self::Currency { .. } => None,
            Self::TooSmall { smallest: example, .. }
            | Self::TooLarge { largest: example, .. }
            | Self::Step { example, .. } => Some(example),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn new_money(minor: i64, currency: &str) -> Money {
        Money::new(minor, currency.parse().unwrap())
    }

    fn example_rules() -> AmountRules {
        let range = |currency: &str, smallest, largest, step| {
            (currency.parse().unwrap(), AmountRange::new(smallest, largest, step).unwrap())
        };
        AmountRules::new("Stripe", [range("USD", 50, 99_999_999, 1), range("KWD", 1, 99_999_999, 10)].into())
    }

    #[test]
    fn amount_inside_of_the_range_of_its_currency_is_allowed() {
        for amount in
            [new_money(50, "USD"), new_money(99_999_999, "USD"), new_money(10, "KWD"), new_money(99_999_990, "KWD")]
        {
            assert_eq!(example_rules().check_amount(amount), Ok(()), "{amount}");
        }
    }

    #[test]
    fn refusal_names_the_limit_and_an_allowed_amount_in_the_same_currency() {
        for (amount, text) in [
            (new_money(49, "USD"), "must be at least 0.50 USD, the smallest amount in USD that Stripe accepts"),
            (new_money(-50, "USD"), "must be at least 0.50 USD, the smallest amount in USD that Stripe accepts"),
            (
                new_money(100_000_000, "USD"),
                "must be at most 999999.99 USD, the largest amount in USD that Stripe accepts",
            ),
            (
                new_money(57_505, "KWD"),
                "must be a multiple of 0.010 KWD, because Stripe accepts no other amounts in KWD; for example 57.510 KWD",
            ),
            (new_money(5, "KWD"), "must be at least 0.010 KWD, the smallest amount in KWD that Stripe accepts"),
            (
                new_money(99_999_999, "KWD"),
                "must be at most 99999.990 KWD, the largest amount in KWD that Stripe accepts",
            ),
            (new_money(1_005, "IQD"), "must be in a currency that Stripe accepts; Stripe does not accept IQD"),
        ] {
            let refusal = example_rules().check_amount(amount).unwrap_err();
            assert_eq!(refusal.to_string(), text, "{amount}");
            match refusal.example() {
                Some(example) => {
                    assert_eq!(
                        (example_rules().check_amount(example), example.currency()),
                        (Ok(()), amount.currency()),
                        "{amount}"
                    );
                }
                None => assert_eq!(amount.currency().code(), "IQD"),
            }
        }
    }

    #[test]
    fn gateway_without_rules_allows_every_amount() {
        for amount in
            [new_money(1, "USD"), new_money(57_505, "KWD"), new_money(1_005, "IQD"), new_money(i64::MAX, "USD")]
        {
            assert_eq!(AmountRules::none().check_amount(amount), Ok(()), "{amount}");
        }
    }

    #[test]
    fn range_without_an_amount_is_refused() {
        for (smallest, largest, step) in
            [(0, 10, 1), (-5, 10, 1), (1, 10, 0), (1, 10, -1), (11, 10, 1), (1, 9, 10), (i64::MAX, i64::MAX, 10)]
        {
            assert_eq!(AmountRange::new(smallest, largest, step), Err(AmountRangeError), "{smallest} {largest} {step}");
        }
    }

    proptest! {
        #[test]
        fn every_refused_amount_has_an_allowed_example(
            (smallest, largest, step, minor) in (1i64..1_000, 1i64..100_000, 1i64..1_000, any::<i64>()),
        ) {
            let eur: Currency = "EUR".parse().unwrap();
            if let Ok(range) = AmountRange::new(smallest, largest, step) {
                let rules = AmountRules::new("Stripe", [(eur, range)].into());
                let is_allowed = (smallest..=largest).contains(&minor) && minor % step == 0;
                match rules.check_amount(Money::new(minor, eur)) {
                    Ok(()) => prop_assert!(is_allowed),
                    Err(refusal) => {
                        prop_assert!(!is_allowed);
                        prop_assert_eq!(rules.check_amount(refusal.example().unwrap()), Ok(()));
                    }
                }
            }
        }
    }
}
