//! Reading and writing of warehouses.

use crate::items::{new_relation_item, warehouse_list_relation};
use crate::partition_queries::ItemSelection;
use crate::write_transaction::{WriteOutcome, WriteTransaction};
use crate::{OrdersTable, keys};
use billing::{ActionKind, ItemChange};
use dynamo::{Entity as _, Item, TableError};
use orders::{Warehouse, WarehouseId};

/// Returns the entry of the action log for the change of a warehouse; `before` is `None` if the warehouse is new.
fn warehouse_action_entry(before: Option<&Warehouse>, after: &Warehouse) -> ItemChange {
    let change = ItemChange::new(&after.id, after.version);
    let change = change.field("name", before.map(|before| before.name.as_str()), Some(after.name.as_str()));
    change.field("region", before.map(|before| &before.region), Some(&after.region))
}

/// Returns the relations of `warehouse`: the items by which GSI-1 finds it by its region, and in the list of all
/// warehouses.
pub(crate) fn relations_of_warehouse(warehouse: &Warehouse) -> [Item; 2] {
    let partition = keys::key_of_warehouse(&warehouse.id);
    let to_region = new_relation_item(partition.clone(), keys::key_of_region(&warehouse.region), partition);
    [to_region, warehouse_list_relation(warehouse)]
}

impl OrdersTable {
    /// Creates a warehouse in one transaction, which also writes the items by which GSI-1 finds the warehouse: by its
    /// region, and in the list of all warehouses. Returns `Refused` if the warehouse exists.
    pub async fn create_warehouse(&self, warehouse: &Warehouse) -> Result<WriteOutcome, TableError> {
        let writes = self.transaction().create(warehouse.to_item());
        let writes = relations_of_warehouse(warehouse).into_iter().fold(writes, WriteTransaction::create);
        writes.add_action_entry(ActionKind::PutWarehouse, || warehouse_action_entry(None, warehouse)).commit().await
    }

    /// Changes the name or the region of a warehouse in one transaction, which also changes the items by which GSI-1
    /// finds the warehouse. Returns `Refused` if the stored warehouse changed since it was read.
    pub async fn change_warehouse(&self, before: &Warehouse, after: &Warehouse) -> Result<WriteOutcome, TableError> {
        let partition = keys::key_of_warehouse(&before.id);
        let after = Warehouse { version: before.version.saturating_add(1), ..after.clone() };
        let mut writes = self.transaction().change(before, &after).put(warehouse_list_relation(&after));
        if before.region != after.region {
            writes = writes.delete(keys::key_of_relation(partition.clone(), keys::key_of_region(&before.region)));
            writes = writes.create(new_relation_item(partition.clone(), keys::key_of_region(&after.region), partition));
        }
        writes
            .add_action_entry(ActionKind::PutWarehouse, || warehouse_action_entry(Some(before), &after))
            .commit()
            .await
    }

    /// Returns a warehouse, or `None` if it does not exist. Sends one strongly consistent GetItem request.
    pub async fn get_warehouse(&self, id: &WarehouseId) -> Result<Option<Warehouse>, TableError> {
        let item = self.dynamo.get(keys::key_of_own_item(keys::key_of_warehouse(id))).await?;
        item.map(|item| Warehouse::from_item(&item)).transpose()
    }

    /// Returns all warehouses, sorted by id. Queries the partition `WAREHOUSES` of GSI-1.
    pub async fn get_warehouses(&self) -> Result<Vec<Warehouse>, TableError> {
        let items = self.query_relations_to(keys::ALL_WAREHOUSES, ItemSelection::all_items()).await?;
        items.iter().map(Warehouse::from_item).collect()
    }
}
