//! The check of all items of a partition. Each item is checked alone. Then the relations of the entity (the items by
//! which GSI-1 finds it) are compared with the relations that follow from its own item.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::audit::item_kinds::{check_item_alone, is_relation_key};
use crate::fulfilment::orders::relations_of_order;
use crate::goods::products::relations_of_product;
use crate::goods::warehouses::relations_of_warehouse;
use crate::items::{DATA, expected_confidential_item, read_order_line};
use crate::keys;
use crate::people::company::ReferencedEntity;
use crate::people::company::relations_of_entity;
use crate::people::customers::representative_relation;
use crate::people::employees::relations_of_employee;
use crate::stream::is_order_key;
use dynamo::{Entity as _, FaultyItem, Item, ItemFault, Key, TableError, from_item, key_of_item};
use orders::{
    Country, Customer, Department, Employee, Job, Location, Movement, Order, OrderLine, OrderRefunds, Product, Region,
    Warehouse,
};

/// The attributes of a relation of an employee that an earlier version of Dueday wrote.
const EARLIER_ATTRIBUTES: [&str; 3] = ["PK", "SK", DATA];

/// The prefixes of the partitions whose items cannot exist without the own item of the entity. Only the refunds of an
/// order can be recorded before the order is placed.
const DEPENDENT_ITEMS: [&str; 3] = [keys::EMPLOYEE_PREFIX, keys::ORDER_PREFIX, keys::PRODUCT_PREFIX];

/// The check of a partition whose items are being read. It keeps only the own item of the entity, its relations and its
/// refunds, so that a product with many movements needs little memory.
#[derive(Debug)]
pub(crate) struct PartitionCheck {
    /// The partition key.
    pub pk: String,
    now: DateTime<Utc>,
    own: Option<Item>,
    /// The first item, apart from relations, that cannot exist without the entity.
    dependent: Option<Key>,
    relations: BTreeMap<Key, Item>,
    /// The item with the refunds of an order.
    refunds: Option<Item>,
    faulty: Vec<FaultyItem>,
}

impl PartitionCheck {
    /// Begins the check of the partition with the key `pk` at the time `now`.
    pub fn new(pk: String, now: DateTime<Utc>) -> Self {
        Self { pk, now, own: None, dependent: None, relations: BTreeMap::new(), refunds: None, faulty: Vec::new() }
    }

    /// Checks `item` alone, and keeps it if another item of the partition depends on it.
    pub fn add(&mut self, item: &Item) {
        let key = key_of_item(item);
        self.faulty.extend(check_item_alone(item, self.now));
        if is_listed_by_own_item(&key) && !item.contains_key(DATA) {
            self.add_fault(&key, ItemFault::Altered, format!("missing: {DATA}. No list contains the item without it"));
        }
        if key.sk == key.pk || is_order_key(&key) {
            if let Some(other) = self.own.replace(item.clone()) {
                self.add_fault(&key, ItemFault::Relation, format!("the item {} has the same id", key_of_item(&other)));
            }
        } else if key.sk == keys::REFUNDS {
            self.refunds = Some(item.clone());
        } else if is_relation_key(&key) {
            self.relations.insert(key, item.clone());
        } else {
            let movement = key.pk.starts_with(keys::PRODUCT_PREFIX).then(|| Movement::from_item(item).ok()).flatten();
            let broken = movement.map(|movement| movement.contradictions()).unwrap_or_default();
            broken.into_iter().for_each(|rule| self.add_fault(&key, ItemFault::Altered, rule));
            if DEPENDENT_ITEMS.iter().any(|prefix| key.pk.starts_with(prefix)) {
                self.dependent.get_or_insert(key);
            }
        }
    }

    /// Adds a fault of the item with the key `key`.
    fn add_fault(&mut self, key: &Key, fault: ItemFault, what: impl Into<String>) {
        self.faulty.push(FaultyItem { key: key.clone(), fault, what: what.into() });
    }

    /// Checks the values of an order, if `own` is the own item of an order that can be read.
    fn check_order(&mut self, own: &Item) {
        let key = key_of_item(own);
        let Some(order) = is_order_key(&key).then(|| Order::from_item(own).ok()).flatten() else { return };
        let mut broken = order.contradictions();
        let refunds = self.refunds.take().map(|refunds| OrderRefunds::from_item(&refunds)).transpose();
        // If the refunds cannot be read, that is a fault of their own.
        if refunds.is_ok_and(|refunds| !order.agrees_with_refunds(refunds.as_ref())) {
            broken.push("RefundedAmount must be the sum of the refunds");
        }
        broken.into_iter().for_each(|rule| self.add_fault(&key, ItemFault::Altered, rule));
    }

    /// Compares the relations with the own item of the entity, after all items were added. Returns what is wrong with
    /// the items of the partition.
    pub fn finish(mut self) -> Vec<FaultyItem> {
        let relations = std::mem::take(&mut self.relations);
        let Some(own) = self.own.take() else {
            for key in relations.keys().chain(&self.dependent.take()) {
                self.add_fault(key, ItemFault::Relation, format!("its entity {} does not exist", key.pk));
            }
            return self.faulty;
        };
        self.check_order(&own);
        // If the own item cannot be read, that is a fault of its own.
        let Ok(expected) = expected_relations(&own, &relations) else { return self.faulty };
        let is_reported: BTreeSet<Key> = self.faulty.iter().map(|faulty| faulty.key.clone()).collect();
        for (key, relation) in &expected {
            match relations.get(key).map(|stored| differing_attributes(stored, relation)) {
                None => self.add_fault(
                    key,
                    ItemFault::Relation,
                    format!("it does not exist, but {} needs it", key_of_item(&own)),
                ),
                Some(names) if !names.is_empty() && !is_reported.contains(key) => {
                    let what = format!("it differs from {}: {}", key_of_item(&own), names.join(", "));
                    self.add_fault(key, ItemFault::Relation, what);
                }
                Some(_) => {}
            }
        }
        for key in relations.keys().filter(|key| !expected.contains_key(key)) {
            self.add_fault(key, ItemFault::Relation, format!("{} does not need it", key_of_item(&own)));
        }
        self.faulty
    }
}

