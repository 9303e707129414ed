//! The environment variables for the merchant's data and the mail service.

use std::str::FromStr;

use super::Merchant;
use billing::{ContactError, Label};
use config::ReadBy::{Every, Notices, Reminders};
use config::variables;
use config::{ConfigError, Env, Variable, parse_web_page_url};

variables! {
    MERCHANT = Variable::new(&[Every], "DUEDAY_MERCHANT", "NAME", "The merchant's name, for mails and receipts")
        .default("Dueday").rare_flag("merchant");
    MERCHANT_ADDRESS = Variable::new(&[Every], "DUEDAY_MERCHANT_ADDRESS", "ADDRESS",
        "The merchant's postal address in one line, for mails and receipts").rare_flag("merchant-address");
    MERCHANT_TAX_ID = Variable::new(&[Every], "DUEDAY_MERCHANT_TAX_ID", "ID",
        "The merchant's tax id, for mails and receipts").rare_flag("merchant-tax-id");
    MERCHANT_LOGO = Variable::new(&[Every], "DUEDAY_MERCHANT_LOGO", "URL", "The URL of the merchant's logo, for mails and receipts")
        .rare_flag("merchant-logo");
    SUPPORT_EMAIL = Variable::new(&[Every], "DUEDAY_SUPPORT_EMAIL", "ADDRESS", "The address for customers' questions")
        .rare_flag("support-email");
    REPLY_TO = Variable::new(&[Every], "DUEDAY_REPLY_TO", "ADDRESS", "The address for replies to mails, if different from the sender")
        .rare_flag("reply-to");
    ACCOUNT_URL = Variable::new(&[Every], "DUEDAY_ACCOUNT_URL", "URL",
        "The merchant's web page on which customers manage their subscriptions").rare_flag("account-url");
    MAIL_URL = Variable::new(&[Reminders, Notices], "DUEDAY_MAIL_URL", "URL",
        "The mail service: ses: (Amazon SES), smtps://USER:PASSWORD@HOST:465, or outbox:FOLDER");
    MAIL_FROM = Variable::new(&[Reminders, Notices], "DUEDAY_MAIL_FROM", "SENDER",
        "The sender of mails, such as Shop <billing@example.com>").rare_flag("mail-from");
}

impl Merchant {
    /// Reads the merchant's data from `env`.
    ///
    /// # Errors
    /// Returns an error that names the first invalid variable and its allowed values.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            name: env.text(&MERCHANT)?,
            postal_address: env.read_optional(&MERCHANT_ADDRESS, parse_line)?,
            tax_id: env.read_optional(&MERCHANT_TAX_ID, parse_line)?,
            logo_url: env.read_optional(&MERCHANT_LOGO, parse_web_page_url)?,
            support_email: env.read_optional(&SUPPORT_EMAIL, FromStr::from_str)?,
            reply_to: env.read_optional(&REPLY_TO, FromStr::from_str)?,
            account_url: env.read_optional(&ACCOUNT_URL, parse_web_page_url)?,
        })
    }
}

/// Parses `text`, which must be a single line without control characters.
fn parse_line(text: &str) -> Result<String, ContactError> {
    text.parse::<Label>().map(String::from)
}
