//! Bounces and complaints: an address that takes no mail is marked.

use billing::{Account, MailStatus};
use inbound::MailFeedback;
use testkit::sample;

use crate::World;

#[tokio::test]
async fn address_that_takes_no_mail_is_marked_until_it_is_another_one() {
    let world = World::new("pm_card_visa").await;
    let feedback = MailFeedback::new(world.table().clone());
    let bounce = |kind: &str, address: &str| {
        format!(
            r#"{{"eventType":"Bounce","mail":{{"tags":{{"account":["acme"],"ses:from-domain":["example.com"]}}}},
            "bounce":{{"bounceType":"{kind}","bouncedRecipients":[{{"emailAddress":"{address}"}}]}}}}"#
        )
    };
    let complaint = r#"{"eventType":"Complaint","mail":{"tags":{"account":["acme"]}},
        "complaint":{"complainedRecipients":[{"emailAddress":"Acme <Billing@ACME.example.com>"}]}}"#;
    let status = async || world.table().get_account(&world.gold.account).await.unwrap().unwrap().mail_status;
    for (message, expected) in [
        (bounce("Transient", "billing@acme.example.com"), MailStatus::Deliverable),
        (bounce("Permanent", "somebody@else.example.com"), MailStatus::Deliverable),
        (r#"{"eventType":"Delivery","mail":{}}"#.to_owned(), MailStatus::Deliverable),
        (bounce("Permanent", "billing@acme.example.com"), MailStatus::Bounced),
        (complaint.to_owned(), MailStatus::Complained),
        (bounce("Permanent", "billing@acme.example.com"), MailStatus::Complained),
    ] {
        feedback.take(&message).await.unwrap();
        assert_eq!(status().await, expected, "{message}");
    }
    let moved = Account { email: "new@acme.example.com".parse().unwrap(), ..sample::account() };
    world.table().put_account(&moved).await.unwrap();
    assert_eq!(status().await, MailStatus::Deliverable);
    feedback.take(&bounce("Permanent", "billing@acme.example.com")).await.unwrap();
    assert_eq!(status().await, MailStatus::Deliverable, "news of the old address, late");
    assert!(feedback.take("nonsense").await.is_err());
    let nobodys = bounce("Permanent", "billing@acme.example.com").replace("account", "other");
    assert!(feedback.take(&nobodys).await.is_err(), "it does not say whose");
}
