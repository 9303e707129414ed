//! The texts of mails in each language, and the formats of amounts and dates.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use chrono::{Datelike, NaiveDate};
use fixed_decimal::Decimal;
use icu_calendar::{Date, Gregorian};
use icu_datetime::FixedCalendarDateTimeFormatter;
use icu_datetime::fieldsets::{MD, YM, YMDE};
use icu_experimental::dimension::currency::CurrencyType;
use icu_experimental::dimension::currency::formatter::CurrencyFormatter;
use icu_locale_core::Locale;
use serde::{Deserialize, Serialize};

use super::MailKind;
use billing::Money;

/// All texts of mails and receipts in one language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageTexts {
    /// The language code, such as `en` or `zh-Hant`.
    pub language: String,
    pub greeting: String,
    pub labels: LabelTexts,
    /// The texts of a mail that is sent again.
    pub copy: CopyTexts,
    pub receipt: ReceiptTexts,
    /// The texts of the web page on which a customer enters a card for an owed payment.
    pub card_link: CardPageTexts,
    /// The texts of the web page to which the gateway sends the customer back.
    pub card_return: CardReturnTexts,
    /// The texts about what happens next to a subscription.
    pub outlook: OutlookTexts,
    mails: BTreeMap<MailKind, MailTexts>,
}

/// The labels of values in mails and receipts, such as "Amount".
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelTexts {
    /// The text between a label and its value.
    pub separator: String,
    pub product: String,
    pub amount: String,
    pub monthly_amount: String,
    pub previous_amount: String,
    /// The label of the month for which a payment is made.
    pub month: String,
    pub due: String,
    /// The label of the date on which a declined payment will be retried.
    pub next: String,
    /// The label of the first payment that is not due yet.
    pub next_payment: String,
    /// The label of the payments after the next one.
    pub following_payment: String,
    /// The label of a payment whose due date has passed.
    pub outstanding_payment: String,
    /// The label of a payment whose attempt has begun, and whose outcome is not final yet.
    pub payment_in_progress: String,
    /// The label of the day of the month on which payments fall due.
    pub payment_day: String,
    /// The label of the date on which a payment succeeded.
    pub paid: String,
    /// The label of the date on which the subscription ends.
    pub end: String,
    pub card: String,
    pub receipt: String,
    /// The label of the id of an order.
    pub order: String,
    /// The label of the date on which an order was shipped.
    pub shipped: String,
    pub carrier: String,
    pub tracking_number: String,
    questions: String,
    reply: String,
    tax_id: String,
}

/// The texts of a receipt's web page, in addition to the labels in [`LabelTexts`]. Mails also use `refunded` and
/// `reversed`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptTexts {
    pub title: String,
    /// A template with the variable `date`.
    pub paid: String,
    pub customer: String,
    pub payment: String,
    pub refunded: String,
    pub reversed: String,
}

/// The texts of a mail that is sent again.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyTexts {
    /// A template with the variable `subject`, the subject of the earlier mail.
    pub subject: String,
    pub note: String,
}

/// The texts of the web page on which a customer with an owed payment enters a card. The texts are templates.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardPageTexts {
    pub heading: String,
    pub body: String,
    pub action: String,
    /// The heading if the payment is not owed any more.
    pub settled: String,
    pub settled_body: String,
    /// The sentence about the subscriptions that the new card is not used for. A template with the variable `products`.
    pub others: String,
    /// The text of the button with which the new card is used for all subscriptions.
    pub action_all: String,
    /// The heading if the link does not exist, or has expired.
    pub not_found: String,
    pub not_found_body: String,
}

/// The texts of the web page to which the gateway sends the customer back. The texts are templates with the variable
/// `merchant`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardReturnTexts {
    /// The heading while the gateway does not respond.
    pub waiting: String,
    pub waiting_body: String,
    pub saved: String,
    pub saved_body: String,
    pub not_entered: String,
    /// The text if no card was entered, and the gateway's page is still open.
    pub unchanged: String,
    /// The text of the link to the gateway's page.
    pub back: String,
    /// The text if no card was entered, and the gateway's page has expired.
    pub expired: String,
}

