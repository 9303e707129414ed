//! Money: an integer number of minor units (such as cents) of an ISO 4217 currency. There are no floating-point
//! numbers, and no amount is rounded.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The largest price in minor units: twelve digits. No payment processor accepts more digits.
pub const MAX_PRICE_MINOR: i64 = 999_999_999_999;

/// A current ISO 4217 currency with a defined number of decimal digits (0 for JPY). The ISO 4217 codes for funds,
/// metals and tests are not allowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency(iso_currency::Currency);
crate::openapi_schema!(Currency, "Currency", currency_schema());

/// Returns the OpenAPI schema of a [`Currency`], with all accepted codes.
#[cfg(feature = "openapi")]
fn currency_schema() -> utoipa::openapi::ObjectBuilder {
    // Finding the codes tries all 17,576 combinations of three letters, so it is done only once.
    static ACCEPTED: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| {
        let letters = || 'A'..='Z';
        let codes =
            letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| String::from_iter([a, b, c]))));
        codes.filter(|code| code.parse::<Currency>().is_ok()).collect()
    });
    crate::openapi::build_text_schema(
        "An ISO 4217 currency code. Amounts are integers in the minor units of the currency.",
    )
    .enum_values(Some(ACCEPTED.iter().cloned()))
}

impl Currency {
    /// Returns the three-letter code, in capitals.
    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// Returns the number of decimal digits: 2 for EUR, 0 for JPY, 3 for KWD.
    pub fn exponent(self) -> u32 {
        self.0.exponent().map_or(0, u32::from)
    }

    /// Creates a price of `minor` minor units in this currency.
    ///
    /// # Errors
    /// [`MoneyError::Price`] if `minor` is not from 1 to [`MAX_PRICE_MINOR`].
    pub fn price(self, minor: i64) -> Result<Money, MoneyError> {
        if (1..=MAX_PRICE_MINOR).contains(&minor) {
            Ok(Money::new(minor, self))
        } else {
            Err(MoneyError::Price { minor })
        }
    }
}

impl FromStr for Currency {
    type Err = MoneyError;

    fn from_str(code: &str) -> Result<Self, MoneyError> {
        iso_currency::Currency::from_code(code)
            .filter(|c| c.exponent().is_some() && !c.is_special() && !c.is_fund() && c.is_superseded().is_none())
            .map(Currency)
            .ok_or(MoneyError::Currency)
    }
}

impl TryFrom<String> for Currency {
    type Error = MoneyError;

    fn try_from(code: String) -> Result<Self, MoneyError> {
        code.parse()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Ord for Currency {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.code().cmp(other.code())
    }
}

impl PartialOrd for Currency {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// An amount in the minor units of its currency: 1299 EUR is € 12.99, 500 JPY is ¥ 500, 1500 KWD is 1.500 dinars.
///
/// ```
/// use billing::{Currency, Money};
/// let eur: Currency = "EUR".parse()?;
/// let price = Money::parse("12.99", eur)?;
/// assert_eq!(price.minor(), 1299);
/// assert_eq!(price.to_string(), "12.99 EUR");
/// assert!(Money::parse("12.999", eur).is_err(), "this amount would have to be rounded");
/// # Ok::<(), billing::MoneyError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Money {
    /// The amount in minor units of the currency.
    #[serde(rename = "amount")]
    minor: i64,
    currency: Currency,
}

impl Money {
    /// Creates an amount of `minor` minor units of `currency`.
    pub fn new(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// Returns the amount in minor units.
    pub fn minor(self) -> i64 {
        self.minor
    }

    /// Returns the currency of the amount.
    pub fn currency(self) -> Currency {
        self.currency
    }

    /// Parses a decimal amount such as `12.99`, `12` or `500`: digits, and at most one point between digits.
    ///
    /// # Errors
    /// - [`MoneyError::Malformed`] for signs, spaces, thousands separators or exponents
    /// - [`MoneyError::Precision`] if the amount has more decimal digits than the currency. Additional zeros are
    ///   allowed.
    /// - [`MoneyError::Overflow`] if the amount is too large
    pub fn parse(text: &str, currency: Currency) -> Result<Self, MoneyError> {
        let malformed = Err(MoneyError::Malformed { currency });
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return malformed,
            Some((whole, fraction)) => (whole, fraction),
            None => (text, ""),
        };
        if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return malformed;
        }
        let places = usize::try_from(currency.exponent()).map_err(|_| MoneyError::Overflow)?;
        let (kept, rounded) = fraction.split_at(fraction.len().min(places));
        if rounded.bytes().any(|b| b != b'0') {
            return Err(MoneyError::Precision { currency });
        }
        let minor = format!("{whole}{kept:0<places$}").parse().map_err(|_| MoneyError::Overflow)?;
        Ok(Self { minor, currency })
    }

