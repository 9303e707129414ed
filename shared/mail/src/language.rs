//! The texts of mails in each language, and the formats of amounts and dates.

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

use super::MailKind;
use billing::Money;

/// All texts of mails and receipts in one language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Texts {
    /// The two-letter language code.
    pub language: String,
    pub greeting: String,
    pub labels: Labels,
    pub receipt: ReceiptTexts,
    upcoming: Phrases,
    paid: Phrases,
    refunded: Phrases,
    failed: Phrases,
    card_needed: Phrases,
    unpaid: Phrases,
    ended: Phrases,
}

/// The labels of values in mails and receipts, such as "Amount".
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

/// The texts of a receipt's web page, apart from the labels.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptTexts {
    pub title: String,
    /// A template with the variable `date`.
    pub paid: String,
    pub customer: String,
    pub payment: String,
    pub card: String,
    pub refunded: String,
    pub reversed: String,
}

/// The texts of one kind of mail. Subject and body are templates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phrases {
    pub subject: String,
    pub heading: String,
    pub body: String,
    /// The text of the link to the web page on which customers manage their subscriptions.
    pub action: String,
}

impl Texts {
    /// Returns the texts of mails of `kind`.
    pub fn phrases(&self, kind: MailKind) -> &Phrases {
        match kind {
            MailKind::Upcoming => &self.upcoming,
            MailKind::Paid => &self.paid,
            MailKind::Refunded => &self.refunded,
            MailKind::Failed => &self.failed,
            MailKind::CardNeeded => &self.card_needed,
            MailKind::Unpaid => &self.unpaid,
            MailKind::Ended => &self.ended,
        }
    }
}

/// The texts of the supported languages. The first language is English, which is used in place of every unsupported
/// language.
static SUPPORTED_LANGUAGES: LazyLock<[Texts; 4]> = LazyLock::new(|| {
    [
        include_str!("texts/en.json"),
        include_str!("texts/es.json"),
        include_str!("texts/zh.json"),
        include_str!("texts/ko.json"),
    ]
    .map(|text| serde_json::from_str(text).expect("the tests parse every language file"))
});

/// A customer's language: its texts, and the format of amounts and dates in the customer's region.
#[derive(Clone, Debug)]
pub struct Language {
    pub texts: &'static Texts,
    locale: Locale,
}

impl Language {
    /// Returns the language of `locale`, or English if its language is not supported.
    pub fn for_locale(locale: &billing::Locale) -> Self {
        let parsed = locale.as_str().parse::<Locale>().ok();
        let supported = parsed
            .as_ref()
            .and_then(|locale| SUPPORTED_LANGUAGES.iter().find(|texts| texts.language == locale.id.language.as_str()));
        match (supported, parsed) {
            (Some(texts), Some(locale)) => Self { texts, locale },
            // Use the English format for amounts and dates too, so that they match the text around them.
            _ => Self { texts: &SUPPORTED_LANGUAGES[0], locale: icu_locale_core::locale!("en") },
        }
    }

    /// Formats `money` for the locale. If the locale's format would lose digits, uses the locale-independent format
    /// instead.
    pub fn format_amount(&self, money: Money) -> String {
        let locale_format = || {
            let currency = CurrencyType::try_from_str(money.currency().code()).ok()?;
            let formatter =
                CurrencyFormatter::try_new_symbol((&self.locale).into(), currency, Default::default()).ok()?;
            let mut decimal = Decimal::from(money.minor());
            decimal.multiply_pow10(-i16::try_from(money.currency().exponent()).ok()?);
            Some(formatter.format_fixed_decimal(&decimal).to_string())
        };
        let has_all_digits = |text: &String| {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            digits.trim_start_matches('0') == money.minor().to_string()
        };
        locale_format().filter(has_all_digits).unwrap_or_else(|| money.to_string())
    }

    /// Formats `date` with its weekday and year.
    pub fn format_date(&self, date: NaiveDate) -> String {
        let formatter = FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new((&self.locale).into(), YMDE::long());
        match (formatter, to_gregorian(date)) {
            (Ok(formatter), Some(date)) => formatter.format(&date).to_string(),
            _ => date.to_string(),
        }
    }

    /// Formats `date` as month and day.
    pub fn format_month_and_day(&self, date: NaiveDate) -> String {
        let formatter = FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new((&self.locale).into(), MD::long());
        match (formatter, to_gregorian(date)) {
            (Ok(formatter), Some(date)) => formatter.format(&date).to_string(),
            _ => date.to_string(),
        }
    }
}

fn to_gregorian(date: NaiveDate) -> Option<Date<Gregorian>> {
    Date::try_new_gregorian(date.year(), u8::try_from(date.month()).ok()?, u8::try_from(date.day()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(locale: &str) -> Language {
        Language::for_locale(&locale.parse().unwrap())
    }

    #[test]
    fn amounts_and_dates_have_the_format_of_the_locale() {
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
            let formatted = (
                language.format_amount(money).replace('\u{a0}', " "),
                language.format_date(on),
                language.format_month_and_day(on),
            );
            assert_eq!(formatted, (amount.to_owned(), date.to_owned(), day.to_owned()), "{locale}");
        }
    }

    #[test]
    fn format_amount_loses_no_digit() {
        for (currency, minor, expected) in [
            ("EUR", 5, "€0.05"),
            ("JPY", 500, "¥500"),
            ("KWD", 57_505, "KWD 57.505"),
            ("KRW", 9_900, "₩9,900"),
            // ICU formats these currencies without decimals, but ISO 4217 defines two.
            ("HUF", 125_050, "1250.50 HUF"),
            ("IRR", 1_250, "12.50 IRR"),
        ] {
            let money = Money::new(minor, currency.parse().unwrap());
            assert_eq!(language("en").format_amount(money).replace('\u{a0}', " "), expected, "{currency}");
        }
    }
}
