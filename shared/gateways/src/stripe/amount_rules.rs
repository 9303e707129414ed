//! The amounts that Stripe accepts, by currency. The source of all numbers is the page "Supported currencies" of
//! Stripe's documentation: "Supported presentment currencies", "Minimum charge amount by currency" and "Maximum charge
//! amounts".

use std::collections::BTreeMap;
use std::sync::LazyLock;

use billing::{AmountRange, AmountRules, Currency, GatewayAccount};

use super::account::GATEWAY_KIND;
use super::amount::{amount_step_of, money_from_stripe_amount};

/// The currencies in which a Stripe account can charge cards. An account in the United Arab Emirates can also charge in
/// the currencies of the last line. A currency that only some accounts can use is not refused.
/// Currencies that ISO 4217 has replaced (ANG, BGN, STD) are left out, because no price can be entered in them.
const CURRENCIES: [&str; 6] = [
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BIF BMD BND BOB BRL BSD BWP BYN BZD CAD CDF CHF",
    "CLP CNY COP CRC CVE CZK DJF DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GIP GMD GNF GTQ GYD HKD HNL HTG HUF",
    "IDR ILS INR ISK JMD JPY KES KGS KHR KMF KRW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MUR",
    "MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR",
    "SEK SGD SHP SLE SOS SRD SZL THB TJS TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VND VUV WST XAF XCD XCG XOF \
     XPF YER ZAR ZMW",
    "BHD JOD KWD OMR TND",
];

/// The smallest amounts, in minor units of ISO 4217. Stripe checks an amount in the currency in which it settles the
/// payment. These rules assume that this is the currency of the charge, because the settlement currency is unknown here.
/// A currency that is missing here has no documented smallest amount of its own.
const SMALLEST: [(&str, i64); 31] = [
    ("AED", 200),
    ("ARS", 50),
    ("AUD", 50),
    ("BRL", 50),
    ("CAD", 50),
    ("CHF", 50),
    ("COP", 50),
    ("CZK", 1_500),
    ("DKK", 250),
    ("EUR", 50),
    ("GBP", 30),
    ("HKD", 400),
    ("HUF", 17_500),
    ("IDR", 50),
    ("ILS", 50),
    ("INR", 50),
    ("JPY", 50),
    ("KRW", 50),
    ("MXN", 1_000),
    ("MYR", 200),
    ("NOK", 300),
    ("NZD", 50),
    ("PHP", 50),
    ("PLN", 200),
    ("RON", 200),
    ("RUB", 50),
    ("SEK", 300),
    ("SGD", 50),
    ("THB", 1_000),
    ("USD", 50),
    ("ZAR", 50),
];

/// The largest amount that each payment method can pay, in Stripe's unit of the currency: eight digits (also the
/// parameter `amount` of "Create a PaymentIntent"). A later version of the page allows twelve digits for most cards, but
/// not for bank debits, and the customer may change the payment method at any time.
const LARGEST: i64 = 99_999_999;

/// The largest amounts in the currencies for which the page allows more than eight digits, in Stripe's unit.
const LARGER: [(&str, i64); 6] = [
    ("COP", 999_999_999_999),
    ("HUF", 999_999_999_999),
    ("IDR", 999_999_999_999),
    ("INR", 999_999_999),
    ("JPY", 999_999_999_999),
    ("LBP", 999_999_999_999),
];

/// Returns the number in `table` for `code`.
fn find_amount_by_code(table: &[(&str, i64)], code: &str) -> Option<i64> {
    table.iter().find(|(listed, _)| *listed == code).map(|(_, number)| *number)
}

/// Returns the amounts that Stripe accepts in `currency`.
fn amount_range_of(currency: Currency) -> Option<AmountRange> {
    let (code, step) = (currency.code(), amount_step_of(currency));
    let smallest = find_amount_by_code(&SMALLEST, code).unwrap_or(step);
    // The largest amount in Stripe's unit may not be a whole number of our minor units, so only its part without the
    // last two digits is converted if necessary.
    let largest = find_amount_by_code(&LARGER, code).unwrap_or(LARGEST);
    let whole = money_from_stripe_amount(largest, currency)
        .or_else(|| money_from_stripe_amount(largest.checked_sub(largest.checked_rem(100)?)?, currency))?;
    AmountRange::new(smallest, whole.minor(), step).ok()
}

