//! Tests of the SMTP mailer against a mail server from the independent crate `mailin`.

use std::sync::Arc;

use clock::{SimulatedClock, SystemClock};
use config::Env;
use mail::MailFault::{RecipientPermanent, RecipientTransient, ServiceTransient, Settings};
use mail::{Mail, MailError, MailKind, Mailer as _, SmtpMailer, parse_smtp_login};
use testkit::{RefusedAt, ServerFault, SmtpServer, create_replaced_secret, start_secrets_manager};

use crate::example_mails::{
    FROM, assert_message_is, assert_no_personal_data, example_mail, example_mails, mail_with_injection,
};

#[tokio::test]
async fn every_mail_arrives_unchanged() {
    let (server, url) = SmtpServer::start().await;
    let smtp = SmtpMailer::new(&url, FROM).unwrap();
    for mail in example_mails() {
        smtp.send(&mail).await.unwrap();
        let received = server.received_mails().pop().unwrap();
        assert_message_is(&received.raw, &mail);
        let recipients = vec![mail.to.as_str().to_owned()];
        assert_eq!((received.from.as_str(), received.to), ("shop@roasters.example.com", recipients));
    }
    assert_eq!(server.received_mails().len(), 112, "sixteen kinds in seven languages");
}

#[tokio::test]
async fn texts_cannot_inject_headers_recipients_or_mails() {
    let (server, url) = SmtpServer::start().await;
    SmtpMailer::new(&url, FROM).unwrap().send(&mail_with_injection()).await.unwrap();
    let received = server.received_mails();
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
    let accepted = server.received_mails().len();
    // The fault affects one mail only, so the server accepts the next mail.
    smtp.send(&mail).await.unwrap();
    assert_eq!(server.received_mails().len(), accepted + 1, "{fault:?}");
    (error, accepted)
}

#[tokio::test]
async fn response_of_the_server_is_classified_by_its_step_and_its_code() {
    // The columns are: the fault of the server, the response in the error, and the fault of the error.
    for (server_fault, response, expected) in [
        (ServerFault::RejectsSender(421), "MAIL FROM with 421", ServiceTransient),
        (ServerFault::RejectsSender(452), "MAIL FROM with 452", ServiceTransient),
        (ServerFault::RejectsSender(501), "MAIL FROM with 501", Settings),
        (ServerFault::RejectsSender(550), "MAIL FROM with 550", Settings),
        (ServerFault::RejectsRecipient(421), "RCPT TO with 421", ServiceTransient),
        (ServerFault::RejectsRecipient(450), "RCPT TO with 450", RecipientTransient),
        (ServerFault::RejectsRecipient(451), "RCPT TO with 451", RecipientTransient),
        (ServerFault::RejectsRecipient(452), "RCPT TO with 452", RecipientTransient),
        (ServerFault::RejectsRecipient(501), "RCPT TO with 501", RecipientTransient),
        (ServerFault::RejectsRecipient(550), "RCPT TO with 550", RecipientTransient),
        (ServerFault::RejectsRecipient(551), "RCPT TO with 551", RecipientTransient),
        (ServerFault::RejectsRecipient(552), "RCPT TO with 552", RecipientTransient),
        (ServerFault::RejectsRecipient(553), "RCPT TO with 553", RecipientTransient),
        (ServerFault::RejectsRecipient(554), "RCPT TO with 554", RecipientTransient),
        (ServerFault::RejectsMessage(421), "DATA with 421", ServiceTransient),
        (ServerFault::RejectsMessage(452), "DATA with 452", RecipientTransient),
        (ServerFault::RejectsMessage(501), "DATA with 501", Settings),
        (ServerFault::RejectsMessage(550), "DATA with 550", RecipientTransient),
        (ServerFault::RejectsMessage(554), "DATA with 554", RecipientTransient),
    ] {
        let (error, accepted) = send_with_fault(server_fault).await;
        assert_eq!((error.fault, accepted), (expected, 0), "{error}");
        assert!(error.reason.starts_with(&format!("the mail server responded to {response} ")), "{error}");
        assert!(error.reason.contains("rejected"), "the error contains the text of the server: {error}");
    }
}

