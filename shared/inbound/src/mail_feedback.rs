//! Handles bounces and complaints, which Amazon SES publishes through SNS. Marks an email address that bounces
//! permanently or whose owner complains, so that no more mail is sent to it.

use billing::{AccountId, MailStatus};
use mail::is_same_mailbox;
use store::{Table, TableError};

use super::ses_message::{SesMessage, UnreadableSesMessage};

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
    #[error(transparent)]
    Unreadable(#[from] UnreadableSesMessage),
}

impl MailFeedbackHandler {
    /// Creates a handler that marks the addresses of the accounts in `table`.
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// Handles `message`, which SES or SNS has sent to the topic. Repeated and late events are harmless: an address that
    /// no longer belongs to the account is not marked. Messages about the topic itself change nothing.
    ///
    /// # Errors
    /// - [`FeedbackError::Unreadable`] if `message` is not a message of SES or SNS, or does not contain the account, as
    ///   events of the configuration set do.
    /// - [`FeedbackError::Table`] if a request to the table failed.
    pub async fn handle(&self, message: &str) -> Result<(), FeedbackError> {
        match SesMessage::read(message)? {
            SesMessage::AboutTopic => tracing::info!("Amazon SES has checked the topic of bounces and complaints"),
            SesMessage::StillDeliverable => {}
            SesMessage::Refused { status, account, addresses } => {
                for address in addresses {
                    self.set_mail_status_of_address(&account, &address, status).await?;
                }
            }
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
        // Compare the addresses without a display name: the receiving mail server may have added one, or changed capital
        // and small letters. SES returns the domain in Punycode.
        let address = address.rsplit_once('<').map_or(address, |(_, rest)| rest.trim_end_matches('>'));
        let Some(stored) = self.table.get_account(account).await? else { return Ok(()) };
        if is_same_mailbox(stored.email.as_str(), address) {
            tracing::warn!(%account, ?status, "an email address is marked as bounced or complained, and gets no more mail");
            return self.table.set_mail_status_of_address(account, &stored.email, status).await;
        }
        tracing::warn!(%account, ?status, "a bounced or complained address is not the address of the account, so the account is not marked");
        Ok(())
    }
}
