//! The warehouses that orders are shipped from.

use crate::ids::{PlaceId, WarehouseId};
use billing::Label;

/// A warehouse. It ships the orders of customers in its region, if possible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warehouse {
    pub id: WarehouseId,
    pub name: Label,
    pub region: PlaceId,
    pub version: u64,
}