#[tokio::test]
async fn closed_connection_is_a_transient_error_of_the_service() {
    for (fault, expected) in [(ServerFault::ClosesAfterRecipient, 0), (ServerFault::ClosesAfterMessage, 1)] {
        let (error, accepted) = send_with_fault(fault).await;
        assert_eq!((error.fault, accepted), (ServiceTransient, expected), "{fault:?}");
        assert!(error.reason.starts_with("the mail server sent no complete response to "), "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn refused_connection_is_a_transient_error_of_the_service() {
    let closed_listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("smtp://{}", closed_listener.local_addr().unwrap());
    drop(closed_listener);
    let mail = example_mail(MailKind::Paid, "en");
    let error = SmtpMailer::new(&url, FROM).unwrap().send(&mail).await.unwrap_err();
    assert_eq!(error.fault, ServiceTransient, "{error}");
    assert_no_personal_data(&error, &mail);
}

#[tokio::test]
async fn address_that_is_not_ascii_needs_a_server_with_smtputf8() {
    let mail = |to: &str| Mail { to: to.parse().unwrap(), ..example_mail(MailKind::Paid, "en") };
    let (server, url) = SmtpServer::start().await;
    let smtp = SmtpMailer::new(&url, FROM).unwrap();
    let error = smtp.send(&mail("josé@example.com")).await.unwrap_err();
    assert_eq!(error.fault, RecipientPermanent, "{error}");
    assert!(error.reason.contains("SMTPUTF8"), "{error}");
    assert_no_personal_data(&error, &mail("josé@example.com"));
    smtp.send(&mail("ada@bücher.example")).await.unwrap();
    assert_eq!(server.received_mails()[0].to, ["ada@xn--bcher-kva.example"], "a domain needs no SMTPUTF8");

    let (server, url) = SmtpServer::start_with_smtputf8().await;
    SmtpMailer::new(&url, FROM).unwrap().send(&mail("josé@bücher.example")).await.unwrap();
    assert_eq!(server.received_mails()[0].to, ["josé@xn--bcher-kva.example"]);
}

#[tokio::test]
async fn address_that_contains_a_word_of_the_classification_does_not_change_the_classification() {
    let (server, url) = SmtpServer::start().await;
    let mail = Mail { to: "relay@sender.example.com".parse().unwrap(), ..example_mail(MailKind::Paid, "en") };
    server.refuse_mails_to(mail.to.as_str(), RefusedAt::Recipient, 550, "5.0.0 no such user");
    let smtp = SmtpMailer::new(&url, FROM).unwrap();
    let error = smtp.send(&mail).await.unwrap_err();
    assert_eq!(error.fault, RecipientPermanent, "{error}");
    assert_eq!(error.reason, "the mail server responded to RCPT TO with 550 5.0.0 no such user <<redacted>>");
    server.refuse_mails_to(mail.to.as_str(), RefusedAt::Message, 452, "4.2.2 full");
    assert_eq!(smtp.send(&mail).await.unwrap_err().fault, RecipientTransient);
    server.accept_mails_to(mail.to.as_str());
    smtp.send(&mail).await.unwrap();
}

#[tokio::test]
async fn replaced_password_is_used_for_the_mail_whose_login_the_server_refused() {
    let (server, url) = SmtpServer::start_with_login("dueday", "old").await;
    let clock = Arc::new(SimulatedClock::new("2027-01-31T06:00:00Z".parse().unwrap(), 1));
    let login = |password: &str| parse_smtp_login(&format!("dueday:{password}\n")).unwrap();
    let (mail, secret) =
        (example_mail(MailKind::Paid, "en"), create_replaced_secret(login("old"), login("new"), &clock).await);
    server.set_login("dueday", "new");
    let smtp = SmtpMailer::new(&url, FROM).unwrap().with_login(secret);
    smtp.send(&mail).await.unwrap();
    assert_eq!((server.received_mails().len(), server.refused_login_count()), (1, 1));
    smtp.send(&mail).await.unwrap();
    assert_eq!((server.received_mails().len(), server.refused_login_count()), (2, 1), "the new password stays in use");

    smtp.connect().await.unwrap();
    server.set_login("dueday", "third");
    let smtp = SmtpMailer::new(&url, FROM).unwrap().with_login(login("wrong").into());
    let error = smtp.send(&mail).await.unwrap_err();
    let response = "the mail server responded to the connection or the login with 535 ";
    assert!(error.fault == Settings && error.reason.starts_with(response), "{error}");
    let error = smtp.connect().await.unwrap_err();
    assert!(error.reason.starts_with(response), "the login is checked without a mail: {error}");
    assert_eq!(server.received_mails().len(), 2);
}

#[tokio::test]
async fn password_comes_from_secrets_manager_and_is_in_no_error() {
    let (server, url) = SmtpServer::start_with_login("dueday", "secret:with:colons").await;
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
        let sent = ses::create_configured_mailer(Env(&env), &sdk, Arc::new(SystemClock)).unwrap().send(&mail).await;
        match expected {
            None => sent.unwrap(),
            Some(expected) => {
                let error = sent.unwrap_err();
                assert!(error.fault == Settings && error.reason.contains(expected), "{error}");
                assert!(!error.reason.contains("secret-without-user"), "{error}");
            }
        }
    }
    assert_eq!(server.received_mails().len(), 1);
}
