//! The mails' texts, from the templates beside this file: one folder a mail.

use chrono::{DateTime, Utc};
use minijinja::{Environment, UndefinedBehavior, context};

use super::Mail;
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
