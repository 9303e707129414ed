use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{Account, EmailAddress, Label, Locale, MailStatus};
use dynamo::{Entity, Instant};
use dynamo::{Item, Key, TableError};

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AccountItem {
    email: EmailAddress,
    name: Label,
    locale: Locale,
    mail_status: MailStatus,
    created_date: Instant,
    erasure_date: Option<Instant>,
    version: u64,
}

/// The attribute of an account with the number of creations. Absent means 0.
pub const CREATIONS: &str = "Creations";

/// Returns the number of subscriptions that were created in the account with the stored item `item`, see
/// `entities::creations`. An item of an earlier version has no number, which means 0.
pub fn creations_of_account(item: &Item) -> u64 {
    item.get(CREATIONS).and_then(|number| number.as_n().ok()?.parse().ok()).unwrap_or(0)
}

impl Entity<PaymentsSchema> for Account {
    type Attributes = AccountItem;

    fn key(&self) -> Key {
        keys::key_of_account(&self.id)
    }

    fn attributes(&self) -> AccountItem {
        AccountItem {
            email: self.email.clone(),
            name: self.name.clone(),
            locale: self.locale.clone(),
            mail_status: self.mail_status,
            created_date: Instant(self.created_at),
            erasure_date: self.erasure_requested_at.map(Instant),
            version: self.version,
        }
    }

    fn read(key: Key, item: AccountItem) -> Result<Self, TableError> {
        let id = key.pk.strip_prefix(keys::ACCOUNTS).and_then(|id| id.parse().ok());
        Ok(Self {
            id: id.ok_or_else(|| TableError::unreadable(key, "its key is not the key of an account"))?,
            email: item.email,
            name: item.name,
            locale: item.locale,
            mail_status: item.mail_status,
            created_at: item.created_date.0,
            erasure_requested_at: item.erasure_date.map(|at| at.0),
            version: item.version,
        })
    }
}
