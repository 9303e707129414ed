//! Mails to send, and whether one that has arrived is one that was sent.

use billing::{Account, Label, Money};
use chrono::{DateTime, NaiveDate, Utc};
use mail::{Mail, MailFacts, Merchant, Occasion};
use mail_parser::{Address, Message, MessageParser};
use strum::IntoEnumIterator as _;
use testkit::sample;

pub const FROM: &str = "Röster & Söhne <shop@roasters.example.com>";

/// A mail on `occasion` with all that can be said, in the language of `locale`.
pub fn letter(occasion: Occasion, locale: &str) -> Mail {
    let date = |text: &str| Some(text.parse::<NaiveDate>().unwrap());
    let product: Label = match locale {
        "zh" => "黄金套餐 <b> & 更多",
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
        ..sample::account()
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
        receipt: Some("202603-7KQ2-9M4T".to_owned()),
        ..MailFacts::new(occasion, product, None)
    };
    let written_at: DateTime<Utc> = "2026-03-24T06:00:07Z".parse().unwrap();
    Mail::compose(&facts, (&merchant, &account), format!("2026-03-24-{occasion}-01"), written_at)
}

/// One of each occasion in each language.
pub fn letters() -> Vec<Mail> {
    ["en", "es", "zh", "ko"]
        .iter()
        .flat_map(|locale| Occasion::iter().map(move |occasion| letter(occasion, locale)))
        .collect()
}

/// A letter whose texts try to be more than texts.
pub fn hostile() -> Mail {
    let more = "\r\nBcc: eve@example.com\r\n\r\n.\r\nMAIL FROM:<eve@example.com>\r\n";
    let letter = letter(Occasion::Paid, "en");
    Mail { subject: format!("Hi{more}"), text: format!("Hello{more}"), html: format!("<p>Hello{more}</p>"), ..letter }
}

/// That `raw` is `mail`, with the headers that it has and no other.
pub fn assert_is(raw: &[u8], mail: &Mail) {
    let message = MessageParser::default().parse(raw).unwrap();
    let occasion = mail.occasion;
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
    assert_eq!(headers, expected, "{occasion}");
    assert_eq!(people(message.from()), [(Some("Röster & Söhne"), Some("shop@roasters.example.com"))]);
    assert_eq!(people(message.to()), [(None, Some(mail.to.as_str()))]);
    assert_eq!(people(message.reply_to()), [(None, mail.reply_to.as_ref().map(|address| address.as_str()))]);
    // Whoever reads a subject sees one line of it.
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(message.subject().map(one_line), Some(one_line(&mail.subject)), "{occasion}");
    assert_eq!(message.date().unwrap().to_timestamp(), mail.written_at.timestamp(), "{occasion}");
    assert_eq!(message.message_id(), Some(format!("{}@roasters.example.com", mail.id).as_str()));
    let unsubscribe = mail.unsubscribe_at.as_ref();
    let unsubscribe = unsubscribe.map(|address| format!("<mailto:{}?subject=unsubscribe>", address.as_str()));
    assert_eq!(header(&message, "List-Unsubscribe"), unsubscribe, "{occasion}");
    assert_eq!(header(&message, "Auto-Submitted").as_deref(), Some("auto-generated"));
    assert_eq!((message.text_body_count(), message.html_body_count(), message.attachment_count()), (1, 1, 0));
    // Lines end as mails' lines do.
    assert_eq!(message.body_text(0).unwrap().replace("\r\n", "\n"), mail.text.replace("\r\n", "\n"), "{occasion}");
    assert_eq!(message.body_html(0).unwrap().replace("\r\n", "\n"), mail.html.replace("\r\n", "\n"), "{occasion}");
}

fn people<'a>(address: Option<&'a Address<'_>>) -> Vec<(Option<&'a str>, Option<&'a str>)> {
    address.into_iter().flat_map(Address::iter).map(|person| (person.name(), person.address())).collect()
}

fn header(message: &Message<'_>, name: &'static str) -> Option<String> {
    message.header_raw(name).map(|value| value.trim().to_owned())
}

/// That `error` tells neither addresses nor texts of `mail`.
pub fn assert_tells_nothing(error: &(impl std::error::Error + ?Sized), mail: &Mail) {
    let told = format!("{error} {error:?}");
    for secret in ["@", "acme", "Quay", mail.subject.as_str()] {
        assert!(!told.contains(secret), "{secret}: {told}");
    }
}
