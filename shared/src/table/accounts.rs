//! Accounts.

use super::expression::{difference, names};
use super::items::{AccountItem, from_item, to_item};
use super::subscriptions::ABSENT;
use super::{MAX_ROUNDS, Table, TableError, keys, n, s};
use crate::billing::{Account, AccountId};

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
        const UNCHANGED: &str = "#Version = :seen";
        for _ in 0..MAX_ROUNDS {
            let Some(stored) = self.get_account(&account.id).await? else {
                if self.create_account(account).await? {
                    return Ok(PutAccount::Created(account.clone()));
                }
                continue;
            };
            let mut wanted = Account {
                email: account.email.clone(),
                name: account.name.clone(),
                locale: account.locale.clone(),
                ..stored.clone()
            };
            if wanted.email != stored.email {
                wanted.mail_status = account.mail_status;
            }
            if wanted == stored {
                return Ok(PutAccount::Updated(stored));
            }
            wanted.version += 1;
            let (before, after) = (to_item(&AccountItem::from(&stored)), to_item(&AccountItem::from(&wanted)));
            let Some(change) = difference(&before, &after) else { return Ok(PutAccount::Updated(stored)) };
            let key = keys::account(&account.id);
            let update = self
                .client
                .update_item()
                .table_name(&self.name)
                .key("PK", s(key.pk))
                .key("SK", s(key.sk))
                .set_expression_attribute_names(Some(names(&[&change.update, UNCHANGED])))
                .update_expression(change.update)
                .condition_expression(UNCHANGED)
                .set_expression_attribute_values(Some(change.values))
                .expression_attribute_values(":seen", n(stored.version));
            match update.send().await {
                Ok(_) => return Ok(PutAccount::Updated(wanted)),
                Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => {}
                Err(error) => return Err(TableError::request("UpdateItem", error)),
            }
        }
        Err(TableError::Contended { operation: "put_account" })
    }

    /// Creates `account`, unless there is one of its id; answers whether it was created. PutItem if absent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_account(&self, account: &Account) -> Result<bool, TableError> {
        let put = self
            .client
            .put_item()
            .table_name(&self.name)
            .set_item(Some(to_item(&AccountItem::from(account))))
            .condition_expression(ABSENT)
            .set_expression_attribute_names(Some(names(&[ABSENT])));
        match put.send().await {
            Ok(_) => Ok(true),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => {
                Ok(false)
            }
            Err(error) => Err(TableError::request("PutItem", error)),
        }
    }

    /// The account `id`. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_account(&self, id: &AccountId) -> Result<Option<Account>, TableError> {
        let key = keys::account(id);
        let get = self
            .client
            .get_item()
            .table_name(&self.name)
            .key("PK", s(key.pk))
            .key("SK", s(key.sk))
            .consistent_read(true);
        let answer = get.send().await.map_err(|error| TableError::request("GetItem", error))?;
        answer.item.map(|item| from_item::<AccountItem>(&item)?.try_into()).transpose()
    }
}
