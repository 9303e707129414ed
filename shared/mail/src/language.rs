//! What mails say in each language, and how amounts and dates are written there.

use std::sync::LazyLock;

use chrono::{Datelike, NaiveDate};
use fixed_decimal::Decimal;
use icu_calendar::{Date, Gregorian};
use icu_datetime::FixedCalendarDateTimeFormatter;
use icu_datetime::fieldsets::{MD, YMDE};
use icu_experimental::dimension::currency::CurrencyType;
use icu_experimental::dimension::currency::formatter::CurrencyFormatter;
use icu_locale_core::Locale;
use serde::{Deserialize, Serialize};

use super::Occasion;
use billing::Money;

/// Everything that is said in one language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Texts {
    /// Its code of two letters.
    pub language: String,
    pub greeting: String,
    pub labels: Labels,
    pub receipt: ReceiptTexts,
    upcoming: Phrases,
    paid: Phrases,
    failed: Phrases,
    card_needed: Phrases,
    unpaid: Phrases,
    ended: Phrases,
}

/// What stands before a value.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labels {
    pub product: String,
    pub amount: String,
    pub due: String,
    pub next: String,
    pub paid: String,
    pub receipt: String,
    questions: String,
    tax_id: String,
}

/// What the receipt's page says beside the labels.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptTexts {
    pub title: String,
    /// With the `date`.
    pub paid: String,
    pub customer: String,
    pub payment: String,
    pub card: String,
    pub refunded: String,
    pub reversed: String,
}

/// What one mail says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phrases {
    pub subject: String,
    pub heading: String,
    pub body: String,
    /// What the link to the customer's own page is called.
    pub action: String,
}

impl Texts {
    /// What a mail of `occasion` says.
    pub fn of(&self, occasion: Occasion) -> &Phrases {
        match occasion {
            Occasion::Upcoming => &self.upcoming,
            Occasion::Paid => &self.paid,
            Occasion::Failed => &self.failed,
            Occasion::CardNeeded => &self.card_needed,
            Occasion::Unpaid => &self.unpaid,
            Occasion::Ended => &self.ended,
        }
    }
}

/// The languages that there are; the first one is for all others.
static ALL: LazyLock<[Texts; 4]> = LazyLock::new(|| {
    [
        include_str!("texts/en.json"),
        include_str!("texts/es.json"),
        include_str!("texts/zh.json"),
        include_str!("texts/ko.json"),
    ]
    .map(|text| serde_json::from_str(text).expect("the texts are tested"))
});

/// A customer's language, and the form that amounts and dates have there.
#[derive(Clone, Debug)]
pub struct Language {
    pub texts: &'static Texts,
    locale: Locale,
}

impl Language {
    /// The language of `locale`; English for one that there is none of.
    pub fn of(locale: &billing::Locale) -> Self {
        let parsed = locale.as_str().parse::<Locale>().ok();
        let spoken =
            parsed.as_ref().and_then(|locale| ALL.iter().find(|texts| texts.language == locale.id.language.as_str()));
        match (spoken, parsed) {
            (Some(texts), Some(locale)) => Self { texts, locale },
            // Amounts and dates are in the language of the words around them.
            _ => Self { texts: &ALL[0], locale: icu_locale_core::locale!("en") },
        }
    }

    /// `money` as it is written there. An amount of which that form would round something away is written as we do.
    pub fn amount(&self, money: Money) -> String {
        let written = || {
            let currency = CurrencyType::try_from_str(money.currency().code()).ok()?;
            let formatter =
                CurrencyFormatter::try_new_symbol((&self.locale).into(), currency, Default::default()).ok()?;
            let mut decimal = Decimal::from(money.minor());
            decimal.multiply_pow10(-i16::try_from(money.currency().exponent()).ok()?);
            Some(formatter.format_fixed_decimal(&decimal).to_string())
        };
        let is_whole = |text: &String| {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            digits.trim_start_matches('0') == money.minor().to_string()
        };
        written().filter(is_whole).unwrap_or_else(|| money.to_string())
    }

    /// `date` with its weekday and year.
    pub fn date(&self, date: NaiveDate) -> String {
        let formatter = FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new((&self.locale).into(), YMDE::long());
        match (formatter, gregorian(date)) {
            (Ok(formatter), Some(date)) => formatter.format(&date).to_string(),
            _ => date.to_string(),
        }
    }

    /// `date` without its year.
    pub fn day(&self, date: NaiveDate) -> String {
        let formatter = FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new((&self.locale).into(), MD::long());
        match (formatter, gregorian(date)) {
            (Ok(formatter), Some(date)) => formatter.format(&date).to_string(),
            _ => date.to_string(),
        }
    }
}

fn gregorian(date: NaiveDate) -> Option<Date<Gregorian>> {
    Date::try_new_gregorian(date.year(), u8::try_from(date.month()).ok()?, u8::try_from(date.day()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(locale: &str) -> Language {
        Language::of(&locale.parse().unwrap())
    }

    #[test]
    fn amounts_and_dates_are_written_as_the_locale_does() {
        let on = NaiveDate::from_ymd_opt(2026, 3, 31).unwrap();
        for (locale, amount, date, day) in [
            ("en", "€1,299.00", "Tuesday, March 31, 2026", "March 31"),
            ("en-GB", "€1,299.00", "Tuesday, 31 March 2026", "31 March"),
            ("es", "1299,00 €", "martes, 31 de marzo de 2026", "31 de marzo"),
            ("es-MX", "€1,299.00", "martes, 31 de marzo de 2026", "31 de marzo"),
            ("zh", "€1,299.00", "2026年3月31日星期二", "3月31日"),
            ("ko-KR", "€1,299.00", "2026년 3월 31일 화요일", "3월 31일"),
            ("de-AT", "€1,299.00", "Tuesday, March 31, 2026", "March 31"),
            ("tlh", "€1,299.00", "Tuesday, March 31, 2026", "March 31"),
        ] {
            let language = language(locale);
            let money = Money::new(129_900, "EUR".parse().unwrap());
            let written = (language.amount(money).replace('\u{a0}', " "), language.date(on), language.day(on));
            assert_eq!(written, (amount.to_owned(), date.to_owned(), day.to_owned()), "{locale}");
        }
    }

    #[test]
    fn no_digit_of_an_amount_is_lost() {
        for (currency, minor, written) in [
            ("EUR", 5, "€0.05"),
            ("JPY", 500, "¥500"),
            ("KWD", 57_505, "KWD 57.505"),
            ("KRW", 9_900, "₩9,900"),
            // Written without decimals there, though ISO 4217 has two.
            ("HUF", 125_050, "1250.50 HUF"),
            ("IRR", 1_250, "12.50 IRR"),
        ] {
            let money = Money::new(minor, currency.parse().unwrap());
            assert_eq!(language("en").amount(money).replace('\u{a0}', " "), written, "{currency}");
        }
    }
}
