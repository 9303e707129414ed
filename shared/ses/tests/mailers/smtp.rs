//! SMTP, to a server that others have written.

use mail::{MailError, Mailer as _, Occasion, Smtp};

use crate::letter::{FROM, assert_is, assert_tells_nothing, hostile, letter, letters};
use crate::sink::{Says, Sink};

#[tokio::test]
async fn every_mail_arrives_as_it_was_composed() {
    let (sink, url) = Sink::start().await;
    let smtp = Smtp::new(&url, FROM).unwrap();
    for mail in letters() {
        smtp.send(&mail).await.unwrap();
        let taken = sink.taken().pop().unwrap();
        assert_is(&taken.raw, &mail);
        assert_eq!((taken.from.as_str(), taken.to), ("shop@roasters.example.com", vec![mail.to.as_str().to_owned()]));
    }
    assert_eq!(sink.taken().len(), 24);
}

#[tokio::test]
async fn texts_add_no_header_no_recipient_and_no_mail() {
    let (sink, url) = Sink::start().await;
    Smtp::new(&url, FROM).unwrap().send(&hostile()).await.unwrap();
    let taken = sink.taken();
    assert_eq!(taken.len(), 1);
    assert_is(&taken[0].raw, &hostile());
    assert_eq!(taken[0].to, ["billing@acme.example.com"]);
}

async fn refused(says: Says) -> (MailError, usize) {
    let (sink, url) = Sink::start().await;
    sink.next(says);
    let smtp = Smtp::new(&url, FROM).unwrap();
    let mail = letter(Occasion::Paid, "en");
    let error = smtp.send(&mail).await.unwrap_err();
    assert_tells_nothing(&error, &mail);
    let taken = sink.taken().len();
    // What happened to one mail is of no matter to the next.
    smtp.send(&mail).await.unwrap();
    assert_eq!(sink.taken().len(), taken + 1, "{says:?}");
    (error, taken)
}

#[tokio::test]
async fn only_what_a_server_says_of_the_recipient_is_for_good() {
    for (code, is_transient) in [
        (421, true),
        (450, true),
        (451, true),
        (452, true),
        (550, false),
        (551, false),
        (552, true),
        (553, false),
        (554, true),
    ] {
        let (error, taken) = refused(Says::ToRecipient(code)).await;
        assert_eq!((error.is_transient, taken), (is_transient, 0), "{code}");
        assert_eq!(error.reason, format!("the mail server answered {code}"));
    }
    let (error, taken) = refused(Says::AtTheEnd(554)).await;
    assert_eq!((error.is_transient, taken), (true, 0), "{error}");
}

#[tokio::test]
async fn server_that_hangs_up_is_asked_another_time() {
    for (says, taken) in [(Says::HangsUp, 0), (Says::HangsUpAtTheEnd, 1)] {
        let (error, taken_before) = refused(says).await;
        assert_eq!((error.is_transient, taken_before), (true, taken), "{says:?}");
        assert_eq!(error.reason, "the mail server did not answer", "{says:?}");
    }
}

#[tokio::test]
async fn server_that_is_away_is_asked_another_time() {
    let nobody = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("smtp://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let mail = letter(Occasion::Paid, "en");
    let error = Smtp::new(&url, FROM).unwrap().send(&mail).await.unwrap_err();
    assert!(error.is_transient, "{error}");
    assert_tells_nothing(&error, &mail);
}
