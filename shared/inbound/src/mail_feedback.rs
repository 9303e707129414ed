//! Handles bounces and complaints, which Amazon SES publishes through SNS ("Contents of event data that Amazon SES
//! publishes to Amazon SNS" in its documentation). Marks an email address that bounces permanently or whose owner
//! complains, so that no more mail is sent to it.

use billing::{AccountId, EmailAddress, MailStatus};
use mail::tags::{ACCOUNT_TAG, account_from_tag};
use serde::Deserialize;
use store::{Table, TableError};

/// Marks email addresses that must not get mail any more.
#[derive(Clone, Debug)]
pub struct MailFeedbackHandler {
    table: Table,
}

/// The reason why an event about a mail was not processed.
#[derive(Debug, thiserror::Error)]
pub enum FeedbackError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("the message is not an event of Amazon SES")]
    NotAnEvent,
    #[error(
        "the event contains no account tag: SES must publish it by the configuration set, not as identity feedback"
    )]
    NoAccount,
}

/// An event of Amazon SES about one mail.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SesEvent {
    #[serde(alias = "notificationType")]
    event_type: String,
    mail: Mail,
    #[serde(default)]
    bounce: Option<Bounce>,
    #[serde(default)]
    complaint: Option<Complaint>,
}

/// The mail that the event is about.
#[derive(Deserialize)]
struct Mail {
    /// The values of each tag, by tag name.
    #[serde(default)]
    tags: std::collections::HashMap<String, Vec<String>>,
}

/// A bounce: the mail could not be delivered to these recipients.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bounce {
    bounce_type: String,
    bounced_recipients: Vec<Recipient>,
}

/// A complaint: these recipients marked the mail as spam, or as not spam.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Complaint {
    #[serde(default)]
    complaint_feedback_type: Option<String>,
    complained_recipients: Vec<Recipient>,
}

/// A recipient of the mail.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recipient {
    email_address: String,
}

impl MailFeedbackHandler {
    /// Creates a handler that marks the addresses of the accounts in `table`.
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// Handles `message`, an event of Amazon SES in JSON. Repeated and late events are harmless: an address that no
    /// longer belongs to the account is not marked.
    ///
    /// # Errors
    /// - [`FeedbackError::NotAnEvent`] if `message` is not an event of Amazon SES.
    /// - [`FeedbackError::NoAccount`] if the event does not contain the account, as events of the configuration set do.
    /// - [`FeedbackError::Table`] if a request to the table failed.
    pub async fn handle(&self, message: &str) -> Result<(), FeedbackError> {
        let event: SesEvent = serde_json::from_str(message).map_err(|_| FeedbackError::NotAnEvent)?;
        let (status, recipients) = match (event.event_type.as_str(), event.bounce, event.complaint) {
            // After a temporary failure, such as a full mailbox or an unavailable server, SES itself tries again.
            ("Bounce", Some(bounce), _) if bounce.bounce_type != "Permanent" => return Ok(()),
            ("Bounce", Some(bounce), _) => (MailStatus::Bounced, bounce.bounced_recipients),
            // A complaint of the type `not-spam`: the recipient states that the mail is not spam.
            ("Complaint", _, Some(complaint)) if complaint.complaint_feedback_type.as_deref() == Some("not-spam") => {
                return Ok(());
            }
            ("Complaint", _, Some(complaint)) => (MailStatus::Complained, complaint.complained_recipients),
            ("Bounce" | "Complaint", ..) => return Err(FeedbackError::NotAnEvent),
            _ => return Ok(()),
        };
        let account = event.mail.tags.get(ACCOUNT_TAG).and_then(|values| account_from_tag(values.first()?));
        let account = account.ok_or(FeedbackError::NoAccount)?;
        for Recipient { email_address } in recipients {
            self.set_mail_status_of_address(&account, &email_address, status).await?;
        }
        Ok(())
    }

    /// Marks `address` with `status`, if `address` is still the address of `account`.
    async fn set_mail_status_of_address(
        &self,
        account: &AccountId,
        address: &str,
        status: MailStatus,
    ) -> Result<(), TableError> {
        // Compare the addresses without a display name, and treat capital and small letters as equal: the receiving
        // mail server may have added a display name or changed the letters.
        let address = address.rsplit_once('<').map_or(address, |(_, rest)| rest.trim_end_matches('>'));
        let Some(stored) = self.table.get_account(account).await? else { return Ok(()) };
        let is_same_address = |email: &EmailAddress| email.as_str().eq_ignore_ascii_case(address);
        if is_same_address(&stored.email) {
            tracing::warn!(%account, ?status, "an email address is marked as bounced or complained, and gets no more mail");
            return self.table.set_mail_status_of_address(account, &stored.email, status).await;
        }
        tracing::warn!(%account, ?status, "a bounced or complained address is not the address of the account, so the account is not marked");
        Ok(())
    }
}
