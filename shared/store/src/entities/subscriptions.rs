//! The requests for subscriptions (access patterns updateSubscription, getSubscriptionsByAccount).

use aws_sdk_dynamodb::types::{ReturnValue, TransactWriteItem};
use serde::{Deserialize, Serialize};

use crate::entities::actions::ChangeRecords;
use crate::items::read_account;
use crate::keys;
use crate::table::payments_table::Table;
use billing::{AccountId, Subscription, SubscriptionCode, SubscriptionId};
use dynamo::{
    ABSENT, Entity as _, PrefixQuery, TransactionOutcome, UpdateItemOutcome, from_item, to_item, with_next_version,
};
use dynamo::{IdempotencyKeyReuse, Item, Page, Paging, TableError};

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
    Replayed(IdempotencyKeyReuse),
    /// Another subscription of the account was created since the account was read.
    AccountChanged,
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

/// The writes of the transaction that creates a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NewSubscriptionWrite {
    Account,
    Subscription,
    SubscriptionCode,
    IdempotencyRecord,
    ActionEntry,
}

impl Table {
    /// Creates `subscription`, the item that stores the code of the subscription in receipt numbers, and `records`.
    /// Sends one TransactWriteItems request, which also checks that the account exists, that the erasure of the account
    /// was not requested, and that the subscription does not exist. Does not look at the other subscriptions of the
    /// account: [`Table::create_subscription_of_account`] does.
    pub async fn create_subscription<'a>(
        &self,
        subscription: &Subscription,
        records: impl Into<ChangeRecords<'a>>,
    ) -> Result<CreateOutcome, TableError> {
        self.write_new_subscription(self.build_account_check(&subscription.account), subscription, records.into()).await
    }

    /// Creates `subscription` like [`Table::create_subscription`]. `account_write` is the write of the transaction that
    /// checks the account. If its condition fails although the account exists and is not being erased, returns
    /// [`CreateOutcome::AccountChanged`].
    pub(crate) async fn write_new_subscription(
        &self,
        account_write: TransactWriteItem,
        subscription: &Subscription,
        ChangeRecords { request, action }: ChangeRecords<'_>,
    ) -> Result<CreateOutcome, TableError> {
        let code = self.build_put(subscription_code_item(subscription));
        let mut writes = vec![
            (NewSubscriptionWrite::Account, account_write),
            (NewSubscriptionWrite::Subscription, self.build_put_if(subscription.to_item(), ABSENT, None)),
            (NewSubscriptionWrite::SubscriptionCode, code),
        ];
        writes.extend(
            request.map(|request| (NewSubscriptionWrite::IdempotencyRecord, self.build_idempotency_put(request))),
        );
        let entry = action.map(|action| self.build_action_put(&action.on_subscription(None, subscription)));
        writes.extend(entry.map(|entry| (NewSubscriptionWrite::ActionEntry, entry)));
        let TransactionOutcome::ConditionFailed(failed) = self.transact_named(writes).await? else {
            return Ok(CreateOutcome::Created);
        };
        if let (Some(request), Some(stored)) = (request, failed.item(NewSubscriptionWrite::IdempotencyRecord)) {
            return Ok(CreateOutcome::Replayed(request.compare_with_record(stored)?));
        }
        if failed.item(NewSubscriptionWrite::Subscription).is_some() {
            return Ok(CreateOutcome::Exists);
        }
        // If the account does not exist, the stored item has no attributes.
        let Some(item) = failed.item(NewSubscriptionWrite::Account).filter(|item| !item.is_empty()) else {
            return Ok(CreateOutcome::NoAccount);
        };
        Ok(match read_account(item)? {
            None => CreateOutcome::AccountErased { is_complete: true },
            Some(account) if account.erasure_requested_at.is_some() => {
                CreateOutcome::AccountErased { is_complete: false }
            }
            Some(_) => CreateOutcome::AccountChanged,
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
        Ok(self.list_items(&list, paging).await?.read(read_subscription))
    }

    /// Returns the subscription `id` of `account`; `None` if it does not exist. The caller need not know its SKU, which
    /// is a part of its key. Sends a Query with `PK = ACC#<account> AND begins_with(SK, "SUB#<id>#")`.
    pub async fn get_subscription(
        &self,
        account: &AccountId,
        id: SubscriptionId,
    ) -> Result<Option<Subscription>, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_account(account), keys::sort_key_prefix_of_subscription(id));
        Ok(self.list_items(&list, &Paging::all()).await?.read(read_subscription).require_all_readable()?.items.pop())
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
pub(crate) fn subscription_code_item(subscription: &Subscription) -> Item {
    let Subscription { account, id, .. } = subscription;
    let mut item = keys::key_of_subscription_code(SubscriptionCode::compute(account, *id)).attributes();
    item.extend(to_item(&CodeItem { account: account.clone(), subscription: *id }));
    item
}

/// Returns the item that this program would store for the code in `item`: its key follows from its account and its
/// subscription.
pub(crate) fn expected_code_item(item: &Item) -> Result<Item, TableError> {
    let code: CodeItem = from_item(item)?;
    let mut expected = to_item(&code);
    expected.extend(
        keys::key_of_subscription_code(SubscriptionCode::compute(&code.account, code.subscription)).attributes(),
    );
    Ok(expected)
}

/// Reads a subscription from its item.
pub(crate) fn read_subscription(item: Item) -> Result<Subscription, TableError> {
    Subscription::from_item(&item)
}
