//! Reading and writing of the item with the refunds of an order's payment. The item can exist before the order is placed.

use crate::write_transaction::{WriteOutcome, WriteTransaction};
use crate::{OrdersTable, keys};
use billing::AccountId;
use dynamo::{Entity as _, TableError};
use orders::{OrderId, OrderRefunds};

impl OrdersTable {
    /// Returns the recorded refunds of an order's payment; `None` if there are none. Sends one strongly consistent GetItem
    /// request.
    pub async fn get_refunds(&self, order: OrderId) -> Result<Option<OrderRefunds>, TableError> {
        let item = self.dynamo.get(keys::key_of_refunds(order)).await?;
        item.map(|item| OrderRefunds::from_item(&item)).transpose()
    }

    /// Changes the recorded refunds of an order from `before` to `after`. The order belongs to `account`, and is not
    /// placed yet. Returns `Refused` if the stored refunds are not `before`, or if the order exists. Sends one
    /// TransactWriteItems request.
    pub async fn store_refunds(
        &self,
        before: Option<&OrderRefunds>,
        after: &OrderRefunds,
        account: &AccountId,
    ) -> Result<WriteOutcome, TableError> {
        let order = keys::key_of_relation(keys::key_of_order(after.order), keys::key_of_customer(account));
        self.transaction().write_refunds(before, after).check_absent(order).commit().await
    }
}

impl WriteTransaction<'_> {
    /// Adds a write that changes the recorded refunds of an order from `before` to `after`. `before` is `None` if no
    /// refunds are recorded yet.
    pub fn write_refunds(self, before: Option<&OrderRefunds>, after: &OrderRefunds) -> Self {
        match before {
            Some(before) => self.change(before, after),
            None => self.create(after.to_item()),
        }
    }

    /// Adds a check that the recorded refunds of `order` are still `read`; `None` means that no refunds are recorded.
    pub fn check_refunds(self, order: OrderId, read: Option<&OrderRefunds>) -> Self {
        match read {
            Some(read) => self.check_unchanged(read),
            None => self.check_absent(keys::key_of_refunds(order)),
        }
    }
}
