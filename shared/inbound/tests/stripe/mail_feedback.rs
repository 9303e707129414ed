//! Tests of bounces and complaints: the email address is marked, and no more mail is sent to it.

use billing::{Account, MailStatus};
use inbound::MailFeedbackHandler;
use testkit::sample_account;

use crate::World;

#[tokio::test]
async fn bounced_address_is_marked_until_the_address_changes() {
    let world = World::new("pm_card_visa").await;
    let feedback = MailFeedbackHandler::new(world.table().clone());
    let bounce = |kind: &str, address: &str| {
        format!(
            r#"{{"eventType":"Bounce","mail":{{"tags":{{"account":["acme"],"ses:from-domain":["example.com"]}}}},
            "bounce":{{"bounceType":"{kind}","bouncedRecipients":[{{"emailAddress":"{address}"}}]}}}}"#
        )
    };
    let complaint = r#"{"eventType":"Complaint","mail":{"tags":{"account":["acme"]}},
        "complaint":{"complainedRecipients":[{"emailAddress":"Acme <Billing@ACME.example.com>"}]}}"#;
    let status = async || world.table().get_account(&world.gold.account).await.unwrap().unwrap().mail_status;
    // The columns are: an event, and the mail status of the account after this event.
    for (message, expected) in [
        (bounce("Transient", "billing@acme.example.com"), MailStatus::Deliverable),
        (bounce("Permanent", "other@else.example.com"), MailStatus::Deliverable),
        (r#"{"eventType":"Delivery","mail":{}}"#.to_owned(), MailStatus::Deliverable),
        ("Successfully validated SNS topic for Amazon SES event publishing.".to_owned(), MailStatus::Deliverable),
        (bounce("Permanent", "billing@acme.example.com"), MailStatus::Bounced),
        (complaint.to_owned(), MailStatus::Complained),
        (bounce("Permanent", "billing@acme.example.com"), MailStatus::Complained),
    ] {
        feedback.handle(&message).await.unwrap();
        assert_eq!(status().await, expected, "{message}");
    }
    let moved = Account { email: "new@acme.example.com".parse().unwrap(), ..sample_account() };
    world.table().put_account(&moved).await.unwrap();
    assert_eq!(status().await, MailStatus::Deliverable);
    feedback.handle(&bounce("Permanent", "billing@acme.example.com")).await.unwrap();
    assert_eq!(status().await, MailStatus::Deliverable, "a late event about the old address");
    let umlaut = Account { email: "ada@bücher.example".parse().unwrap(), ..sample_account() };
    world.table().put_account(&umlaut).await.unwrap();
    feedback.handle(&bounce("Permanent", "Ada@xn--bcher-kva.example")).await.unwrap();
    assert_eq!(status().await, MailStatus::Bounced, "SES returns the domain in Punycode");
    assert!(feedback.handle("nonsense").await.is_err());
    let without_account = bounce("Permanent", "billing@acme.example.com").replace("account", "other");
    assert!(feedback.handle(&without_account).await.is_err(), "the event has no account tag");
}
