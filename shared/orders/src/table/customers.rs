//! Reading and writing of customers, and of the edges to their representatives.

use strum::IntoEnumIterator as _;
use ulid::Ulid;

use super::super::{Customer, Employee, EmployeeId, FillTarget, OrderStatus, all_days};
use super::items::{self, edge};
use super::write_transaction::WriteOutcome;
use super::{OrdersTable, keys};
use billing::AccountId;
use dynamo::{Entity as _, Key, Page, Paging, TableError};

/// Returns the key of the edge from a customer to its representative.
fn representative_edge_key(customer: &Customer) -> Key {
    keys::key_of_edge(
        keys::key_of_customer(&customer.account),
        keys::key_of_representative(customer.representative.as_ref()),
    )
}

impl OrdersTable {
    /// Returns a customer, or `None` if it does not exist. Sends one strongly consistent GetItem request.
    pub async fn get_customer(&self, account: &AccountId) -> Result<Option<Customer>, TableError> {
        let item = self.0.get(keys::key_of_own_item(keys::key_of_customer(account))).await?;
        item.map(|item| Customer::from_item(&item)).transpose()
    }

    /// Creates `customer` and the edge to its representative, in one transaction. Returns `Refused` if the customer
    /// exists.
    pub async fn create_customer(&self, customer: &Customer) -> Result<WriteOutcome, TableError> {
        let Key { pk, sk } = representative_edge_key(customer);
        self.transaction().create(customer.to_item()).create(edge(pk.clone(), sk, pk)).commit().await
    }

    /// Changes a customer from `before` to `after`, and its edge if the representative changes, in one transaction. If
    /// `representative` is set, the transaction also checks that this employee is unchanged. If the shipping address
    /// changes, the transaction also writes the fill task of the customer, with the change `change`. Returns `Refused` if
    /// the stored customer or the stored employee changed since it was read.
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
            let Key { pk, sk } = representative_edge_key(after);
            writes = writes.delete(representative_edge_key(before)).create(edge(pk.clone(), sk, pk));
        }
        if before.address != after.address && after.address.is_some() {
            writes = writes.request_fill(&FillTarget::Customer(after.account.clone()), change);
        }
        writes.commit().await
    }

    /// Removes the shipping address of the customer `account`. Returns whether it had one. Sends a GetItem request, and an
    /// UpdateItem request if there is an address.
    pub async fn remove_shipping_address(&self, account: &AccountId) -> Result<bool, TableError> {
        let Some(stored) = self.get_customer(account).await?.filter(|customer| customer.address.is_some()) else {
            return Ok(false);
        };
        let without_address = |stored: &Customer| Some(Customer { address: None, ..stored.clone() });
        self.0.change(stored, without_address).await.map(|_| true)
    }

    /// Returns the number of orders of the customer `account` that must still be shipped. Sends a Query of GSI-1 for each
    /// status before the shipment, in parallel.
    pub async fn count_orders_to_ship(&self, account: &AccountId) -> Result<usize, TableError> {
        let statuses: Vec<OrderStatus> = OrderStatus::iter().filter(|status| status.needs_shipping()).collect();
        let orders = self.orders_of_customer(account, &statuses, all_days(), &Paging::all()).await?;
        Ok(orders.items.len().saturating_add(orders.unreadable.len()))
    }

    /// Returns the customers of a representative (access pattern 9). Queries GSI-1 with `SK = representative`. `Data`
    /// must begin with the key prefix of customers, because the same partition also contains the edges from orders.
    pub async fn customers_of_representative(
        &self,
        representative: &EmployeeId,
        paging: &Paging,
    ) -> Result<Page<AccountId>, TableError> {
        let page =
            self.page_of_entities_with_edge_to(keys::key_of_employee(representative), keys::CUSTOMERS, paging).await?;
        Ok(page.read(|item| items::customer_id_in(&item)))
    }
}
