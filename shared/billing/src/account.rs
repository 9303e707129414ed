//! The account: who pays.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{AccountId, EmailAddress, Label, Locale};

/// Who pays: one person or company with any number of subscriptions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    pub id: AccountId,
    pub email: EmailAddress,
    pub name: Label,
    pub locale: Locale,
    pub mail_status: MailStatus,
    pub created_at: DateTime<Utc>,
    /// Raised by one with every write.
    pub version: u64,
}

impl Account {
    /// Whether mail to `address` is given up: that of the account itself, which takes none.
    pub fn refuses_mail_to(&self, address: &EmailAddress) -> bool {
        self.mail_status != MailStatus::Deliverable && *address == self.email
    }
}

/// Whether mail to an address arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum MailStatus {
    /// Nothing is known against it.
    #[default]
    Deliverable,
    /// The address refused a mail for good.
    Bounced,
    /// Its owner reported a mail as unwanted.
    Complained,
}
