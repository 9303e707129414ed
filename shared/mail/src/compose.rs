//! Composes mails from the facts about a subscription and the texts in the customer's language.

use chrono::{DateTime, NaiveDate, Utc};
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::language::Language;
use super::outlook_text::{OutlookText, PaymentValues};
use super::{Mail, MailKind, Merchant};
use billing::{Account, Card, EmailAddress, Label, Money, Outlook, PaymentDay};

/// The facts that a mail about a subscription states. A fact that is `None` does not appear in the mail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailFacts {
    pub kind: MailKind,
    /// Whether the mail repeats an earlier one, and so must not read as another payment or refund.
    pub is_copy: bool,
    pub product: Label,
    /// The subscription's own mail address; `None` to send the mail to the account's address.
    pub email: Option<EmailAddress>,
    /// The amount of the payment, or the monthly price, depending on the kind of the mail.
    pub amount: Option<Money>,
    /// The former price, if the price changes.
    pub previous_amount: Option<Money>,
    pub due_on: Option<NaiveDate>,
    /// The date on which the declined payment will be retried.
    pub next_on: Option<NaiveDate>,
    pub paid_on: Option<NaiveDate>,
    /// The refunded part of the amount.
    pub refunded: Option<Money>,
    /// The part of the amount that the bank took back.
    pub reversed: Option<Money>,
    /// The receipt number.
    pub receipt: Option<String>,
    /// The card that was charged.
    pub card: Option<Card>,
    /// The day of the month on which payments fall due.
    pub payment_day: Option<PaymentDay>,
    /// What happens next to the subscription.
    pub outlook: Option<Outlook>,
    /// The other subscriptions that got the same new card: the product, and what happens next.
    pub others: Vec<(Label, Outlook)>,
    /// The date on which the subscription ends or has ended.
    pub ends_on: Option<NaiveDate>,
    /// The URL of the web page on which the customer enters a card for an owed payment.
    pub card_url: Option<String>,
    /// The id of the order that was shipped.
    pub order: Option<String>,
    /// The date on which the order was shipped.
    pub shipped_on: Option<NaiveDate>,
    /// The name of the company that carries the parcel.
    pub carrier: Option<Label>,
    /// The number by which the carrier finds the parcel.
    pub tracking_number: Option<Label>,
}

impl MailFacts {
    /// Creates facts that contain only the kind of the mail, the product and the mail address.
    pub fn new(kind: MailKind, product: Label, email: Option<EmailAddress>) -> Self {
        Self {
            kind,
            is_copy: false,
            product,
            email,
            amount: None,
            previous_amount: None,
            due_on: None,
            next_on: None,
            paid_on: None,
            refunded: None,
            reversed: None,
            receipt: None,
            card: None,
            payment_day: None,
            outlook: None,
            others: Vec::new(),
            ends_on: None,
            card_url: None,
            order: None,
            shipped_on: None,
            carrier: None,
            tracking_number: None,
        }
    }
}

