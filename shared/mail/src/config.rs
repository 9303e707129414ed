//! Reads the merchant's data and the mail service from environment variables.

use std::str::FromStr;

use super::mail_encoding::{ASCII_BEFORE_AT, is_ascii_before_at};
use super::mail_settings::MailSettings;
use super::variables::*;
use super::{MailKind, Merchant};
use billing::{ContactError, EmailAddress, Label};
use config::{ConfigError, Env, parse_web_page_url};
use strum::IntoEnumIterator as _;

impl Merchant {
    /// Reads the merchant's data from `env`.
    ///
    /// # Errors
    /// Returns an error that names the first invalid variable and its allowed values.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let settings = MailSettings::read(env)?;
        let in_either = |name: &str| {
            let own = (env.0)(name).filter(|value| !value.trim().is_empty());
            own.or_else(|| settings.get(name))
        };
        Self::read_variables(Env(&in_either)).map_err(|error| settings.name_source_of_error(error, env))
    }

    /// Reads the merchant's data from `env`, in which each setting has its own variable.
    fn read_variables(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            name: env.required_text(&MERCHANT)?,
            postal_address: env.read_optional(&MERCHANT_ADDRESS, parse_single_line)?,
            tax_id: env.read_optional(&MERCHANT_TAX_ID, parse_single_line)?,
            logo_url: env.read_optional(&MERCHANT_LOGO, parse_web_page_url)?,
            support_email: env.read_optional(&SUPPORT_EMAIL, FromStr::from_str)?,
            reply_to: env.read_optional(&REPLY_TO, parse_reply_to)?,
            account_url: env.read_optional(&ACCOUNT_URL, parse_web_page_url)?,
            unsent_mails: [
                env.read_optional(&MAILS_OFF, parse_mail_kinds_off)?,
                env.read_optional(&MAILS_SENT_ELSEWHERE, parse_mail_kinds)?,
            ]
            .into_iter()
            .flatten()
            .flatten()
            .collect(),
        })
    }
}

/// Parses kinds of mails, separated by commas.
fn parse_mail_kinds(text: &str) -> Result<Vec<MailKind>, String> {
    let kinds = text.split(',').map(|kind| MailKind::from_str(kind.trim()).map_err(|_| kind.trim().to_owned()));
    kinds.collect::<Result<_, _>>().map_err(|kind| {
        let allowed: Vec<String> = MailKind::iter().map(|kind| kind.to_string()).collect();
        format!("must be kinds of mails, separated by commas, not {kind:?}; the kinds are {}", allowed.join(", "))
    })
}

/// Parses kinds of mails, separated by commas. Refuses kinds that must not be switched off.
fn parse_mail_kinds_off(text: &str) -> Result<Vec<MailKind>, String> {
    let kinds = parse_mail_kinds(text)?;
    match kinds.iter().find(|kind| !kind.may_be_switched_off()) {
        Some(kind) => Err(format!(
            "must not contain {kind}: customers must get this mail. If another system sends it, name it in {}",
            MAILS_SENT_ELSEWHERE.name
        )),
        None => Ok(kinds),
    }
}

/// Parses the address for replies. A mail server that refuses it refuses every mail, so only ASCII may be before the `@`.
fn parse_reply_to(text: &str) -> Result<EmailAddress, String> {
    if !is_ascii_before_at(text) {
        return Err(ASCII_BEFORE_AT.to_owned());
    }
    text.parse::<EmailAddress>().map_err(|error| error.to_string())
}

