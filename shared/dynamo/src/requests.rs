//! Conditional requests for single items, and transactions. The callers decide which items are read and written.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};

use crate::Backoff;
use crate::collect_attribute_names;
use crate::{DynamoTable, Item, Key, TableError, Values};

/// A condition expression that is true if the item does not exist.
pub const ABSENT: &str = "attribute_not_exists(#PK)";
/// A condition expression that is true if the item exists.
pub const PRESENT: &str = "attribute_exists(#PK)";

/// The option of a write with which DynamoDB returns the stored item if the condition of the write fails.
const ALL_OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;
/// The cancellation reason of a write whose condition failed.
const FAILED_CONDITION: &str = "ConditionalCheckFailed";

/// The result of a conditional UpdateItem.
#[derive(Debug)]
pub enum UpdateItemOutcome {
    /// The item was updated. Contains the attributes that the caller requested.
    Updated(Item),
    /// The condition failed and nothing was written. Contains the stored item, or `None` if the item does not exist.
    ConditionFailed(Option<Item>),
}

/// The result of TransactWriteItems. `Failed` describes the failed conditions. By default it contains one entry for
/// each write, in the order of the writes: `None` if the write's condition did not fail; otherwise the stored item. The
/// stored item is empty if it does not exist, or if the write does not request it.
#[derive(Debug)]
pub enum TransactionOutcome<Failed = Vec<Option<Item>>> {
    /// All writes were made.
    Written,
    /// A condition failed and nothing was written.
    ConditionFailed(Failed),
}

/// The writes of a transaction whose conditions failed, by the names that the caller gave them.
#[derive(Debug)]
pub struct FailedConditions<Name> {
    /// Each failed write and the stored item, in the order of the writes.
    failed: Vec<(Name, Item)>,
}

impl<Name: Copy + PartialEq> FailedConditions<Name> {
    /// Returns the name of the first write whose condition failed.
    pub fn first(&self) -> Option<Name> {
        self.failed.first().map(|(name, _)| *name)
    }

    /// Returns the stored item of the write `name`, if the condition of this write failed. The item is empty if it does
    /// not exist, or if the write does not request it.
    pub fn item(&self, name: Name) -> Option<&Item> {
        self.failed.iter().find(|(failed, _)| *failed == name).map(|(_, item)| item)
    }
}

/// Returns `text` as an attribute of the type string (S).
pub fn s(text: impl ToString) -> AttributeValue {
    AttributeValue::S(text.to_string())
}

