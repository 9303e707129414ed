//! The requests for subscriptions (access patterns createSubscription, updateSubscription, getSubscriptionsByAccount).

use aws_sdk_dynamodb::types::ReturnValue;
use serde::{Deserialize, Serialize};

use super::items::is_erased_account;
use super::{ChangeRecords, IdempotentRequest, Item, Page, Paging, Replayed, Table, TableError, keys};
use billing::{Account, AccountId, Subscription, SubscriptionCode, SubscriptionId};
use dynamo::{
    ABSENT, Entity as _, PrefixQuery, TransactionOutcome, UpdateItemOutcome, from_item, to_item, with_next_version,
};

/// The result of creating a subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CreateOutcome {
    Created,
    /// A subscription with this id exists already.
    Exists,
    /// The account does not exist.
    NoAccount,
    /// The erasure of the account was requested. `is_complete` is true if the account is already erased.
    AccountErased {
        is_complete: bool,
    },
    /// The idempotency key of the request was used before. Contains the earlier use of the key.
    Replayed(Replayed),
}

/// The result of updating a subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UpdateOutcome {
    /// The subscription now has this content, with an incremented version. (If its content was already the same,
    /// nothing was written.)
    Applied(Subscription),
    /// Another worker has changed the subscription. Contains the stored subscription, or `None` if it does not exist
    /// any more.
    Conflict(Option<Subscription>),
}

/// Subscriptions to create together in one transaction, with their accounts.
#[derive(Clone, Debug, Default)]
pub struct NewSubscriptions {
    /// The accounts of the subscriptions, each account once. With `Some`, this account is created. With `None`, an
    /// account with the id must exist.
    pub accounts: Vec<(AccountId, Option<Account>)>,
    /// The subscriptions, each with the idempotency record of the request that creates it.
    pub subscriptions: Vec<(Subscription, IdempotentRequest)>,
}

impl Table {
    /// Creates all accounts and subscriptions of `many` or nothing, in one TransactWriteItems request of at most 100
    /// writes: one for each account and three for each subscription. Returns `false`, and creates nothing, in these
    /// cases: an account or a subscription to create, or an idempotency record, exists already; an account that must
    /// exist does not exist; or the erasure of such an account was requested.
    pub async fn create_subscriptions(&self, many: &NewSubscriptions) -> Result<bool, TableError> {
        let accounts = many.accounts.iter().map(|(id, new)| match new {
            Some(account) => self.build_put_if(account.to_item(), ABSENT, None),
            None => self.build_account_check(id),
        });
        let subscriptions = many.subscriptions.iter().flat_map(|(subscription, request)| {
            [
                self.build_put_if(subscription.to_item(), ABSENT, None),
                self.build_put(subscription_code_item(subscription)),
                self.build_idempotency_put(request),
            ]
        });
        let outcome = self.transact_with_retries(accounts.chain(subscriptions).collect()).await?;
        Ok(matches!(outcome, TransactionOutcome::Written))
    }

