//! The environment variables for the merchant's data and the mail service.

use config::ReadingFunction::{Api, Notices, OrdersApi, Reminders};
use config::{EnvVariable, variables};

variables! {
    /// Several settings in one variable ([`MailSettings`](crate::mail_settings::MailSettings)).
    MAIL_SETTINGS = EnvVariable::new(&[Api, Reminders, Notices], "DUEDAY_MAIL_SETTINGS", "NAME=VALUE; ...",
        "Further settings of mails and receipts, in place of variables of their own");
    MERCHANT = EnvVariable::new(&[Api, OrdersApi, Reminders, Notices], "DUEDAY_MERCHANT", "NAME", "The merchant's name, for mails, receipts and packing slips")
        .rare_flag("merchant");
    MERCHANT_ADDRESS = EnvVariable::new(&[Api, Reminders, Notices], "DUEDAY_MERCHANT_ADDRESS", "ADDRESS",
        "The merchant's postal address in one line, for mails and receipts").rare_flag("merchant-address");
    MERCHANT_TAX_ID = EnvVariable::new(&[Api, Reminders, Notices], "DUEDAY_MERCHANT_TAX_ID", "ID",
        "The merchant's tax id, for mails and receipts").rare_flag("merchant-tax-id");
    MERCHANT_LOGO = EnvVariable::new(&[Api, Reminders, Notices], "DUEDAY_MERCHANT_LOGO", "URL", "The URL of the merchant's logo, for mails and receipts")
        .rare_flag("merchant-logo");
    SUPPORT_EMAIL = EnvVariable::new(&[Api, Reminders, Notices], "DUEDAY_SUPPORT_EMAIL", "ADDRESS", "The address for customers' questions")
        .rare_flag("support-email");
    REPLY_TO = EnvVariable::new(&[Api, Reminders, Notices], "DUEDAY_REPLY_TO", "ADDRESS", "The address for replies to mails, if different from the sender")
        .rare_flag("reply-to");
    ACCOUNT_URL = EnvVariable::new(&[Api, Reminders, Notices], "DUEDAY_ACCOUNT_URL", "URL",
        "The merchant's web page on which customers manage their subscriptions").rare_flag("account-url");
    API_URL = EnvVariable::new(&[Api, Notices], "DUEDAY_API_URL", "URL",
        "The URL of the API, for links in mails and for the way back from a page of the gateway");
    MAILS_OFF = EnvVariable::new(&[Reminders, Notices], "DUEDAY_MAILS_OFF", "KINDS",
        "Kinds of mails that customers do not get, such as signed-up,card-saved").rare_flag("mails-off");
    MAILS_SENT_ELSEWHERE = EnvVariable::new(&[Reminders, Notices], "DUEDAY_MAILS_SENT_ELSEWHERE", "KINDS",
        "Kinds of mails that another system sends, such as upcoming,failed").rare_flag("mails-sent-elsewhere");
    MAIL_URL = EnvVariable::new(&[Reminders, Notices], "DUEDAY_MAIL_URL", "URL",
        "The mail service: ses: (Amazon SES), smtps://USER:PASSWORD@HOST:465, or outbox:FOLDER");
    MAIL_LOGIN_SECRET_NAME = EnvVariable::new(&[Reminders, Notices], "DUEDAY_MAIL_LOGIN_SECRET_NAME", "NAME",
        "The name of the secret in AWS Secrets Manager that contains the user and the password of the mail server, as USER:PASSWORD");
    MAIL_FROM = EnvVariable::new(&[Reminders, Notices], "DUEDAY_MAIL_FROM", "SENDER",
        "The sender of mails, such as Shop <billing@example.com>").rare_flag("mail-from");
}
