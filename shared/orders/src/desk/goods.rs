//! Deliveries of products to warehouses, and the products that each SKU stands for.

use ulid::Ulid;

use super::super::table::WriteOutcome;
use super::super::{OrderLine, ProductId, WarehouseId, check_lines};
use super::{DeskError, MAX_RETRIES, OrderDesk};
use billing::Sku;

impl OrderDesk {
    /// Adds a delivery of `quantity` pieces of a product to the stock of a warehouse, and requests to fill the backordered
    /// orders that contain the product. A repeated call with the same `delivery` id changes nothing.
    ///
    /// # Errors
    /// The product or the warehouse does not exist, the `delivery` id was used with another quantity or warehouse,
    /// other requests changed the stock at the same time, or the table cannot be used. After a time-out the stock may
    /// have been added; it is safe to repeat the call.
    pub async fn receive(
        &self,
        product: &ProductId,
        warehouse: &WarehouseId,
        quantity: u64,
        delivery: Ulid,
    ) -> Result<(), DeskError> {
        if self.table.get_product(product).await?.is_none() {
            return Err(DeskError::NoProduct(product.clone()));
        }
        if self.table.get_warehouse(warehouse).await?.is_none() {
            return Err(DeskError::NoWarehouse(warehouse.clone()));
        }
        for _ in 0..MAX_RETRIES {
            match self.table.add_stock(product, warehouse, quantity, delivery, self.clock.ulid()).await? {
                WriteOutcome::Refused(0)
                    if !self.table.is_delivery_recorded_with(product, warehouse, quantity, delivery).await? =>
                {
                    return Err(DeskError::DeliveryMismatch(delivery));
                }
                WriteOutcome::Done | WriteOutcome::Refused(0) => return Ok(()),
                WriteOutcome::NoAccount | WriteOutcome::Refused(_) => {}
            }
        }
        Err(DeskError::WriteConflict { item: format!("the stock of {product}") })
    }

    /// Sets the products that are shipped for each paid month of `sku`. Existing orders keep their lines.
    ///
    /// # Errors
    /// [`check_lines`] rejects the lines, a product does not exist, other requests changed the SKU at the same time, or
    /// the table cannot be used.
    pub async fn set_lines_of_sku(&self, sku: &Sku, lines: &[OrderLine]) -> Result<(), DeskError> {
        check_lines(lines)?;
        for line in lines {
            if self.table.get_product(&line.product).await?.is_none() {
                return Err(DeskError::NoProduct(line.product.clone()));
            }
        }
        for _ in 0..MAX_RETRIES {
            if self.table.set_lines_of_sku(sku, lines).await? == WriteOutcome::Done {
                return Ok(());
            }
        }
        Err(DeskError::WriteConflict { item: format!("the SKU {sku}") })
    }
}
