//! Requests: how a key, a condition and an item are put to DynamoDB. What is asked, and why, is said elsewhere.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Put, ReturnValue, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};

use crate::Backoff;
use crate::names;
use crate::{Dynamo, Item, Key, TableError, Values};

/// A put of what must not be there yet.
pub const ABSENT: &str = "attribute_not_exists(#PK)";
/// A write of what must be there.
pub const PRESENT: &str = "attribute_exists(#PK)";

const ALL_OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;
const FAILED_CONDITION: &str = "ConditionalCheckFailed";

/// What a conditional UpdateItem came to.
#[derive(Debug)]
pub enum UpdateAnswer {
    /// It was done: the whole item as it is now, if that was asked for.
    Done(Item),
    /// The condition refused it: the stored item, `None` if there is none.
    Refused(Option<Item>),
}

/// What TransactWriteItems came to.
#[derive(Debug)]
pub enum TransactAnswer {
    /// All of it was written.
    Done,
    /// Nothing was: for each write, what is stored where its condition failed. It is empty if nothing is stored, or if
    /// the write did not ask.
    Refused(Vec<Option<Item>>),
}

pub fn s(text: impl ToString) -> AttributeValue {
    AttributeValue::S(text.to_string())
}

pub fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// The values of an expression, each with its placeholder.
pub fn values<const N: usize>(values: [(&str, AttributeValue); N]) -> Values {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl<S> Dynamo<S> {
    /// GetItem, strongly consistent.
    pub async fn get(&self, key: Key) -> Result<Option<Item>, TableError> {
        let get = self.client.get_item().table_name(&self.name).set_key(Some(key.attributes())).consistent_read(true);
        Ok(get.send().await.map_err(|error| TableError::request("GetItem", error))?.item)
    }

    /// PutItem, whatever is there.
    pub async fn put(&self, item: Item) -> Result<(), TableError> {
        let put = self.client.put_item().table_name(&self.name).set_item(Some(item));
        put.send().await.map(drop).map_err(|error| TableError::request("PutItem", error))
    }

    /// PutItem if absent; answers whether it was put.
    pub async fn put_if_absent(&self, item: Item) -> Result<bool, TableError> {
        let put = self
            .client
            .put_item()
            .table_name(&self.name)
            .set_item(Some(item))
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

    /// UpdateItem; answers the item as `wanted` says.
    pub async fn update(&self, update: Update, wanted: ReturnValue) -> Result<UpdateAnswer, TableError> {
        let request = self
            .client
            .update_item()
            .table_name(&self.name)
            .set_key(Some(update.key))
            .update_expression(update.update_expression)
            .set_condition_expression(update.condition_expression)
            .set_expression_attribute_names(update.expression_attribute_names)
            .set_expression_attribute_values(update.expression_attribute_values)
            .return_values(wanted)
            .return_values_on_condition_check_failure(ALL_OLD);
        match request.send().await {
            Ok(answer) => Ok(UpdateAnswer::Done(answer.attributes.unwrap_or_default())),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                    Ok(UpdateAnswer::Refused(refused.item.clone().filter(|item| !item.is_empty())))
                }
                _ => Err(TableError::request("UpdateItem", error)),
            },
        }
    }

    /// The update of `key` by `expression`, on `condition`, alone or as part of a transaction.
    pub fn update_of(&self, key: Key, expression: &str, condition: &str, values: Values) -> Update {
        Update::builder()
            .table_name(&self.name)
            .set_key(Some(key.attributes()))
            .set_expression_attribute_names(Some(names(&[expression, condition])))
            .update_expression(expression)
            .condition_expression(condition)
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(ALL_OLD)
            .build()
            .expect("key and update are set")
    }

    /// The part of a transaction that puts `item`, whatever is there.
    pub fn put_of(&self, item: Item) -> TransactWriteItem {
        let put = Put::builder().table_name(&self.name).set_item(Some(item)).build();
        TransactWriteItem::builder().put(put.expect("table and item are set")).build()
    }

    /// The part of a transaction that puts `item` on `condition`, and when refused says what is there.
    pub fn put_of_on(&self, item: Item, condition: &str, values: Option<Values>) -> TransactWriteItem {
        let put = Put::builder()
            .table_name(&self.name)
            .set_item(Some(item))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[condition])))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(ALL_OLD)
            .build();
        TransactWriteItem::builder().put(put.expect("table and item are set")).build()
    }

    /// The part of a transaction that refuses all of it unless there is an item under `key`.
    pub fn check_present(&self, key: Key) -> TransactWriteItem {
        let check = ConditionCheck::builder()
            .table_name(&self.name)
            .set_key(Some(key.attributes()))
            .condition_expression(PRESENT)
            .set_expression_attribute_names(Some(names(&[PRESENT])))
            .build();
        TransactWriteItem::builder().condition_check(check.expect("key and condition are set")).build()
    }

    /// TransactWriteItems: all of `writes` or nothing.
    pub async fn transact(&self, writes: Vec<TransactWriteItem>) -> Result<TransactAnswer, TableError> {
        const OPERATION: &str = "TransactWriteItems";
        let error = match self.client.transact_write_items().set_transact_items(Some(writes)).send().await {
            Ok(_) => return Ok(TransactAnswer::Done),
            Err(error) => error,
        };
        let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
            return Err(TableError::request(OPERATION, error));
        };
        let reasons = cancelled.cancellation_reasons().to_vec();
        let other = reasons.iter().filter_map(|r| r.code()).find(|code| *code != "None" && *code != FAILED_CONDITION);
        if let Some(code) = other {
            return Err(TableError::cancelled(OPERATION, code, Box::new(error.into_service_error())));
        }
        let stored = |reason: CancellationReason| {
            (reason.code() == Some(FAILED_CONDITION)).then(|| reason.item.unwrap_or_default())
        };
        Ok(TransactAnswer::Refused(reasons.into_iter().map(stored).collect()))
    }

    /// As [`Dynamo::transact`], again when another transaction holds the same items: two creations for one account check
    /// the same item, and DynamoDB lets one of them try again.
    pub async fn transact_when_free(&self, writes: Vec<TransactWriteItem>) -> Result<TransactAnswer, TableError> {
        let mut backoff = Backoff::new(&self.client);
        loop {
            match self.transact(writes.clone()).await {
                Err(error) if error.is_conflict() && backoff.wait().await => {}
                answer => return answer,
            }
        }
    }
}
