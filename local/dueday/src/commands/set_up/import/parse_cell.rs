//! Parsers for the cells of an import. If a value has the format of another country, the error shows the value or the
//! format to write instead.

use billing::{Currency, ExternalId, IdError, Locale, Money, MoneyError, SubscriptionStatus, parse_date};
use chrono::NaiveDate;

/// Parses a currency code such as `EUR`.
///
/// # Errors
/// A message with the currency to write instead, or with the allowed values.
pub fn parse_currency(text: &str) -> Result<Currency, String> {
    text.parse().map_err(|error: MoneyError| match text.to_uppercase().parse::<Currency>() {
        Ok(intended) => format!("write {intended}"),
        Err(_) => error.to_string(),
    })
}

/// Parses a language tag such as `de-AT`; a blank text means the default language.
///
/// # Errors
/// A message with the language tag to write instead, or with the allowed values.
pub fn parse_locale(text: &str) -> Result<Locale, String> {
    if text.is_empty() {
        return Ok(Locale::default());
    }
    let intended = text.replace('_', "-");
    match (text.parse::<Locale>(), intended.parse::<Locale>()) {
        (Ok(locale), _) => Ok(locale),
        (Err(_), Ok(_)) => Err(format!("write {intended}")),
        (Err(error), Err(_)) => Err(error.to_string()),
    }
}

/// Parses the status of a subscription, such as `active` or `past due`, in any case.
///
/// # Errors
/// A message with the allowed values.
pub fn parse_status_cell(text: &str) -> Result<SubscriptionStatus, String> {
    let name = text.to_lowercase().replace([' ', '-'], "_");
    serde_json::from_value(name.into()).map_err(|_| "must be active or paused; blank means active".to_owned())
}

/// Parses `true` or `false`, in any case. A blank cell means `false`.
///
/// # Errors
/// A message with the allowed values.
pub fn parse_flag(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "" | "false" => Ok(false),
        _ => Err("must be true or false; blank means false".to_owned()),
    }
}

/// Checks that nothing prevents the import of a subscription from another table: the cell is blank.
///
/// # Errors
/// A message if the cell contains a reason.
pub fn check_no_obstacle(text: &str) -> Result<(), String> {
    let message = "settle this in the table of the export first, or the customer may be charged twice or wrongly";
    if text.is_empty() { Ok(()) } else { Err(message.to_owned()) }
}

/// Parses an amount in `currency`.
///
/// # Errors
/// A message with the amount to write instead, or with the allowed values.
pub fn parse_price(text: &str, currency: Currency) -> Result<Money, String> {
    if let Some(symbol) = contradicting_symbol(text, currency) {
        return Err(format!("{symbol} contradicts the currency {currency}: correct the amount or the currency"));
    }
    let price = |text: &str| Money::parse(text, currency).and_then(|amount| currency.price(amount.minor()));
    price(text).map_err(|error| {
        match (with_decimal_point(text, currency).filter(|intended| price(intended).is_ok()), error) {
            (Some(intended), _) => format!("write {intended}"),
            // The message does not contain the text of the cell, because the text may be a card number.
            (None, MoneyError::Price { .. } | MoneyError::Overflow) => {
                let largest = Money::new(billing::MAX_PRICE_MINOR, currency);
                format!("must be from {} to {}", Money::new(1, currency).decimal(), largest)
            }
            (None, error) => error.to_string(),
        }
    })
}

/// The symbols of currencies, each with the currencies that it can mean.
const SYMBOLS: [(char, &[&str]); 4] = [
    ('€', &["EUR"]),
    ('£', &["GBP", "EGP", "FKP", "GIP", "SHP"]),
    ('¥', &["JPY", "CNY"]),
    (
        '$',
        &[
            "USD", "ARS", "AUD", "BBD", "BMD", "BND", "BRL", "BSD", "BZD", "CAD", "CLP", "COP", "DOP", "FJD", "GYD",
            "HKD", "JMD", "KYD", "LRD", "MXN", "NAD", "NIO", "NZD", "SBD", "SGD", "SRD", "TTD", "TWD", "UYU", "XCD",
        ],
    ),
];

/// Returns the symbol or the code of another currency than `currency` in the amount `text`; `None` if there is none.
fn contradicting_symbol(text: &str, currency: Currency) -> Option<String> {
    let is_other = |(symbol, codes): &&(char, &[&str])| text.contains(*symbol) && !codes.contains(&currency.code());
    let symbol = SYMBOLS.iter().find(is_other).map(|(symbol, _)| symbol.to_string());
    let words = text.split(|c: char| !c.is_alphabetic());
    let mut codes = words.filter_map(|word| word.to_uppercase().parse::<Currency>().ok());
    symbol.or_else(|| codes.find(|code| *code != currency).map(|code| code.to_string()))
}

