//! Transactions, put together from what they write.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, TransactWriteItem};

use super::OrdersTable;
use super::items::{DATA, number};
use dynamo::{ABSENT, IdempotentRequest, Item, Key, PRESENT, TableError, TransactAnswer, Versioned, names};

const UNCHANGED: &str = "#Version = :seen";

/// What became of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    Done,
    /// Nothing was written: what it was worked out from is no longer so, at this place of the transaction.
    Refused(usize),
}

/// The writes of a transaction.
pub(super) struct Writes<'a> {
    table: &'a OrdersTable,
    all: Vec<TransactWriteItem>,
}

impl OrdersTable {
    pub(super) fn writes(&self) -> Writes<'_> {
        Writes { table: self, all: Vec::new() }
    }
}

impl Writes<'_> {
    /// Puts `item`, which must not be there.
    pub fn create(mut self, item: Item) -> Self {
        self.all.push(self.table.0.put_of_on(item, ABSENT, None));
        self
    }

    /// Puts `item`, whatever is there.
    pub fn put(mut self, item: Item) -> Self {
        self.all.push(self.table.0.put_of(item));
        self
    }

    /// Writes `after` on top of `before`, which must be as it was read.
    pub fn change<T: Versioned<OrdersTable>>(mut self, before: &T, after: &T) -> Self {
        let after = after.clone().at_version(before.version() + 1);
        let update = self.table.0.versioned_update(before, &after);
        self.all.extend(update.map(|update| TransactWriteItem::builder().update(update).build()));
        self
    }

    /// Writes nothing, and refuses all of it unless `read` is as it was read.
    pub fn unchanged<T: Versioned<OrdersTable>>(mut self, read: &T) -> Self {
        let check = ConditionCheck::builder()
            .table_name(self.table.0.name())
            .set_key(Some(read.key().attributes()))
            .condition_expression(UNCHANGED)
            .set_expression_attribute_names(Some(names(&[UNCHANGED])))
            .expression_attribute_values(":seen", number(read.version()))
            .build();
        self.all.push(TransactWriteItem::builder().condition_check(check.expect("key and condition are set")).build());
        self
    }

    /// Keeps the answer of `request`, which must have none; nothing, if there is no request.
    pub fn keep(mut self, request: Option<&IdempotentRequest>) -> Self {
        self.all.extend(request.map(|request| self.table.0.keep_answer(request)));
        self
    }

    /// Changes `Data` of the edge under `key`, which must be there.
    pub fn move_edge(self, key: Key, data: &str) -> Self {
        let values = HashMap::from([(":data".to_owned(), AttributeValue::S(data.to_owned()))]);
        self.update(key, &format!("SET #{DATA} = :data"), PRESENT, values)
    }

    /// Takes `quantity` from the attribute `name`, which must not fall below zero.
    pub fn take(self, key: Key, name: &str, quantity: u64) -> Self {
        let values = [(":less".to_owned(), number(format!("-{quantity}"))), (":quantity".to_owned(), number(quantity))];
        self.update(key, &format!("ADD #{name} :less"), &format!("#{name} >= :quantity"), values.into())
    }

    /// Adds `quantity` to the attribute `name` of what must be there.
    pub fn give(self, key: Key, name: &str, quantity: u64) -> Self {
        let values = HashMap::from([(":quantity".to_owned(), number(quantity))]);
        self.update(key, &format!("ADD #{name} :quantity"), PRESENT, values)
    }

    fn update(mut self, key: Key, expression: &str, condition: &str, values: HashMap<String, AttributeValue>) -> Self {
        let update = self.table.0.update_of(key, expression, condition, values);
        self.all.push(TransactWriteItem::builder().update(update).build());
        self
    }

    /// Deletes what is under `key`, which must be there.
    pub fn delete(mut self, key: Key) -> Self {
        let delete = Delete::builder()
            .table_name(self.table.0.name())
            .set_key(Some(key.attributes()))
            .condition_expression(PRESENT)
            .set_expression_attribute_names(Some(names(&[PRESENT])))
            .build();
        self.all.push(TransactWriteItem::builder().delete(delete.expect("key and condition are set")).build());
        self
    }

    /// All of it, or nothing. TransactWriteItems, again while another transaction holds the same items.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn commit(self) -> Result<Written, TableError> {
        if self.all.is_empty() {
            return Ok(Written::Done);
        }
        match self.table.0.transact_when_free(self.all).await? {
            TransactAnswer::Done => Ok(Written::Done),
            TransactAnswer::Refused(refused) => {
                Ok(Written::Refused(refused.iter().position(Option::is_some).unwrap_or_default()))
            }
        }
    }
}
