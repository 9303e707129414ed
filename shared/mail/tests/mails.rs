//! What customers read: every mail in every language, as it was last looked at. `INSTA_UPDATE=always cargo test --test mails` writes
//! down what is said now, and the pages to look at into `target/mails`.

use std::path::Path;

use billing::{Account, Label, Money};
use chrono::{DateTime, NaiveDate, Utc};
use mail::{Mail, MailFacts, Mailer as _, Merchant, Occasion, Outbox};
use strum::IntoEnumIterator as _;
use testkit::sample;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn now() -> DateTime<Utc> {
    "2026-03-24T06:00:00Z".parse().unwrap()
}

fn merchant() -> Merchant {
    Merchant {
        name: "Harbour Roasters".to_owned(),
        postal_address: Some("1 Quay Street, Leeds LS1 4AB".to_owned()),
        tax_id: Some("GB 123 4567 89".to_owned()),
        logo_url: None,
        support_email: Some("help@roasters.example.com".parse().unwrap()),
        reply_to: Some("billing@roasters.example.com".parse().unwrap()),
        account_url: Some("https://roasters.example.com/account".to_owned()),
    }
}

/// What is known on each occasion.
fn facts(occasion: Occasion, product: Label) -> MailFacts {
    let (amount, due_on) = (Some(Money::new(129_950, "EUR".parse().unwrap())), Some(date("2026-03-31")));
    let about = MailFacts::new(occasion, product, None);
    match occasion {
        Occasion::Upcoming | Occasion::Unpaid => MailFacts { amount, due_on, ..about },
        Occasion::Failed | Occasion::CardNeeded => {
            MailFacts { amount, due_on, next_on: Some(date("2026-04-02")), ..about }
        }
        Occasion::Paid => {
            let receipt = Some("202603-7KQ2-9M4T".to_owned());
            MailFacts { amount, due_on, paid_on: Some(date("2026-04-01")), receipt, ..about }
        }
        Occasion::Ended => about,
    }
}

fn composed(occasion: Occasion, locale: &str, product: &str, merchant: &Merchant) -> Mail {
    let account =
        Account { locale: locale.parse().unwrap(), name: "Ana <Núñez> & co".parse().unwrap(), ..sample::account() };
    let product: Label = product.parse().unwrap();
    Mail::compose(&facts(occasion, product), (merchant, &account), format!("{occasion}-1"), now())
}

#[test]
fn mails_say_what_they_said_when_they_were_last_looked_at() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mails");
    std::fs::create_dir_all(&pages).unwrap();
    for locale in ["en", "es", "zh", "ko"] {
        let mut said = String::new();
        for occasion in Occasion::iter() {
            let mail = composed(occasion, locale, "Gold <b> & more", &merchant());
            said += &format!("== {occasion}\nSubject: {}\n\n{}\n\n", mail.subject, mail.text);
            std::fs::write(pages.join(format!("{locale}-{occasion}.html")), &mail.html).unwrap();
        }
        insta::assert_snapshot!(format!("mails_{locale}"), said);
    }
    insta::assert_snapshot!("page", composed(Occasion::Failed, "en", "Gold <b> & more", &merchant()).html);
}

#[test]
fn pages_escape_what_others_have_written() {
    let hostile = "<script>alert(1)</script>\" onload=\"x";
    let merchant = Merchant {
        name: hostile.to_owned(),
        logo_url: Some("https://example.com/\"><script>".to_owned()),
        ..merchant()
    };
    for occasion in Occasion::iter() {
        let mail = composed(occasion, "en", hostile, &merchant);
        assert!(!mail.html.contains("<script>") && !mail.html.contains("\" onload"), "{occasion}: {}", mail.html);
        assert!(mail.html.contains("Ana &lt;Núñez&gt; &amp; co"), "{occasion}");
        assert!(mail.subject.contains("<script>") || occasion == Occasion::Paid || !mail.subject.contains("&lt;"));
    }
}

#[test]
fn merchant_who_has_said_little_writes_whole_mails() {
    let merchant = Merchant { name: "Shop".to_owned(), ..Merchant::default() };
    for occasion in Occasion::iter() {
        let mail = composed(occasion, "en", "Gold", &merchant);
        assert!(mail.text.trim_end().ends_with("Shop") && !mail.html.contains("href"), "{occasion}: {}", mail.text);
    }
}

#[tokio::test]
async fn headers_are_those_of_a_letter_that_is_answered_and_nothing_can_be_added_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::new(folder.path(), "Harbour Roasters <shop@roasters.example.com>").unwrap();
    for occasion in [Occasion::Upcoming, Occasion::Paid] {
        outbox.send(&composed(occasion, "ko", "골드 플랜", &merchant())).await.unwrap();
        let file = std::fs::read_to_string(folder.path().join(format!("{occasion}-1.eml"))).unwrap();
        let head = file.split("\r\n\r\n").next().unwrap().replace("\r\n ", " ");
        let header =
            |name: &str| head.lines().filter_map(|line| line.strip_prefix(&format!("{name}: "))).collect::<Vec<_>>();
        assert_eq!(header("Reply-To"), ["billing@roasters.example.com"]);
        assert_eq!(header("From").len(), 1, "{head}");
        let unsubscribe: &[&str] = match occasion {
            Occasion::Upcoming => &["<mailto:help@roasters.example.com?subject=unsubscribe>"],
            _ => &[],
        };
        assert_eq!(header("List-Unsubscribe"), unsubscribe, "{occasion}");
        assert!(header("Subject")[0].starts_with("=?utf-8?"), "{head}");
    }
}