/// Returns the amounts that Stripe accepts. Needs no request and no API key.
pub fn stripe_amount_rules() -> AmountRules {
    static RULES: LazyLock<AmountRules> = LazyLock::new(|| {
        let codes = CURRENCIES.into_iter().flat_map(str::split_whitespace);
        let currencies = codes.filter_map(|code| code.parse::<Currency>().ok());
        let ranges = currencies.filter_map(|currency| Some((currency, amount_range_of(currency)?)));
        AmountRules::new("Stripe", ranges.collect::<BTreeMap<_, _>>())
    });
    RULES.clone()
}

/// Returns the amounts that the gateway of `account`, which a table's settings contain, can charge, if they are known
/// without a request; otherwise no rules.
pub fn amount_rules_of_account(account: Option<&GatewayAccount>) -> AmountRules {
    match account {
        Some(account) if account.kind == GATEWAY_KIND => stripe_amount_rules(),
        _ => AmountRules::none(),
    }
}

#[cfg(test)]
mod tests {
    use billing::{AmountRefusal, MAX_PRICE_MINOR, Money};

    use super::*;

    fn check_stripe_amount(minor: i64, currency: &str) -> Result<(), AmountRefusal> {
        stripe_amount_rules().check_amount(Money::new(minor, currency.parse().unwrap()))
    }

    /// The smallest and the largest amount, and the step, as a person reads them in Stripe's documentation.
    const EXPECTED: &[(&str, &str, &str, &str)] = &[
        ("USD", "0.50", "999999.99", "0.01"),
        ("AED", "2.00", "999999.99", "0.01"),
        ("ARS", "0.50", "999999.99", "0.01"),
        ("AUD", "0.50", "999999.99", "0.01"),
        ("BRL", "0.50", "999999.99", "0.01"),
        ("CAD", "0.50", "999999.99", "0.01"),
        ("CHF", "0.50", "999999.99", "0.01"),
        ("COP", "0.50", "9999999999.99", "0.01"),
        ("CZK", "15.00", "999999.99", "0.01"),
        ("DKK", "2.50", "999999.99", "0.01"),
        ("EUR", "0.50", "999999.99", "0.01"),
        ("GBP", "0.30", "999999.99", "0.01"),
        ("HKD", "4.00", "999999.99", "0.01"),
        ("HUF", "175.00", "9999999999.99", "0.01"),
        ("IDR", "0.50", "9999999999.99", "0.01"),
        ("ILS", "0.50", "999999.99", "0.01"),
        ("INR", "0.50", "9999999.99", "0.01"),
        ("JPY", "50", "999999999999", "1"),
        ("KRW", "50", "99999999", "1"),
        ("MXN", "10", "999999.99", "0.01"),
        ("MYR", "2.00", "999999.99", "0.01"),
        ("NOK", "3.00", "999999.99", "0.01"),
        ("NZD", "0.50", "999999.99", "0.01"),
        ("PHP", "0.50", "999999.99", "0.01"),
        ("PLN", "2.00", "999999.99", "0.01"),
        ("RON", "2.00", "999999.99", "0.01"),
        ("RUB", "0.50", "999999.99", "0.01"),
        ("SEK", "3.00", "999999.99", "0.01"),
        ("SGD", "0.50", "999999.99", "0.01"),
        ("THB", "10", "999999.99", "0.01"),
        ("ZAR", "0.50", "999999.99", "0.01"),
        // These currencies have no documented smallest amount.
        ("LBP", "0.01", "9999999999.99", "0.01"),
        ("TWD", "0.01", "999999.99", "0.01"),
        ("BHD", "0.010", "99999.990", "0.010"),
        ("JOD", "0.010", "99999.990", "0.010"),
        ("KWD", "0.010", "99999.990", "0.010"),
        ("OMR", "0.010", "99999.990", "0.010"),
        ("TND", "0.010", "99999.990", "0.010"),
        // Stripe expects these amounts in hundredths, and the last two digits are 0.
        ("ISK", "1", "999999", "1"),
        ("UGX", "1", "999999", "1"),
        // Stripe has no decimals in this currency.
        ("MGA", "1.00", "99999999.00", "1.00"),
        ("BIF", "1", "99999999", "1"),
        ("CLP", "1", "99999999", "1"),
        ("DJF", "1", "99999999", "1"),
        ("GNF", "1", "99999999", "1"),
        ("KMF", "1", "99999999", "1"),
        ("PYG", "1", "99999999", "1"),
        ("RWF", "1", "99999999", "1"),
        ("VND", "1", "99999999", "1"),
        ("VUV", "1", "99999999", "1"),
        ("XAF", "1", "99999999", "1"),
        ("XOF", "1", "99999999", "1"),
        ("XPF", "1", "99999999", "1"),
    ];

