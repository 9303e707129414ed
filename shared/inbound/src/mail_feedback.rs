//! What becomes of mails, as Amazon SES tells it through SNS ("Contents of event data that Amazon SES publishes to Amazon SNS" in its
//! documentation): an address that refuses mail for good, or whose owner does not want it, is marked, so that no more is sent there.

use billing::{AccountId, EmailAddress, MailStatus};
use mail::tags::{ACCOUNT, account_of};
use serde::Deserialize;
use store::{Table, TableError};

/// Marks addresses.
#[derive(Clone, Debug)]
pub struct MailFeedback {
    table: Table,
}

/// Why news of a mail was not worked on.
#[derive(Debug, thiserror::Error)]
pub enum FeedbackError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("it is no event of Amazon SES's")]
    NoEvent,
    #[error(
        "it does not say whose mail it was: a configuration set has to publish it, and not the identity's own feedback"
    )]
    NoAccount,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct News {
    #[serde(alias = "notificationType")]
    event_type: String,
    mail: Mail,
    #[serde(default)]
    bounce: Option<Bounce>,
    #[serde(default)]
    complaint: Option<Complaint>,
}

#[derive(Deserialize)]
struct Mail {
    /// Each name with its values.
    #[serde(default)]
    tags: std::collections::HashMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bounce {
    bounce_type: String,
    bounced_recipients: Vec<Recipient>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Complaint {
    #[serde(default)]
    complaint_feedback_type: Option<String>,
    complained_recipients: Vec<Recipient>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recipient {
    email_address: String,
}

impl MailFeedback {
    /// Marks the addresses of accounts in `table`.
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// Works on `message`, an event of SES's in JSON. Told again, or late, it comes to the same: an address that is not the account's any
    /// more is left alone.
    ///
    /// # Errors
    /// [`FeedbackError`].
    pub async fn take(&self, message: &str) -> Result<(), FeedbackError> {
        let news: News = serde_json::from_str(message).map_err(|_| FeedbackError::NoEvent)?;
        let (status, recipients) = match (news.event_type.as_str(), news.bounce, news.complaint) {
            // A mailbox that is full, or a server that is away, is tried again by SES itself.
            ("Bounce", Some(bounce), _) if bounce.bounce_type != "Permanent" => return Ok(()),
            ("Bounce", Some(bounce), _) => (MailStatus::Bounced, bounce.bounced_recipients),
            // Its reader says that it is none.
            ("Complaint", _, Some(complaint)) if complaint.complaint_feedback_type.as_deref() == Some("not-spam") => {
                return Ok(());
            }
            ("Complaint", _, Some(complaint)) => (MailStatus::Complained, complaint.complained_recipients),
            ("Bounce" | "Complaint", ..) => return Err(FeedbackError::NoEvent),
            _ => return Ok(()),
        };
        let account = news.mail.tags.get(ACCOUNT).and_then(|values| account_of(values.first()?));
        let account = account.ok_or(FeedbackError::NoAccount)?;
        for Recipient { email_address } in recipients {
            self.mark(&account, &email_address, status).await?;
        }
        Ok(())
    }

    async fn mark(&self, account: &AccountId, address: &str, status: MailStatus) -> Result<(), TableError> {
        // A receiving server may write it in other letters, or with a name.
        let address = address.rsplit_once('<').map_or(address, |(_, rest)| rest.trim_end_matches('>'));
        let Some(stored) = self.table.get_account(account).await? else { return Ok(()) };
        let is_its = |email: &EmailAddress| email.as_str().eq_ignore_ascii_case(address);
        if is_its(&stored.email) {
            tracing::warn!(%account, ?status, "an address takes no mail");
            return self.table.mark_address(account, &stored.email, status).await;
        }
        tracing::warn!(%account, ?status, "an address takes no mail, and is not the account's own: it is not marked");
        Ok(())
    }
}
