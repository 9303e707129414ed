//! The check that the payment gateway can charge a price.

use billing::{AmountRefusal, AmountRules, Money};
use chrono::{DateTime, Utc};
use rest::Problem;

use crate::Api;

impl Api {
    /// Returns the amounts that the gateway can charge. Returns no rules if the gateway does not respond, because a
    /// customer must be able to sign up at that time.
    pub(crate) async fn read_amount_rules(&self, now: DateTime<Utc>) -> AmountRules {
        self.amount_rules.read(now).await.unwrap_or_else(|error| {
            tracing::warn!(%error, error_type = error.error_type(), "prices are not compared with the amounts that the payment gateway can charge");
            AmountRules::none()
        })
    }

    /// Checks that the gateway can charge the price of a new subscription.
    ///
    /// # Errors
    /// 422 for the field `amount` or `currency` if the gateway can never charge the price.
    pub(crate) async fn check_new_price(&self, price: Money, now: DateTime<Utc>) -> Result<(), Problem> {
        self.read_amount_rules(now).await.check_amount(price).map_err(|refusal| match refusal {
            AmountRefusal::Currency { .. } => refused_price_problem("currency", refusal),
            _ => refused_price_problem("amount", refusal),
        })
    }
}

/// Returns the problem that the gateway can never charge the price in `field`. Its text contains an allowed amount in
/// minor units, because the field `amount` is in minor units.
pub fn refused_price_problem(field: &str, refusal: AmountRefusal) -> Problem {
    let detail = match refusal.example() {
        Some(example) => format!("{refusal}: {} in minor units", example.minor()),
        None => refusal.to_string(),
    };
    Problem::refused_field(field, detail)
}
