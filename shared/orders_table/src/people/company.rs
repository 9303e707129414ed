//! Reading and writing of regions, countries, locations, jobs and departments.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::items::new_item;
use crate::partition_queries::ItemSelection;
use crate::write_transaction::WriteOutcome;
use crate::{OrdersTable, keys};
use billing::Label;
use dynamo::{Cursor, Item, Key, Page, Paging, TableError, from_item, key_of_item};
use orders::{Country, Department, Job, Location, PlaceId, ReferenceKind, Region, WarehouseId};

/// A region, a country, a location, a job or a department. All its fields are stored in its own item, and also in each
/// of its relations (items that relate it to another entity or to a name).
pub trait ReferencedEntity: Clone + PartialEq + Serialize + DeserializeOwned {
    /// The kind of the entity.
    const KIND: ReferenceKind;

    /// Returns the merchant's identifier of the entity.
    fn id(&self) -> &str;

    /// Returns the sort keys of the items by which GSI-1 finds the entity: the key of its name, and the keys of the
    /// entities to which it refers.
    fn relation_keys(&self) -> Vec<String>;
}

impl ReferencedEntity for Region {
    const KIND: ReferenceKind = ReferenceKind::Region;

    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn relation_keys(&self) -> Vec<String> {
        vec![keys::key_of_region_name(self.name.as_str())]
    }
}

impl ReferencedEntity for Country {
    const KIND: ReferenceKind = ReferenceKind::Country;

    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn relation_keys(&self) -> Vec<String> {
        vec![keys::key_of_country_name(self.name.as_str()), keys::key_of_region(&self.region)]
    }
}

impl ReferencedEntity for Location {
    const KIND: ReferenceKind = ReferenceKind::Location;

    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn relation_keys(&self) -> Vec<String> {
        vec![keys::key_of_country_name(self.country_name.as_str())]
    }
}

impl ReferencedEntity for Job {
    const KIND: ReferenceKind = ReferenceKind::Job;

    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn relation_keys(&self) -> Vec<String> {
        vec![keys::key_of_job_title(self.title.as_str())]
    }
}

impl ReferencedEntity for Department {
    const KIND: ReferenceKind = ReferenceKind::Department;

    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn relation_keys(&self) -> Vec<String> {
        vec![keys::key_of_location(&self.location)]
    }
}

/// Returns the own item of `entity`.
pub(crate) fn own_item_of_entity<E: ReferencedEntity>(entity: &E) -> Item {
    new_item(keys::key_of_own_item(keys::key_of_reference(E::KIND, entity.id())), None, entity)
}

/// Returns the relations of `entity`: the items that relate it to another entity or to a name, and the item by which
/// GSI-1 lists it among all entities of its kind. Each contains all fields of the entity.
pub(crate) fn relations_of_entity<E: ReferencedEntity>(entity: &E) -> Vec<Item> {
    let partition = keys::key_of_reference(E::KIND, entity.id());
    let ends = entity.relation_keys().into_iter().chain([keys::key_of_reference_list(E::KIND)]);
    let relation = |end| new_item(keys::key_of_relation(partition.clone(), end), Some(partition.clone()), entity);
    ends.map(relation).collect()
}

impl OrdersTable {
    /// Returns whether there is an entity of `kind` with this id. Sends one strongly consistent GetItem request.
    pub async fn has_entity(&self, kind: ReferenceKind, id: &str) -> Result<bool, TableError> {
        Ok(self.dynamo.get(keys::key_of_own_item(keys::key_of_reference(kind, id))).await?.is_some())
    }

    /// Returns the ids of all entities of `kind`, sorted. Queries the partition of GSI-1 that lists these entities.
    pub async fn ids_of_references(&self, kind: ReferenceKind) -> Result<Vec<String>, TableError> {
        let prefix = keys::key_of_reference(kind, "");
        let items = self.query_relations_to(keys::key_of_reference_list(kind), ItemSelection::all_items()).await?;
        Ok(items.iter().filter_map(|item| key_of_item(item).pk.strip_prefix(&prefix).map(str::to_owned)).collect())
    }