    /// Returns the expected smallest amount, largest amount and step in `currency`, in minor units.
    fn expected_amounts(currency: Currency) -> [i64; 3] {
        let row = EXPECTED.iter().find(|row| row.0 == currency.code());
        let (_, smallest, largest, step) = row.copied().unwrap_or(("", "0.01", "999999.99", "0.01"));
        [smallest, largest, step].map(|text| Money::parse(text, currency).unwrap().minor())
    }

    #[test]
    fn amounts_of_every_currency_are_allowed_exactly_from_the_smallest_to_the_largest_in_steps() {
        for code in CURRENCIES.join(" ").split_whitespace() {
            let currency: Currency = code.parse().unwrap();
            let [smallest, largest, step] = expected_amounts(currency);
            for (minor, is_allowed) in [
                (smallest - step, false),
                (smallest - 1, false),
                (smallest, true),
                (smallest + step, true),
                (largest - step, true),
                (largest, true),
                (largest + 1, false),
                (largest + step, false),
                (smallest + step - 1, step == 1),
            ] {
                assert_eq!(check_stripe_amount(minor, code).is_ok(), is_allowed, "{minor} {code}");
            }
        }
    }

    #[test]
    fn listed_currencies_have_the_number_of_decimals_that_stripe_expects() {
        let currencies = CURRENCIES.join(" ");
        let (mut codes, mut unknown) = (Vec::new(), Vec::new());
        for code in currencies.split_whitespace() {
            assert!(!codes.contains(&code), "{code} is listed once");
            codes.push(code);
            match code.parse::<Currency>() {
                Ok(currency) => {
                    let is_listed = EXPECTED.iter().any(|row| row.0 == code);
                    assert!(currency.exponent() == 2 || is_listed, "{code} has {} decimals", currency.exponent());
                }
                Err(_) => unknown.push(code),
            }
        }
        assert!(EXPECTED.iter().all(|row| codes.contains(&row.0)), "every expected currency is listed");
        assert_eq!(unknown, Vec::<&str>::new(), "currencies that ISO 4217 has replaced");
        for table in [&SMALLEST[..], &LARGER[..]] {
            assert!(table.iter().all(|(code, _)| codes.contains(code)), "{table:?}");
        }
    }

    #[test]
    fn currencies_that_no_stripe_account_can_charge_are_refused() {
        for code in ["IQD", "LYD", "IRR", "SYP", "CUP", "KPW", "SDG"] {
            let refusal = check_stripe_amount(1_005, code).unwrap_err();
            assert!(matches!(refusal, AmountRefusal::Currency { .. }), "{code}: {refusal}");
        }
    }

    #[test]
    fn message_gives_an_example_in_the_currency() {
        for (minor, currency, text) in [
            (10, "USD", "must be at least 0.50 USD, the smallest amount in USD that Stripe accepts"),
            (100_000_000, "EUR", "must be at most 999999.99 EUR, the largest amount in EUR that Stripe accepts"),
            (MAX_PRICE_MINOR, "ISK", "must be at most 999999 ISK, the largest amount in ISK that Stripe accepts"),
            (
                57_505,
                "KWD",
                "must be a multiple of 0.010 KWD, because Stripe accepts no other amounts in KWD; for example 57.510 KWD",
            ),
            (
                50_050,
                "MGA",
                "must be a multiple of 1.00 MGA, because Stripe accepts no other amounts in MGA; for example 501.00 MGA",
            ),
            (1_005, "IQD", "must be in a currency that Stripe accepts; Stripe does not accept IQD"),
        ] {
            assert_eq!(check_stripe_amount(minor, currency).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn rules_of_a_table_follow_from_its_gateway_account() {
        let account = |kind: &str| GatewayAccount { kind: kind.to_owned(), account: "acct_1".to_owned(), live: false };
        assert_eq!(amount_rules_of_account(Some(&account("stripe"))), stripe_amount_rules());
        for other in [Some(account("sandbox")), Some(account("acme")), None] {
            assert_eq!(amount_rules_of_account(other.as_ref()), AmountRules::none());
        }
    }

    #[test]
    fn every_allowed_amount_can_be_expressed_in_stripes_unit() {
        for code in CURRENCIES.join(" ").split_whitespace() {
            let currency: Currency = code.parse().unwrap();
            let [smallest, largest, step] = expected_amounts(currency);
            for minor in [smallest, smallest + step, largest - step, largest] {
                let money = Money::new(minor, currency);
                let stripe = super::super::amount::to_stripe_amount(money).unwrap();
                assert_eq!(money_from_stripe_amount(stripe, currency), Some(money), "{money}");
            }
        }
    }
}