/// Returns `number` as an attribute of the type number (N).
pub fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// Creates the values of an expression from pairs of a placeholder, such as `:now`, and its value.
pub fn values<const N: usize>(values: [(&str, AttributeValue); N]) -> Values {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl<Schema> DynamoTable<Schema> {
    /// Returns the item with `key`; `None` if it does not exist. Sends one strongly consistent GetItem request.
    pub async fn get(&self, key: Key) -> Result<Option<Item>, TableError> {
        let get = self.client.get_item().table_name(&self.name).set_key(Some(key.attributes())).consistent_read(true);
        Ok(get.send().await.map_err(|error| TableError::from_sdk_error("GetItem", error))?.item)
    }

    /// Writes `item`, and replaces a stored item with the same key. Sends one PutItem request.
    pub async fn put(&self, item: Item) -> Result<(), TableError> {
        let put = self.client.put_item().table_name(&self.name).set_item(Some(item));
        put.send().await.map(drop).map_err(|error| TableError::from_sdk_error("PutItem", error))
    }

    /// Writes `item` unless an item with the same key exists. Returns whether it was written. Sends one PutItem
    /// request.
    pub async fn put_if_absent(&self, item: Item) -> Result<bool, TableError> {
        let put = self
            .client
            .put_item()
            .table_name(&self.name)
            .set_item(Some(item))
            .condition_expression(ABSENT)
            .set_expression_attribute_names(Some(collect_attribute_names(&[ABSENT])));
        match put.send().await {
            Ok(_) => Ok(true),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => {
                Ok(false)
            }
            Err(error) => Err(TableError::from_sdk_error("PutItem", error)),
        }
    }

    /// Deletes the item `key`, if it exists. Sends one DeleteItem request.
    pub async fn delete(&self, key: Key) -> Result<(), TableError> {
        let delete = self.client.delete_item().table_name(&self.name).set_key(Some(key.attributes()));
        delete.send().await.map(drop).map_err(|error| TableError::from_sdk_error("DeleteItem", error))
    }

    /// Deletes the item `key` if `condition` is true for it. Returns whether the item was deleted. Sends one DeleteItem
    /// request.
    pub async fn delete_if(&self, key: Key, condition: &str, values: Values) -> Result<bool, TableError> {
        let delete = self
            .client
            .delete_item()
            .table_name(&self.name)
            .set_key(Some(key.attributes()))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(collect_attribute_names(&[condition])))
            .set_expression_attribute_values(Some(values));
        match delete.send().await {
            Ok(_) => Ok(true),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => {
                Ok(false)
            }
            Err(error) => Err(TableError::from_sdk_error("DeleteItem", error)),
        }
    }

    /// Executes `update`, and returns the attributes that `returned` selects. Sends one UpdateItem request.
    pub async fn send_update(&self, update: Update, returned: ReturnValue) -> Result<UpdateItemOutcome, TableError> {
        let request = self
            .client
            .update_item()
            .table_name(&self.name)
            .set_key(Some(update.key))
            .update_expression(update.update_expression)
            .set_condition_expression(update.condition_expression)
            .set_expression_attribute_names(update.expression_attribute_names)
            .set_expression_attribute_values(update.expression_attribute_values)
            .return_values(returned)
            .return_values_on_condition_check_failure(ALL_OLD);
        match request.send().await {
            Ok(output) => Ok(UpdateItemOutcome::Updated(output.attributes.unwrap_or_default())),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                    Ok(UpdateItemOutcome::ConditionFailed(failed.item.clone().filter(|item| !item.is_empty())))
                }
                _ => Err(TableError::from_sdk_error("UpdateItem", error)),
            },
        }
    }

    /// Builds the update that executes the update expression `expression` on the item `key` if `condition` is true. The
    /// caller sends the update alone or in a transaction.
    pub fn build_update(&self, key: Key, expression: &str, condition: &str, values: Values) -> Update {
        let values = (!values.is_empty()).then_some(values);
        Update::builder()
            .table_name(&self.name)
            .set_key(Some(key.attributes()))
            .set_expression_attribute_names(Some(collect_attribute_names(&[expression, condition])))
            .update_expression(expression)
            .condition_expression(condition)
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(ALL_OLD)
            .build()
            .expect("key and update are set")
    }

    /// Builds the write of a transaction that writes `item`, and replaces a stored item with the same key.
    pub fn build_put(&self, item: Item) -> TransactWriteItem {
        let put = Put::builder().table_name(&self.name).set_item(Some(item)).build();
        TransactWriteItem::builder().put(put.expect("table and item are set")).build()
    }

    /// Builds the write of a transaction that writes `item` if `condition` is true. If the condition fails, the
    /// transaction fails and returns the stored item.
    pub fn build_put_if(&self, item: Item, condition: &str, values: Option<Values>) -> TransactWriteItem {
        let put = Put::builder()
            .table_name(&self.name)
            .set_item(Some(item))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(collect_attribute_names(&[condition])))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(ALL_OLD)
            .build();
        TransactWriteItem::builder().put(put.expect("table and item are set")).build()
    }

    /// Builds the write of a transaction that deletes the item `key`. If the item does not exist, the whole transaction
    /// fails.
    pub fn build_delete(&self, key: Key) -> TransactWriteItem {
        let delete = Delete::builder()
            .table_name(&self.name)
            .set_key(Some(key.attributes()))
            .condition_expression(PRESENT)
            .set_expression_attribute_names(Some(collect_attribute_names(&[PRESENT])))
            .build();
        TransactWriteItem::builder().delete(delete.expect("key and condition are set")).build()
    }

    /// Builds the part of a transaction that checks whether `condition`, which contains the
    /// names of `values`, is true for the item `key`. Otherwise the whole
    /// transaction fails, and returns the stored item.
    pub fn build_condition_check(&self, key: Key, condition: &str, values: Values) -> TransactWriteItem {
        let check = ConditionCheck::builder()
            .table_name(&self.name)
            .set_key(Some(key.attributes()))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(collect_attribute_names(&[condition])))
            .set_expression_attribute_values((!values.is_empty()).then_some(values))
            .return_values_on_condition_check_failure(ALL_OLD)
            .build();
        TransactWriteItem::builder().condition_check(check.expect("key and condition are set")).build()
    }

    /// Executes all of `writes` or none of them. Sends one TransactWriteItems request.
    pub async fn transact(&self, writes: Vec<TransactWriteItem>) -> Result<TransactionOutcome, TableError> {
        const OPERATION: &str = "TransactWriteItems";
        let error = match self.client.transact_write_items().set_transact_items(Some(writes)).send().await {
            Ok(_) => return Ok(TransactionOutcome::Written),
            Err(error) => error,
        };
        let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
            return Err(TableError::from_sdk_error(OPERATION, error));
        };
        let reasons = cancelled.cancellation_reasons();
        let is_other_code = |code: &str| code != "None" && code != FAILED_CONDITION;
        if let Some(reason) = reasons.iter().find(|reason| reason.code().is_some_and(is_other_code)) {
            return Err(TableError::from_cancelled_transaction(OPERATION, &error, reason));
        }
        let stored = |reason: &CancellationReason| {
            (reason.code() == Some(FAILED_CONDITION)).then(|| reason.item.clone().unwrap_or_default())
        };
        Ok(TransactionOutcome::ConditionFailed(reasons.iter().map(stored).collect()))
    }

    /// Like [`DynamoTable::transact_with_retries`], but each write has a name, with which the result identifies the writes
    /// whose conditions failed. The caller looks up single writes by name, so their names must be different.
    pub async fn transact_named<Name>(
        &self,
        writes: impl IntoIterator<Item = (Name, TransactWriteItem)>,
    ) -> Result<TransactionOutcome<FailedConditions<Name>>, TableError> {
        let (names, writes): (Vec<Name>, Vec<TransactWriteItem>) = writes.into_iter().unzip();
        Ok(match self.transact_with_retries(writes).await? {
            TransactionOutcome::Written => TransactionOutcome::Written,
            TransactionOutcome::ConditionFailed(items) => {
                let failed = names.into_iter().zip(items).filter_map(|(name, item)| Some((name, item?))).collect();
                TransactionOutcome::ConditionFailed(FailedConditions { failed })
            }
        })
    }

    /// Like [`DynamoTable::transact`], but retries while other requests write the same items. For example, two transactions
    /// that create subscriptions of one account check the same account item, and DynamoDB cancels one of them.
    pub async fn transact_with_retries(
        &self,
        writes: Vec<TransactWriteItem>,
    ) -> Result<TransactionOutcome, TableError> {
        let mut backoff = Backoff::new(&self.client);
        loop {
            match self.transact(writes.clone()).await {
                Err(error) if error.is_conflict() && backoff.wait().await => {}
                result => return result,
            }
        }
    }
}
