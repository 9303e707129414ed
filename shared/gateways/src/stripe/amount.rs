//! Conversion between our amounts, in minor units of ISO 4217, and Stripe's amounts ("Supported currencies" in Stripe's
//! documentation, sections on zero-decimal currencies, three-decimal currencies and special cases).

use billing::{Currency, Money};

/// An amount that Stripe's API cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Stripe accepts amounts in {currency} only in steps of {step} minor units")]
pub struct AmountError {
    currency: Currency,
    /// The number of minor units of which each amount in this currency must be a multiple.
    step: i64,
}

/// The unit in which Stripe expresses the amounts of a currency.
enum StripeUnit {
    /// Minor units of ISO 4217.
    MinorUnits,
    /// Hundredths of the major unit, although the currency has no minor unit in ISO 4217.
    Hundredths,
    /// Major units, although the currency has hundredths in ISO 4217.
    MajorUnits,
}

/// Returns the unit in which Stripe expresses amounts in `currency`.
fn stripe_unit(currency: Currency) -> StripeUnit {
    match currency.code() {
        "ISK" | "UGX" => StripeUnit::Hundredths,
        "MGA" => StripeUnit::MajorUnits,
        _ => StripeUnit::MinorUnits,
    }
}

/// Returns the number of minor units of ISO 4217 of which each amount in `currency` must be a multiple.
pub(super) fn amount_step_of(currency: Currency) -> i64 {
    match stripe_unit(currency) {
        StripeUnit::MajorUnits => 100,
        // If a currency has three decimals, Stripe requires that the last digit of an amount is 0.
        StripeUnit::MinorUnits if currency.exponent() == 3 => 10,
        StripeUnit::MinorUnits | StripeUnit::Hundredths => 1,
    }
}

/// Converts `money` to Stripe's unit of its currency.
///
/// # Errors
/// [`AmountError`] if the amount is not a multiple of the required step, or is too large.
pub fn to_stripe_amount(money: Money) -> Result<i64, AmountError> {
    let (minor, currency) = (money.minor(), money.currency());
    let step = amount_step_of(currency);
    if minor.checked_rem(step) != Some(0) {
        return Err(AmountError { currency, step });
    }
    match stripe_unit(currency) {
        StripeUnit::MinorUnits => Ok(minor),
        StripeUnit::Hundredths => minor.checked_mul(100).ok_or(AmountError { currency, step }),
        StripeUnit::MajorUnits => Ok(minor.wrapping_div(100)),
    }
}

/// Converts `amount` from Stripe's unit of `currency`. Returns `None` if the amount cannot be expressed in our minor
/// units.
pub fn money_from_stripe_amount(amount: i64, currency: Currency) -> Option<Money> {
    let minor = match stripe_unit(currency) {
        StripeUnit::MinorUnits => amount,
        StripeUnit::Hundredths => (amount.checked_rem(100)? == 0).then(|| amount.checked_div(100)).flatten()?,
        StripeUnit::MajorUnits => amount.checked_mul(100)?,
    };
    Some(Money::new(minor, currency))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_converted_to_stripes_units_and_back() {
        // The columns are: the currency, our amount in minor units, and Stripe's amount (`None` if Stripe cannot
        // express our amount).
        for (currency, minor, stripe) in [
            ("EUR", 1_299, Some(1_299)),
            ("JPY", 500, Some(500)),
            ("KRW", 9_900, Some(9_900)),
            // These currencies have two decimals in Stripe's API, and none in ISO 4217.
            ("ISK", 500, Some(50_000)),
            ("UGX", 5, Some(500)),
            // This currency has no decimals in Stripe's API, and two in ISO 4217.
            ("MGA", 50_000, Some(500)),
            ("MGA", 50_050, None),
            // This currency has three decimals. Stripe requires that the last digit is 0.
            ("KWD", 57_500, Some(57_500)),
            ("KWD", 57_505, None),
            ("HUF", 1_250, Some(1_250)),
            ("TWD", 800, Some(800)),
        ] {
            let currency: Currency = currency.parse().unwrap();
            let money = Money::new(minor, currency);
            assert_eq!(to_stripe_amount(money).ok(), stripe, "{minor} {currency}");
            if let Some(stripe) = stripe {
                assert_eq!(money_from_stripe_amount(stripe, currency), Some(money), "{minor} {currency}");
            }
        }
        assert_eq!(money_from_stripe_amount(50_001, "ISK".parse().unwrap()), None);
    }
}