/// The texts about what happens next to a subscription. The texts are templates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutlookTexts {
    /// A payment, with the variables `amount`, `date` and, for a payment after its due date, `due`.
    pub payment: String,
    /// Like `payment`, if the payment is charged on `date` or before.
    pub payment_soon: String,
    /// A payment whose attempt has begun.
    pub in_progress: String,
    /// The sentence about the months after the planned payments.
    pub continues: String,
    /// No payment is planned, because the subscription ends before the next one.
    pub none: String,
    pub disputed: String,
    pub open_finding: String,
    pub unpaid: String,
    /// The charge after a pause if the last month that fell due is charged. `due` is the next due date, if it is in the
    /// future.
    pub paused: String,
    /// The charge after a pause if the last month that fell due is waived.
    pub paused_wait: String,
}

/// The texts of one kind of mail. Subject and body are templates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailTexts {
    pub subject: String,
    pub heading: String,
    pub body: String,
    /// The text of the link in the mail: to the web page on which the customer enters a card for an owed payment, or
    /// else to the web page on which customers manage their subscriptions.
    pub action: String,
}

impl LanguageTexts {
    /// Returns the texts of mails of `kind`.
    pub fn mail_texts(&self, kind: MailKind) -> &MailTexts {
        self.mails.get(&kind).expect("the tests compose every mail in every language")
    }
}

/// The texts of the supported languages. The first language is English. Customers with an unsupported language get
/// mails in English.
static SUPPORTED_LANGUAGES: LazyLock<[LanguageTexts; 7]> = LazyLock::new(|| {
    [
        include_str!("texts/en.json"),
        include_str!("texts/de.json"),
        include_str!("texts/es.json"),
        include_str!("texts/fr.json"),
        include_str!("texts/ko.json"),
        include_str!("texts/zh.json"),
        include_str!("texts/zh-Hant.json"),
    ]
    .map(|text| serde_json::from_str(text).expect("the tests parse every language file"))
});

/// A customer's language: its texts, and the format of amounts and dates in the customer's region.
#[derive(Clone, Debug)]
pub struct Language {
    pub texts: &'static LanguageTexts,
    pub(crate) locale: Locale,
}

impl Language {
    /// Returns the language of `locale`, or English if the language of `locale` is not supported.
    pub fn for_locale(locale: &billing::Locale) -> Self {
        // Use the English format for amounts and dates too, so that amounts and dates match the English text.
        Self::find_supported_language(locale)
            .unwrap_or_else(|| Self { texts: &SUPPORTED_LANGUAGES[0], locale: icu_locale_core::locale!("en") })
    }

    /// Returns the first supported language of the HTTP header `Accept-Language`, or English if there is none. Ignores
    /// the weights of the languages, because browsers list the preferred language first.
    pub fn for_header(header: &str) -> Self {
        let tags = header.split(',').map(|range| range.split(';').next().unwrap_or_default().trim());
        let supported = tags.filter_map(|tag| Self::find_supported_language(&tag.parse().ok()?)).next();
        supported.unwrap_or_else(|| Self::for_locale(&billing::Locale::default()))
    }

    /// Returns the language of `locale`; `None` if it is not supported.
    fn find_supported_language(locale: &billing::Locale) -> Option<Self> {
        let locale: Locale = locale.as_str().parse().ok()?;
        let texts = SUPPORTED_LANGUAGES.iter().find(|texts| texts.language == language_code_of(&locale))?;
        Some(Self { texts, locale })
    }

    /// Formats `money` as is usual in the customer's region. If this format would omit digits of the amount, uses a
    /// format that is the same for all regions instead.
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
            (Ok(formatter), Some(on)) => self.with_french_ordinal(date, formatter.format(&on).to_string()),
            _ => date.to_string(),
        }
    }

    /// Formats the month of `date`, with its year.
    pub fn format_month(&self, date: NaiveDate) -> String {
        let formatter = FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new((&self.locale).into(), YM::long());
        match (formatter, to_gregorian(date)) {
            (Ok(formatter), Some(date)) => formatter.format(&date).to_string(),
            _ => date.format("%Y-%m").to_string(),
        }
    }

    /// Formats `date` as month and day.
    pub fn format_month_and_day(&self, date: NaiveDate) -> String {
        let formatter = FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new((&self.locale).into(), MD::long());
        match (formatter, to_gregorian(date)) {
            (Ok(formatter), Some(on)) => self.with_french_ordinal(date, formatter.format(&on).to_string()),
            _ => date.to_string(),
        }
    }

    /// Corrects `formatted`, the text of `date`, if the language is French: in French, the first day of a month is
    /// written `1er`, but the library ICU writes `1`.
    fn with_french_ordinal(&self, date: NaiveDate, formatted: String) -> String {
        match self.texts.language == "fr" && date.day() == 1 {
            true => formatted.replacen("1 ", "1er ", 1),
            false => formatted,
        }
    }
}

