//! The DynamoDB requests that create, update and read account items, and that set the mail status of an account after a
//! bounce.

use std::collections::{BTreeSet, HashMap};

use crate::items::read_account;
use crate::keys;
use crate::table::payments_table::Table;
use billing::{Account, AccountChanges, AccountId, EmailAddress, Locale, MailStatus, NewAction};
use dynamo::{ABSENT, Entity as _, ItemRewrite, TransactionOutcome};
use dynamo::{Key, TableError};

/// The result of creating or updating an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PutAccountOutcome {
    Created(Account),
    /// The account existed, and now has the requested content. (If its content was already the same, nothing was
    /// written.)
    Updated(Account),
    /// Nothing was written: the erasure of the account was requested.
    BeingErased,
    /// Nothing was written: the account was erased.
    Erased,
}

/// The result of changing an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeAccountOutcome {
    /// The account has the requested content. (If its content was already the same, nothing was written.)
    Changed(Account),
    /// The account does not exist, or was erased.
    Missing,
    /// Nothing was written: the erasure of the account was requested.
    BeingErased,
}

impl Table {
    /// Creates `account`. If the account exists, replaces the e-mail address, name and locale of the stored account.
    /// Sends the requests of [`Table::put_account_with_changes`].
    pub async fn put_account(&self, account: &Account) -> Result<PutAccountOutcome, TableError> {
        let (email, name, locale) = (account.email.clone(), account.name.clone(), account.locale.clone());
        let changes = AccountChanges { email: Some(email), name: Some(name), locale: Some(locale), mail_status: None };
        self.put_account_with_changes(account, &changes, None).await
    }

    /// Creates `account`. If the account exists, applies `changes` to the stored account. Sends a PutItem request on
    /// condition that the account is absent. If the account exists, sends a GetItem request, and an UpdateItem request
    /// with the changed attributes, on condition that `Version` is unchanged. With an `action`, sends
    /// TransactWriteItems requests instead of PutItem and UpdateItem requests, and writes the entry of the action in
    /// the same transaction.
    pub async fn put_account_with_changes(
        &self,
        account: &Account,
        changes: &AccountChanges,
        action: Option<&NewAction>,
    ) -> Result<PutAccountOutcome, TableError> {
        let is_created = match action {
            Some(action) => self.create_account_with_action(account, action).await?,
            None => self.create_account(account).await?,
        };
        if is_created {
            return Ok(PutAccountOutcome::Created(account.clone()));
        }
        match self.change_account(&account.id, changes, action).await? {
            ChangeAccountOutcome::Changed(account) => Ok(PutAccountOutcome::Updated(account)),
            ChangeAccountOutcome::BeingErased => Ok(PutAccountOutcome::BeingErased),
            // Accounts are never deleted. So an item exists, but it is the mark of an erased account.
            ChangeAccountOutcome::Missing => Ok(PutAccountOutcome::Erased),
        }
    }

    /// Applies `changes` to the account `id`, and writes the action-log entry of `action`. Sends a GetItem request. If
    /// the account changes, each try also sends one UpdateItem request or, with an `action`, one TransactWriteItems
    /// request.
    pub async fn change_account(
        &self,
        id: &AccountId,
        changes: &AccountChanges,
        action: Option<&NewAction>,
    ) -> Result<ChangeAccountOutcome, TableError> {
        let Some(stored) = self.get_account(id).await? else { return Ok(ChangeAccountOutcome::Missing) };
        let change = |stored: &Account| {
            if stored.erasure_requested_at.is_some() {
                return None;
            }
            let changed = stored.apply_changes(changes);
            let log_entry = action.map(|action| self.build_action_put(&action.on_account(Some(stored), &changed)));
            Some(ItemRewrite { log_entry, ..ItemRewrite::without_records(changed) })
        };
        Ok(match self.change_with_records(stored, change).await? {
            Some(stored) if stored.erasure_requested_at.is_some() => ChangeAccountOutcome::BeingErased,
            Some(stored) => ChangeAccountOutcome::Changed(stored),
            None => ChangeAccountOutcome::Missing,
        })
    }

    /// Creates `account`, unless an account with its id exists. Returns whether it was created. Sends one PutItem
    /// request, on condition that the account is absent.
    pub async fn create_account(&self, account: &Account) -> Result<bool, TableError> {
        self.put_if_absent(account.to_item()).await
    }

    /// Creates `account` with the action-log entry of `action`, unless an account with its id exists. Returns whether
    /// it was created. Sends one TransactWriteItems request.
    async fn create_account_with_action(&self, account: &Account, action: &NewAction) -> Result<bool, TableError> {
        let entry = self.build_action_put(&action.on_account(None, account));
        let writes = vec![self.build_put_if(account.to_item(), ABSENT, None), entry];
        Ok(matches!(self.transact_with_retries(writes).await?, TransactionOutcome::Written))
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
        self.change_item(stored, marked).await.map(drop)
    }

    /// Returns the account `id`; `None` if it does not exist, or was erased. Sends one strongly consistent GetItem
    /// request.
    pub async fn get_account(&self, id: &AccountId) -> Result<Option<Account>, TableError> {
        self.get(keys::key_of_account(id)).await?.map_or(Ok(None), |item| read_account(&item))
    }

    /// Returns the locales of `accounts`. The result lacks accounts that do not exist, were erased or cannot be read.
    /// Sends a BatchGetItem request for each 100 accounts.
    pub async fn get_locales(&self, accounts: &BTreeSet<AccountId>) -> Result<HashMap<AccountId, Locale>, TableError> {
        let account_keys: Vec<Key> = accounts.iter().map(keys::key_of_account).collect();
        let items = self.dynamo.get_all(&account_keys).await?;
        let stored = items.iter().flatten().filter_map(|item| read_account(item).ok().flatten());
        Ok(stored.map(|account| (account.id, account.locale)).collect())
    }
}
