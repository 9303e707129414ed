//! Composes mails from their facts and the texts in the customer's language.

use chrono::{DateTime, NaiveDate, Utc};
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::language::Language;
use super::{Mail, Merchant, Occasion};
use billing::{Account, EmailAddress, Label, Money};

/// The facts of a mail about a subscription. The mail leaves out those that are `None`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailFacts {
    pub occasion: Occasion,
    pub product: Label,
    /// The subscription's own address, if its mail does not go to the account's.
    pub email: Option<EmailAddress>,
    pub amount: Option<Money>,
    pub due_on: Option<NaiveDate>,
    /// When the payment is tried again.
    pub next_on: Option<NaiveDate>,
    pub paid_on: Option<NaiveDate>,
    /// The receipt's number.
    pub receipt: Option<String>,
}

impl MailFacts {
    /// The facts of a mail that names only the product.
    pub fn new(occasion: Occasion, product: Label, email: Option<EmailAddress>) -> Self {
        Self { occasion, product, email, amount: None, due_on: None, next_on: None, paid_on: None, receipt: None }
    }
}

impl Mail {
    /// Composes the mail of `merchant` to `account` with these `facts`, in the account's language.
    pub fn compose(
        facts: &MailFacts,
        (merchant, account): (&Merchant, &Account),
        id: String,
        written_at: DateTime<Utc>,
    ) -> Self {
        let language = Language::of(&account.locale);
        let (texts, phrases) = (language.texts, language.texts.of(facts.occasion));
        let labels = &texts.labels;
        let amount = facts.amount.map(|amount| language.amount(amount));
        let date = |on: Option<NaiveDate>| on.map(|on| language.date(on));
        let (due_on, next_on) = (date(facts.due_on), date(facts.next_on));
        let rows: Vec<(&str, String)> = [
            (&labels.product, Some(facts.product.as_str().to_owned())),
            (&labels.amount, amount.clone()),
            (&labels.due, due_on),
            (&labels.next, next_on.clone()),
            (&labels.paid, date(facts.paid_on)),
            (&labels.receipt, facts.receipt.clone()),
        ]
        .into_iter()
        .filter_map(|(label, value)| Some((label.as_str(), value?)))
        .collect();

        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        // The name's ending decides on escaping: only `.html` is escaped.
        let render = |name: &str, source: &str, values: &Value| {
            templates.render_named_str(name, source, values).expect("the texts are tested with these values")
        };
        let values = context! {
            name => account.name.as_str(),
            product => facts.product.as_str(),
            amount,
            next_on,
            due_day => facts.due_on.map(|on| language.day(on)),
        };
        let phrase = |source: &str| render("phrase.txt", source, &values);
        let subject = phrase(&phrases.subject);
        let values = context! {
            language => texts.language.as_str(),
            subject => subject.as_str(),
            greeting => phrase(&texts.greeting),
            heading => phrases.heading.as_str(),
            body => phrase(&phrases.body),
            action => phrases.action.as_str(),
            labels => minijinja::value::Serde(labels),
            rows,
            merchant => minijinja::value::Serde(merchant),
        };
        Self {
            id,
            occasion: facts.occasion,
            account: account.id.clone(),
            to: facts.email.as_ref().unwrap_or(&account.email).clone(),
            reply_to: merchant.reply_to.clone(),
            // Mails about receipts and debts cannot be unsubscribed from.
            unsubscribe_at: merchant.support_email.clone().filter(|_| facts.occasion == Occasion::Upcoming),
            subject,
            text: render("layout.txt", include_str!("layout.txt"), &values),
            html: render("layout.html", include_str!("layout.html"), &values),
            written_at,
        }
    }
}