/// Converts an amount to the format of an import, without currency and thousands separators and with a decimal point:
/// `12,99` becomes `12.99`, and both `1.234,56 €` and `EUR 1,234.56` become `1234.56`. Returns `None` if three digits
/// follow the last separator: this separator may be a decimal separator or a thousands separator. In a currency without
/// decimals, it is a thousands separator: `¥1,234` becomes `1234`.
fn with_decimal_point(text: &str, currency: Currency) -> Option<String> {
    let is_symbol = |c: char| SYMBOLS.iter().any(|(symbol, _)| *symbol == c);
    let number = text.trim_matches(|c: char| c.is_alphabetic() || c.is_whitespace() || is_symbol(c));
    let is_separator = |c: char| matches!(c, '.' | ',' | '\'' | '’') || c.is_whitespace();
    let digits = |part: &str| part.chars().filter(|c| !is_separator(*c)).collect::<String>();
    let has_decimals = currency.exponent() > 0;
    let intended = match number.rfind(['.', ',']) {
        Some(index)
            if !has_decimals && number.len() - index == 4 && number.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            digits(number)
        }
        Some(index) => {
            let (whole, decimals) = (number.get(..index)?, number.get(index.saturating_add(1)..)?);
            if !whole.ends_with(|c: char| c.is_ascii_digit()) || !(1..=2).contains(&decimals.len()) {
                return None;
            }
            format!("{}.{decimals}", digits(whole))
        }
        None => digits(number),
    };
    (intended != text).then_some(intended)
}

/// Parses a date.
///
/// # Errors
/// A message with the date to write instead, or with the allowed format.
pub fn parse_date_cell(text: &str) -> Result<NaiveDate, String> {
    let allowed = match parse_date(text) {
        Ok(date) => return Ok(date),
        Err(error) => error.to_string(),
    };
    let text = without_time(text);
    if parse_date(text).is_ok() {
        return Err(format!("write {text}"));
    }
    let parts: Vec<Option<u32>> = text.split(['-', '.', '/']).map(|part| part.parse().ok()).collect();
    let &[Some(first), Some(second), Some(third)] = parts.as_slice() else { return Err(allowed) };
    let of = |year: u32, month, day| NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day);
    let has_year_first = text.find(['-', '.', '/']) == Some(4);
    let intended = match (has_year_first, text.contains('.')) {
        (true, _) => of(first, second, third),
        // In a date with points such as 31.12.2026, the day is always before the month.
        (false, true) => of(third, second, first),
        // In a date with slashes or hyphens, the order of day and month depends on the country. The order is clear only
        // if one of the two numbers is greater than 12.
        (false, false) if first > 12 => of(third, second, first),
        (false, false) if second > 12 => of(third, first, second),
        (false, false) => return Err(format!("{allowed}; it is not clear which number is the month")),
    };
    match intended {
        Some(date) if parse_date(&date.to_string()).is_ok() && (third > 999 || has_year_first) => {
            Err(format!("write {date}"))
        }
        _ => Err(allowed),
    }
}

/// Returns the date in `text` without a time after it, such as `T00:00:00Z` or ` 12:30 PM`, as databases and spreadsheet
/// programs write it.
fn without_time(text: &str) -> &str {
    match text.split_once(['T', ' ']) {
        Some((date, time)) if time.contains(':') && time.starts_with(|c: char| c.is_ascii_digit()) => date,
        _ => text,
    }
}

