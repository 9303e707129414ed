//! The shipping address and the representative of a customer.

use std::collections::BTreeSet;

use super::super::table::WriteOutcome;
use super::super::{Customer, DateRange, Employee, EmployeeId, OrderId, OrderStatus, ShippingAddress};
use super::{DeskError, MAX_ATTEMPTS, OrderDesk};
use billing::AccountId;
use dynamo::Paging;

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

    /// Makes the employee `to` the representative of a customer, and of the customer's orders that were placed in
    /// `days` and still have to be shipped. Returns the number of orders that were handed over. If the process stops
    /// before all orders are handed over, a repeated call hands over the remaining orders. If an order was placed
    /// immediately before the first call, and the index did not contain it yet, a repeated call hands over this order,
    /// too.
    ///
    /// # Errors
    /// - `to` is not a customer representative, or a planned change that is due ends the work of `to` as a
    ///   representative.
    /// - A concurrent request handed the customer over to another representative.
    /// - Other requests changed the customer or an order at the same time.
    /// - The table cannot be used.
    pub async fn hand_over(&self, account: &AccountId, to: &EmployeeId, days: DateRange) -> Result<u32, DeskError> {
        let employee = self.table.get_employee(to).await?.filter(Employee::represents_customers);
        let employee = employee.ok_or_else(|| DeskError::NotRepresentative(to.clone()))?;
        if !employee.takes_customers_on(self.today()) {
            return Err(DeskError::StopsRepresenting(to.clone()));
        }
        let with_representative = |customer| Customer { representative: Some(to.clone()), ..customer };
        let customer =
            self.change_customer(account, |_| Ok::<_, DeskError>(()), with_representative, Some(&employee)).await?;
        let mut handed_over = 0;
        // Read the lists in the sequence in which an order changes its status. If an order gets its next status during
        // this loop, the list of that next status, which is read later, contains the order.
        for status in [OrderStatus::BackOrdered, OrderStatus::Open, OrderStatus::Picked] {
            let orders = self.table.orders_of_customer(account, &[status], days, &Paging::all()).await?;
            for order in orders.into_items()? {
                handed_over += u32::from(self.hand_over_order(order.id, to, &customer).await?);
            }
        }
        Ok(handed_over)
    }

    /// Makes `to` the representative of an order of `customer`. Returns false without a change if the order does not
    /// have to be shipped any more, or if `to` already is its representative.
    ///
    /// The transaction checks that `customer` is unchanged. Without this check, after two concurrent hand-overs the customer
    /// could have one representative, and the customer's orders the other representative.
    async fn hand_over_order(&self, id: OrderId, to: &EmployeeId, customer: &Customer) -> Result<bool, DeskError> {
        let mut customer = customer.clone();
        for _ in 0..MAX_ATTEMPTS {
            let (order, _) = self.table.get_order(id).await?.ok_or(DeskError::NoOrder(id))?;
            if !order.status.needs_shipping() || order.representative.as_ref() == Some(to) {
                return Ok(false);
            }
            if self.table.hand_over_order(&order, to, &customer).await? == WriteOutcome::Done {
                return Ok(true);
            }
            // A concurrent request changed the order or the customer. If `to` still represents the customer, try again;
            // if another employee represents the customer now, stop with an error.
            let stored = self.table.get_customer(&customer.account).await?;
            customer = stored.filter(|stored| stored.representative.as_ref() == Some(to)).ok_or_else(|| {
                DeskError::HandedOverToAnother { account: customer.account.clone(), representative: to.clone() }
            })?;
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") })
    }
}
