//! Composes mails from the facts about a subscription and the texts in the customer's language.

use chrono::{DateTime, NaiveDate, Utc};
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::language::Language;
use super::outlook_text::{OutlookText, PaymentValues};
use super::{Mail, MailKind, Merchant};
use billing::{Account, Card, EmailAddress, Label, Money, PaymentDay, SubscriptionOutlook};

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
    pub outlook: Option<SubscriptionOutlook>,
    /// The other subscriptions that got the same new card: the product, and what happens next.
    pub others: Vec<(Label, SubscriptionOutlook)>,
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
        merchant: &Merchant,
        account: &Account,
        id: String,
        written_at: DateTime<Utc>,
    ) -> Self {
        let composer = MailComposer::new(facts, merchant, account);
        let subject = composer.subject();
        let values = composer.layout_values(&subject);
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
            text: composer.render("layout.txt", include_str!("layout.txt"), &values),
            html: composer.render("layout.html", include_str!("layout.html"), &values),
            written_at,
        }
    }
}

/// Composes the parts of one mail in the customer's language.
struct MailComposer<'a> {
    facts: &'a MailFacts,
    merchant: &'a Merchant,
    account: &'a Account,
    language: Language,
    templates: Environment<'static>,
}

impl<'a> MailComposer<'a> {
    fn new(facts: &'a MailFacts, merchant: &'a Merchant, account: &'a Account) -> Self {
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        Self { facts, merchant, account, language: Language::for_locale(&account.locale), templates }
    }

    /// Renders the template `source`. If the name of a template ends with `.html`, the template engine minijinja
    /// escapes the inserted values for HTML.
    fn render(&self, name: &str, source: &str, values: &Value) -> String {
        let rendered = self.templates.render_named_str(name, source, values);
        rendered.expect("the tests render every template with these values")
    }

    /// Renders the template `source`, a text about one payment.
    fn render_payment(&self, source: &str, PaymentValues { amount, date, due }: PaymentValues) -> String {
        self.render("phrase.txt", source, &context! { amount, date, due })
    }

    /// Returns the texts about what happens next to a subscription with `outlook`.
    fn outlook_text<'b>(
        &'b self,
        outlook: &'b SubscriptionOutlook,
    ) -> OutlookText<'b, impl Fn(&str, PaymentValues) -> String> {
        let render = move |source: &str, values: PaymentValues| self.render_payment(source, values);
        OutlookText { outlook, language: &self.language, render }
    }

    fn format_amount(&self, amount: Option<Money>) -> Option<String> {
        amount.map(|amount| self.language.format_amount(amount))
    }

    /// Returns the subject of the mail. The subject of a copy says that it is one.
    fn subject(&self) -> String {
        let texts = self.language.texts;
        let subject = self.render("phrase.txt", &texts.mail_texts(self.facts.kind).subject, &self.phrase_values());
        match self.facts.is_copy {
            true => self.render("phrase.txt", &texts.copy.subject, &context! { subject }),
            false => subject,
        }
    }

    /// Returns the values of the phrases: the subject, the greeting, the heading and the body.
    fn phrase_values(&self) -> Value {
        let facts = self.facts;
        let day = |on: Option<NaiveDate>| on.map(|on| self.language.format_month_and_day(on));
        context! {
            name => self.account.name.as_str(),
            product => facts.product.as_str(),
            amount => self.format_amount(facts.amount),
            refunded => self.format_amount(facts.refunded),
            next_day => day(facts.next_on),
            due_day => day(facts.due_on),
            end_day => day(facts.ends_on),
            planned => facts.outlook.as_ref().is_some_and(|outlook| !outlook.payments.is_empty()),
            complete => facts.outlook.as_ref().is_some_and(|outlook| outlook.is_complete),
            tracking_number => facts.tracking_number.as_ref().map(Label::as_str),
        }
    }

    /// Returns the values of the layout, which the plain text and the HTML have in common.
    fn layout_values(&self, subject: &str) -> Value {
        let (merchant, texts) = (self.merchant, self.language.texts);
        let phrases = texts.mail_texts(self.facts.kind);
        let values = self.phrase_values();
        let phrase = |source: &str| self.render("phrase.txt", source, &values);
        context! {
            language => texts.language.as_str(),
            subject,
            greeting => phrase(&texts.greeting),
            heading => phrase(&phrases.heading),
            body => phrase(&phrases.body),
            note => self.note(),
            action => phrases.action.as_str(),
            link_separator => texts.labels.separator.trim_end_matches(' '),
            action_url => self.facts.card_url.as_ref().or(merchant.account_url.as_ref()),
            contact => merchant.support_email.as_ref().or(merchant.reply_to.as_ref()).map(EmailAddress::as_str),
            labels => minijinja::value::Serde(&texts.labels),
            rows => self.rows(),
            merchant => minijinja::value::Serde(merchant),
        }
    }

    /// Returns the note below the body: in a copy, that the mail is one; otherwise, the reason why nothing is charged
    /// for now.
    fn note(&self) -> Option<String> {
        if self.facts.is_copy {
            return Some(self.language.texts.copy.note.clone());
        }
        // The mail about a planned cancellation says in its body that nothing else is charged.
        let is_stated_in_body =
            |outlook: &&SubscriptionOutlook| self.facts.kind == MailKind::CancellationPlanned && outlook.is_complete;
        let outlook = self.facts.outlook.as_ref().filter(|outlook| !is_stated_in_body(outlook))?;
        self.outlook_text(outlook).hold_or_later_months_sentence()
    }

    /// Returns the labels and the values of the rows: the facts, the planned payments, and the other subscriptions.
    fn rows(&self) -> Vec<(String, String)> {
        let (facts, language) = (self.facts, &self.language);
        let (texts, labels) = (language.texts, &language.texts.labels);
        let date = |on: Option<NaiveDate>| on.map(|on| language.format_date(on));
        let text = |label: &Option<Label>| label.as_ref().map(|label| label.as_str().to_owned());
        let outlook_rows = facts.outlook.as_ref().map(|outlook| self.outlook_text(outlook).rows()).unwrap_or_default();
        let other_rows = facts.others.iter().filter_map(|(product, outlook)| {
            Some((product.as_str().to_owned(), self.outlook_text(outlook).summary(&labels.separator)?))
        });
        let amount_label = if facts.kind.is_about_a_payment() { &labels.amount } else { &labels.monthly_amount };
        [
            (&labels.product, Some(facts.product.as_str().to_owned())),
            (amount_label, self.format_amount(facts.amount)),
            (&labels.previous_amount, self.format_amount(facts.previous_amount)),
            (&labels.month, facts.due_on.map(|on| language.format_month(on))),
            (&labels.due, date(facts.due_on)),
            (&labels.next, date(facts.next_on)),
            (&labels.payment_day, facts.payment_day.map(|day| day.to_string())),
            (&labels.end, date(facts.ends_on)),
            (&labels.paid, date(facts.paid_on)),
            (&labels.card, facts.card.as_ref().map(Card::label)),
            (&texts.receipt.refunded, self.format_amount(facts.refunded)),
            (&texts.receipt.reversed, self.format_amount(facts.reversed)),
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
        .collect()
    }
}
