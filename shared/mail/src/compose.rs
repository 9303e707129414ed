//! Mails composed: what the texts of the customer's language say of one occasion.

use chrono::{DateTime, NaiveDate, Utc};
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::language::Language;
use super::{Mail, Merchant, Occasion};
use billing::{Account, EmailAddress, Label, Money};

/// What a mail is about. What is `None` is not said.
#[derive(Clone, Debug)]
pub struct Matter<'a> {
    pub product: &'a Label,
    /// The subscription's own address, if its mail does not go to the account's.
    pub email: Option<&'a EmailAddress>,
    pub amount: Option<Money>,
    pub due_on: Option<NaiveDate>,
    /// When it is tried again.
    pub next_on: Option<NaiveDate>,
    pub paid_on: Option<NaiveDate>,
    /// The receipt's number.
    pub receipt: Option<String>,
}

impl<'a> Matter<'a> {
    /// One about `product`, of which nothing else is said.
    pub fn of(product: &'a Label, email: Option<&'a EmailAddress>) -> Self {
        Self { product, email, amount: None, due_on: None, next_on: None, paid_on: None, receipt: None }
    }
}

impl Mail {
    /// The mail that `merchant` writes to `account` on an `occasion`, in the account's language.
    pub fn compose(
        occasion: Occasion,
        matter: &Matter<'_>,
        (merchant, account): (&Merchant, &Account),
        id: String,
        written_at: DateTime<Utc>,
    ) -> Self {
        let language = Language::of(&account.locale);
        let (texts, phrases) = (language.texts, language.texts.of(occasion));
        let labels = &texts.labels;
        let amount = matter.amount.map(|amount| language.amount(amount));
        let date = |on: Option<NaiveDate>| on.map(|on| language.date(on));
        let (due_on, next_on) = (date(matter.due_on), date(matter.next_on));
        let rows: Vec<(&str, String)> = [
            (&labels.product, Some(matter.product.as_str().to_owned())),
            (&labels.amount, amount.clone()),
            (&labels.due, due_on),
            (&labels.next, next_on.clone()),
            (&labels.paid, date(matter.paid_on)),
            (&labels.receipt, matter.receipt.clone()),
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
            product => matter.product.as_str(),
            amount,
            next_on,
            due_day => matter.due_on.map(|on| language.day(on)),
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
            occasion,
            account: account.id.clone(),
            to: matter.email.unwrap_or(&account.email).clone(),
            reply_to: merchant.reply_to.clone(),
            // A receipt, and what is owed, are told in any case.
            unsubscribe_at: merchant.support_email.clone().filter(|_| occasion == Occasion::Upcoming),
            subject,
            text: render("layout.txt", include_str!("layout.txt"), &values),
            html: render("layout.html", include_str!("layout.html"), &values),
            written_at,
        }
    }
}
