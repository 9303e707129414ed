//! Customers, and who looks after them.

use super::super::{Customer, Employee, EmployeeId};
use super::items::{self, edge};
use super::writes::Written;
use super::{OrdersTable, keys};
use billing::AccountId;
use dynamo::{Entity as _, Key, Page, Paging, TableError};

fn care(customer: &Customer) -> Key {
    keys::edge(keys::customer(&customer.account), keys::representative(customer.representative.as_ref()))
}

impl OrdersTable {
    /// A customer. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn customer(&self, account: &AccountId) -> Result<Option<Customer>, TableError> {
        let item = self.0.get(keys::own(keys::customer(account))).await?;
        item.map(|item| Customer::from_item(&item)).transpose()
    }

    /// Creates `customer`; `Refused` if there is one. Own item and its edge to its representative, in one transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_customer(&self, customer: &Customer) -> Result<Written, TableError> {
        let Key { pk, sk } = care(customer);
        self.writes().create(customer.to_item()).create(edge(pk.clone(), sk, pk)).commit().await
    }

    /// Writes `after` on top of `before`, and moves its edge if another `representative` looks after it, who must be as they were
    /// read. One transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn change_customer(
        &self,
        before: &Customer,
        after: &Customer,
        representative: Option<&Employee>,
    ) -> Result<Written, TableError> {
        let mut writes = self.writes().change(before, after);
        if let Some(representative) = representative {
            writes = writes.unchanged(representative);
        }
        if before.representative != after.representative {
            let Key { pk, sk } = care(after);
            writes = writes.delete(care(before)).create(edge(pk.clone(), sk, pk));
        }
        writes.commit().await
    }

    /// Pattern 9: the customers that a representative looks after. GSI-1, `SK = representative`, `Data` begins with the
    /// customers' prefix: orders lead to the same partition.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn customers_of(
        &self,
        representative: &EmployeeId,
        paging: &Paging,
    ) -> Result<Page<AccountId>, TableError> {
        let page = self.page_of_entities(keys::employee(representative), keys::CUSTOMERS, paging).await?;
        Ok(page.read(|item| items::customer_of(&item)))
    }
}
