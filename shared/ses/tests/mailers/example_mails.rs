//! Example mails, and assertions that a received message equals the mail that was sent.

use billing::{Account, Label, Money};
use chrono::{DateTime, NaiveDate, Utc};
use mail::{Mail, MailFacts, MailKind, Merchant};
use mail_parser::{Address, Message, MessageParser};
use strum::IntoEnumIterator as _;
use testkit::sample_account;

/// The sender of the example mails.
pub const FROM: &str = "Röster & Söhne <shop@roasters.example.com>";

/// Returns an example mail of `kind` with all facts, in the language of `locale`.
pub fn example_mail(kind: MailKind, locale: &str) -> Mail {
    let date = |text: &str| Some(text.parse::<NaiveDate>().unwrap());
    let product: Label = match locale {
        "zh" | "zh-Hant" => "黄金套餐 <b> & 更多",
        "ko" => "골드 플랜 <b> & 더",
        "es" => "Plan de oro, ñandú <b> & más",
        _ => ".Gold <b> & more",
    }
    .parse()
    .unwrap();
    let account = Account {
        id: "acme.eu_1".parse().unwrap(),
        locale: locale.parse().unwrap(),
        name: "Ana <Núñez> & co".parse().unwrap(),
        ..sample_account()
    };
    let merchant = Merchant {
        name: "Röster & Söhne".to_owned(),
        postal_address: Some("1 Quay Street, Leeds LS1 4AB".to_owned()),
        support_email: Some("help@roasters.example.com".parse().unwrap()),
        reply_to: Some("billing@roasters.example.com".parse().unwrap()),
        account_url: Some(format!("https://roasters.example.com/{}", "long/".repeat(300))),
        ..Merchant::default()
    };
    let facts = MailFacts {
        amount: Some(Money::new(129_950, "EUR".parse().unwrap())),
        due_on: date("2026-03-31"),
        next_on: date("2026-04-02"),
        paid_on: date("2026-04-01"),
        payment_day: Some(31.try_into().unwrap()),
        ends_on: date("2026-04-04"),
        refunded: Some(Money::new(50_000, "EUR".parse().unwrap())),
        receipt: Some("202603-7KQ29M-4T3XWA".to_owned()),
        order: Some("2026-03-31.01JZXCVBNM0123456789ABCDEF".to_owned()),
        shipped_on: date("2026-04-05"),
        carrier: Some("Póst & Co".parse().unwrap()),
        tracking_number: Some("RR123456785GB".parse().unwrap()),
        ..MailFacts::new(kind, product, None)
    };
    let written_at: DateTime<Utc> = "2026-03-24T06:00:07Z".parse().unwrap();
    Mail::compose(&facts, &merchant, &account, format!("2026-03-24-{kind}-01"), written_at)
}

/// Returns one example mail of each kind in each language.
pub fn example_mails() -> Vec<Mail> {
    ["en", "de", "es", "fr", "ko", "zh", "zh-Hant"]
        .iter()
        .flat_map(|locale| MailKind::iter().map(move |kind| example_mail(kind, locale)))
        .collect()
}

/// Returns a mail whose texts try to inject headers, a recipient and SMTP commands.
pub fn mail_with_injection() -> Mail {
    let injected = "\r\nBcc: eve@example.com\r\n\r\n.\r\nMAIL FROM:<eve@example.com>\r\n";
    let mail = example_mail(MailKind::Paid, "en");
    Mail {
        subject: format!("Hi{injected}"),
        text: format!("Hello{injected}"),
        html: format!("<p>Hello{injected}</p>"),
        ..mail
    }
}

/// Asserts that the message `raw` has the content of `mail` and no unexpected headers.
pub fn assert_message_is(raw: &[u8], mail: &Mail) {
    let message = MessageParser::default().parse(raw).unwrap();
    let kind = mail.kind;
    let mut headers: Vec<&str> = message.headers().iter().map(|header| header.name()).collect();
    headers.sort_unstable();
    let mut expected = vec![
        "Auto-Submitted",
        "Content-Type",
        "Date",
        "From",
        "MIME-Version",
        "Message-ID",
        "Reply-To",
        "Subject",
        "To",
    ];
    if mail.unsubscribe_at.is_some() {
        expected.insert(4, "List-Unsubscribe");
    }
    assert_eq!(headers, expected, "{kind}");
    assert_eq!(names_and_addresses(message.from()), [(Some("Röster & Söhne"), Some("shop@roasters.example.com"))]);
    assert_eq!(names_and_addresses(message.to()), [(None, Some(mail.to.as_str()))]);
    assert_eq!(
        names_and_addresses(message.reply_to()),
        [(None, mail.reply_to.as_ref().map(|address| address.as_str()))]
    );
    // Compare the subject without its line breaks, because mail programs show the subject in one line.
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(message.subject().map(one_line), Some(one_line(&mail.subject)), "{kind}");
    assert_eq!(message.date().unwrap().to_timestamp(), mail.written_at.timestamp(), "{kind}");
    assert_eq!(message.message_id(), Some(format!("{}@roasters.example.com", mail.id).as_str()));
    let unsubscribe = mail.unsubscribe_at.as_ref();
    let unsubscribe = unsubscribe.map(|address| format!("<mailto:{}?subject=unsubscribe>", address.as_str()));
    assert_eq!(header(&message, "List-Unsubscribe"), unsubscribe, "{kind}");
    assert_eq!(header(&message, "Auto-Submitted").as_deref(), Some("auto-generated"));
    assert_eq!((message.text_body_count(), message.html_body_count(), message.attachment_count()), (1, 1, 0));
    // Lines of a mail message end with CRLF.
    assert_eq!(message.body_text(0).unwrap().replace("\r\n", "\n"), mail.text.replace("\r\n", "\n"), "{kind}");
    assert_eq!(message.body_html(0).unwrap().replace("\r\n", "\n"), mail.html.replace("\r\n", "\n"), "{kind}");
}

/// Returns the name and the mail address of each person in `address`.
fn names_and_addresses<'a>(address: Option<&'a Address<'_>>) -> Vec<(Option<&'a str>, Option<&'a str>)> {
    address.into_iter().flat_map(Address::iter).map(|person| (person.name(), person.address())).collect()
}

/// Returns the value of the header `name`.
fn header(message: &Message<'_>, name: &'static str) -> Option<String> {
    message.header_raw(name).map(|value| value.trim().to_owned())
}

/// Asserts that `error` contains neither addresses nor texts of `mail`.
pub fn assert_no_personal_data(error: &(impl std::error::Error + ?Sized), mail: &Mail) {
    let text = format!("{error} {error:?}");
    for secret in ["@", "acme", "Quay", mail.subject.as_str()] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}
