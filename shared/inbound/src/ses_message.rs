//! The messages that Amazon SES and Amazon SNS send to the topic of bounces and complaints ("Contents of event data that
//! Amazon SES publishes to Amazon SNS" in the documentation of SES).

use std::collections::HashMap;

use billing::{AccountId, MailStatus};
use mail::tags::{ACCOUNT_TAG, account_from_tag};
use serde::Deserialize;

/// The start of the message with which SES checks the topic when the event destination is created. It is not JSON.
const TOPIC_VALIDATED: &str = "Successfully validated SNS topic for Amazon SES";

/// The reason why a message could not be classified.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnreadableSesMessage {
    #[error("the message is not an event of Amazon SES")]
    NotAnEvent,
    #[error(
        "the event contains no account tag: SES must publish it by the configuration set, not as identity feedback"
    )]
    NoAccount,
}

/// What a message means for the recipients of a mail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SesMessage {
    /// The message is about the topic, not about a mail: SES or SNS has checked the topic or a subscription to it.
    AboutTopic,
    /// The recipients still accept mail. After a temporary failure, SES itself tries again.
    StillDeliverable,
    /// The `addresses` of `account` must get no more mail.
    Refused { status: MailStatus, account: AccountId, addresses: Vec<String> },
}

/// A message of SES or SNS in JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageInJson {
    /// The type of the event; `None` in messages of SNS.
    #[serde(alias = "notificationType")]
    event_type: Option<String>,
    /// The type of a message of SNS itself.
    #[serde(rename = "Type")]
    sns_type: Option<String>,
    #[serde(default)]
    mail: ReportedMail,
    bounce: Option<SesBounce>,
    complaint: Option<SesComplaint>,
}

/// The mail that an event is about.
#[derive(Default, Deserialize)]
struct ReportedMail {
    /// The values of each tag, by tag name.
    #[serde(default)]
    tags: HashMap<String, Vec<String>>,
}

/// A bounce: the mail could not be delivered to these recipients.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SesBounce {
    bounce_type: String,
    bounced_recipients: Vec<SesRecipient>,
}

/// A complaint: these recipients marked the mail as spam, or as not spam.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SesComplaint {
    #[serde(default)]
    complaint_feedback_type: Option<String>,
    complained_recipients: Vec<SesRecipient>,
}

/// A recipient of the mail.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SesRecipient {
    email_address: String,
}

impl SesMessage {
    /// Classifies the message `text`.
    ///
    /// # Errors
    /// - [`UnreadableSesMessage::NotAnEvent`] if `text` is not a message of SES or SNS.
    /// - [`UnreadableSesMessage::NoAccount`] if the message is a permanent bounce or a complaint without the tag of the account.
    pub(crate) fn read(text: &str) -> Result<Self, UnreadableSesMessage> {
        if text.trim_start().starts_with(TOPIC_VALIDATED) {
            return Ok(Self::AboutTopic);
        }
        let message: MessageInJson = serde_json::from_str(text).map_err(|_| UnreadableSesMessage::NotAnEvent)?;
        let is_about_topic = matches!(
            (message.event_type.as_deref(), message.sns_type.as_deref()),
            (Some("AmazonSnsSubscriptionSucceeded"), _)
                | (None, Some("SubscriptionConfirmation" | "UnsubscribeConfirmation"))
        );
        if is_about_topic {
            return Ok(Self::AboutTopic);
        }
        let event_type = message.event_type.ok_or(UnreadableSesMessage::NotAnEvent)?;
        let (status, recipients) = match (event_type.as_str(), message.bounce, message.complaint) {
            // The types `Transient` (for example a full mailbox) and `Undetermined`.
            ("Bounce", Some(bounce), _) if bounce.bounce_type != "Permanent" => return Ok(Self::StillDeliverable),
            ("Bounce", Some(bounce), _) => (MailStatus::Bounced, bounce.bounced_recipients),
            // The recipient states that the mail is not spam.
            ("Complaint", _, Some(complaint)) if complaint.complaint_feedback_type.as_deref() == Some("not-spam") => {
                return Ok(Self::StillDeliverable);
            }
            ("Complaint", _, Some(complaint)) => (MailStatus::Complained, complaint.complained_recipients),
            ("Bounce" | "Complaint", ..) => return Err(UnreadableSesMessage::NotAnEvent),
            // Such as `Delivery`, `Send` and `DeliveryDelay`.
            _ => return Ok(Self::StillDeliverable),
        };
        let account = message.mail.tags.get(ACCOUNT_TAG).and_then(|values| account_from_tag(values.first()?));
        let account = account.ok_or(UnreadableSesMessage::NoAccount)?;
        let addresses = recipients.into_iter().map(|recipient| recipient.email_address).collect();
        Ok(Self::Refused { status, account, addresses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_documented_message_is_classified() {
        let still_deliverable = [
            r#"{"eventType":"Bounce","mail":{},"bounce":{"bounceType":"Transient","bounceSubType":"MailboxFull","bouncedRecipients":[]}}"#,
            r#"{"eventType":"Bounce","mail":{},"bounce":{"bounceType":"Undetermined","bouncedRecipients":[]}}"#,
            r#"{"eventType":"Complaint","mail":{},"complaint":{"complaintFeedbackType":"not-spam","complainedRecipients":[]}}"#,
            r#"{"eventType":"Send","mail":{},"send":{}}"#,
            r#"{"eventType":"Delivery","mail":{}}"#,
            r#"{"eventType":"DeliveryDelay","mail":{},"deliveryDelay":{"delayType":"MailboxFull"}}"#,
            r#"{"eventType":"Reject","mail":{},"reject":{"reason":"Bad content"}}"#,
            r#"{"eventType":"Rendering Failure","mail":{}}"#,
            r#"{"eventType":"Open","mail":{}}"#,
            r#"{"eventType":"Subscription","mail":{}}"#,
        ];
        for text in still_deliverable {
            assert_eq!(SesMessage::read(text).unwrap(), SesMessage::StillDeliverable, "{text}");
        }
        let about_topic = [
            "Successfully validated SNS topic for Amazon SES event publishing.",
            r#"{"notificationType":"AmazonSnsSubscriptionSucceeded","message":"You have successfully subscribed"}"#,
            r#"{"Type":"SubscriptionConfirmation","Token":"t","SubscribeURL":"https://sns.example.com"}"#,
            r#"{"Type":"UnsubscribeConfirmation","Token":"t"}"#,
        ];
        for text in about_topic {
            assert_eq!(SesMessage::read(text).unwrap(), SesMessage::AboutTopic, "{text}");
        }
        let tags = r#""mail":{"tags":{"account":["acme"]}}"#;
        for (subtype, kind) in [("General", "eventType"), ("OnAccountSuppressionList", "notificationType")] {
            let text = format!(
                r#"{{"{kind}":"Bounce",{tags},"bounce":{{"bounceType":"Permanent","bounceSubType":"{subtype}",
                "bouncedRecipients":[{{"emailAddress":"a@example.com"}}]}}}}"#
            );
            let expected = SesMessage::Refused {
                status: MailStatus::Bounced,
                account: "acme".parse().unwrap(),
                addresses: vec!["a@example.com".to_owned()],
            };
            assert_eq!(SesMessage::read(&text).unwrap(), expected);
        }
        for text in ["nonsense", "{}", r#"{"Type":"Notification"}"#, r#"{"eventType":"Bounce","mail":{}}"#] {
            assert!(matches!(SesMessage::read(text), Err(UnreadableSesMessage::NotAnEvent)), "{text}");
        }
    }
}
