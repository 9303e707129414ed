//! The amounts that a merchant's own gateway states at its account route, and the reader that asks a gateway for its
//! amounts once per process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use billing::{AmountRange, AmountRules, Currency, MAX_PRICE_MINOR};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::{GatewayError, PaymentGateway};

/// The name of a merchant's own gateway inside of a sentence.
const GATEWAY_NAME: &str = "the payment gateway";

/// The time for which a gateway that has not responded is not asked for its amounts again.
const RETRY_DELAY: TimeDelta = TimeDelta::minutes(1);

/// The part of the response of the account route that states which amounts the gateway can charge.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AccountWithAmountRules {
    /// The amounts by currency code; absent or null if the gateway states no rules.
    #[serde(default)]
    amount_rules: Option<BTreeMap<String, StatedRange>>,
}

/// The amounts that the gateway can charge in one currency, in minor units.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StatedRange {
    #[serde(default = "default_amount_step")]
    smallest: i64,
    #[serde(default = "default_largest_amount")]
    largest: i64,
    #[serde(default = "default_amount_step")]
    step: i64,
}

/// Returns the smallest amount and the step if the gateway states none.
fn default_amount_step() -> i64 {
    1
}

/// Returns the largest amount if the gateway states none.
fn default_largest_amount() -> i64 {
    MAX_PRICE_MINOR
}

impl AccountWithAmountRules {
    /// Returns the stated amounts. Skips a currency in which no price can be entered, such as a replaced currency.
    ///
    /// # Errors
    /// [`GatewayError::Unknown`] if a range contains no amount, or there is no currency.
    pub fn amount_rules(self) -> Result<AmountRules, GatewayError> {
        let Some(stated) = self.amount_rules else { return Ok(AmountRules::none()) };
        let invalid =
            |reason: String| GatewayError::Unknown { reason: format!("AmountRules of the account: {reason}") };
        if stated.is_empty() {
            return Err(invalid("there is no currency".to_owned()));
        }
        let mut ranges = BTreeMap::new();
        for (code, StatedRange { smallest, largest, step }) in stated {
            let range =
                AmountRange::new(smallest, largest, step).map_err(|error| invalid(format!("{code}: {error}")))?;
            if let Ok(currency) = code.parse::<Currency>() {
                ranges.insert(currency, range);
            }
        }
        Ok(AmountRules::new(GATEWAY_NAME, ranges))
    }
}

/// Reads the amounts that a gateway can charge. Asks the gateway again only until it has responded once, so that the
/// check of a price needs no request.
#[derive(Clone, Debug)]
pub struct AmountRulesReader {
    gateway: Option<Arc<dyn PaymentGateway>>,
    state: Arc<ReaderState>,
}

/// The state that all clones of an [`AmountRulesReader`] share.
#[derive(Debug, Default)]
struct ReaderState {
    rules: OnceCell<AmountRules>,
    /// The time of the latest request without a usable response.
    failed_at: Mutex<Option<DateTime<Utc>>>,
}

impl AmountRulesReader {
    /// Creates a reader that always returns `rules`.
    pub fn of_rules(rules: AmountRules) -> Self {
        let state = ReaderState { rules: OnceCell::new_with(Some(rules)), failed_at: Mutex::default() };
        Self { gateway: None, state: Arc::new(state) }
    }

    /// Creates a reader that asks `gateway`.
    pub fn of_gateway(gateway: Arc<dyn PaymentGateway>) -> Self {
        Self { gateway: Some(gateway), state: Arc::default() }
    }

    /// Returns the amounts that the gateway can charge. Returns no rules if the gateway has not responded in the last
    /// minute.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response now.
    pub async fn read(&self, now: DateTime<Utc>) -> Result<AmountRules, GatewayError> {
        let failed_at = || self.state.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        let has_just_failed = failed_at().is_some_and(|failed_at| now < failed_at + RETRY_DELAY);
        let (Some(gateway), false) = (&self.gateway, has_just_failed) else {
            return Ok(self.state.rules.get().cloned().unwrap_or_default());
        };
        let rules = self.state.rules.get_or_try_init(|| gateway.amount_rules()).await.cloned();
        *failed_at() = rules.is_err().then_some(now);
        rules
    }
}

#[cfg(test)]
mod tests {
    use billing::Money;

    use super::*;

    fn parse_amount_rules(json: &str) -> Result<AmountRules, GatewayError> {
        serde_json::from_str::<AccountWithAmountRules>(json).unwrap().amount_rules()
    }

    fn new_money(minor: i64, currency: &str) -> Money {
        Money::new(minor, currency.parse().unwrap())
    }

    #[test]
    fn account_without_amount_rules_allows_every_amount() {
        for json in [r#"{"Account":"a","Kind":"acme","Live":true}"#, r#"{"AmountRules":null}"#] {
            assert_eq!(parse_amount_rules(json), Ok(AmountRules::none()), "{json}");
        }
    }

    #[test]
    fn stated_amounts_are_the_rules_and_a_missing_limit_does_not_limit() {
        let json = r#"{"Account":"a","Kind":"acme","Live":true,
            "AmountRules":{"EUR":{"Smallest":100,"Largest":500000},"KWD":{"Step":10},"DEM":{}}}"#;
        let rules = parse_amount_rules(json).unwrap();
        for allowed in [
            new_money(100, "EUR"),
            new_money(500_000, "EUR"),
            new_money(10, "KWD"),
            new_money(MAX_PRICE_MINOR - 9, "KWD"),
        ] {
            assert_eq!(rules.check_amount(allowed), Ok(()), "{allowed}");
        }
        for (refused, text) in [
            (
                new_money(99, "EUR"),
                "must be at least 1.00 EUR, the smallest amount in EUR that the payment gateway accepts",
            ),
            (
                new_money(500_001, "EUR"),
                "must be at most 5000.00 EUR, the largest amount in EUR that the payment gateway accepts",
            ),
            (
                new_money(1_299, "USD"),
                "must be in a currency that the payment gateway accepts; the payment gateway does not accept USD",
            ),
        ] {
            assert_eq!(rules.check_amount(refused).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn example_in_the_documentation_is_valid() {
        let document = include_str!("../../../docs/gateways.md");
        let example = document.lines().find(|line| line.contains("\"AmountRules\"")).unwrap();
        let rules = parse_amount_rules(example).unwrap();
        assert_eq!(rules.check_amount(new_money(50, "EUR")), Ok(()));
        assert!(
            rules.check_amount(new_money(57_505, "KWD")).is_err() && rules.check_amount(new_money(49, "JPY")).is_err()
        );
    }

    #[test]
    fn amount_rules_that_allow_nothing_are_an_error_of_the_gateway() {
        for (json, reason) in [
            (r#"{"AmountRules":{}}"#, "there is no currency"),
            (r#"{"AmountRules":{"EUR":{"Smallest":0}}}"#, "EUR: the smallest amount and the step must be positive"),
            (r#"{"AmountRules":{"EUR":{"Smallest":200,"Largest":100}}}"#, "EUR: the smallest amount and the step"),
        ] {
            let error = parse_amount_rules(json).unwrap_err().to_string();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }
}
