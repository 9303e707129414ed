//! The prices in `docs/prices.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A price of AWS or Stripe: `dollars` for `per` units of `what`, such as requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    dollars: f64,
    per: f64,
    what: String,
    source: String,
}

/// All prices, with the date on which a person entered the prices.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    pub region: String,
    pub entered_on: chrono::NaiveDate,
    prices: BTreeMap<String, Price>,
}

impl Prices {
    /// Reads the prices.
    pub fn read() -> Self {
        serde_json::from_str(include_str!("../../../../../docs/prices.json")).unwrap()
    }

    /// Returns the dollars for `count` units at the price with the name `name`.
    pub fn dollars(&self, name: &str, count: f64) -> f64 {
        let price = self.prices.get(name).unwrap_or_else(|| panic!("docs/prices.json has no price {name}"));
        count * price.dollars / price.per
    }
}

#[test]
fn every_price_is_described_and_has_a_source() {
    for (name, price) in Prices::read().prices {
        assert!(price.source.starts_with("https://") && price.what.len() > 8, "{name}");
        assert!(price.dollars > 0.0 && price.per >= 1.0, "{name}");
    }
}
