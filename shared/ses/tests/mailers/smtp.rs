//! Tests of the SMTP mailer against a mail server from the independent crate `mailin`.

use std::sync::Arc;

use clock::{SimulatedClock, SystemClock};
use config::Env;
use mail::{MailError, MailKind, Mailer as _, SmtpMailer, parse_login};
use testkit::{ServerFault, SmtpServer, replaced_secret, start_secrets_manager};

use crate::example_mails::{
    FROM, assert_message_is, assert_no_personal_data, example_mail, example_mails, mail_with_injection,
};

#[tokio::test]
async fn every_mail_arrives_unchanged() {
    let (server, url) = SmtpServer::start().await;
    let smtp = SmtpMailer::new(&url, FROM).unwrap();
    for mail in example_mails() {
        smtp.send(&mail).await.unwrap();
        let received = server.received().pop().unwrap();
        assert_message_is(&received.raw, &mail);
        let recipients = vec![mail.to.as_str().to_owned()];
        assert_eq!((received.from.as_str(), received.to), ("shop@roasters.example.com", recipients));
    }
    assert_eq!(server.received().len(), 112, "sixteen kinds in seven languages");
}

#[tokio::test]
async fn texts_cannot_inject_headers_recipients_or_mails() {
    let (server, url) = SmtpServer::start().await;
    SmtpMailer::new(&url, FROM).unwrap().send(&mail_with_injection()).await.unwrap();
    let received = server.received();
    assert_eq!(received.len(), 1);
    assert_message_is(&received[0].raw, &mail_with_injection());
    assert_eq!(received[0].to, ["billing@acme.example.com"]);
}

/// Sends a mail to a server with `fault`. Returns the error and the number of mails that the server accepted despite
/// the error.
async fn send_with_fault(fault: ServerFault) -> (MailError, usize) {
    let (server, url) = SmtpServer::start().await;
    server.set_fault(fault);
    let smtp = SmtpMailer::new(&url, FROM).unwrap();
    let mail = example_mail(MailKind::Paid, "en");
    let error = smtp.send(&mail).await.unwrap_err();
    assert_no_personal_data(&error, &mail);
    let accepted = server.received().len();
    // The fault affects one mail only, so the server accepts the next mail.
    smtp.send(&mail).await.unwrap();
    assert_eq!(server.received().len(), accepted + 1, "{fault:?}");
    (error, accepted)
}

#[tokio::test]
async fn only_a_rejected_recipient_is_a_permanent_error() {
    // The columns are: the status code with which the server rejects the recipient, and whether the error is transient.
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
        let (error, accepted) = send_with_fault(ServerFault::RejectsRecipient(code)).await;
        assert_eq!((error.is_transient, accepted), (is_transient, 0), "{code}");
        assert_eq!(error.reason, format!("the mail server responded with {code}"));
    }
    let (error, accepted) = send_with_fault(ServerFault::RejectsMessage(554)).await;
    assert_eq!((error.is_transient, accepted), (true, 0), "{error}");
}

#[tokio::test]
async fn closed_connection_is_a_transient_error() {
    for (fault, expected) in [(ServerFault::ClosesAfterRecipient, 0), (ServerFault::ClosesAfterMessage, 1)] {
        let (error, accepted) = send_with_fault(fault).await;
        assert_eq!((error.is_transient, accepted), (true, expected), "{fault:?}");
        assert_eq!(error.reason, "the mail server did not respond", "{fault:?}");
    }
}

#[tokio::test]
async fn refused_connection_is_a_transient_error() {
    let closed_listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("smtp://{}", closed_listener.local_addr().unwrap());
    drop(closed_listener);
    let mail = example_mail(MailKind::Paid, "en");
    let error = SmtpMailer::new(&url, FROM).unwrap().send(&mail).await.unwrap_err();
    assert!(error.is_transient, "{error}");
    assert_no_personal_data(&error, &mail);
}

#[tokio::test]
async fn replaced_password_is_used_for_the_mail_whose_login_the_server_refused() {
    let (server, url) = SmtpServer::start_with_login(("dueday", "old")).await;
    let clock = Arc::new(SimulatedClock::new("2027-01-31T06:00:00Z".parse().unwrap(), 1));
    let login = |password: &str| parse_login(&format!("dueday:{password}\n")).unwrap();
    let (mail, secret) =
        (example_mail(MailKind::Paid, "en"), replaced_secret(login("old"), login("new"), &clock).await);
    server.set_login(("dueday", "new"));
    let smtp = SmtpMailer::new(&url, FROM).unwrap().with_login(secret);
    smtp.send(&mail).await.unwrap();
    assert_eq!((server.received().len(), server.refused_logins()), (1, 1));
    smtp.send(&mail).await.unwrap();
    assert_eq!((server.received().len(), server.refused_logins()), (2, 1), "the new password stays in use");

    smtp.connect().await.unwrap();
    server.set_login(("dueday", "third"));
    let smtp = SmtpMailer::new(&url, FROM).unwrap().with_login(login("wrong").into());
    let error = smtp.send(&mail).await.unwrap_err();
    assert_eq!((error.is_transient, error.reason.as_str()), (true, "the mail server responded with 535"));
    assert!(smtp.connect().await.unwrap_err().reason.ends_with("535"), "the login is checked without a mail");
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn password_comes_from_secrets_manager_and_is_in_no_error() {
    let (server, url) = SmtpServer::start_with_login(("dueday", "secret:with:colons")).await;
    let secrets =
        start_secrets_manager(&[("login", "dueday:secret:with:colons"), ("wrong", "secret-without-user")]).await;
    let sdk = aws_config::defaults(aws_config::BehaviorVersion::latest());
    let sdk = sdk.region("eu-west-1").test_credentials().endpoint_url(&secrets).load().await;
    let mail = example_mail(MailKind::Paid, "en");
    // The columns are: the name of the secret, and a part of the error.
    for (name, expected) in [("login", None), ("absent", Some("cannot be read")), ("wrong", Some("as USER:PASSWORD"))] {
        let env = |variable: &str| match variable {
            "DUEDAY_MAIL_URL" => Some(url.clone()),
            "DUEDAY_MAIL_FROM" => Some(FROM.to_owned()),
            "DUEDAY_MAIL_LOGIN_SECRET_NAME" => Some(name.to_owned()),
            _ => None,
        };
        let sent = ses::mailer(Env(&env), &sdk, Arc::new(SystemClock)).unwrap().send(&mail).await;
        match expected {
            None => sent.unwrap(),
            Some(expected) => {
                let error = sent.unwrap_err();
                assert!(error.is_transient && error.reason.contains(expected), "{error}");
                assert!(!error.reason.contains("secret-without-user"), "{error}");
            }
        }
    }
    assert_eq!(server.received().len(), 1);
}
