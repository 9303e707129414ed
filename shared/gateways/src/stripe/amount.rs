//! Amounts as Stripe writes them ("Supported currencies" in Stripe's documentation, its sections on zero-decimal and
//! three-decimal currencies and on special cases). Ours are in the minor units of ISO 4217.

use billing::{Currency, Money};

/// An amount that Stripe cannot be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Stripe takes amounts in {currency} in steps of {step} minor units")]
pub struct AmountError {
    currency: Currency,
    step: i64,
}

/// How an amount is written.
enum Unit {
    /// In minor units of ISO 4217, as a multiple of so many.
    StepsOf(i64),
    /// In hundredths, though the currency has none in use.
    Hundredths,
    /// In whole units, though ISO 4217 has hundredths.
    Whole,
}

fn unit(currency: Currency) -> Unit {
    match currency.code() {
        "ISK" | "UGX" => Unit::Hundredths,
        "MGA" => Unit::Whole,
        // The last digit of three decimals must be 0.
        _ if currency.exponent() == 3 => Unit::StepsOf(10),
        _ => Unit::StepsOf(1),
    }
}

/// `money` in Stripe's units.
///
/// # Errors
/// [`AmountError`].
pub fn to_stripe(money: Money) -> Result<i64, AmountError> {
    let (minor, currency) = (money.minor(), money.currency());
    let whole = |step: i64| match minor.checked_rem(step) {
        Some(0) => Ok(minor),
        _ => Err(AmountError { currency, step }),
    };
    match unit(currency) {
        Unit::StepsOf(step) => whole(step),
        Unit::Hundredths => minor.checked_mul(100).ok_or(AmountError { currency, step: 1 }),
        Unit::Whole => whole(100).map(|minor| minor.wrapping_div(100)),
    }
}

/// What `amount` in Stripe's units is; `None` if it is none that we could have asked for.
pub fn from_stripe(amount: i64, currency: Currency) -> Option<Money> {
    let minor = match unit(currency) {
        Unit::StepsOf(_) => amount,
        Unit::Hundredths => (amount.checked_rem(100)? == 0).then(|| amount.checked_div(100)).flatten()?,
        Unit::Whole => amount.checked_mul(100)?,
    };
    Some(Money::new(minor, currency))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_stripe_writes_them() {
        for (currency, minor, stripe) in [
            ("EUR", 1_299, Some(1_299)),
            ("JPY", 500, Some(500)),
            ("KRW", 9_900, Some(9_900)),
            // Two decimals in the API, none in use.
            ("ISK", 500, Some(50_000)),
            ("UGX", 5, Some(500)),
            // None in the API, two by ISO 4217.
            ("MGA", 50_000, Some(500)),
            ("MGA", 50_050, None),
            // Three decimals, the last of them 0.
            ("KWD", 57_500, Some(57_500)),
            ("KWD", 57_505, None),
            ("HUF", 1_250, Some(1_250)),
            ("TWD", 800, Some(800)),
        ] {
            let currency: Currency = currency.parse().unwrap();
            let money = Money::new(minor, currency);
            assert_eq!(to_stripe(money).ok(), stripe, "{minor} {currency}");
            if let Some(stripe) = stripe {
                assert_eq!(from_stripe(stripe, currency), Some(money), "{minor} {currency}");
            }
        }
        assert_eq!(from_stripe(50_001, "ISK".parse().unwrap()), None);
    }
}
