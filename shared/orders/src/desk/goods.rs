//! Goods that arrive, and what SKUs are made of.

use ulid::Ulid;

use super::super::table::Written;
use super::super::{OrderLine, ProductId, WarehouseId, check_lines};
use super::{DeskError, Filled, MAX_RETRIES, OrderDesk};
use billing::Sku;

impl OrderDesk {
    /// `quantity` of a product have arrived in a warehouse, by the `delivery` of that name, which counts once; fills what has
    /// waited for it. That some could not be filled is answered, and no error: the goods are counted.
    ///
    /// # Errors
    /// [`DeskError`]: after a time-out they may be counted. Told again with the same `delivery` they are, once.
    pub async fn receive(
        &self,
        product: &ProductId,
        warehouse: &WarehouseId,
        quantity: u64,
        delivery: Ulid,
    ) -> Result<Filled, DeskError> {
        if self.table.product(product).await?.is_none() {
            return Err(DeskError::NoProduct(product.clone()));
        }
        if self.table.warehouse(warehouse).await?.is_none() {
            return Err(DeskError::NoWarehouse(warehouse.clone()));
        }
        for _ in 0..MAX_RETRIES {
            match self.table.add_stock(product, warehouse, quantity, delivery).await? {
                Written::Refused(0) if !self.table.is_delivery(product, warehouse, quantity, delivery).await? => {
                    return Err(DeskError::OtherDelivery(delivery));
                }
                Written::Done | Written::Refused(0) => return Ok(self.fill_product(product).await),
                Written::Refused(_) => {}
            }
        }
        Err(DeskError::Contended { what: format!("the stock of {product}") })
    }

    /// `sku` is made of `lines` from now on; orders that were placed keep theirs.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn set_lines(&self, sku: &Sku, lines: &[OrderLine]) -> Result<(), DeskError> {
        check_lines(lines)?;
        for line in lines {
            if self.table.product(&line.product).await?.is_none() {
                return Err(DeskError::NoProduct(line.product.clone()));
            }
        }
        for _ in 0..MAX_RETRIES {
            if self.table.set_lines(sku, lines).await? == Written::Done {
                return Ok(());
            }
        }
        Err(DeskError::Contended { what: format!("the SKU {sku}") })
    }
}