    /// Returns whether there is a country with this name. Queries the partition of GSI-1 that belongs to the name.
    pub async fn has_country_named(&self, name: &Label) -> Result<bool, TableError> {
        let selection = ItemSelection { limit: Some(1), ..ItemSelection::with_sort_key_prefix(keys::COUNTRY_PREFIX) };
        Ok(!self.query_relations_to(keys::key_of_country_name(name.as_str()), selection).await?.is_empty())
    }

    /// Returns a list page of the entities of a kind, sorted by id. Queries the partition of GSI-1 that lists these
    /// entities. If an earlier version of Dueday imported an entity, its item in this list contains no fields. Such an
    /// entity is listed as unreadable until [`OrdersTable::put_entity`] writes it again.
    pub async fn get_entities<E: ReferencedEntity>(&self, paging: &Paging) -> Result<Page<E>, TableError> {
        let (list, prefix) = (keys::key_of_reference_list(E::KIND), keys::key_of_reference(E::KIND, ""));
        Ok(self.page_of_entities_related_to(list, &prefix, paging).await?.read(|item| from_item(&item)))
    }

    /// Parses a cursor of the list of all entities of `kind`. Returns `None` if `text` is not a cursor of this list.
    pub fn cursor_of_entities(kind: ReferenceKind, text: String) -> Option<Cursor> {
        Self::cursor_of_list(&keys::key_of_reference_list(kind), &keys::key_of_reference(kind, ""), text)
    }

    /// Creates or replaces an entity and its relations (items that relate it to another entity or to a name), and
    /// deletes stored relations that the entity no longer has. First queries the stored items. If they differ from
    /// `entity`, writes all changes in one transaction. Returns `Refused` if another request changed a relation between
    /// the query and the transaction.
    pub async fn put_entity<E: ReferencedEntity>(&self, entity: &E) -> Result<WriteOutcome, TableError> {
        let partition = keys::key_of_reference(E::KIND, entity.id());
        let list = keys::key_of_reference_list(E::KIND);
        let stored = self.query_partition(partition, ItemSelection::all_items()).await?;
        let find = |sk: &str| stored.iter().find(|item| key_of_item(item).sk == sk);
        // The item by which the entity is listed contains the fields of the stored entity. If an earlier version of
        // Dueday wrote the entity, this item is missing or contains no fields, so the entity is written again.
        let before = find(&list).and_then(|item| from_item::<E>(item).ok());
        if before.as_ref() == Some(entity) {
            return Ok(WriteOutcome::Done);
        }
        let relations = relations_of_entity(entity);
        let mut writes = self.transaction().put(own_item_of_entity(entity));
        for key in stored.iter().map(key_of_item) {
            if key.sk != key.pk && relations.iter().all(|relation| key_of_item(relation) != key) {
                writes = writes.delete(key);
            }
        }
        for relation in relations {
            let is_stored = find(&key_of_item(&relation).sk).is_some();
            writes = if is_stored { writes.replace(relation) } else { writes.create(relation) };
        }
        writes.commit().await
    }

    /// Returns the ids of the countries and of the warehouses of a region, both sorted. Queries the region's partition
    /// of GSI-1.
    pub async fn countries_and_warehouses(
        &self,
        region: &PlaceId,
    ) -> Result<(Vec<PlaceId>, Vec<WarehouseId>), TableError> {
        let (mut countries, mut warehouses) = (Vec::new(), Vec::new());
        for item in self.query_relations_to(keys::key_of_region(region), ItemSelection::all_items()).await? {
            let Key { pk, .. } = key_of_item(&item);
            countries.extend(keys::id_after_prefix::<PlaceId>(&pk, keys::COUNTRY_PREFIX));
            warehouses.extend(keys::id_after_prefix::<WarehouseId>(&pk, keys::WAREHOUSE_PREFIX));
        }
        Ok((countries, warehouses))
    }
}