/// Returns whether the indexes list the item with the key `key` although it is no relation.
fn is_listed_by_own_item(key: &Key) -> bool {
    is_order_key(key) || (key.pk.starts_with(keys::EMPLOYEE_PREFIX) && keys::parse_quarter(&key.sk).is_some())
}

/// Returns the relations that the entity with the own item `own` must have. `stored` are its stored relations.
///
/// # Errors
/// [`TableError::Unreadable`] if the own item cannot be read.
fn expected_relations(own: &Item, stored: &BTreeMap<Key, Item>) -> Result<BTreeMap<Key, Item>, TableError> {
    let key = key_of_item(own);
    let has_prefix = |prefix: &str| key.pk.starts_with(prefix);
    let expected = if has_prefix(keys::ORDER_PREFIX) {
        expected_relations_of_order(&Order::from_item(own)?, stored)
    } else if has_prefix(keys::CUSTOMER_PREFIX) {
        vec![representative_relation(&Customer::from_item(own)?)]
    } else if has_prefix(keys::EMPLOYEE_PREFIX) {
        expected_relations_of_employee(&Employee::from_item(own)?, stored)
    } else if has_prefix(keys::PRODUCT_PREFIX) {
        relations_of_product(&Product::from_item(own)?).to_vec()
    } else if has_prefix(keys::WAREHOUSE_PREFIX) {
        relations_of_warehouse(&Warehouse::from_item(own)?).to_vec()
    } else if has_prefix(keys::REGION_PREFIX) {
        expected_relations_of::<Region>(own)?
    } else if has_prefix(keys::COUNTRY_PREFIX) {
        expected_relations_of::<Country>(own)?
    } else if has_prefix(keys::LOCATION_PREFIX) {
        expected_relations_of::<Location>(own)?
    } else if has_prefix(keys::JOB_PREFIX) {
        expected_relations_of::<Job>(own)?
    } else if has_prefix(keys::DEPARTMENT_PREFIX) {
        expected_relations_of::<Department>(own)?
    } else {
        Vec::new()
    };
    Ok(expected.into_iter().map(|relation| (key_of_item(&relation), relation)).collect())
}

/// Returns the relations of the region, country, location, job or department with the own item `own`.
fn expected_relations_of<E: ReferencedEntity>(own: &Item) -> Result<Vec<Item>, TableError> {
    Ok(relations_of_entity(&from_item::<E>(own)?))
}

/// Returns the relations of `order`. If an earlier version of Dueday placed the order, its own item contains no lines,
/// so the stored relations determine the lines, and the order may have no relation to its warehouse.
fn expected_relations_of_order(order: &Order, stored: &BTreeMap<Key, Item>) -> Vec<Item> {
    if !order.lines.is_empty() {
        return relations_of_order(order, &order.lines);
    }
    let products = stored.iter().filter(|(key, _)| key.sk.starts_with(keys::PRODUCT_PREFIX));
    let lines: Vec<OrderLine> = products.filter_map(|(_, relation)| read_order_line(relation).ok()).collect();
    let mut relations = relations_of_order(order, &lines);
    let is_optional = |key: &Key| key.sk.starts_with(keys::WAREHOUSE_PREFIX);
    relations.retain(|relation| stored.contains_key(&key_of_item(relation)) || !is_optional(&key_of_item(relation)));
    relations
}

/// Returns the relations of `employee`. A relation that an earlier version of Dueday wrote contains no attributes of the
/// employee.
fn expected_relations_of_employee(employee: &Employee, stored: &BTreeMap<Key, Item>) -> Vec<Item> {
    let mut relations = relations_of_employee(employee);
    for relation in &mut relations {
        if stored.get(&key_of_item(relation)).is_some_and(|stored| stored.len() == EARLIER_ATTRIBUTES.len()) {
            relation.retain(|name, _| EARLIER_ATTRIBUTES.contains(&name.as_str()));
        }
    }
    match stored.iter().find(|(key, _)| key.sk.starts_with(keys::CONFIDENTIAL)) {
        // If the confidential data cannot be read, that is a fault of its own.
        Some((_, stored)) => {
            relations.push(expected_confidential_item(employee, stored).unwrap_or_else(|_| stored.clone()));
        }
        // The content of the missing item is unknown, but its key is reported.
        None => {
            let key = keys::key_of_relation(keys::key_of_employee(&employee.id), keys::CONFIDENTIAL);
            relations.push(key.attributes());
        }
    }
    relations
}

/// Returns the names of the attributes that differ between the two items, sorted.
fn differing_attributes(stored: &Item, expected: &Item) -> Vec<String> {
    let names: BTreeSet<&String> = stored.keys().chain(expected.keys()).collect();
    names.into_iter().filter(|name| stored.get(*name) != expected.get(*name)).cloned().collect()
}
