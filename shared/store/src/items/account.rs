use serde::{Deserialize, Serialize};

use super::super::{Key, TableError, keys};
use billing::{Account, EmailAddress, Label, Locale, MailStatus};
use dynamo::Instant;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AccountItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    email: EmailAddress,
    name: Label,
    locale: Locale,
    mail_status: MailStatus,
    created_date: Instant,
    version: u64,
}

impl From<&Account> for AccountItem {
    fn from(account: &Account) -> Self {
        let Key { pk, sk } = keys::account(&account.id);
        Self {
            pk,
            sk,
            email: account.email.clone(),
            name: account.name.clone(),
            locale: account.locale.clone(),
            mail_status: account.mail_status,
            created_date: Instant(account.created_at),
            version: account.version,
        }
    }
}

impl TryFrom<AccountItem> for Account {
    type Error = TableError;

    fn try_from(item: AccountItem) -> Result<Self, TableError> {
        let id = item.pk.strip_prefix("ACC#").and_then(|id| id.parse().ok());
        let key = Key { pk: item.pk, sk: item.sk };
        Ok(Self {
            id: id.ok_or_else(|| TableError::unreadable(key, "its key is not an account's"))?,
            email: item.email,
            name: item.name,
            locale: item.locale,
            mail_status: item.mail_status,
            created_at: item.created_date.0,
            version: item.version,
        })
    }
}
