//! Warehouses, jobs and departments; regions, countries and locations.

use serde::Serialize;

use super::super::{Country, Department, Job, Location, PlaceId, Region, Warehouse, WarehouseId};
use super::index::Wanted;
use super::items::{edge, listed, row};
use super::writes::Written;
use super::{OrdersTable, keys};
use billing::Label;
use dynamo::{Entity as _, Key, TableError, key_of};

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Named<'a> {
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

impl OrdersTable {
    /// Creates `warehouse`; `Refused` if there is one. Own item, and its edges to its region and to all warehouses, in one
    /// transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_warehouse(&self, warehouse: &Warehouse) -> Result<Written, TableError> {
        let partition = keys::warehouse(&warehouse.id);
        let to_region = edge(partition.clone(), keys::region(&warehouse.region), partition);
        self.writes().create(warehouse.to_item()).create(to_region).create(listed(warehouse)).commit().await
    }

    /// Writes `after` on top of `before`: another name or region. Own item and its edges, in one transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn change_warehouse(&self, before: &Warehouse, after: &Warehouse) -> Result<Written, TableError> {
        let partition = keys::warehouse(&before.id);
        let after = Warehouse { version: before.version.saturating_add(1), ..after.clone() };
        let mut writes = self.writes().change(before, &after).put(listed(&after));
        if before.region != after.region {
            writes = writes.delete(keys::edge(partition.clone(), keys::region(&before.region)));
            writes = writes.create(edge(partition.clone(), keys::region(&after.region), partition));
        }
        writes.commit().await
    }

    /// A warehouse. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn warehouse(&self, id: &WarehouseId) -> Result<Option<Warehouse>, TableError> {
        let item = self.0.get(keys::own(keys::warehouse(id))).await?;
        item.map(|item| Warehouse::from_item(&item)).transpose()
    }

    /// All warehouses, by their ids. GSI-1, `SK = WAREHOUSES`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn warehouses(&self) -> Result<Vec<Warehouse>, TableError> {
        let items = self.leading_to(keys::ALL_WAREHOUSES, Wanted::all()).await?;
        items.iter().map(Warehouse::from_item).collect()
    }

    /// Puts a job, whose employees are found by its title.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_job(&self, job: &Job) -> Result<Written, TableError> {
        let attributes = JobItem { title: &job.title, represents_customers: job.represents_customers };
        self.put_entity(keys::job(&job.id), &attributes, &[keys::job_title(job.title.as_str())]).await
    }

    /// Puts a department, under its own id as both of its keys.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_department(&self, department: &Department) -> Result<Written, TableError> {
        let location = keys::location(&department.location);
        self.put_entity(keys::department(&department.id), &Named { name: &department.name }, &[location]).await
    }

    /// Puts a region, which is found by its name.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_region(&self, region: &Region) -> Result<Written, TableError> {
        let name = keys::region_name(region.name.as_str());
        self.put_entity(keys::region(&region.id), &Named { name: &region.name }, &[name]).await
    }

    /// Puts a country, which is found by its name and by its region.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_country(&self, country: &Country) -> Result<Written, TableError> {
        let ends = [keys::country_name(country.name.as_str()), keys::region(&country.region)];
        self.put_entity(keys::country(&country.id), &Named { name: &country.name }, &ends).await
    }

    /// Puts a location, which is found by its country's name.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_location(&self, location: &Location) -> Result<Written, TableError> {
        let country = keys::country_name(location.country_name.as_str());
        self.put_entity(keys::location(&location.id), &LocationItem { address: &location.address }, &[country]).await
    }

    /// Puts the entity of `partition` and its edges to `ends`, and deletes the edges that it had to others. Query, and one
    /// transaction; refused if an edge went meanwhile.
    async fn put_entity(
        &self,
        partition: String,
        attributes: &impl Serialize,
        ends: &[String],
    ) -> Result<Written, TableError> {
        let mut writes = self.writes().put(row(keys::own(partition.clone()), None, attributes));
        for item in self.in_partition(partition.clone(), Wanted::all()).await? {
            let Key { pk, sk } = key_of(&item);
            if sk != pk && !ends.contains(&sk) {
                writes = writes.delete(Key { pk, sk });
            }
        }
        ends.iter().fold(writes, |writes, end| writes.put(edge(partition.clone(), end, &partition))).commit().await
    }

    /// The countries and the warehouses of a region, by their ids. GSI-1, `SK = region`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn in_region(&self, region: &PlaceId) -> Result<(Vec<PlaceId>, Vec<WarehouseId>), TableError> {
        let (mut countries, mut warehouses) = (Vec::new(), Vec::new());
        for item in self.leading_to(keys::region(region), Wanted::all()).await? {
            let Key { pk, .. } = key_of(&item);
            countries.extend(keys::id::<PlaceId>(&pk, keys::COUNTRIES));
            warehouses.extend(keys::id::<WarehouseId>(&pk, keys::WAREHOUSES));
        }
        Ok((countries, warehouses))
    }
}