impl Mail {
    /// Composes the mail with the id `id` from `merchant` to the customer `account`, with `facts`, in the account's
    /// language.
    pub fn compose(
        facts: &MailFacts,
        (merchant, account): (&Merchant, &Account),
        id: String,
        written_at: DateTime<Utc>,
    ) -> Self {
        let language = Language::for_locale(&account.locale);
        let (texts, phrases) = (language.texts, language.texts.phrases(facts.kind));
        let labels = &texts.labels;
        let format_amount = |amount: Option<Money>| amount.map(|amount| language.format_amount(amount));
        let (amount, refunded) = (format_amount(facts.amount), format_amount(facts.refunded));
        let date = |on: Option<NaiveDate>| on.map(|on| language.format_date(on));
        let day = |on: Option<NaiveDate>| on.map(|on| language.format_month_and_day(on));
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        // If the name of a template ends with `.html`, the template engine minijinja escapes the inserted values for
        // HTML.
        let render = |name: &str, source: &str, values: &Value| {
            templates.render_named_str(name, source, values).expect("the tests render every template with these values")
        };
        let render_payment = |source: &str, PaymentValues { amount, date, due }: PaymentValues| {
            render("phrase.txt", source, &context! { amount, date, due })
        };
        let outlook = facts.outlook.as_ref();
        let outlook = outlook.map(|outlook| OutlookText { outlook, language: &language, render: &render_payment });
        let outlook_rows = outlook.as_ref().map(OutlookText::rows).unwrap_or_default();
        let other_rows = facts.others.iter().filter_map(|(product, outlook)| {
            let text = OutlookText { outlook, language: &language, render: &render_payment };
            Some((product.as_str().to_owned(), text.summary(&labels.separator)?))
        });
        let text = |label: &Option<Label>| label.as_ref().map(|label| label.as_str().to_owned());
        let rows: Vec<(String, String)> = [
            (&labels.product, Some(facts.product.as_str().to_owned())),
            (if facts.kind.is_about_a_payment() { &labels.amount } else { &labels.monthly_amount }, amount.clone()),
            (&labels.previous_amount, format_amount(facts.previous_amount)),
            (&labels.month, facts.due_on.map(|on| language.format_month(on))),
            (&labels.due, date(facts.due_on)),
            (&labels.next, date(facts.next_on)),
            (&labels.payment_day, facts.payment_day.map(|day| day.to_string())),
            (&labels.end, date(facts.ends_on)),
            (&labels.paid, date(facts.paid_on)),
            (&labels.card, facts.card.as_ref().map(Card::label)),
            (&texts.receipt.refunded, refunded.clone()),
            (&texts.receipt.reversed, format_amount(facts.reversed)),
            (&labels.receipt, facts.receipt.clone()),
            (&labels.order, facts.order.clone()),
            (&labels.shipped, date(facts.shipped_on)),
            (&labels.carrier, text(&facts.carrier)),
            (&labels.tracking_number, text(&facts.tracking_number)),
        ]
        .into_iter()
        .filter_map(|(label, value)| Some((label.as_str(), value?)))
        .chain(outlook_rows)
        .map(|(label, value)| (label.to_owned(), value))
        .chain(other_rows)
        .collect();

        let planned = facts.outlook.as_ref().is_some_and(|outlook| !outlook.payments.is_empty());
        let is_complete = facts.outlook.as_ref().is_some_and(|outlook| outlook.is_complete);
        let values = context! {
            name => account.name.as_str(),
            product => facts.product.as_str(),
            amount,
            refunded,
            next_day => day(facts.next_on),
            due_day => day(facts.due_on),
            end_day => day(facts.ends_on),
            planned,
            complete => is_complete,
            tracking_number => text(&facts.tracking_number),
        };
        let phrase = |source: &str| render("phrase.txt", source, &values);
        let subject = phrase(&phrases.subject);
        let subject = match facts.is_copy {
            true => render("phrase.txt", &texts.copy.subject, &context! { subject }),
            false => subject,
        };
        let sentence = outlook
            // The body of this kind says itself that nothing else is charged.
            .filter(|_| facts.kind != MailKind::CancellationPlanned || !is_complete)
            .and_then(|outlook| outlook.sentence());
        let values = context! {
            language => texts.language.as_str(),
            subject => subject.as_str(),
            greeting => phrase(&texts.greeting),
            heading => phrase(&phrases.heading),
            body => phrase(&phrases.body),
            note => if facts.is_copy { Some(texts.copy.note.clone()) } else { sentence },
            action => phrases.action.as_str(),
            link_separator => labels.separator.trim_end_matches(' '),
            action_url => facts.card_url.as_ref().or(merchant.account_url.as_ref()),
            contact => merchant.support_email.as_ref().or(merchant.reply_to.as_ref()).map(EmailAddress::as_str),
            labels => minijinja::value::Serde(labels),
            rows,
            merchant => minijinja::value::Serde(merchant),
        };
        Self {
            id,
            kind: facts.kind,
            account: account.id.clone(),
            to: facts.email.as_ref().unwrap_or(&account.email).clone(),
            sender_name: merchant.name.clone(),
            reply_to: merchant.reply_to.clone(),
            // Only reminders have an address to unsubscribe: customers cannot unsubscribe from the other mails.
            unsubscribe_at: merchant.support_email.clone().filter(|_| facts.kind == MailKind::Upcoming),
            subject,
            text: render("layout.txt", include_str!("layout.txt"), &values),
            html: render("layout.html", include_str!("layout.html"), &values),
            written_at,
        }
    }
}
