//! The requests for accounts: create, update and read them, and set their mail status.

use super::{Table, TableError, keys};
use billing::{Account, AccountId, EmailAddress, Locale, MailStatus};
use dynamo::{Entity as _, Rewrite, RewriteOutcome, key_of};

/// The result of creating or updating an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PutAccountOutcome {
    Created(Account),
    /// The account existed, and now has the requested content. (If its content was already the same, nothing was
    /// written.)
    Updated(Account),
}

impl Table {
    /// Creates `account`. If it exists, updates the email address, name and locale of the stored account. A new address
    /// also replaces the mail status. Sends a PutItem request on condition that the account is absent. If the account
    /// exists, sends an UpdateItem request with the changed attributes, on condition that `Version` is unchanged.
    pub async fn put_account(&self, account: &Account) -> Result<PutAccountOutcome, TableError> {
        self.put_account_with(account, |_| account.locale.clone()).await
    }

    /// Like [`Table::put_account`], but an existing account keeps its locale.
    pub async fn put_account_keeping_locale(&self, account: &Account) -> Result<PutAccountOutcome, TableError> {
        self.put_account_with(account, |stored| stored.locale.clone()).await
    }

    async fn put_account_with(
        &self,
        account: &Account,
        locale: impl Fn(&Account) -> Locale,
    ) -> Result<PutAccountOutcome, TableError> {
        if self.create_account(account).await? {
            return Ok(PutAccountOutcome::Created(account.clone()));
        }
        let Some(stored) = self.get_account(&account.id).await? else {
            return Err(TableError::Contended { key: account.key() });
        };
        let updated = |stored: &Account| {
            let is_new_address = account.email != stored.email;
            let mail_status = if is_new_address { account.mail_status } else { stored.mail_status };
            let (email, name, locale) = (account.email.clone(), account.name.clone(), locale(stored));
            Ok(Rewrite::without_records(Account { email, name, locale, mail_status, ..stored.clone() }))
        };
        match self.rewrite(stored, updated, |item| Err(TableError::Exists { key: key_of(item) })).await? {
            RewriteOutcome::Applied(account) | RewriteOutcome::Unchanged(account) => {
                Ok(PutAccountOutcome::Updated(account))
            }
            RewriteOutcome::Missing => Err(TableError::Contended { key: account.key() }),
        }
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
