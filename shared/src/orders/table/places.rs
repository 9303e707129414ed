//! Warehouses, jobs and departments; regions, countries and locations.

use serde::Serialize;

use super::super::{Country, Department, Job, Location, Region, Warehouse, WarehouseId};
use super::index::Wanted;
use super::items::{edge, listed, row};
use super::writes::Written;
use super::{OrdersTable, keys};
use crate::billing::Label;
use crate::table::{TableError, Versioned as _};

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
        let (partition, represents_customers) = (keys::job(&job.id), job.represents_customers);
        let own = row(keys::own(partition.clone()), None, &JobItem { title: &job.title, represents_customers });
        self.writes()
            .put(own)
            .put(edge(partition.clone(), keys::job_title(job.title.as_str()), partition))
            .commit()
            .await
    }

    /// Puts a department, under its own id as both of its keys.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_department(&self, department: &Department) -> Result<Written, TableError> {
        let partition = keys::department(&department.id);
        let own = row(keys::own(partition.clone()), None, &Named { name: &department.name });
        let to_location = edge(partition.clone(), keys::location(&department.location), partition);
        self.writes().put(own).put(to_location).commit().await
    }

    /// Puts a region, which is found by its name.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_region(&self, region: &Region) -> Result<Written, TableError> {
        let partition = keys::region(&region.id);
        let own = row(keys::own(partition.clone()), None, &Named { name: &region.name });
        self.writes()
            .put(own)
            .put(edge(partition.clone(), keys::region_name(region.name.as_str()), partition))
            .commit()
            .await
    }

    /// Puts a country, which is found by its name and by its region.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_country(&self, country: &Country) -> Result<Written, TableError> {
        let partition = keys::country(&country.id);
        let own = row(keys::own(partition.clone()), None, &Named { name: &country.name });
        let to_name = edge(partition.clone(), keys::country_name(country.name.as_str()), &partition);
        let to_region = edge(partition.clone(), keys::region(&country.region), partition);
        self.writes().put(own).put(to_name).put(to_region).commit().await
    }

    /// Puts a location, which is found by its country's name.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_location(&self, location: &Location) -> Result<Written, TableError> {
        let partition = keys::location(&location.id);
        let own = row(keys::own(partition.clone()), None, &LocationItem { address: &location.address });
        let to_country = edge(partition.clone(), keys::country_name(location.country_name.as_str()), partition);
        self.writes().put(own).put(to_country).commit().await
    }
}
