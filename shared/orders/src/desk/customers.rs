//! Where a customer's orders go, and who looks after it.

use std::collections::BTreeSet;

use super::super::table::Written;
use super::super::{Customer, Days, Employee, EmployeeId, OrderId, OrderStatus, ShippingAddress};
use super::{DeskError, Filled, MAX_RETRIES, OrderDesk};
use billing::AccountId;
use dynamo::Paging;

impl OrderDesk {
    /// Where a customer's orders go from now on; fills those that have waited for it.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn ship_to(
        &self,
        account: &AccountId,
        address: ShippingAddress,
    ) -> Result<(Customer, Filled), DeskError> {
        self.ship_to_if(account, address, |_| Ok(())).await
    }

    /// As [`OrderDesk::ship_to`], of a customer that is as `wanted`; `None` is one that is not there yet.
    ///
    /// # Errors
    /// [`DeskError`], or why the customer is not as wanted.
    pub async fn ship_to_if<E: From<DeskError>>(
        &self,
        account: &AccountId,
        address: ShippingAddress,
        wanted: impl Fn(Option<&Customer>) -> Result<(), E>,
    ) -> Result<(Customer, Filled), E> {
        let warehouses = self.table.warehouses().await.map_err(DeskError::from)?;
        if !warehouses.is_empty() && warehouses.iter().all(|warehouse| warehouse.region != address.region) {
            let regions: BTreeSet<&str> = warehouses.iter().map(|warehouse| warehouse.region.as_str()).collect();
            let regions = Vec::from_iter(regions).join(", ");
            return Err(DeskError::NoWarehouseIn { region: address.region, regions }.into());
        }
        let change = |customer| Customer { address: Some(address.clone()), ..customer };
        let customer = self.change_customer(account, wanted, change, None).await?;
        Ok((customer, self.fill_customer(account).await))
    }

    async fn change_customer<E: From<DeskError>>(
        &self,
        account: &AccountId,
        wanted: impl Fn(Option<&Customer>) -> Result<(), E>,
        change: impl Fn(Customer) -> Customer,
        representative: Option<&Employee>,
    ) -> Result<Customer, E> {
        for _ in 0..MAX_RETRIES {
            let stored = self.table.customer(account).await.map_err(DeskError::from)?;
            wanted(stored.as_ref())?;
            let before = match stored {
                Some(stored) => stored,
                None => self.customer(account).await?,
            };
            let after = change(before.clone());
            if after == before {
                return Ok(before);
            }
            let written = self.table.change_customer(&before, &after, representative).await.map_err(DeskError::from)?;
            if written == Written::Done {
                return Ok(Customer { version: before.version.saturating_add(1), ..after });
            }
        }
        Err(DeskError::Contended { what: format!("the customer {account}") }.into())
    }

    /// Hands a customer over to another representative, and its orders that are still to be worked on. Killed half-way and asked
    /// again, it goes on.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn hand_over(&self, account: &AccountId, to: &EmployeeId, days: Days) -> Result<u32, DeskError> {
        let employee = self.table.employee(to).await?.filter(Employee::represents_customers);
        let employee = employee.ok_or_else(|| DeskError::NoRepresentative(to.clone()))?;
        let handed = |customer| Customer { representative: Some(to.clone()), ..customer };
        self.change_customer(account, |_| Ok::<_, DeskError>(()), handed, Some(&employee)).await?;
        const OPEN: [OrderStatus; 3] = [OrderStatus::BackOrdered, OrderStatus::Open, OrderStatus::Picked];
        let open = self.table.orders_of_customer(account, &OPEN, days, &Paging::all()).await?;
        let mut handed_over = 0;
        for order in open.into_items()? {
            handed_over += u32::from(self.hand_over_order(order.id, to).await?);
        }
        Ok(handed_over)
    }

    async fn hand_over_order(&self, id: OrderId, to: &EmployeeId) -> Result<bool, DeskError> {
        for _ in 0..MAX_RETRIES {
            let (order, _) = self.table.order(id).await?.ok_or(DeskError::NoOrder(id))?;
            if !order.status.is_open() || order.representative.as_ref() == Some(to) {
                return Ok(false);
            }
            if self.table.hand_over_order(&order, to).await? == Written::Done {
                return Ok(true);
            }
        }
        Err(DeskError::Contended { what: format!("the order {id}") })
    }
}
