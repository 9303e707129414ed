//! Accounts.

use super::{Table, TableError, keys};
use billing::{Account, AccountId, EmailAddress, MailStatus};
use dynamo::{Entity as _, Next, Rewritten, key_of};

/// What putting an account came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PutAccount {
    Created(Account),
    /// It was there and is now (or was already) as asked for.
    Updated(Account),
}

impl Table {
    /// Creates `account`, or gives the stored one its address, name and locale.
    /// PutItem if absent, else UpdateItem of what differs, conditional on `Version`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_account(&self, account: &Account) -> Result<PutAccount, TableError> {
        if self.create_account(account).await? {
            return Ok(PutAccount::Created(account.clone()));
        }
        let Some(stored) = self.get_account(&account.id).await? else {
            return Err(TableError::Contended { key: account.key() });
        };
        let wanted = |stored: &Account| {
            let is_new_address = account.email != stored.email;
            let mail_status = if is_new_address { account.mail_status } else { stored.mail_status };
            let (email, name, locale) = (account.email.clone(), account.name.clone(), account.locale.clone());
            Ok(Next::only(Account { email, name, locale, mail_status, ..stored.clone() }))
        };
        match self.rewrite(stored, wanted, |item| Err(TableError::Exists { key: key_of(item) })).await? {
            Rewritten::Applied(account) | Rewritten::Left(account) => Ok(PutAccount::Updated(account)),
            Rewritten::Gone => Err(TableError::Contended { key: account.key() }),
        }
    }

    /// Creates `account`, unless there is one of its id; answers whether it was created. PutItem if absent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_account(&self, account: &Account) -> Result<bool, TableError> {
        self.put_if_absent(account.to_item()).await
    }

    /// Notes what is known of the address that `stored` has, if it has it still. Answers what is stored, `None` if that is gone.
    /// UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn set_mail_status(&self, stored: Account, status: MailStatus) -> Result<Option<Account>, TableError> {
        let email = stored.email.clone();
        let known =
            |stored: &Account| (stored.email == email).then(|| Account { mail_status: status, ..stored.clone() });
        self.change(stored, known).await
    }

    /// Notes that mail to `address` does not arrive, or is not wanted, if that is the account's address still. What was complained of is
    /// not merely bounced later. GetItem, UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn mark_address(
        &self,
        id: &AccountId,
        address: &EmailAddress,
        status: MailStatus,
    ) -> Result<(), TableError> {
        let Some(stored) = self.get_account(id).await? else { return Ok(()) };
        let marked = |stored: &Account| {
            let is_news = stored.email == *address && stored.mail_status != MailStatus::Complained;
            is_news.then(|| Account { mail_status: status, ..stored.clone() })
        };
        self.change(stored, marked).await.map(drop)
    }

    /// The account `id`. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_account(&self, id: &AccountId) -> Result<Option<Account>, TableError> {
        self.get(keys::account(id)).await?.map(|item| Account::from_item(&item)).transpose()
    }
}
