//! Reading and writing of warehouses, jobs, departments, regions, countries and locations.

use serde::Serialize;

use super::super::{Country, Department, Job, Location, PlaceId, ReferenceKind, Region, Warehouse, WarehouseId};
use super::index::Selection;
use super::items::{edge, item_with, warehouse_list_edge};
use super::write_transaction::WriteOutcome;
use super::{OrdersTable, keys};
use billing::{ActionKind, ItemChange, Label};
use dynamo::{Entity as _, Key, TableError, key_of};

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct NameAttribute<'a> {
    name: &'a Label,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct JobItem<'a> {
    title: &'a Label,
    represents_customers: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct LocationItem<'a> {
    address: &'a Label,
}

/// Returns the entry of the action log for the change of a warehouse; `before` is `None` if the warehouse is new.
fn change_of_warehouse(before: Option<&Warehouse>, after: &Warehouse) -> ItemChange {
    let change = ItemChange::new(&after.id, after.version);
    let change = change.field("name", before.map(|before| before.name.as_str()), Some(after.name.as_str()));
    change.field("region", before.map(|before| &before.region), Some(&after.region))
}

impl OrdersTable {
    /// Returns whether there is an entity of `kind` with this id. Sends one strongly consistent GetItem request.
    pub async fn has_entity(&self, kind: ReferenceKind, id: &str) -> Result<bool, TableError> {
        Ok(self.dynamo.get(keys::key_of_own_item(keys::key_of_reference(kind, id))).await?.is_some())
    }

    /// Returns the ids of all entities of `kind`, sorted. Queries GSI-1 with the key of the list as `SK`.
    pub async fn ids_of(&self, kind: ReferenceKind) -> Result<Vec<String>, TableError> {
        let prefix = keys::key_of_reference(kind, "");
        let items = self.query_edges_to(keys::list_of_references(kind), Selection::all_items()).await?;
        Ok(items.iter().filter_map(|item| key_of(item).pk.strip_prefix(&prefix).map(str::to_owned)).collect())
    }

    /// Creates a warehouse with the edges to its region and to the list of all warehouses, in one transaction. Returns
    /// `Refused` if the warehouse exists.
    pub async fn create_warehouse(&self, warehouse: &Warehouse) -> Result<WriteOutcome, TableError> {
        let partition = keys::key_of_warehouse(&warehouse.id);
        let to_region = edge(partition.clone(), keys::key_of_region(&warehouse.region), partition);
        self.transaction()
            .create(warehouse.to_item())
            .create(to_region)
            .create(warehouse_list_edge(warehouse))
            .log(ActionKind::PutWarehouse, || change_of_warehouse(None, warehouse))
            .commit()
            .await
    }

    /// Changes the name or the region of a warehouse, and its edges, in one transaction. Returns `Refused` if the
    /// stored warehouse changed since it was read.
    pub async fn change_warehouse(&self, before: &Warehouse, after: &Warehouse) -> Result<WriteOutcome, TableError> {
        let partition = keys::key_of_warehouse(&before.id);
        let after = Warehouse { version: before.version.saturating_add(1), ..after.clone() };
        let mut writes = self.transaction().change(before, &after).put(warehouse_list_edge(&after));
        if before.region != after.region {
            writes = writes.delete(keys::key_of_edge(partition.clone(), keys::key_of_region(&before.region)));
            writes = writes.create(edge(partition.clone(), keys::key_of_region(&after.region), partition));
        }
        writes.log(ActionKind::PutWarehouse, || change_of_warehouse(Some(before), &after)).commit().await
    }

    /// Returns a warehouse, or `None` if it does not exist. Sends one strongly consistent GetItem request.
    pub async fn get_warehouse(&self, id: &WarehouseId) -> Result<Option<Warehouse>, TableError> {
        let item = self.dynamo.get(keys::key_of_own_item(keys::key_of_warehouse(id))).await?;
        item.map(|item| Warehouse::from_item(&item)).transpose()
    }

    /// Returns all warehouses, sorted by id. Queries GSI-1 with `SK = WAREHOUSES`.
    pub async fn get_warehouses(&self) -> Result<Vec<Warehouse>, TableError> {
        let items = self.query_edges_to(keys::ALL_WAREHOUSES, Selection::all_items()).await?;
        items.iter().map(Warehouse::from_item).collect()
    }