    /// createSubscription: creates `subscription`, the item that stores the code of the subscription in receipt
    /// numbers, and `records`. Sends one TransactWriteItems request, which also checks that the account exists, that
    /// the erasure of the account was not requested, and that the subscription does not exist.
    pub async fn create_subscription<'a>(
        &self,
        subscription: &Subscription,
        records: impl Into<ChangeRecords<'a>>,
    ) -> Result<CreateOutcome, TableError> {
        let ChangeRecords { request, action } = records.into();
        let check = self.build_account_check(&subscription.account);
        let mut writes = vec![check, self.build_put_if(subscription.to_item(), ABSENT, None)];
        writes.extend(request.map(|request| self.build_idempotency_put(request)));
        writes.push(self.build_put(subscription_code_item(subscription)));
        writes.extend(action.map(|action| self.build_action_put(&action.on_subscription(None, subscription))));
        let TransactionOutcome::ConditionFailed(failed) = self.transact_with_retries(writes).await? else {
            return Ok(CreateOutcome::Created);
        };
        if let (Some(request), Some(Some(stored))) = (request, failed.get(2)) {
            return Ok(CreateOutcome::Replayed(request.compare_with_record(stored)?));
        }
        if failed.get(1).is_some_and(Option::is_some) {
            return Ok(CreateOutcome::Exists);
        }
        // If the account does not exist, the stored item has no attributes.
        Ok(match failed.into_iter().next().flatten().filter(|item| !item.is_empty()) {
            Some(item) => CreateOutcome::AccountErased { is_complete: is_erased_account(&item) },
            None => CreateOutcome::NoAccount,
        })
    }

    /// updateSubscription: writes the attributes in which `after` differs from `before`, if the stored version is the
    /// version of `before`. Writes nothing if `before` and `after` are equal. Sends one UpdateItem request.
    pub async fn update_subscription(
        &self,
        before: &Subscription,
        after: &Subscription,
    ) -> Result<UpdateOutcome, TableError> {
        let written = with_next_version(before, after.clone());
        let Some(update) = self.build_versioned_update(before, &written) else {
            return Ok(UpdateOutcome::Applied(written));
        };
        match self.send_update(update, ReturnValue::None).await? {
            UpdateItemOutcome::Updated(_) => Ok(UpdateOutcome::Applied(written)),
            UpdateItemOutcome::ConditionFailed(stored) => {
                stored.map(|item| Subscription::from_item(&item)).transpose().map(UpdateOutcome::Conflict)
            }
        }
    }

    /// getSubscriptionsByAccount: returns the subscriptions of an account in the order of their ids. Ids that this
    /// system creates begin with the time of their creation; ids of imported subscriptions do not. Sends a Query with
    /// `PK = ACC#<account> AND begins_with(SK, "SUB#")`.
    pub async fn get_subscriptions_by_account(
        &self,
        account: &AccountId,
        paging: &Paging,
    ) -> Result<Page<Subscription>, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_account(account), keys::SUBSCRIPTIONS);
        Ok(self.list(&list, paging).await?.read(read_subscription))
    }

    /// Returns the subscription `id` of `account`; `None` if it does not exist. The caller need not know its SKU, which
    /// is a part of its key. Sends a Query with `PK = ACC#<account> AND begins_with(SK, "SUB#<id>#")`.
    pub async fn get_subscription(
        &self,
        account: &AccountId,
        id: SubscriptionId,
    ) -> Result<Option<Subscription>, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_account(account), keys::sort_key_prefix_of_subscription(id));
        Ok(self.list(&list, &Paging::all()).await?.read(read_subscription).require_all_readable()?.items.pop())
    }

    /// Returns the account and the id of the subscription with this code. `None` if no subscription has this code, or
    /// if an earlier version of Dueday, which did not store the code, created the subscription. Sends one GetItem
    /// request.
    pub async fn find_subscription_by_receipt_code(
        &self,
        code: SubscriptionCode,
    ) -> Result<Option<(AccountId, SubscriptionId)>, TableError> {
        let Some(item) = self.get(keys::key_of_subscription_code(code)).await? else { return Ok(None) };
        let CodeItem { account, subscription } = from_item(&item)?;
        Ok(Some((account, subscription)))
    }
}

/// The attributes of the item that stores which subscription has a code. Receipt numbers contain this code.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CodeItem {
    account: AccountId,
    subscription: SubscriptionId,
}

/// Returns the item that stores the code of `subscription`. The item is written without a condition. If two
/// subscriptions have the same code (60 bits of a hash), the item contains the subscription that was created later. The
/// receipts of the other subscription can then be found only by their number together with the account.
fn subscription_code_item(subscription: &Subscription) -> Item {
    let Subscription { account, id, .. } = subscription;
    let mut item = keys::key_of_subscription_code(SubscriptionCode::compute(account, *id)).attributes();
    item.extend(to_item(&CodeItem { account: account.clone(), subscription: *id }));
    item
}

/// Reads a subscription from its item.
pub(super) fn read_subscription(item: Item) -> Result<Subscription, TableError> {
    Subscription::from_item(&item)
}