/// Parses `text`, which must be a single line without control characters.
fn parse_single_line(text: &str) -> Result<String, ContactError> {
    text.parse::<Label>().map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mails_that_customers_can_do_without_may_be_switched_off() {
        let read = |name: &'static str, kinds: &str| {
            let value = |variable: &str| match variable {
                "DUEDAY_MERCHANT" => Some("Shop".to_owned()),
                variable => (variable == name).then(|| kinds.to_owned()),
            };
            Merchant::read(Env(&value)).map(|merchant| merchant.unsent_mails).map_err(|error| error.to_string())
        };
        assert_eq!(
            read("DUEDAY_MAILS_OFF", "signed-up, card-saved"),
            Ok([MailKind::SignedUp, MailKind::CardSaved].into())
        );
        assert_eq!(read("DUEDAY_MAILS_SENT_ELSEWHERE", "upcoming"), Ok([MailKind::Upcoming].into()));
        for (kinds, expected) in [
            ("upcoming", "must not contain upcoming: customers must get this mail. If another system sends it"),
            ("paid,ended-unpaid", "must not contain ended-unpaid"),
            ("receipts", "not \"receipts\"; the kinds are upcoming, paid, refunded"),
        ] {
            let error = read("DUEDAY_MAILS_OFF", kinds).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn address_for_replies_has_only_ascii_before_the_at() {
        let read = |address: &'static str| {
            let value = |variable: &str| match variable {
                "DUEDAY_MERCHANT" => Some("Shop".to_owned()),
                variable => (variable == REPLY_TO.name).then(|| address.to_owned()),
            };
            Merchant::read(Env(&value)).map(|merchant| merchant.reply_to).map_err(|error| error.to_string())
        };
        assert_eq!(read("help@köln.example"), Ok(Some("help@köln.example".parse().unwrap())));
        let error = read("josé@example.com").unwrap_err();
        assert!(error.contains("DUEDAY_REPLY_TO must have only ASCII characters before the @"), "{error}");
    }

    #[test]
    fn settings_in_one_variable_are_read_like_those_in_their_own_variables() {
        let read = |settings: &'static str, reply_to: &'static str| {
            let value = |variable: &str| match variable {
                "DUEDAY_MERCHANT" => Some("Shop".to_owned()),
                "DUEDAY_MAIL_SETTINGS" => Some(settings.to_owned()),
                variable => (variable == REPLY_TO.name).then(|| reply_to.to_owned()),
            };
            Merchant::read(Env(&value)).map_err(|error| error.to_string())
        };
        let all = read(
            "address=1 Main Street, Vienna; tax-id = ATU1;logo=https://example.com/a?b=c;support-email=help@example.com;\
             reply-to=a@example.com; account-url=https://example.com/me; mails-off=paid,signed-up; mails-sent-elsewhere=upcoming;",
            "",
        )
        .unwrap();
        assert_eq!(all.postal_address.as_deref(), Some("1 Main Street, Vienna"));
        assert_eq!(all.tax_id.as_deref(), Some("ATU1"));
        assert_eq!(all.logo_url.as_deref(), Some("https://example.com/a?b=c"));
        assert_eq!(all.support_email, Some("help@example.com".parse().unwrap()));
        assert_eq!(all.reply_to, Some("a@example.com".parse().unwrap()));
        assert_eq!(all.account_url.as_deref(), Some("https://example.com/me"));
        assert_eq!(all.unsent_mails, [MailKind::Paid, MailKind::SignedUp, MailKind::Upcoming].into());
        let own = read("reply-to=a@example.com", "b@example.com").unwrap();
        assert_eq!(own.reply_to, Some("b@example.com".parse().unwrap()), "a variable of its own has priority");
        assert_eq!(read(" ", "").unwrap().reply_to, None);
        for (settings, expected) in [
            (
                "phone=1",
                "DUEDAY_MAIL_SETTINGS must be NAME=VALUE, separated by semicolons, not \"phone=1\"; the names are address",
            ),
            ("address=1; Vienna", "not \"Vienna\""),
            ("tax-id=", "not \"tax-id=\""),
            ("tax-id=1;tax-id=2", "must contain tax-id once"),
            ("account-url=shop", "DUEDAY_MAIL_SETTINGS is wrong: account-url must be a URL such as"),
            ("mails-off=upcoming", "DUEDAY_MAIL_SETTINGS is wrong: mails-off must not contain upcoming"),
        ] {
            let error = read(settings, "").unwrap_err();
            assert!(error.contains(expected), "{settings}: {error}");
        }
    }

    #[test]
    fn merchant_without_a_name_is_refused() {
        let error = Merchant::read(Env(&|_| None)).unwrap_err().to_string();
        assert!(error.contains("DUEDAY_MERCHANT must be set"), "{error}");
    }
}
