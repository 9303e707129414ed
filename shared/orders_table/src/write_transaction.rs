//! A builder for DynamoDB transactions on the table of the order desk.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, TransactWriteItem, Update};

use crate::OrdersTable;
use crate::items;
use crate::items::{DATA, MOVEMENTS, STOCK, TOTAL_STOCK, number_attribute};
use billing::{AccountId, ActionKind, ItemChange, Label};
use dynamo::{
    ABSENT, IdempotentRequest, Item, Key, PRESENT, TableError, TransactionOutcome, Values, VersionedEntity,
    collect_attribute_names,
};
use orders::{FillTarget, ProductId};
use ulid::Ulid;

/// The condition that the stored version of an item is the version that was read before (`:seen`).
const VERSION_UNCHANGED: &str = "#Version = :seen";

/// The outcome of a transaction with conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteOutcome {
    /// The transaction was written.
    Done,
    /// Nothing was written, because a condition failed. Contains the first write in the transaction whose condition
    /// failed.
    Refused(RefusedWrite),
    /// Nothing was written, because the account that the change needs does not exist, or is being erased.
    NoAccount,
}

/// A write of a transaction whose condition failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusedWrite {
    /// The write that identifies the entity to create, such as an order: the entity exists already.
    Creation,
    /// Any other write: another request changed an item since it was read, or an item does not allow the change.
    Other,
}

/// The name of a write in a transaction, with which [`WriteTransaction::commit`] finds out why a transaction was
/// refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OrdersTableWrite {
    Creation,
    AccountCheck,
    Other,
}

/// A transaction that is being built. Each method adds one write; [`WriteTransaction::commit`] sends all of them.
pub(crate) struct WriteTransaction<'a> {
    table: &'a OrdersTable,
    writes: Vec<(OrdersTableWrite, TransactWriteItem)>,
}

impl OrdersTable {
    /// Begins a transaction without writes.
    pub(crate) fn transaction(&self) -> WriteTransaction<'_> {
        WriteTransaction { table: self, writes: Vec::new() }
    }
}