    /// Returns the sum of two amounts in the same currency.
    ///
    /// # Errors
    /// - [`MoneyError::Mixed`] if the currencies differ
    /// - [`MoneyError::Overflow`] if the sum is too large
    pub fn checked_add(self, other: Money) -> Result<Money, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::Mixed { left: self.currency, right: other.currency });
        }
        let minor = self.minor.checked_add(other.minor).ok_or(MoneyError::Overflow)?;
        Ok(Money { minor, ..self })
    }

    /// Returns the amount as a decimal number without the currency, in the format of [`Money::parse`]: `12.99`.
    pub fn decimal(self) -> String {
        let sign = if self.minor < 0 { "-" } else { "" };
        let digits = self.minor.unsigned_abs().to_string();
        match usize::try_from(self.currency.exponent()).unwrap_or(0) {
            0 => format!("{sign}{digits}"),
            places => {
                let padded = format!("{digits:0>width$}", width = places.saturating_add(1));
                let (whole, fraction) = padded.split_at(padded.len().saturating_sub(places));
                format!("{sign}{whole}.{fraction}")
            }
        }
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.decimal(), self.currency)
    }
}

/// The reason why an amount or a currency is invalid, or why two amounts cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    #[error("must be a current ISO 4217 currency code in capitals, like EUR")]
    Currency,
    #[error("must be an amount like {}", Money::new(1_299, *currency).decimal())]
    Malformed { currency: Currency },
    #[error("must have {} in {currency}", decimals_text(*currency))]
    Precision { currency: Currency },
    #[error("must be from 1 to {MAX_PRICE_MINOR} in minor units (cents), not {minor}")]
    Price { minor: i64 },
    #[error("cannot add amounts in different currencies, {left} and {right}")]
    Mixed { left: Currency, right: Currency },
    #[error("the amount is too large")]
    Overflow,
}

/// Returns how many decimals an amount in `currency` may have, as a part of a sentence.
fn decimals_text(currency: Currency) -> String {
    match currency.exponent() {
        0 => "no decimals".to_owned(),
        places => format!("at most {places} decimals"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_currency(code: &str) -> Currency {
        code.parse().unwrap()
    }

    #[test]
    fn errors_show_an_amount_of_the_currency() {
        let error = |text, code| Money::parse(text, parse_currency(code)).unwrap_err().to_string();
        assert_eq!(error("12,99", "EUR"), "must be an amount like 12.99");
        assert_eq!(error("1,299", "JPY"), "must be an amount like 1299");
        assert_eq!(error("x", "KWD"), "must be an amount like 1.299");
        assert_eq!(error("12.999", "EUR"), "must have at most 2 decimals in EUR");
        assert_eq!(error("12.5", "JPY"), "must have no decimals in JPY");
    }

    #[test]
    fn parse_and_display_use_the_decimal_digits_of_the_currency() {
        for (text, code, minor, printed) in [
            ("12.99", "EUR", 1299, "12.99 EUR"),
            ("12", "EUR", 1200, "12.00 EUR"),
            ("12.9", "EUR", 1290, "12.90 EUR"),
            ("0.05", "USD", 5, "0.05 USD"),
            ("500", "JPY", 500, "500 JPY"),
            ("500.00", "JPY", 500, "500 JPY"),
            ("1.5", "KWD", 1500, "1.500 KWD"),
            ("0.001", "KWD", 1, "0.001 KWD"),
            ("12.990", "EUR", 1299, "12.99 EUR"),
        ] {
            let money = Money::parse(text, parse_currency(code)).unwrap();
            assert_eq!((money.minor(), money.to_string().as_str()), (minor, printed), "{text} {code}");
        }
    }

    #[test]
    fn amounts_that_must_be_rounded_or_are_ambiguous_are_refused() {
        for (text, code) in [("12.999", "EUR"), ("500.5", "JPY"), ("1.0001", "KWD")] {
            assert!(
                matches!(Money::parse(text, parse_currency(code)), Err(MoneyError::Precision { .. })),
                "{text} {code}"
            );
        }
        for text in ["", ".", ".5", "5.", "-1", "+1", "1,000", "1 000", "1e3", "1.2.3", "٣", "12.99 EUR"] {
            assert!(matches!(Money::parse(text, parse_currency("EUR")), Err(MoneyError::Malformed { .. })), "{text:?}");
        }
        assert_eq!(Money::parse("99999999999999999999", parse_currency("EUR")), Err(MoneyError::Overflow));
    }

    #[test]
    fn obsolete_and_unknown_currencies_are_refused() {
        for code in ["eur", "EURO", "", "XXX", "XAU", "DEM", "HRK", "CHE", "€"] {
            assert!(code.parse::<Currency>().is_err(), "{code}");
        }
    }

    #[test]
    fn amounts_out_of_range_are_refused() {
        let eur = parse_currency("EUR");
        assert!(eur.price(0).is_err() && eur.price(-1).is_err() && eur.price(MAX_PRICE_MINOR + 1).is_err());
        let max = Money::new(i64::MAX, eur);
        assert_eq!(max.checked_add(Money::new(1, eur)), Err(MoneyError::Overflow));
        assert!(matches!(max.checked_add(Money::new(1, parse_currency("USD"))), Err(MoneyError::Mixed { .. })));
    }

    proptest! {
        #[test]
        fn displayed_amount_is_parsed_back(minor in 0i64.., code in prop::sample::select(vec!["EUR", "JPY", "KWD", "USD"])) {
            let money = Money::new(minor, parse_currency(code));
            prop_assert_eq!(Money::parse(&money.decimal(), parse_currency(code)), Ok(money));
        }
    }
}
