//! Snapshot tests of every mail in every language. `INSTA_UPDATE=always cargo test --test mails` updates the snapshots.
//! Each run writes the mails as HTML pages to `target/mails`, for review in a browser.

use std::path::Path;

use billing::{Account, Card, Label, Money, Policy, Subscription, SubscriptionOutlook};
use chrono::{DateTime, NaiveDate, Utc};
use mail::{Language, Mail, MailFacts, MailKind, Mailer as _, Merchant, Outbox};
use strum::IntoEnumIterator as _;
use testkit::{sample_account, sample_subscription};

/// The receipt number in the mails of these tests.
const RECEIPT_NUMBER: &str = "202603-7KQ29M-4T3XWA";

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// Returns the time at which the mails of these tests are composed.
fn composed_at() -> DateTime<Utc> {
    "2026-03-24T06:00:00Z".parse().unwrap()
}

/// Returns a merchant with all data that mails can contain, except a logo.
fn merchant() -> Merchant {
    Merchant {
        name: "Harbour Roasters".to_owned(),
        postal_address: Some("1 Quay Street, Leeds LS1 4AB".to_owned()),
        tax_id: Some("GB 123 4567 89".to_owned()),
        logo_url: None,
        support_email: Some("help@roasters.example.com".parse().unwrap()),
        reply_to: Some("billing@roasters.example.com".parse().unwrap()),
        account_url: Some("https://roasters.example.com/account".to_owned()),
        ..Merchant::default()
    }
}

/// Returns what happens next to an example subscription whose next payment is due on 31 March, or which ends on that day.
fn example_outlook(is_ending: bool) -> SubscriptionOutlook {
    let cancel_from = is_ending.then(|| "2026-03".parse().unwrap());
    let price = Money::new(129_950, "EUR".parse().unwrap());
    let subscription = Subscription { price, cancel_from, ..sample_subscription(31, date("2026-03-24")) };
    subscription.outlook(&Policy::default(), date("2026-03-24"))
}

/// Returns example facts for a mail of `kind` about `product`.
fn example_facts(kind: MailKind, product: Label) -> MailFacts {
    let (amount, due_on) = (Some(Money::new(129_950, "EUR".parse().unwrap())), Some(date("2026-03-31")));
    let facts = MailFacts::new(kind, product, None);
    let next_on = Some(date("2026-04-02"));
    let paid = MailFacts {
        amount,
        due_on,
        paid_on: Some(date("2026-04-01")),
        card: Some(Card::new("visa", "4242").unwrap()),
        receipt: Some(RECEIPT_NUMBER.to_owned()),
        ..facts.clone()
    };
    let card_url = Some("https://api.roasters.example.com/card-links/01JZXCVBNM0123456789ABCDEF".to_owned());
    let outlook = Some(example_outlook(false));
    match kind {
        MailKind::Upcoming => MailFacts { amount, due_on, ..facts },
        MailKind::Unpaid => MailFacts { amount, due_on, card_url, ..facts },
        MailKind::Failed | MailKind::CardNeeded => MailFacts { amount, due_on, next_on, card_url, ..facts },
        MailKind::Paid => paid,
        MailKind::Refunded => MailFacts { refunded: Some(Money::new(50_000, "EUR".parse().unwrap())), ..paid },
        MailKind::TermsChanged => {
            let previous_amount = Some(Money::new(99_900, "EUR".parse().unwrap()));
            MailFacts { amount, previous_amount, payment_day: Some(31.try_into().unwrap()), outlook, ..facts }
        }
        MailKind::SignedUp | MailKind::Resumed | MailKind::CancellationUndone | MailKind::CardSaved => {
            MailFacts { amount, outlook, ..facts }
        }
        MailKind::Paused => MailFacts { amount, ..facts },
        MailKind::Ended => MailFacts { ends_on: due_on, ..facts },
        MailKind::Shipped => MailFacts {
            order: Some("2026-03-31.01JZXCVBNM0123456789ABCDEF".to_owned()),
            shipped_on: next_on,
            carrier: Some("Parcels & Co <b>".parse().unwrap()),
            tracking_number: Some("RR123456785GB".parse().unwrap()),
            ..facts
        },
        MailKind::CancellationPlanned => {
            MailFacts { amount, ends_on: due_on, outlook: Some(example_outlook(true)), ..facts }
        }
        MailKind::EndedUnpaid => MailFacts { amount, ends_on: due_on, ..facts },
    }
}

/// Composes an example mail of `kind` in the language of `locale`.
fn compose(kind: MailKind, locale: &str, product: &str, merchant: &Merchant) -> Mail {
    let account =
        Account { locale: locale.parse().unwrap(), name: "Ana <Núñez> & co".parse().unwrap(), ..sample_account() };
    let product: Label = product.parse().unwrap();
    Mail::compose(&example_facts(kind, product), merchant, &account, format!("{kind}-1"), composed_at())
}

