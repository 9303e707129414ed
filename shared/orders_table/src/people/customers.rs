//! Reading and writing of customers, and of the items by which GSI-1 finds the customers of a representative.

use strum::IntoEnumIterator as _;
use ulid::Ulid;

use crate::items;
use crate::items::new_relation_item;
use crate::write_transaction::WriteOutcome;
use crate::{OrdersTable, keys};
use billing::{AccountId, ActionKind, ItemChange};
use dynamo::{Entity as _, Item, Page, Paging, TableError, key_of_item};
use orders::{Customer, Employee, EmployeeId, FillTarget, Order, OrderStatus, range_of_all_days};

/// Returns the relation from a customer to its representative: the item by which GSI-1 finds the customers of a
/// representative.
pub(crate) fn representative_relation(customer: &Customer) -> Item {
    let partition = keys::key_of_customer(&customer.account);
    new_relation_item(partition.clone(), keys::key_of_representative(customer.representative.as_ref()), partition)
}

/// Returns the entry of the action log for the change of a customer; `before` is `None` if the customer is new.
fn customer_action_entry(before: Option<&Customer>, after: &Customer) -> ItemChange {
    let representative = |customer: &Customer| customer.representative.clone();
    let change = ItemChange::new(&after.account, after.version).of_account(&after.account).field(
        "representative",
        before.and_then(representative),
        representative(after),
    );
    match before.and_then(|before| before.address.as_ref()) == after.address.as_ref() {
        true => change,
        false => change.hidden_field("address"),
    }
}

impl OrdersTable {
    /// Returns a customer, or `None` if it does not exist. Sends one strongly consistent GetItem request.
    pub async fn get_customer(&self, account: &AccountId) -> Result<Option<Customer>, TableError> {
        let item = self.dynamo.get(keys::key_of_own_item(keys::key_of_customer(account))).await?;
        item.map(|item| Customer::from_item(&item)).transpose()
    }

    /// Creates `customer`, and the relation (item) by which GSI-1 finds the customer by its representative, in one
    /// transaction. Returns `Refused` if the customer exists. Returns `NoAccount` if the table has a requester and the
    /// account does not exist in the payments table or is being erased.
    pub async fn create_customer(&self, customer: &Customer) -> Result<WriteOutcome, TableError> {
        let writes = self.transaction().create(customer.to_item()).create(representative_relation(customer));
        writes
            .check_account(&customer.account)
            .add_action_entry(ActionKind::ChangeCustomer, || customer_action_entry(None, customer))
            .commit()
            .await
    }

    /// Changes a customer from `before` to `after` in one transaction. If the representative changes, the transaction
    /// also replaces the relation from the customer to the representative. If `representative` is set, the transaction
    /// also checks that this employee is unchanged. If the shipping address changes, the transaction also writes the
    /// fill task of the customer, with `change` as the identifier of the change. Returns `Refused` if the stored
    /// customer or the stored employee changed since it was read. If the shipping address changes, returns `NoAccount`
    /// in the same cases as [`OrdersTable::create_customer`].
    pub async fn change_customer(
        &self,
        before: &Customer,
        after: &Customer,
        representative: Option<&Employee>,
        change: Ulid,
    ) -> Result<WriteOutcome, TableError> {
        let mut writes = self.transaction().change(before, after);
        if let Some(representative) = representative {
            writes = writes.check_unchanged(representative);
        }
        if before.representative != after.representative {
            writes =
                writes.delete(key_of_item(&representative_relation(before))).create(representative_relation(after));
        }
        if before.address != after.address && after.address.is_some() {
            writes = writes.request_fill(&FillTarget::Customer(after.account.clone()), change);
        }
        let entry = || {
            customer_action_entry(
                Some(before),
                &Customer { version: before.version.saturating_add(1), ..after.clone() },
            )
        };
        if before.address != after.address {
            writes = writes.check_account(&before.account);
        }
        writes.add_action_entry(ActionKind::ChangeCustomer, entry).commit().await
    }

    /// Removes the shipping address of the customer `account`. Also removes the addresses and the parcels (carrier and
    /// tracking number) of its orders, except for orders that must still be shipped. Returns the number of changed
    /// items. Sends a GetItem request, a Query of GSI-1 for each status, and a GetItem and an UpdateItem request for
    /// each order with an address or a parcel. The index can miss an order whose status is changing, so call this
    /// method until it returns 0.
    pub async fn remove_addresses(&self, account: &AccountId) -> Result<u64, TableError> {
        let mut removed: u64 = 0;
        if let Some(stored) = self.get_customer(account).await?.filter(|customer| customer.address.is_some()) {
            self.dynamo.change_item(stored, |stored| Some(Customer { address: None, ..stored.clone() })).await?;
            removed = removed.saturating_add(1);
        }
        let is_removable = |order: &Order| !order.status.needs_shipping() && *order != order.without_personal_data();
        let statuses: Vec<OrderStatus> = OrderStatus::iter().collect();
        let orders =
            self.orders_of_customer(account, &statuses, range_of_all_days(), &Paging::all()).await?.into_items()?;
        for order in orders.into_iter().filter(is_removable) {
            // The index can lag behind the table, so the stored item decides.
            let Some(item) = self.dynamo.get(order.key()).await? else { continue };
            let stored = Order::from_item(&item)?;
            if is_removable(&stored) {
                let remove = |stored: &Order| is_removable(stored).then(|| stored.without_personal_data());
                self.dynamo.change_item(stored, remove).await?;
                removed = removed.saturating_add(1);
            }
        }
        Ok(removed)
    }

    /// Returns the number of orders of the customer `account` that must still be shipped. Sends a Query of GSI-1 for
    /// each status that an order can have before it is shipped, in parallel.
    pub async fn count_orders_to_ship(&self, account: &AccountId) -> Result<usize, TableError> {
        let statuses: Vec<OrderStatus> = OrderStatus::iter().filter(|status| status.needs_shipping()).collect();
        let orders = self.orders_of_customer(account, &statuses, range_of_all_days(), &Paging::all()).await?;
        Ok(orders.items.len().saturating_add(orders.unreadable.len()))
    }

    /// Returns the customers of a representative (access pattern 9). Queries the representative's partition of GSI-1.
    /// `Data` must begin with the key prefix of customers, because the same partition also contains items of orders.
    pub async fn customers_of_representative(
        &self,
        representative: &EmployeeId,
        paging: &Paging,
    ) -> Result<Page<AccountId>, TableError> {
        let page = self
            .page_of_entities_related_to(keys::key_of_employee(representative), keys::CUSTOMER_PREFIX, paging)
            .await?;
        Ok(page.read(|item| items::customer_id_in(&item)))
    }
}
