//! The amounts that Stripe accepts ("Supported currencies" in the documentation). This table is small, and deliberately
//! separate from the rules of Dueday's adapter: a wrong rule of the adapter must be found here.

use serde_json::json;

use super::{JsonResponse, error_response};

/// The smallest and the largest amount in a currency, and the step, in the smallest unit of the currency at Stripe.
struct ChargeAmounts {
    currency: &'static str,
    smallest: i64,
    largest: i64,
    step: i64,
}

/// Returns the amounts in a currency without a step.
const fn amounts(currency: &'static str, smallest: i64, largest: i64) -> ChargeAmounts {
    ChargeAmounts { currency, smallest, largest, step: 1 }
}

/// Returns the amounts in a currency with three decimals: the last digit must be 0.
const fn three_decimals(currency: &'static str) -> ChargeAmounts {
    ChargeAmounts { currency, smallest: 10, largest: 99_999_999, step: 10 }
}

/// Returns the amounts in a currency without decimals whose amounts nevertheless have two zeros at the end.
const fn zero_decimals_in_hundredths(currency: &'static str) -> ChargeAmounts {
    ChargeAmounts { currency, smallest: 100, largest: 99_999_999, step: 100 }
}

/// The currencies of this stand-in. It refuses all others, although Stripe knows more.
const CHARGE_AMOUNTS: [ChargeAmounts; 27] = [
    amounts("usd", 50, 99_999_999),
    amounts("aed", 200, 99_999_999),
    amounts("chf", 50, 99_999_999),
    amounts("cop", 50, 999_999_999_999),
    amounts("czk", 1_500, 99_999_999),
    amounts("dkk", 250, 99_999_999),
    amounts("eur", 50, 99_999_999),
    amounts("gbp", 30, 99_999_999),
    amounts("hkd", 400, 99_999_999),
    amounts("huf", 17_500, 999_999_999_999),
    amounts("idr", 50, 999_999_999_999),
    amounts("inr", 50, 999_999_999),
    amounts("jpy", 50, 999_999_999_999),
    amounts("krw", 50, 99_999_999),
    amounts("mga", 1, 99_999_999),
    amounts("mxn", 1_000, 99_999_999),
    amounts("pln", 200, 99_999_999),
    amounts("sek", 300, 99_999_999),
    amounts("thb", 1_000, 99_999_999),
    amounts("twd", 1, 99_999_999),
    three_decimals("bhd"),
    three_decimals("jod"),
    three_decimals("kwd"),
    three_decimals("omr"),
    three_decimals("tnd"),
    zero_decimals_in_hundredths("isk"),
    zero_decimals_in_hundredths("ugx"),
];

/// The codes of the currencies in which the stand-in accepts charges, in capitals.
pub fn stripe_currencies() -> impl Iterator<Item = String> {
    CHARGE_AMOUNTS.iter().map(|amounts| amounts.currency.to_uppercase())
}

/// Returns the error response to a charge of `amount` in `currency`; `None` if the amount is accepted.
pub(super) fn amount_error(amount: i64, currency: &str) -> Option<JsonResponse> {
    let refuse = |code: Option<&str>, parameter: &str| {
        let (status, mut body) = error_response(400, "invalid_request_error", code);
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