/// Parses the id of a subscription in the earlier system. Refuses a number such as `1.23E+15`, to which Excel shortens
/// long numbers, because many ids have the same shortened form.
pub fn parse_external_id(text: &str) -> Result<ExternalId, String> {
    let is_shortened = text.split_once("E+").is_some_and(|(number, exponent)| {
        number.contains(['.', ','])
            && number.bytes().all(|byte| byte.is_ascii_digit() || b".,".contains(&byte))
            && exponent.bytes().all(|byte| byte.is_ascii_digit())
    });
    if is_shortened {
        return Err(
            "is a number that the spreadsheet program has shortened: format the column as text, and enter the ids \
                    again"
                .to_owned(),
        );
    }
    text.parse().map_err(|error: IdError| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_text<T>(read: Result<T, String>) -> String {
        read.err().unwrap_or_else(|| "(accepted)".to_owned())
    }

    #[test]
    fn parse_price_suggests_our_format_for_amounts_in_other_formats() {
        let eur: Currency = "EUR".parse().unwrap();
        for text in ["12,99", "12.99 EUR", "€12,99", "€ 12.99", "EUR 12,99"] {
            assert_eq!(error_text(parse_price(text, eur)), "write 12.99", "{text}");
        }
        for text in ["1.234,50", "1,234.50", "1 234,50", "1'234.50"] {
            assert_eq!(error_text(parse_price(text, eur)), "write 1234.50", "{text}");
        }
        for text in ["1,234", "-12,99", "12,,9", "", "free", "1e3", "12.99.00,"] {
            assert_eq!(error_text(parse_price(text, eur)), "must be an amount like 12.99", "{text}");
        }
        assert_eq!(error_text(parse_price("12.999", eur)), "must have at most 2 decimals in EUR");
        for text in ["0", "0.00", "4242424242424242", "99999999999999999999"] {
            assert_eq!(error_text(parse_price(text, eur)), "must be from 0.01 to 9999999999.99 EUR", "{text}");
        }
        assert_eq!(parse_price("12.99", eur).unwrap().minor(), 1299);
    }

    #[test]
    fn parse_price_names_the_symbol_that_contradicts_the_currency() {
        let contradicts = |symbol: &str, code: &str| {
            format!("{symbol} contradicts the currency {code}: correct the amount or the currency")
        };
        for (text, code, symbol) in [
            ("€12.99", "USD", "€"),
            ("$ 12.99", "EUR", "$"),
            ("12,99 £", "EUR", "£"),
            ("¥1,299", "EUR", "¥"),
            ("12.99 usd", "EUR", "USD"),
            ("EUR 12.99", "CHF", "EUR"),
        ] {
            let currency = code.parse().unwrap();
            assert_eq!(error_text(parse_price(text, currency)), contradicts(symbol, code), "{text} {code}");
        }
        for (text, code) in [("$12.99", "USD"), ("$12.99", "CAD"), ("12.99 EUR", "EUR"), ("12.99 kr", "SEK")] {
            assert_eq!(error_text(parse_price(text, code.parse().unwrap())), "write 12.99", "{text} {code}");
        }
    }

    #[test]
    fn parse_price_explains_currencies_without_decimals() {
        let jpy: Currency = "JPY".parse().unwrap();
        for text in ["1,299", "1.299", "¥1,299", "1 299", "JPY 1299"] {
            assert_eq!(error_text(parse_price(text, jpy)), "write 1299", "{text}");
        }
        assert_eq!(error_text(parse_price("1,299,000", jpy)), "write 1299000");
        assert_eq!(error_text(parse_price("12.99", jpy)), "must have no decimals in JPY");
        assert_eq!(error_text(parse_price("12,99", jpy)), "must be an amount like 1299");
        assert_eq!(error_text(parse_price("", jpy)), "must be an amount like 1299");
    }

    #[test]
    fn parse_date_cell_suggests_our_format_for_dates_in_other_formats() {
        for text in ["31.01.2027", "31.1.2027", "31/01/2027", "01/31/2027", "2027/01/31", "2027.1.31", "31-1-2027"] {
            assert_eq!(error_text(parse_date_cell(text)), "write 2027-01-31", "{text}");
        }
        for text in [
            "2027-01-31 00:00:00",
            "2027-01-31T00:00:00Z",
            "2027-01-31T00:00:00.000+01:00",
            "31.01.2027 0:00",
            "01/31/2027 12:00:00 AM",
        ] {
            assert_eq!(error_text(parse_date_cell(text)), "write 2027-01-31", "{text}");
        }
        let allowed = "must be a date like 2027-01-31: year, month, day";
        for text in
            ["", "tomorrow", "2027-01", "31.01.27", "46053", "31.02.2027", "1-2-3-4", "2027-02-29", "0000-01-01"]
        {
            assert_eq!(error_text(parse_date_cell(text)), allowed, "{text}");
        }
        assert_eq!(
            error_text(parse_date_cell("01/02/2027")),
            format!("{allowed}; it is not clear which number is the month")
        );
        assert_eq!(parse_date_cell("2028-02-29").unwrap().to_string(), "2028-02-29");
    }

    #[test]
    fn parse_external_id_refuses_a_number_that_excel_has_shortened() {
        for text in ["4.71E+15", "4,71E+15"] {
            assert!(
                error_text(parse_external_id(text)).starts_with("is a number that the spreadsheet program"),
                "{text}"
            );
        }
        for text in ["4711", "E+15", "A4.71E+15", "order 4.71"] {
            assert_eq!(parse_external_id(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn parse_currency_and_parse_locale_suggest_the_intended_value() {
        assert_eq!(error_text(parse_currency("eur")), "write EUR");
        assert!(error_text(parse_currency("euro")).contains("ISO 4217"));
        assert_eq!(error_text(parse_locale("de_AT")), "write de-AT");
        assert!(parse_locale("").is_ok() && parse_locale("de-AT").is_ok());
    }
}
