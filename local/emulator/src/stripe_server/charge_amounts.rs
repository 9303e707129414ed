//! The amounts that Stripe accepts ("Supported currencies" in the documentation). This table is small, and deliberately
//! separate from the rules of Dueday's adapter: a wrong rule of the adapter must be found here.

use serde_json::json;

use super::{JsonResponse, stripe_error_response};

/// The smallest and the largest amount in a currency, and the step, in the smallest unit of the currency at Stripe.
struct ChargeAmounts {
    currency: &'static str,
    smallest: i64,
    largest: i64,
    step: i64,
}

/// Returns the amounts in a currency without a step.
const fn amounts_without_step(currency: &'static str, smallest: i64, largest: i64) -> ChargeAmounts {
    ChargeAmounts { currency, smallest, largest, step: 1 }
}

/// Returns the amounts in a currency with three decimals: the last digit must be 0.
const fn amounts_with_three_decimals(currency: &'static str) -> ChargeAmounts {
    ChargeAmounts { currency, smallest: 10, largest: 99_999_999, step: 10 }
}

/// Returns the amounts in a currency without decimals whose amounts nevertheless have two zeros at the end.
const fn amounts_in_hundredths_without_decimals(currency: &'static str) -> ChargeAmounts {
    ChargeAmounts { currency, smallest: 100, largest: 99_999_999, step: 100 }
}

/// The currencies of this stand-in. It refuses all others, although Stripe knows more.
const CHARGE_AMOUNTS: [ChargeAmounts; 27] = [
    amounts_without_step("usd", 50, 99_999_999),
    amounts_without_step("aed", 200, 99_999_999),
    amounts_without_step("chf", 50, 99_999_999),
    amounts_without_step("cop", 50, 999_999_999_999),
    amounts_without_step("czk", 1_500, 99_999_999),
    amounts_without_step("dkk", 250, 99_999_999),
    amounts_without_step("eur", 50, 99_999_999),
    amounts_without_step("gbp", 30, 99_999_999),
    amounts_without_step("hkd", 400, 99_999_999),
    amounts_without_step("huf", 17_500, 999_999_999_999),
    amounts_without_step("idr", 50, 999_999_999_999),
    amounts_without_step("inr", 50, 999_999_999),
    amounts_without_step("jpy", 50, 999_999_999_999),
    amounts_without_step("krw", 50, 99_999_999),
    amounts_without_step("mga", 1, 99_999_999),
    amounts_without_step("mxn", 1_000, 99_999_999),
    amounts_without_step("pln", 200, 99_999_999),
    amounts_without_step("sek", 300, 99_999_999),
    amounts_without_step("thb", 1_000, 99_999_999),
    amounts_without_step("twd", 1, 99_999_999),
    amounts_with_three_decimals("bhd"),
    amounts_with_three_decimals("jod"),
    amounts_with_three_decimals("kwd"),
    amounts_with_three_decimals("omr"),
    amounts_with_three_decimals("tnd"),
    amounts_in_hundredths_without_decimals("isk"),
    amounts_in_hundredths_without_decimals("ugx"),
];

/// The codes of the currencies in which the stand-in accepts charges, in capitals.
pub fn stripe_currencies() -> impl Iterator<Item = String> {
    CHARGE_AMOUNTS.iter().map(|amounts| amounts.currency.to_uppercase())
}

/// Returns the error response to a charge of `amount` in `currency`; `None` if the amount is accepted.
pub(super) fn amount_error_response(amount: i64, currency: &str) -> Option<JsonResponse> {
    let refuse = |code: Option<&str>, parameter: &str| {
        let (status, mut body) = stripe_error_response(400, "invalid_request_error", code);
        body["error"]["param"] = json!(parameter);
        Some((status, body))
    };
    let Some(amounts) = CHARGE_AMOUNTS.iter().find(|amounts| amounts.currency == currency) else {
        return refuse(None, "currency");
    };
    if amount < amounts.smallest {
        refuse(Some("amount_too_small"), "amount")
    } else if amount > amounts.largest {
        refuse(Some("amount_too_large"), "amount")
    } else if amount % amounts.step != 0 {
        refuse(Some("invalid_charge_amount"), "amount")
    } else {
        None
    }
}