#[test]
fn mails_match_their_snapshots() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mails");
    std::fs::create_dir_all(&pages).unwrap();
    for locale in ["en", "de", "es", "fr", "ko", "zh", "zh-Hant"] {
        let mut mails = String::new();
        for kind in MailKind::iter() {
            let mail = compose(kind, locale, "Gold <b> & more", &merchant());
            mails += &format!("== {kind}\nSubject: {}\n\n{}\n\n", mail.subject, mail.text);
            std::fs::write(pages.join(format!("{locale}-{kind}.html")), &mail.html).unwrap();
        }
        insta::assert_snapshot!(format!("mails_{locale}"), mails);
    }
    insta::assert_snapshot!("page", compose(MailKind::Failed, "en", "Gold <b> & more", &merchant()).html);
}

#[test]
fn mails_that_are_sent_again_say_that_they_are_copies() {
    let mut mails = String::new();
    for locale in ["en", "de", "es", "fr", "ko", "zh", "zh-Hant"] {
        let account = Account { locale: locale.parse().unwrap(), ..sample_account() };
        for kind in [MailKind::Paid, MailKind::Refunded] {
            let facts = MailFacts { is_copy: true, ..example_facts(kind, "Gold".parse().unwrap()) };
            let mail = Mail::compose(&facts, &merchant(), &account, "1".to_owned(), composed_at());
            mails += &format!("== {kind}\nSubject: {}\n\n{}\n\n", mail.subject, mail.text);
        }
    }
    insta::assert_snapshot!(mails);
}

#[test]
fn mail_about_a_shipment_without_a_tracking_number_does_not_mention_one() {
    for locale in ["en", "de", "es", "fr", "ko", "zh", "zh-Hant"] {
        let with_parcel = example_facts(MailKind::Shipped, "Coffee".parse().unwrap());
        let without_parcel = MailFacts { carrier: None, tracking_number: None, ..with_parcel.clone() };
        let account = Account { locale: locale.parse().unwrap(), ..sample_account() };
        let compose =
            |facts: &MailFacts| Mail::compose(facts, &merchant(), &account, "1".to_owned(), composed_at()).text;
        let (with_parcel, without_parcel) = (compose(&with_parcel), compose(&without_parcel));
        let labels = &Language::for_locale(&account.locale).texts.labels;
        for label in [&labels.carrier, &labels.tracking_number] {
            assert!(with_parcel.contains(label) && !without_parcel.contains(label), "{locale}: {without_parcel}");
        }
        assert!(without_parcel.contains("2026-03-31.01JZXCVBNM0123456789ABCDEF"), "{locale}: {without_parcel}");
        assert!(without_parcel.lines().count() < with_parcel.lines().count(), "{locale}");
    }
}

#[test]
fn html_escapes_texts_of_customers_and_merchants() {
    let hostile = "<script>alert(1)</script>\" onload=\"x";
    let merchant = Merchant {
        name: hostile.to_owned(),
        logo_url: Some("https://example.com/\"><script>".to_owned()),
        ..merchant()
    };
    for kind in MailKind::iter() {
        let mail = compose(kind, "en", hostile, &merchant);
        assert!(!mail.html.contains("<script>") && !mail.html.contains("\" onload"), "{kind}: {}", mail.html);
        assert!(mail.html.contains("Ana &lt;Núñez&gt; &amp; co"), "{kind}");
        assert!(mail.subject.contains("<script>") || kind == MailKind::Paid || !mail.subject.contains("&lt;"));
    }
}

#[test]
fn mails_of_a_merchant_with_only_a_name_are_complete_and_have_no_links() {
    let merchant = Merchant { name: "Shop".to_owned(), ..Merchant::default() };
    for kind in MailKind::iter() {
        let without_link = MailFacts { card_url: None, ..example_facts(kind, "Gold".parse().unwrap()) };
        let mail = Mail::compose(&without_link, &merchant, &sample_account(), "1".to_owned(), composed_at());
        let end = "Shop\nQuestions? Just reply to this mail.";
        assert!(mail.text.trim_end().ends_with(end), "{kind}: {}", mail.text);
        assert!(!mail.html.contains("https://") && !mail.html.contains("mailto:"), "{kind}: {}", mail.html);
    }
}

#[tokio::test]
async fn mail_has_the_expected_headers() {
    let folder = tempfile::tempdir().unwrap();
    // The sender has no name, so the mail shows the name of the merchant.
    let outbox = Outbox::new(folder.path(), "shop@roasters.example.com").unwrap();
    for kind in [MailKind::Upcoming, MailKind::Paid] {
        outbox.send(&compose(kind, "ko", "골드 플랜", &merchant())).await.unwrap();
        let file = std::fs::read_to_string(folder.path().join(format!("{kind}-1.eml"))).unwrap();
        let head = file.split("\r\n\r\n").next().unwrap().replace("\r\n ", " ");
        let header =
            |name: &str| head.lines().filter_map(|line| line.strip_prefix(&format!("{name}: "))).collect::<Vec<_>>();
        assert_eq!(header("Reply-To"), ["billing@roasters.example.com"]);
        assert_eq!(header("From"), ["\"Harbour Roasters\" <shop@roasters.example.com>"], "{head}");
        let unsubscribe: &[&str] = match kind {
            MailKind::Upcoming => &["<mailto:help@roasters.example.com?subject=unsubscribe>"],
            _ => &[],
        };
        assert_eq!(header("List-Unsubscribe"), unsubscribe, "{kind}");
        assert!(header("Subject")[0].starts_with("=?utf-8?"), "{head}");
    }
}