    /// Creates or replaces a job. GSI-1 finds it by its title, and in the list of all jobs.
    pub async fn put_job(&self, job: &Job) -> Result<WriteOutcome, TableError> {
        let attributes = JobItem { title: &job.title, represents_customers: job.represents_customers };
        self.put_entity_with_edges(
            keys::key_of_job(&job.id),
            &attributes,
            &[keys::key_of_job_title(job.title.as_str()), keys::list_of_references(ReferenceKind::Job)],
        )
        .await
    }

    /// Creates or replaces a department. GSI-1 finds it by its location, and in the list of all departments.
    pub async fn put_department(&self, department: &Department) -> Result<WriteOutcome, TableError> {
        let location = keys::key_of_location(&department.location);
        self.put_entity_with_edges(
            keys::key_of_department(&department.id),
            &NameAttribute { name: &department.name },
            &[location, keys::list_of_references(ReferenceKind::Department)],
        )
        .await
    }

    /// Creates or replaces a region. GSI-1 finds it by its name, and in the list of all regions.
    pub async fn put_region(&self, region: &Region) -> Result<WriteOutcome, TableError> {
        let ends = [keys::key_of_region_name(region.name.as_str()), keys::list_of_references(ReferenceKind::Region)];
        self.put_entity_with_edges(keys::key_of_region(&region.id), &NameAttribute { name: &region.name }, &ends).await
    }

    /// Creates or replaces a country. GSI-1 finds it by its name and by its region, and in the list of all countries.
    pub async fn put_country(&self, country: &Country) -> Result<WriteOutcome, TableError> {
        let ends = [
            keys::key_of_country_name(country.name.as_str()),
            keys::key_of_region(&country.region),
            keys::list_of_references(ReferenceKind::Country),
        ];
        self.put_entity_with_edges(keys::key_of_country(&country.id), &NameAttribute { name: &country.name }, &ends)
            .await
    }

    /// Creates or replaces a location. GSI-1 finds it by the name of its country.
    pub async fn put_location(&self, location: &Location) -> Result<WriteOutcome, TableError> {
        let country = keys::key_of_country_name(location.country_name.as_str());
        self.put_entity_with_edges(
            keys::key_of_location(&location.id),
            &LocationItem { address: &location.address },
            &[country],
        )
        .await
    }

    /// Creates or replaces an entity and its edges to the keys `ends`, and deletes its other edges. Queries the stored
    /// edges, and then writes in one transaction. Returns `Refused` if another request deleted an edge between the
    /// query and the transaction.
    async fn put_entity_with_edges(
        &self,
        partition: String,
        attributes: &impl Serialize,
        ends: &[String],
    ) -> Result<WriteOutcome, TableError> {
        let mut writes = self.transaction().put(item_with(keys::key_of_own_item(partition.clone()), None, attributes));
        for item in self.query_partition(partition.clone(), Selection::all_items()).await? {
            let Key { pk, sk } = key_of(&item);
            if sk != pk && !ends.contains(&sk) {
                writes = writes.delete(Key { pk, sk });
            }
        }
        ends.iter().fold(writes, |writes, end| writes.put(edge(partition.clone(), end, &partition))).commit().await
    }

    /// Returns the ids of the countries and of the warehouses of a region, both sorted. Queries GSI-1 with
    /// `SK = region`.
    pub async fn countries_and_warehouses(
        &self,
        region: &PlaceId,
    ) -> Result<(Vec<PlaceId>, Vec<WarehouseId>), TableError> {
        let (mut countries, mut warehouses) = (Vec::new(), Vec::new());
        for item in self.query_edges_to(keys::key_of_region(region), Selection::all_items()).await? {
            let Key { pk, .. } = key_of(&item);
            countries.extend(keys::id_after_prefix::<PlaceId>(&pk, keys::COUNTRIES));
            warehouses.extend(keys::id_after_prefix::<WarehouseId>(&pk, keys::WAREHOUSES));
        }
        Ok((countries, warehouses))
    }
}
