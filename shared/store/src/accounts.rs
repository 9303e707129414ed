//! The requests for accounts: create, update and read them, and set their mail status.

use super::{Table, TableError, keys};
use billing::{Account, AccountChanges, AccountId, EmailAddress, MailStatus};
use dynamo::Entity as _;

/// The result of creating or updating an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PutAccountOutcome {
    Created(Account),
    /// The account existed, and now has the requested content. (If its content was already the same, nothing was
    /// written.)
    Updated(Account),
}

impl Table {
    /// Creates `account`. If it exists, replaces the e-mail address, name and locale of the stored account. Sends the
    /// requests of [`Table::put_account_with_changes`].
    pub async fn put_account(&self, account: &Account) -> Result<PutAccountOutcome, TableError> {
        let (email, name, locale) = (account.email.clone(), account.name.clone(), account.locale.clone());
        let changes = AccountChanges { email: Some(email), name: Some(name), locale: Some(locale) };
        self.put_account_with_changes(account, &changes).await
    }

    /// Creates `account`. If it exists, applies `changes` to the stored account. Sends a PutItem request on condition
    /// that the account is absent. If the account exists, sends a GetItem request, and an UpdateItem request with the
    /// changed attributes, on condition that `Version` is unchanged.
    pub async fn put_account_with_changes(
        &self,
        account: &Account,
        changes: &AccountChanges,
    ) -> Result<PutAccountOutcome, TableError> {
        if self.create_account(account).await? {
            return Ok(PutAccountOutcome::Created(account.clone()));
        }
        match self.change_account(&account.id, changes).await? {
            Some(account) => Ok(PutAccountOutcome::Updated(account)),
            None => Err(TableError::Contended { key: account.key() }),
        }
    }

    /// Applies `changes` to the account `id`. Returns the stored account; `None` if it does not exist. Sends a GetItem
    /// request, and one UpdateItem request per try if something changes.
    pub async fn change_account(
        &self,
        id: &AccountId,
        changes: &AccountChanges,
    ) -> Result<Option<Account>, TableError> {
        let Some(stored) = self.get_account(id).await? else { return Ok(None) };
        self.change(stored, |stored: &Account| Some(stored.change(changes))).await
    }

    /// Creates `account`, unless an account with its id exists. Returns whether it was created. Sends one PutItem
    /// request, on condition that the account is absent.
    pub async fn create_account(&self, account: &Account) -> Result<bool, TableError> {
        self.put_if_absent(account.to_item()).await
    }

    /// Sets the mail status of the account `stored`, unless the account's email address has changed since `stored` was
    /// read. Returns the stored account; `None` if it does not exist any more. Sends one UpdateItem request per try.
    pub async fn set_mail_status(&self, stored: Account, status: MailStatus) -> Result<Option<Account>, TableError> {
        let email = stored.email.clone();
        let with_status =
            |stored: &Account| (stored.email == email).then(|| Account { mail_status: status, ..stored.clone() });
        self.change(stored, with_status).await
    }

    /// Sets the mail status of `address` after a bounce or a complaint, if the account still has this address. A bounce
    /// never replaces a complaint. Sends GetItem and UpdateItem requests.
    pub async fn set_mail_status_of_address(
        &self,
        id: &AccountId,
        address: &EmailAddress,
        status: MailStatus,
    ) -> Result<(), TableError> {
        let Some(stored) = self.get_account(id).await? else { return Ok(()) };
        let marked = |stored: &Account| {
            let may_change = stored.email == *address && stored.mail_status != MailStatus::Complained;
            may_change.then(|| Account { mail_status: status, ..stored.clone() })
        };
        self.change(stored, marked).await.map(drop)
    }

    /// Returns the account `id`; `None` if it does not exist. Sends one strongly consistent GetItem request.
    pub async fn get_account(&self, id: &AccountId) -> Result<Option<Account>, TableError> {
        self.get(keys::key_of_account(id)).await?.map(|item| Account::from_item(&item)).transpose()
    }
}
