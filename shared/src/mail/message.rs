//! The mails' texts, from the templates beside this file: one folder a mail.

use std::time::SystemTime;

use chrono::{DateTime, Utc};
use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use minijinja::{Environment, UndefinedBehavior, context};

use super::{Mail, MailError};
use crate::billing::{Account, Reminder, Subscription};

/// Who the customer deals with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merchant {
    /// As mails say it.
    pub name: String,
}

/// The reminder before a payment.
pub fn reminder(
    merchant: &Merchant,
    account: &Account,
    subscription: &Subscription,
    reminder: Reminder,
    id: String,
    written_at: DateTime<Utc>,
) -> Mail {
    let values = context! {
        merchant => merchant.name.as_str(),
        name => account.name.as_str(),
        product => subscription.product_name.as_str(),
        amount => reminder.amount.to_string(),
        due_on => reminder.due_on.format("%A, %-d %B %Y").to_string(),
        due_day => reminder.due_on.format("%-d %B").to_string(),
        payment_day => subscription.payment_day.to_string(),
    };
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    // The name's ending decides on escaping: only `.html` is escaped.
    let render = |name: &str, source: &str| {
        templates.render_named_str(name, source, &values).expect("the templates are tested with these values")
    };
    Mail {
        id,
        to: subscription.email.as_ref().unwrap_or(&account.email).clone(),
        subject: render("subject.txt", include_str!("templates/reminder/subject.txt")).trim().to_owned(),
        text: render("body.txt", include_str!("templates/reminder/body.txt")),
        html: render("body.html", include_str!("templates/reminder/body.html")),
        written_at,
    }
}

/// Reads a sender: an address, or a name and an address in `<>`.
pub(super) fn sender(text: &str) -> Result<Mailbox, MailError> {
    text.parse().map_err(|_| permanent("the sender must be an address, or a name and an address in <>"))
}

/// The mail in the Internet message format (RFC 5322), as text and as HTML.
pub(super) fn encode(mail: &Mail, from: &Mailbox) -> Result<Message, MailError> {
    let to = mail.to.as_str().parse().map_err(|_| permanent("the recipient's address cannot be written in a mail"))?;
    Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, to))
        .subject(&mail.subject)
        .date(SystemTime::from(mail.written_at))
        .message_id(Some(format!("<{}@{}>", mail.id, from.email.domain())))
        .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()))
        .multipart(MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone()))
        .map_err(|error| permanent(&error.to_string()))
}

fn permanent(reason: &str) -> MailError {
    MailError { reason: reason.to_owned(), is_transient: false }
}
