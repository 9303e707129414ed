//! Subscriptions: createSubscription, updateSubscription, getSubscriptionsByAccount.

use aws_sdk_dynamodb::types::{ConditionCheck, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};

use super::expression::{difference, names};
use super::items::{SubscriptionItem, from_item, to_item};
use super::{
    IdempotentRequest, Item, Key, List, Page, Paging, Replayed, SubscriptionKey, Table, TableError, keys, n, s,
};
use crate::billing::{AccountId, Subscription, SubscriptionId};

pub(super) const ABSENT: &str = "attribute_not_exists(#PK)";
const PRESENT: &str = "attribute_exists(#PK)";
const UNCHANGED: &str = "#Version = :seen";

/// A transaction that meets another one on the same items is tried again this many times.
const MAX_CONFLICTS: u32 = 5;

/// What creating a subscription came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Created {
    Created,
    /// There is one of this id already.
    Exists,
    /// There is no such account.
    NoAccount,
    /// Its idempotency key was used before.
    Replayed(Replayed),
}

/// What updating a subscription came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Updated {
    /// It is now this, with its version raised (or was this already, and nothing was written).
    Written(Subscription),
    /// It was written by somebody else: this is stored (`None`: it is gone).
    Conflict(Option<Subscription>),
}

impl Table {
    /// createSubscription: TransactWriteItems of the account's presence, a put if absent, and the idempotency record
    /// if the request has a key.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_subscription(
        &self,
        subscription: &Subscription,
        request: Option<&IdempotentRequest>,
    ) -> Result<Created, TableError> {
        let account = keys::account(&subscription.account);
        let check = ConditionCheck::builder()
            .table_name(&self.name)
            .key("PK", s(account.pk))
            .key("SK", s(account.sk))
            .condition_expression(PRESENT)
            .set_expression_attribute_names(Some(names(&[PRESENT])))
            .build()
            .expect("key and condition are set");
        let item = to_item(&SubscriptionItem::from(subscription));
        let mut writes = vec![TransactWriteItem::builder().condition_check(check).build(), self.put_if_absent(item)];
        writes.extend(request.map(|request| self.keep_answer(request)));
        let Some(refused) = self.transact_patiently(writes).await? else { return Ok(Created::Created) };
        if let (Some(request), Some(Some(stored))) = (request, refused.get(2)) {
            return Ok(Created::Replayed(request.replayed(stored)?));
        }
        // The account's check asks for no item: what it refuses is `Some` without attributes.
        Ok(if refused.get(1).is_some_and(Option::is_some) { Created::Exists } else { Created::NoAccount })
    }

    /// updateSubscription: UpdateItem of the attributes in which `after` differs from `before`, conditional on the
    /// version of `before`. Writes nothing when they are the same.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn update_subscription(
        &self,
        before: &Subscription,
        after: &Subscription,
    ) -> Result<Updated, TableError> {
        let Some((update, written)) = self.subscription_update(before, after) else {
            return Ok(Updated::Written(before.clone()));
        };
        let request = self
            .client
            .update_item()
            .table_name(&self.name)
            .set_key(Some(update.key))
            .update_expression(update.update_expression)
            .set_condition_expression(update.condition_expression)
            .set_expression_attribute_names(update.expression_attribute_names)
            .set_expression_attribute_values(update.expression_attribute_values)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match request.send().await {
            Ok(_) => Ok(Updated::Written(written)),
            Err(error) => match refused(&error) {
                Some(stored) => stored.map(read).transpose().map(Updated::Conflict),
                None => Err(TableError::request("UpdateItem", error)),
            },
        }
    }

    /// getSubscriptionsByAccount: Query `PK = ACC#<account> AND begins_with(SK, "SUB#")`, oldest first, as many as
    /// `paging` asks for.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_subscriptions_by_account(
        &self,
        account: &AccountId,
        paging: &Paging,
    ) -> Result<Page<Subscription>, TableError> {
        let list = List {
            partition: keys::partition(account),
            prefix: keys::SUBSCRIPTIONS.to_owned(),
            is_forward: true,
            unexpired_at: None,
        };
        self.list(&list, paging).await?.map(read)
    }

    /// One subscription, whatever its SKU. Query `PK = ACC#<account> AND begins_with(SK, "SUB#<id>#")`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_subscription(
        &self,
        account: &AccountId,
        id: SubscriptionId,
    ) -> Result<Option<Subscription>, TableError> {
        let prefix = keys::subscription_prefix(id);
        let list = List { partition: keys::partition(account), prefix, is_forward: true, unexpired_at: None };
        Ok(self.list(&list, &Paging::all()).await?.map(read)?.items.pop())
    }

    /// The write of `after` on top of `before`, and what is stored once it is done; `None` when they are the same.
    pub(super) fn subscription_update(
        &self,
        before: &Subscription,
        after: &Subscription,
    ) -> Option<(Update, Subscription)> {
        if *before == (Subscription { version: before.version, ..after.clone() }) {
            return None;
        }
        let written = Subscription { version: before.version + 1, ..after.clone() };
        let change =
            difference(&to_item(&SubscriptionItem::from(before)), &to_item(&SubscriptionItem::from(&written)))?;
        let Key { pk, sk } = SubscriptionKey::of(before).key();
        let update = Update::builder()
            .table_name(&self.name)
            .key("PK", s(pk))
            .key("SK", s(sk))
            .set_expression_attribute_names(Some(names(&[&change.update, UNCHANGED])))
            .update_expression(change.update)
            .condition_expression(UNCHANGED)
            .set_expression_attribute_values(Some(change.values))
            .expression_attribute_values(":seen", n(before.version))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        Some((update.build().expect("key and update are set"), written))
    }

    /// A put that is refused when the item is there, and then says what is.
    pub(super) fn put_if_absent(&self, item: Item) -> TransactWriteItem {
        let put = Put::builder()
            .table_name(&self.name)
            .set_item(Some(item))
            .condition_expression(ABSENT)
            .set_expression_attribute_names(Some(names(&[ABSENT])))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        TransactWriteItem::builder().put(put.build().expect("table and item are set")).build()
    }

    /// As [`Table::transact`], again when it meets another transaction on the same items: two creations for one account
    /// check the same item, and DynamoDB lets one of them try again.
    pub(super) async fn transact_patiently(
        &self,
        writes: Vec<TransactWriteItem>,
    ) -> Result<Option<Vec<Option<Item>>>, TableError> {
        for _ in 0..MAX_CONFLICTS {
            match self.transact(writes.clone()).await {
                Err(error) if error.is_conflict() => {}
                answer => return answer,
            }
        }
        self.transact(writes).await
    }

    /// Writes all of `writes` or nothing. When conditions refused: what is stored under each write whose condition
    /// failed and that asked for it.
    pub(super) async fn transact(
        &self,
        writes: Vec<TransactWriteItem>,
    ) -> Result<Option<Vec<Option<Item>>>, TableError> {
        const OPERATION: &str = "TransactWriteItems";
        let error = match self.client.transact_write_items().set_transact_items(Some(writes)).send().await {
            Ok(_) => return Ok(None),
            Err(error) => error,
        };
        let reasons = error.as_service_error().and_then(|e| match e {
            aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException(e) => {
                Some(e.cancellation_reasons().to_vec())
            }
            _ => None,
        });
        let Some(reasons) = reasons else { return Err(TableError::request(OPERATION, error)) };
        let is_refusal = |code: &str| code == "ConditionalCheckFailed";
        let other = reasons.iter().filter_map(|r| r.code()).find(|code| *code != "None" && !is_refusal(code));
        if let Some(code) = other {
            return Err(TableError::cancelled(OPERATION, code, Box::new(error.into_service_error())));
        }
        let stored = |reason: aws_sdk_dynamodb::types::CancellationReason| {
            reason.code().is_some_and(is_refusal).then(|| reason.item.unwrap_or_default())
        };
        Ok(Some(reasons.into_iter().map(stored).collect()))
    }
}

/// Reads a stored subscription.
pub(super) fn read(item: Item) -> Result<Subscription, TableError> {
    from_item::<SubscriptionItem>(&item)?.try_into()
}

/// The stored item of an UpdateItem whose condition failed; `Some(None)` when there is none.
pub(super) fn refused(
    error: &aws_sdk_dynamodb::error::SdkError<aws_sdk_dynamodb::operation::update_item::UpdateItemError>,
) -> Option<Option<Item>> {
    match error.as_service_error()? {
        aws_sdk_dynamodb::operation::update_item::UpdateItemError::ConditionalCheckFailedException(e) => {
            Some(e.item.clone().filter(|item| !item.is_empty()))
        }
        _ => None,
    }
}