impl WriteTransaction<'_> {
    /// Adds a put of `item`, on condition that no item with the same key exists.
    pub fn create(self, item: Item) -> Self {
        let put = self.table.dynamo.build_put_if(item, ABSENT, None);
        self.add_write(put)
    }

    /// Like [`WriteTransaction::create`], for the `item` that identifies the entity which the transaction creates. If
    /// the item exists, the transaction returns [`RefusedWrite::Creation`].
    pub fn create_entity(self, item: Item) -> Self {
        let put = self.table.dynamo.build_put_if(item, ABSENT, None);
        self.add_named_write(OrdersTableWrite::Creation, put)
    }

    /// Like [`WriteTransaction::check_absent`], for a `key` under which an earlier version of Dueday stored the entity
    /// that the transaction creates. If an item has the key, the transaction returns [`RefusedWrite::Creation`].
    pub fn check_entity_absent(self, key: Key) -> Self {
        let check = self.table.dynamo.build_condition_check(key, ABSENT, Values::new());
        self.add_named_write(OrdersTableWrite::Creation, check)
    }

    /// Adds `write`.
    fn add_write(self, write: TransactWriteItem) -> Self {
        self.add_named_write(OrdersTableWrite::Other, write)
    }

    /// Adds `write` with the name `name`.
    fn add_named_write(mut self, name: OrdersTableWrite, write: TransactWriteItem) -> Self {
        self.writes.push((name, write));
        self
    }

    /// Adds a put of `item`, on condition that an item with the same key exists.
    pub fn replace(self, item: Item) -> Self {
        let put = self.table.dynamo.build_put_if(item, PRESENT, None);
        self.add_write(put)
    }

    /// Adds an unconditional put of `item`.
    pub fn put(self, item: Item) -> Self {
        let put = self.table.dynamo.build_put(item);
        self.add_write(put)
    }

    /// Adds an update of an entity from `before` to `after`, on condition that the stored version is the version of
    /// `before`. The update increases the version by 1.
    pub fn change<T: VersionedEntity<OrdersTable>>(self, before: &T, after: &T) -> Self {
        let after = after.clone().with_version(before.version() + 1);
        match self.table.dynamo.build_versioned_update(before, &after) {
            Some(update) => self.add_update(update),
            None => self,
        }
    }

    /// Adds a condition check without a write: the transaction is refused if the stored version is not the version of
    /// `read`.
    pub fn check_unchanged<T: VersionedEntity<OrdersTable>>(self, read: &T) -> Self {
        let check = ConditionCheck::builder()
            .table_name(self.table.dynamo.name())
            .set_key(Some(read.key().attributes()))
            .condition_expression(VERSION_UNCHANGED)
            .set_expression_attribute_names(Some(collect_attribute_names(&[VERSION_UNCHANGED])))
            .expression_attribute_values(":seen", number_attribute(read.version()))
            .build();
        self.add_write(TransactWriteItem::builder().condition_check(check.expect("key and condition are set")).build())
    }

    /// Adds a check without a write that no item has the key `key`.
    pub fn check_absent(self, key: Key) -> Self {
        let check = self.table.dynamo.build_condition_check(key, ABSENT, Values::new());
        self.add_write(check)
    }

    /// Adds a put of the response to `request`, on condition that no response is saved under its idempotency key yet.
    /// Adds nothing if `request` is `None`.
    pub fn save_response(self, request: Option<&IdempotentRequest>) -> Self {
        match request.map(|request| self.table.dynamo.build_idempotency_put(request)) {
            Some(put) => self.add_write(put),
            None => self,
        }
    }

    /// Adds the entry of the action log for `change`. Adds nothing if the table has no requester.
    pub fn add_action_entry(self, kind: ActionKind, change: impl FnOnce() -> ItemChange) -> Self {
        self.add_action_entry_with_reason(kind, None, change)
    }

    /// Like [`WriteTransaction::add_action_entry`], but the entry also contains `reason`, which the requester gave for
    /// the change.
    pub fn add_action_entry_with_reason(
        self,
        kind: ActionKind,
        reason: Option<&Label>,
        change: impl FnOnce() -> ItemChange,
    ) -> Self {
        match &self.table.requester {
            Some(requester) => self.add_write(requester.build_action_put(kind, reason.cloned(), change())),
            None => self,
        }
    }

    /// Adds a check that `account` exists in the payments table and is not being erased. Adds nothing if the table has no
    /// requester: the jobs of the order desk get the account from a payment, so it exists.
    pub fn check_account(self, account: &AccountId) -> Self {
        match &self.table.requester {
            Some(requester) => {
                self.add_named_write(OrdersTableWrite::AccountCheck, requester.payments.build_account_check(account))
            }
            None => self,
        }
    }

    /// Adds an update that creates the fill task of `target`, or requests the existing task again. `change` is the
    /// identifier of the change that requests the task.
    pub fn request_fill(self, target: &FillTarget, change: Ulid) -> Self {
        let update = self.table.build_fill_request(target, change);
        self.add_update(update)
    }

    /// Adds an update of one fill task that requests to fill the backordered orders of all `products`. `change` is the
    /// identifier of the change that requests this. Adds nothing if `products` is empty.
    pub fn request_fill_of_all(self, products: &[&ProductId], change: Ulid) -> Self {
        match self.table.build_fill_request_for_all(products, change) {
            Some(update) => self.add_update(update),
            None => self,
        }
    }

    /// Adds an update that sets the attribute `Data` of the relation with the key `key`, on condition that the relation
    /// exists. A relation is an item that relates two entities.
    pub fn update_relation_data(self, key: Key, data: &str) -> Self {
        let values = HashMap::from([(":data".to_owned(), AttributeValue::S(data.to_owned()))]);
        self.update(key, &format!("SET #{DATA} = :data"), PRESENT, values)
    }

    /// Adds an update of the stock item `key` (one product in one warehouse): subtracts `quantity` pieces from the
    /// stock, and adds 1 to the number of movements, on condition that the stock does not become negative.
    pub fn subtract_stock(self, key: Key, quantity: u64) -> Self {
        let values = [
            (":less".to_owned(), number_attribute(format!("-{quantity}"))),
            (":quantity".to_owned(), number_attribute(quantity)),
        ];
        let values = values.into_iter().chain([(":one".to_owned(), number_attribute(1))]).collect();
        let expression = format!("ADD #{STOCK} :less, #{MOVEMENTS} :one");
        self.update(key, &expression, &format!("#{STOCK} >= :quantity"), values)
    }

    /// Adds an update of the stock item `key` (one product in one warehouse): adds `quantity` pieces to the stock, and
    /// 1 to the number of movements, on condition that the item exists.
    pub fn add_stock(self, key: Key, quantity: u64) -> Self {
        let values = HashMap::from([
            (":quantity".to_owned(), number_attribute(quantity)),
            (":one".to_owned(), number_attribute(1)),
        ]);
        self.update(key, &format!("ADD #{STOCK} :quantity, #{MOVEMENTS} :one"), PRESENT, values)
    }

    /// Adds an update of the stock item `key` (one product in one warehouse): adds `count` to the number of movements,
    /// without a change of the stock, on condition that the item exists.
    pub fn count_movements(self, key: Key, count: u64) -> Self {
        let values = HashMap::from([(":count".to_owned(), number_attribute(count))]);
        self.update(key, &format!("ADD #{MOVEMENTS} :count"), PRESENT, values)
    }

    /// Adds an update of the stock item `key` (one product in one warehouse): changes the stock from `before` to
    /// `after` pieces, and adds 1 to the number of movements, on condition that the stock is `before`. Creates the item
    /// if `before` is `None`.
    pub fn set_stock(self, key: Key, before: Option<u64>, after: u64) -> Self {
        let Some(before) = before else {
            return self.create(items::new_item(key, None, &items::StockItem::new(after)));
        };
        let values =
            [(":before", number_attribute(before)), (":after", number_attribute(after)), (":one", number_attribute(1))];
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let expression = format!("SET #{STOCK} = :after ADD #{MOVEMENTS} :one");
        self.update(key, &expression, &format!("#{STOCK} = :before"), values)
    }

    /// Adds an update of the product's item `key`: adds `pieces`, which may be negative, to the total stock, on
    /// condition that the item exists and the total stock does not become negative.
    pub fn change_total_stock(self, key: Key, pieces: i64) -> Self {
        let least = pieces.min(0).unsigned_abs();
        let values = HashMap::from([
            (":pieces".to_owned(), number_attribute(pieces)),
            (":least".to_owned(), number_attribute(least)),
        ]);
        self.update(key, &format!("ADD #{TOTAL_STOCK} :pieces"), &format!("#{TOTAL_STOCK} >= :least"), values)
    }

    /// Adds an update of the item `key` with the update expression `expression`, on condition that `condition` is true.
    pub fn update(self, key: Key, expression: &str, condition: &str, values: HashMap<String, AttributeValue>) -> Self {
        let update = self.table.dynamo.build_update(key, expression, condition, values);
        self.add_update(update)
    }

    /// Adds `update`.
    fn add_update(self, update: Update) -> Self {
        self.add_write(TransactWriteItem::builder().update(update).build())
    }

    /// Adds a delete of the item with the key `key`, without the condition that the item exists: an earlier version of
    /// Dueday may have stored the item under another key.
    pub fn delete_if_present(self, key: Key) -> Self {
        let delete = Delete::builder().table_name(self.table.dynamo.name()).set_key(Some(key.attributes())).build();
        self.add_write(TransactWriteItem::builder().delete(delete.expect("the key is set")).build())
    }

    /// Adds a delete of the item with the key `key`, on condition that the item exists.
    pub fn delete(self, key: Key) -> Self {
        let delete = Delete::builder()
            .table_name(self.table.dynamo.name())
            .set_key(Some(key.attributes()))
            .condition_expression(PRESENT)
            .set_expression_attribute_names(Some(collect_attribute_names(&[PRESENT])))
            .build();
        self.add_write(TransactWriteItem::builder().delete(delete.expect("key and condition are set")).build())
    }

    /// Commits all added writes or none of them, with a TransactWriteItems request. Sends the request again if another
    /// transaction is writing the same items.
    pub async fn commit(self) -> Result<WriteOutcome, TableError> {
        if self.writes.is_empty() {
            return Ok(WriteOutcome::Done);
        }
        Ok(match self.table.dynamo.transact_named(self.writes).await? {
            TransactionOutcome::Written => WriteOutcome::Done,
            TransactionOutcome::ConditionFailed(failed) => match failed.first() {
                Some(OrdersTableWrite::AccountCheck) => WriteOutcome::NoAccount,
                Some(OrdersTableWrite::Creation) => WriteOutcome::Refused(RefusedWrite::Creation),
                Some(OrdersTableWrite::Other) | None => WriteOutcome::Refused(RefusedWrite::Other),
            },
        })
    }
}
