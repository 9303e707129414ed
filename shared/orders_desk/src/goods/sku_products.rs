//! Changes of the products that are shipped for each paid month of a SKU.

use crate::error::DeskError;
use crate::{MAX_ATTEMPTS, OrderDesk};
use billing::Sku;
use orders::{OrderLine, check_order_lines};
use orders_table::WriteOutcome;

impl OrderDesk {
    /// Sets the products that are shipped for each paid month of `sku`. Existing orders keep their lines.
    ///
    /// # Errors
    /// [`check_order_lines`] rejects the lines, a product does not exist, other requests changed the SKU at the same
    /// time, or the table cannot be used.
    pub async fn set_lines_of_sku(&self, sku: &Sku, lines: &[OrderLine]) -> Result<(), DeskError> {
        check_order_lines(lines)?;
        for line in lines {
            if self.table.get_product(&line.product).await?.is_none() {
                return Err(DeskError::NoProduct(line.product.clone()));
            }
        }
        for _ in 0..MAX_ATTEMPTS {
            if self.table.set_lines_of_sku(sku, lines).await? == WriteOutcome::Done {
                return Ok(());
            }
        }
        Err(DeskError::WriteConflict { item: format!("the SKU {sku}") })
    }
}
