//! The account: the record of a payer.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::Display;

use crate::values::contact_data::{EmailAddress, Label, Locale};
use crate::values::ids::AccountId;

/// The record of a payer: one person or company, with any number of subscriptions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    pub id: AccountId,
    pub email: EmailAddress,
    pub name: Label,
    pub locale: Locale,
    pub mail_status: MailStatus,
    pub created_at: DateTime<Utc>,
    /// When the erasure of the account was requested; `None` if no erasure was requested. After the request, the
    /// account cannot be changed.
    pub erasure_requested_at: Option<DateTime<Utc>>,
    /// The version of the stored item. Every write increases it by one.
    pub version: u64,
}

/// The changes of an account that a caller requests. A field that is `None` stays unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccountChanges {
    /// The new e-mail address. If this address differs from the stored address, the mail status becomes `deliverable`.
    pub email: Option<EmailAddress>,
    pub name: Option<Label>,
    pub locale: Option<Locale>,
    /// The new mail status of the address of the account.
    pub mail_status: Option<MailStatus>,
}

impl Account {
    /// Returns the account with `changes` applied.
    #[must_use]
    pub fn apply_changes(&self, changes: &AccountChanges) -> Self {
        let mut changed = self.clone();
        if let Some(email) = changes.email.as_ref().filter(|email| **email != self.email) {
            changed.email = email.clone();
            changed.mail_status = MailStatus::Deliverable;
        }
        if let Some(name) = &changes.name {
            changed.name = name.clone();
        }
        if let Some(locale) = &changes.locale {
            changed.locale = locale.clone();
        }
        if let Some(status) = changes.mail_status {
            changed.mail_status = status;
        }
        changed
    }

    /// Returns whether mails to `address` must not be sent: `address` is the address of the account, and an earlier
    /// mail to this address bounced or was reported as spam.
    pub fn refuses_mail_to(&self, address: &EmailAddress) -> bool {
        self.mail_status != MailStatus::Deliverable && *address == self.email
    }
}

/// The mail status of an address. `deliverable`: no mail to the address has bounced or was reported as spam.
/// `bounced`: the mail server rejected a mail permanently. `complained`: the recipient reported a mail as spam.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum MailStatus {
    /// No mail to the address has bounced or was reported as spam. This is the initial status.
    #[default]
    Deliverable,
    /// The mail server of the address rejected a mail permanently.
    Bounced,
    /// The recipient reported a mail as spam.
    Complained,
}
