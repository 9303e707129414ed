//! Who mails are from, and how they leave, as the environment says.

use std::str::FromStr;

use super::Merchant;
use billing::{ContactError, Label};
use config::ReadBy::{Every, Notices, Reminders};
use config::variables;
use config::{ConfigError, Env, Variable, web_address};

variables! {
    MERCHANT = Variable::new(&[Every], "DUEDAY_MERCHANT", "NAME", "The name that mails and receipts are signed with")
        .default("Dueday").rare("merchant");
    MERCHANT_ADDRESS = Variable::new(&[Every], "DUEDAY_MERCHANT_ADDRESS", "ADDRESS",
        "The merchant's postal address, in one line, as mails and receipts say it").rare("merchant-address");
    MERCHANT_TAX_ID = Variable::new(&[Every], "DUEDAY_MERCHANT_TAX_ID", "ID",
        "The merchant's tax id, as mails and receipts say it").rare("merchant-tax-id");
    MERCHANT_LOGO = Variable::new(&[Every], "DUEDAY_MERCHANT_LOGO", "URL", "The merchant's logo, for mails and receipts")
        .rare("merchant-logo");
    SUPPORT_EMAIL = Variable::new(&[Every], "DUEDAY_SUPPORT_EMAIL", "ADDRESS", "Whom customers ask")
        .rare("support-email");
    REPLY_TO = Variable::new(&[Every], "DUEDAY_REPLY_TO", "ADDRESS", "Where answers to mails go, if not to their sender")
        .rare("reply-to");
    ACCOUNT_URL = Variable::new(&[Every], "DUEDAY_ACCOUNT_URL", "URL",
        "The merchant's page on which customers look after their subscriptions").rare("account-url");
    MAIL_URL = Variable::new(&[Reminders, Notices], "DUEDAY_MAIL_URL", "URL",
        "How mails leave: ses: by Amazon SES, smtps://USER:PASSWORD@HOST:465, or outbox:FOLDER");
    MAIL_FROM = Variable::new(&[Reminders, Notices], "DUEDAY_MAIL_FROM", "SENDER",
        "The sender of mails, such as Shop <billing@example.com>").rare("mail-from");
}

impl Merchant {
    /// Reads who it is from `env`.
    ///
    /// # Errors
    /// [`ConfigError`], naming the first variable that is wrong and what is allowed.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            name: env.text(&MERCHANT)?,
            postal_address: env.read_given(&MERCHANT_ADDRESS, line)?,
            tax_id: env.read_given(&MERCHANT_TAX_ID, line)?,
            logo_url: env.read_given(&MERCHANT_LOGO, web_address)?,
            support_email: env.read_given(&SUPPORT_EMAIL, FromStr::from_str)?,
            reply_to: env.read_given(&REPLY_TO, FromStr::from_str)?,
            account_url: env.read_given(&ACCOUNT_URL, web_address)?,
        })
    }
}

/// One line that customers read.
fn line(text: &str) -> Result<String, ContactError> {
    text.parse::<Label>().map(String::from)
}
