//! Changes of the stock that people request: deliveries, counts, write-offs and transfers.

use ulid::Ulid;

use crate::error::DeskError;
use crate::{MAX_ATTEMPTS, OrderDesk};
use orders::{Movement, MovementKind, MovementRequest, ProductId, WarehouseId};
use orders_table::{RefusedWrite, StockBefore, WriteOutcome};

impl OrderDesk {
    /// Adds a delivery of `quantity` pieces of a product to the stock of a warehouse, and requests to fill the backordered
    /// orders that contain the product. A repeated call with the same `delivery` id changes nothing.
    ///
    /// # Errors
    /// - The product or the warehouse does not exist.
    /// - The `delivery` id was used before: with another quantity or warehouse, or for another movement of the product.
    /// - Other requests changed the stock at the same time.
    /// - The table cannot be used. After a time-out the stock may have been added; it is safe to repeat the call.
    pub async fn receive_stock(
        &self,
        product: &ProductId,
        warehouse: &WarehouseId,
        quantity: u64,
        delivery: Ulid,
    ) -> Result<(), DeskError> {
        self.check_product_and_warehouses(product, &[warehouse]).await?;
        let arrival = self.arrival_movement(MovementKind::Delivery, product, warehouse, quantity, delivery);
        for _ in 0..MAX_ATTEMPTS {
            let is_in_stock = self.stock_before(product, warehouse).await?.is_some();
            match self.table.add_stock(&arrival, is_in_stock, self.clock.ulid()).await? {
                WriteOutcome::Done => return Ok(()),
                WriteOutcome::Refused(RefusedWrite::Creation) => {
                    let stored = self.table.get_movement(product, delivery).await?;
                    let is_recorded = match stored {
                        Some(stored) => stored.is_same_request_as(&arrival),
                        None => self.table.is_recorded_by_earlier_version(&arrival).await?,
                    };
                    return if is_recorded { Ok(()) } else { Err(DeskError::DeliveryMismatch(delivery)) };
                }
                WriteOutcome::NoAccount | WriteOutcome::Refused(RefusedWrite::Other) => {}
            }
        }
        Err(DeskError::WriteConflict { item: format!("the stock of {product}") })
    }

    /// Sets the initial stock of a product in a warehouse. Returns `Refused` if a stock of the product in this
    /// warehouse is stored already, or if the product does not exist.
    pub async fn set_initial_stock(
        &self,
        product: &ProductId,
        warehouse: &WarehouseId,
        quantity: u64,
    ) -> Result<WriteOutcome, DeskError> {
        let change = self.clock.ulid();
        let initial = self.arrival_movement(MovementKind::InitialStock, product, warehouse, quantity, change);
        Ok(self.table.set_initial_stock(&initial, change).await?)
    }

    /// Counts, writes off or transfers stock of a product as `request` requests, and records the change as the movement
    /// `id`. If the stock of a warehouse grows, also requests to fill the backordered orders that contain the product.
    /// A repeated call with the same `id` changes nothing. Returns the recorded movement.
    ///
    /// # Errors
    /// - The product or a warehouse does not exist.
    /// - More pieces are requested than the stock has, or both warehouses of a transfer are the same.
    /// - The `id` was used for another movement of the product.
    /// - Other requests changed the stock at the same time.
    /// - The table cannot be used. After a time-out the stock may have been changed; it is safe to repeat the call.
    pub async fn move_stock(
        &self,
        product: &ProductId,
        id: Ulid,
        request: &MovementRequest,
    ) -> Result<Movement, DeskError> {
        let warehouses: Vec<&WarehouseId> =
            [request.warehouse()].into_iter().chain(request.target_warehouse()).collect();
        self.check_product_and_warehouses(product, &warehouses).await?;
        for _ in 0..MAX_ATTEMPTS {
            let stored = self.table.get_movement(product, id).await?;
            let in_warehouse = self.stock_before(product, request.warehouse()).await?;
            let in_target_warehouse = match request.target_warehouse() {
                Some(to) => self.stock_before(product, to).await?,
                None => None,
            };
            let now = self.clock.now();
            if let Some(stored) = stored {
                // The stock at the time of the first request is not known any more, and is not compared. So compute the
                // movement from a stock that suffices.
                let is_same = request
                    .movement_from(request.quantity(), id, product, now)
                    .is_ok_and(|repeated| stored.is_same_request_as(&repeated));
                return if is_same { Ok(stored) } else { Err(DeskError::MovementMismatch(id)) };
            }
            let movement = request.movement_from(in_warehouse.unwrap_or_default(), id, product, now)?;
            let before = StockBefore { in_warehouse, in_target_warehouse };
            if self.table.move_stock(&movement, before, self.clock.ulid()).await? == WriteOutcome::Done {
                return Ok(movement);
            }
        }
        Err(DeskError::WriteConflict { item: format!("the stock of {product}") })
    }

    /// Checks that the product and the warehouses exist.
    async fn check_product_and_warehouses(
        &self,
        product: &ProductId,
        warehouses: &[&WarehouseId],
    ) -> Result<(), DeskError> {
        if self.table.get_product(product).await?.is_none() {
            return Err(DeskError::NoProduct(product.clone()));
        }
        for warehouse in warehouses {
            if self.table.get_warehouse(warehouse).await?.is_none() {
                return Err(DeskError::NoWarehouse((*warehouse).clone()));
            }
        }
        Ok(())
    }

    /// Returns the stock of a product in a warehouse; `None` if the product was never there.
    async fn stock_before(&self, product: &ProductId, warehouse: &WarehouseId) -> Result<Option<u64>, DeskError> {
        Ok(self.table.get_stock(product, Some(warehouse)).await?.first().map(|stock| stock.quantity))
    }

    /// Returns the movement that records that `quantity` pieces arrived in a warehouse.
    fn arrival_movement(
        &self,
        kind: MovementKind,
        product: &ProductId,
        warehouse: &WarehouseId,
        quantity: u64,
        id: Ulid,
    ) -> Movement {
        Movement {
            id,
            product: product.clone(),
            kind,
            at: self.clock.now(),
            warehouse: warehouse.clone(),
            to: None,
            quantity,
            stock_change: i64::try_from(quantity).unwrap_or(i64::MAX),
            reason: None,
        }
    }
}