/// Returns the language code of the texts for `locale`. Chinese has two sets of texts: Taiwan, Hong Kong and Macao use
/// traditional characters (`zh-Hant`).
fn language_code_of(locale: &Locale) -> &str {
    let (script, region) = (locale.id.script, locale.id.region);
    let is_traditional = script.map_or_else(
        || region.is_some_and(|region| ["TW", "HK", "MO"].contains(&region.as_str())),
        |script| script.as_str() == "Hant",
    );
    match locale.id.language.as_str() {
        "zh" if is_traditional => "zh-Hant",
        language => language,
    }
}

/// Converts `date` into the date type of the library ICU.
fn to_gregorian(date: NaiveDate) -> Option<Date<Gregorian>> {
    Date::try_new_gregorian(date.year(), u8::try_from(date.month()).ok()?, u8::try_from(date.day()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the language of the locale with the tag `locale`.
    fn language_of_locale(locale: &str) -> Language {
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
            ("zh-TW", "€1,299.00", "2026年3月31日星期二", "3月31日"),
            ("ko-KR", "€1,299.00", "2026년 3월 31일 화요일", "3월 31일"),
            ("de-AT", "€ 1 299,00", "Dienstag, 31. März 2026", "31. März"),
            ("fr", "1 299,00 €", "mardi 31 mars 2026", "31 mars"),
            ("nl", "€1,299.00", "Tuesday, March 31, 2026", "March 31"),
            ("tlh", "€1,299.00", "Tuesday, March 31, 2026", "March 31"),
        ] {
            let language = language_of_locale(locale);
            let money = Money::new(129_900, "EUR".parse().unwrap());
            let formatted = (
                language.format_amount(money).replace(['\u{a0}', '\u{202f}'], " "),
                language.format_date(on),
                language.format_month_and_day(on),
            );
            assert_eq!(formatted, (amount.to_owned(), date.to_owned(), day.to_owned()), "{locale}");
        }
    }

    #[test]
    fn first_day_of_a_month_is_an_ordinal_in_french_only() {
        let on = NaiveDate::from_ymd_opt(2026, 4, 1).unwrap();
        for (locale, date, day) in
            [("fr", "mercredi 1er avril 2026", "1er avril"), ("es", "miércoles, 1 de abril de 2026", "1 de abril")]
        {
            let language = language_of_locale(locale);
            assert_eq!((language.format_date(on).as_str(), language.format_month_and_day(on).as_str()), (date, day));
        }
    }

    #[test]
    fn traditional_chinese_is_chosen_by_script_or_region() {
        for (locale, expected) in [
            ("zh", "zh"),
            ("zh-CN", "zh"),
            ("zh-SG", "zh"),
            ("zh-TW", "zh-Hant"),
            ("zh-HK", "zh-Hant"),
            ("zh-Hant", "zh-Hant"),
            ("zh-Hans-HK", "zh"),
            ("de-CH", "de"),
            ("nl", "en"),
        ] {
            assert_eq!(language_of_locale(locale).texts.language, expected, "{locale}");
        }
    }

    #[test]
    fn first_supported_language_of_a_header_is_chosen() {
        for (header, expected) in [
            ("", "en"),
            ("de-AT,de;q=0.9,en;q=0.8", "de"),
            ("nl,fr;q=0.7", "fr"),
            ("en-GB, ko", "en"),
            ("zh-TW", "zh-Hant"),
            ("*, ?", "en"),
        ] {
            assert_eq!(Language::for_header(header).texts.language, expected, "{header}");
        }
    }

    #[test]
    fn months_have_the_format_of_the_locale() {
        let date = NaiveDate::from_ymd_opt(2026, 3, 31).unwrap();
        for (locale, expected) in [
            ("en", "March 2026"),
            ("es", "marzo de 2026"),
            ("de", "März 2026"),
            ("ko", "2026년 3월"),
            ("zh", "2026年3月"),
        ] {
            assert_eq!(language_of_locale(locale).format_month(date), expected, "{locale}");
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
            assert_eq!(
                language_of_locale("en").format_amount(money).replace(['\u{a0}', '\u{202f}'], " "),
                expected,
                "{currency}"
            );
        }
    }
}
