//! Cells that are written as elsewhere in the world: each is accepted or answered with what to write.

use billing::{Currency, Locale, Money, MoneyError, PaymentDay, parse_date};
use chrono::NaiveDate;

/// The payment day of whoever wants the last day of every month.
const LAST_DAY: i64 = 31;

/// A payment day: a number, or `last`.
///
/// # Errors
/// What is allowed.
pub fn payment_day(text: &str) -> Result<PaymentDay, String> {
    let day = if text.eq_ignore_ascii_case("last") { Some(LAST_DAY) } else { text.parse().ok() };
    let day = day.and_then(|day: i64| PaymentDay::try_from(day).ok());
    day.ok_or_else(|| "must be a day of the month from 1 to 31, or last".to_owned())
}

/// A currency.
///
/// # Errors
/// What to write.
pub fn currency(text: &str) -> Result<Currency, String> {
    text.parse().map_err(|error: MoneyError| match text.to_uppercase().parse::<Currency>() {
        Ok(meant) => format!("write {meant}"),
        Err(_) => error.to_string(),
    })
}

/// A language tag; blank for the default.
///
/// # Errors
/// What to write.
pub fn locale(text: &str) -> Result<Locale, String> {
    if text.is_empty() {
        return Ok(Locale::default());
    }
    let meant = text.replace('_', "-");
    match (text.parse::<Locale>(), meant.parse::<Locale>()) {
        (Ok(locale), _) => Ok(locale),
        (Err(_), Ok(_)) => Err(format!("write {meant}")),
        (Err(error), Err(_)) => Err(error.to_string()),
    }
}

/// An amount in `currency`.
///
/// # Errors
/// What to write.
pub fn price(text: &str, currency: Currency) -> Result<Money, String> {
    let price = |text: &str| Money::parse(text, currency).and_then(|amount| currency.price(amount.minor()));
    price(text).map_err(|error| match (point_as_decimal(text).filter(|meant| price(meant).is_ok()), error) {
        (Some(meant), _) => format!("write {meant}"),
        // What was sent is not repeated: it may be a card number.
        (None, MoneyError::Price { .. } | MoneyError::Overflow) => {
            let largest = Money::new(billing::MAX_PRICE_MINOR, currency);
            format!("must be from {} to {}", Money::new(1, currency).decimal(), largest)
        }
        (None, error) => error.to_string(),
    })
}

/// An amount with its currency's sign taken away, a decimal point, and nothing between thousands: `12.99` for `12,99`,
/// `1.234,56 €` or `EUR 1,234.56`. What is followed by three digits may be either: nothing is made of it.
fn point_as_decimal(text: &str) -> Option<String> {
    let number = text.trim_matches(|c: char| c.is_alphabetic() || c.is_whitespace() || "€$£¥".contains(c));
    let is_separator = |c: char| matches!(c, '.' | ',' | '\'' | '’') || c.is_whitespace();
    let digits = |part: &str| part.chars().filter(|c| !is_separator(*c)).collect::<String>();
    let meant = match number.rfind(['.', ',']) {
        Some(place) => {
            let (whole, decimals) = (number.get(..place)?, number.get(place.saturating_add(1)..)?);
            if !whole.ends_with(|c: char| c.is_ascii_digit()) || !(1..=2).contains(&decimals.len()) {
                return None;
            }
            format!("{}.{decimals}", digits(whole))
        }
        None => digits(number),
    };
    (meant != text).then_some(meant)
}

/// A date.
///
/// # Errors
/// What to write.
pub fn date(text: &str) -> Result<NaiveDate, String> {
    let allowed = match parse_date(text) {
        Ok(date) => return Ok(date),
        Err(error) => error.to_string(),
    };
    let parts: Vec<Option<u32>> = text.split(['-', '.', '/']).map(|part| part.parse().ok()).collect();
    let &[Some(first), Some(second), Some(third)] = parts.as_slice() else { return Err(allowed) };
    let of = |year: u32, month, day| NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day);
    let has_year_first = text.find(['-', '.', '/']) == Some(4);
    let meant = match (has_year_first, text.contains('.')) {
        (true, _) => of(first, second, third),
        // With points, the day comes first everywhere.
        (false, true) => of(third, second, first),
        // Else it depends on the country, unless one of the two is no month.
        (false, false) if first > 12 => of(third, second, first),
        (false, false) if second > 12 => of(third, first, second),
        (false, false) => return Err(format!("{allowed}; which is the month is not clear")),
    };
    match meant {
        Some(date) if parse_date(&date.to_string()).is_ok() && (third > 999 || has_year_first) => {
            Err(format!("write {date}"))
        }
        _ => Err(allowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T>(read: Result<T, String>) -> String {
        read.err().unwrap_or_else(|| "(accepted)".to_owned())
    }

    #[test]
    fn price_answers_other_ways_to_write_an_amount_with_ours() {
        let eur: Currency = "EUR".parse().unwrap();
        for text in ["12,99", "12.99 EUR", "€12,99", "€ 12.99", "EUR 12,99"] {
            assert_eq!(refused(price(text, eur)), "write 12.99", "{text}");
        }
        for text in ["1.234,50", "1,234.50", "1 234,50", "1'234.50"] {
            assert_eq!(refused(price(text, eur)), "write 1234.50", "{text}");
        }
        for text in ["1,234", "-12,99", "12,,9", "", "free", "1e3", "12.99.00,"] {
            assert_eq!(refused(price(text, eur)), "must be a decimal amount like 12.99", "{text}");
        }
        assert_eq!(refused(price("12.999", eur)), "must have at most 2 decimals in EUR");
        for text in ["0", "0.00", "4242424242424242", "99999999999999999999"] {
            assert_eq!(refused(price(text, eur)), "must be from 0.01 to 9999999999.99 EUR", "{text}");
        }
        assert_eq!(price("12.99", eur).unwrap().minor(), 1299);
    }

    #[test]
    fn date_answers_other_ways_to_write_a_date_with_ours() {
        for text in ["31.01.2027", "31.1.2027", "31/01/2027", "01/31/2027", "2027/01/31", "2027.1.31", "31-1-2027"] {
            assert_eq!(refused(date(text)), "write 2027-01-31", "{text}");
        }
        let allowed = "must be a date like 2027-01-31: year, month, day";
        for text in
            ["", "tomorrow", "2027-01", "31.01.27", "46053", "31.02.2027", "1-2-3-4", "2027-02-29", "0000-01-01"]
        {
            assert_eq!(refused(date(text)), allowed, "{text}");
        }
        assert_eq!(refused(date("01/02/2027")), format!("{allowed}; which is the month is not clear"));
        assert_eq!(date("2028-02-29").unwrap().to_string(), "2028-02-29");
    }

    #[test]
    fn payment_day_accepts_numbers_and_last() {
        let day = |text| payment_day(text).map(u8::from);
        assert_eq!((day("1"), day("31"), day("last"), day("LAST")), (Ok(1), Ok(31), Ok(31), Ok(31)));
        for text in ["", "0", "32", "1.5", "first", "-1", "99999999999999999999"] {
            assert_eq!(refused(day(text)), "must be a day of the month from 1 to 31, or last", "{text}");
        }
    }

    #[test]
    fn currency_and_locale_answer_with_what_is_meant() {
        assert_eq!(refused(currency("eur")), "write EUR");
        assert!(refused(currency("euro")).contains("ISO 4217"));
        assert_eq!(refused(locale("de_AT")), "write de-AT");
        assert!(locale("").is_ok() && locale("de-AT").is_ok());
    }
}
