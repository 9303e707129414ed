//! The shipping address and the representative of a customer.

use std::collections::BTreeSet;

use super::super::table::WriteOutcome;
use super::super::{Customer, Employee, EmployeeId, ShippingAddress};
use super::{DeskError, MAX_ATTEMPTS, OrderDesk};
use billing::AccountId;

impl OrderDesk {
    /// Sets the shipping address of a customer, and requests to fill the backordered orders of the customer. Creates
    /// the customer if the account has none yet. Returns the changed customer.
    ///
    /// # Errors
    /// - There are warehouses, but none in the region of the address.
    /// - The region, the country or the account does not exist.
    /// - Other requests changed the customer at the same time.
    /// - The table cannot be used.
    pub async fn set_shipping_address(
        &self,
        account: &AccountId,
        address: ShippingAddress,
    ) -> Result<Customer, DeskError> {
        self.set_shipping_address_if(account, address, |_| Ok(())).await
    }

    /// Like [`OrderDesk::set_shipping_address`], but changes the customer only if `precondition` returns `Ok` for the
    /// stored customer (`None` if the customer does not exist).
    ///
    /// # Errors
    /// The errors of [`OrderDesk::set_shipping_address`], and the error of `precondition`.
    pub async fn set_shipping_address_if<E: From<DeskError>>(
        &self,
        account: &AccountId,
        address: ShippingAddress,
        precondition: impl Fn(Option<&Customer>) -> Result<(), E>,
    ) -> Result<Customer, E> {
        let warehouses = self.table.get_warehouses().await.map_err(DeskError::from)?;
        if !warehouses.is_empty() && warehouses.iter().all(|warehouse| warehouse.region != address.region) {
            let regions: BTreeSet<&str> = warehouses.iter().map(|warehouse| warehouse.region.as_str()).collect();
            let regions = Vec::from_iter(regions).join(", ");
            return Err(DeskError::NoWarehouseInRegion { region: address.region, regions }.into());
        }
        self.check_address(&address).await?;
        let change = |customer| Customer { address: Some(address.clone()), ..customer };
        self.change_customer(account, precondition, change, None).await
    }

    /// Applies `change` to the stored customer, and writes the result. Applies `change` to a new customer if no
    /// customer is stored. On a write conflict, reads the customer again and retries. If `representative` is set, the
    /// transaction also checks that this employee did not change after the caller read the employee.
    async fn change_customer<E: From<DeskError>>(
        &self,
        account: &AccountId,
        precondition: impl Fn(Option<&Customer>) -> Result<(), E>,
        change: impl Fn(Customer) -> Customer,
        representative: Option<&Employee>,
    ) -> Result<Customer, E> {
        for _ in 0..MAX_ATTEMPTS {
            let stored = self.table.get_customer(account).await.map_err(DeskError::from)?;
            precondition(stored.as_ref())?;
            let (written, after) = match stored {
                None => {
                    let new = change(self.new_customer(account).await?);
                    (self.table.create_customer(&new).await, new)
                }
                Some(before) => {
                    let after = change(before.clone());
                    if after == before {
                        return Ok(before);
                    }
                    let written = self.table.change_customer(&before, &after, representative, self.clock.ulid()).await;
                    (written, Customer { version: before.version.saturating_add(1), ..after })
                }
            };
            match written.map_err(DeskError::from)? {
                WriteOutcome::Done => return Ok(after),
                WriteOutcome::NoAccount => return Err(DeskError::NoAccount(account.clone()).into()),
                WriteOutcome::Refused(_) => {}
            }
        }
        Err(DeskError::WriteConflict { item: format!("the customer {account}") }.into())
    }

    /// Makes the employee `to` the representative of a customer. The orders that were placed before stay credited to the
    /// representatives who had the customer then. Returns the changed customer.
    ///
    /// # Errors
    /// - `to` is not a customer representative.
    /// - Other requests changed the customer at the same time.
    /// - The table cannot be used.
    pub async fn hand_over(&self, account: &AccountId, to: &EmployeeId) -> Result<Customer, DeskError> {
        let employee = self.table.get_employee(to).await?.filter(Employee::represents_customers);
        let employee = employee.ok_or_else(|| DeskError::NotRepresentative(to.clone()))?;
        let change = |customer| Customer { representative: Some(to.clone()), ..customer };
        self.change_customer(account, |_| Ok::<_, DeskError>(()), change, Some(&employee)).await
    }
}
