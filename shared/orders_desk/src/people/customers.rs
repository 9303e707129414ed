//! The shipping address and the representative of a customer.

use std::collections::BTreeSet;

use crate::error::DeskError;
use crate::{MAX_ATTEMPTS, OrderDesk};
use billing::AccountId;
use dynamo::{Paging, shard_of};
use orders::{Customer, Employee, EmployeeId, ShippingAddress};
use orders_table::WriteOutcome;

/// Returns the representative for a new customer, chosen by a hash of the account, so that customers are spread evenly
/// over `representatives`. Returns `None` if `representatives` is empty.
fn choose_representative<'a>(account: &AccountId, representatives: &'a [EmployeeId]) -> Option<&'a EmployeeId> {
    let count = u32::try_from(representatives.len()).unwrap_or(u32::MAX);
    representatives.get(shard_of(account.as_str(), count) as usize)
}

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
    pub async fn hand_over_customer(&self, account: &AccountId, to: &EmployeeId) -> Result<Customer, DeskError> {
        let employee = self.table.get_employee(to).await?.filter(Employee::represents_customers);
        let employee = employee.ok_or_else(|| DeskError::NotRepresentative(to.clone()))?;
        let change = |customer| Customer { representative: Some(to.clone()), ..customer };
        self.change_customer(account, |_| Ok::<_, DeskError>(()), change, Some(&employee)).await
    }

    /// Returns the customer of `account`. If the customer does not exist, creates the customer and chooses a
    /// representative.
    pub(crate) async fn find_or_create_customer(&self, account: &AccountId) -> Result<Customer, DeskError> {
        if let Some(customer) = self.table.get_customer(account).await? {
            return Ok(customer);
        }
        let new = self.new_customer(account).await?;
        match self.table.create_customer(&new).await? {
            WriteOutcome::Done => Ok(new),
            WriteOutcome::NoAccount => Err(DeskError::NoAccount(account.clone())),
            WriteOutcome::Refused(_) => {
                let created = self.table.get_customer(account).await?;
                created.ok_or_else(|| DeskError::WriteConflict { item: format!("the customer {account}") })
            }
        }
    }

    /// Returns a new customer for `account`, with a representative, and without an address. Stores nothing.
    async fn new_customer(&self, account: &AccountId) -> Result<Customer, DeskError> {
        let representatives = self.table.get_representatives(&Paging::all()).await?.into_items()?;
        let representative = choose_representative(account, &representatives).cloned();
        Ok(Customer::new(account.clone(), representative, self.clock.now()))
    }
}
