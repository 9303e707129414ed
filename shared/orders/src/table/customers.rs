//! Reading and writing of customers, and of the edges to their representatives.

use super::super::{Customer, Employee, EmployeeId};
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
    /// `representative` is set, the transaction also checks that this employee is unchanged. Returns `Refused` if the
    /// stored customer or the stored employee changed since it was read.
    pub async fn change_customer(
        &self,
        before: &Customer,
        after: &Customer,
        representative: Option<&Employee>,
    ) -> Result<WriteOutcome, TableError> {
        let mut writes = self.transaction().change(before, after);
        if let Some(representative) = representative {
            writes = writes.check_unchanged(representative);
        }
        if before.representative != after.representative {
            let Key { pk, sk } = representative_edge_key(after);
            writes = writes.delete(representative_edge_key(before)).create(edge(pk.clone(), sk, pk));
        }
        writes.commit().await
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
