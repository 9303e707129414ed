//! Reads an order desk's table attribute by attribute and checks its consistency, without the code of the order desk.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;

/// The attributes of an item of the order desk's table, by name.
type Item = HashMap<String, AttributeValue>;

/// An order, assembled from its own item and its relations (the items that connect the order with other entities).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoredOrder {
    pub customer: String,
    /// The representative's id in the relation from the order to the employee.
    pub representative: String,
    /// The representative's id in the order's own item, which also contains the status.
    pub stored_representative: String,
    pub status: String,
    pub amount: i64,
    /// The refunded part of the amount, as the order states it.
    pub refunded: i64,
    /// The refunded part of the amount, in the relation to the representative.
    pub credited_refund: i64,
    /// The sum of all refunds except the failed refunds, from the item `REFUNDS`.
    pub refunds: i64,
    pub currency: String,
    pub placed_at: String,
    /// The bucket (partition) of the order in the index over all orders.
    pub bucket: String,
    pub warehouse: Option<String>,
    /// The ordered quantity of each product.
    pub lines: BTreeMap<String, i64>,
    /// The ordered quantity of each product in the list `Lines` of the order's own item, which also contains the
    /// status.
    pub stored_lines: BTreeMap<String, i64>,
    /// The number of follow-up orders of a main order.
    pub follow_ups: i64,
    /// The id of the order that a follow-up order follows; `None` for a main order.
    pub follows: Option<String>,
    /// Whether the returned products were not added to the stock again.
    pub is_written_off: bool,
    /// The stock effects of the order's stock movements, such as `deducted`, sorted by the keys of the movements.
    pub effects: Vec<String>,
}

/// The key and the attribute `Data` of an item of any kind. `data` is `None` if the item has no such attribute.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StoredItem {
    pub pk: String,
    pub sk: String,
    pub data: Option<String>,
}

/// The contents of an order desk's table.
#[derive(Clone, Debug, Default)]
pub struct OrdersTableContents {
    pub orders: BTreeMap<String, StoredOrder>,
    /// The stored stock, by product and warehouse.
    pub stock: BTreeMap<(String, String), i64>,
    /// The stored total stock by product.
    pub total_stock: BTreeMap<String, i64>,
    /// The sum of all stock movements, by product and warehouse.
    pub moved: BTreeMap<(String, String), i64>,
    /// For each product, the sum of the stock changes that counts and write-offs made.
    pub adjusted: BTreeMap<String, i64>,
    /// For each representative, quarter and currency: the stored sum of the orders, and the stored text by which the
    /// ranking is sorted.
    pub totals: BTreeMap<(String, String, String), (i64, String)>,
    /// All items of the table: the entities, and the items that connect an order with other entities.
    pub items: BTreeSet<StoredItem>,
    /// The inconsistencies that were found while the items were read.
    violations: Vec<String>,
}

/// Returns the text attribute `name` of `item`; `None` if the attribute is missing or has another type.
fn text(item: &Item, name: &str) -> Option<String> {
    item.get(name).and_then(|value| value.as_s().ok()).cloned()
}

/// Returns the number attribute `name` of `item`; `None` if the attribute is missing or has another type.
fn number(item: &Item, name: &str) -> Option<i64> {
    item.get(name).and_then(|value| value.as_n().ok()).and_then(|number| number.parse().ok())
}

/// Returns the sum of all refunds in `item` except the failed refunds.
fn sum_of_refunds(item: &Item) -> i64 {
    let refunds = item["Refunds"].as_l().into_iter().flatten().filter_map(|refund| refund.as_m().ok());
    let made = refunds.filter(|refund| refund["HasFailed"].as_bool() == Ok(&false));
    made.filter_map(|refund| number(refund, "Amount")).sum()
}

/// Returns the quantity of each product in the list `Lines` of the item of an order.
fn stored_lines(item: &Item) -> BTreeMap<String, i64> {
    let lines = item.get("Lines").and_then(|lines| lines.as_l().ok()).into_iter().flatten();
    let line = |line: &Item| Some((format!("PRODUCT#{}", text(line, "Product")?), number(line, "Quantity")?));
    lines.filter_map(|value| line(value.as_m().ok()?)).collect()
}

impl OrdersTableContents {
    /// Parses the stored items of the order desk's table.
    pub fn read(items: &[Item]) -> Self {
        let mut contents = Self::default();
        let mut data_by_order = BTreeMap::<String, BTreeSet<String>>::new();
        let mut refunds = BTreeMap::<String, i64>::new();
        for item in items {
            let key = |name| text(item, name).unwrap_or_default();
            let (pk, sk, data) = (key("PK"), key("SK"), text(item, "Data"));
            if pk.starts_with("ORDER#") {
                if sk == "REFUNDS" {
                    // The item with the refunds of a paid month can exist before the order of this month, or without an
                    // order.
                    refunds.insert(pk.clone(), sum_of_refunds(item));
                    contents.items.insert(StoredItem { pk, sk, data });
                    continue;
                }
                let order = contents.orders.entry(pk.clone()).or_default();
                if sk.starts_with("MOVEMENT#") {
                    order.effects.push(key("Effect"));
                    let warehouse = format!("WAREHOUSE#{}", key("Warehouse"));
                    let lines = item["Lines"].as_l().into_iter().flatten().filter_map(|line| line.as_m().ok());
                    for line in lines {
                        let product = format!("PRODUCT#{}", text(line, "Product").unwrap_or_default());
                        let moved = contents.moved.entry((product, warehouse.clone())).or_default();
                        *moved += number(line, "StockChange").unwrap_or(i64::MIN);
                    }
                    contents.items.insert(StoredItem { pk, sk, data });
                    continue;
                }
                data_by_order.entry(pk.clone()).or_default().insert(data.clone().unwrap_or_default());
                if sk.starts_with("CUSTOMER#") {
                    order.customer.clone_from(&sk);
                    order.stored_representative = text(item, "Representative").unwrap_or("-".to_owned());
                    order.status = key("Status");
                    order.amount = number(item, "PaymentAmount").unwrap_or_default();
                    order.refunded = number(item, "RefundedAmount").unwrap_or_default();
                    order.currency = key("Currency");
                    order.placed_at = key("PlacedDate");
                    order.bucket = item.get("Bucket").and_then(|n| n.as_n().ok()).cloned().unwrap_or_default();
                    order.warehouse = text(item, "Warehouse");
                    order.stored_lines = stored_lines(item);
                    order.follow_ups = number(item, "FollowUps").unwrap_or_default();
                    order.follows = text(item, "Follows");
                    order.is_written_off = item.get("WrittenOff").is_some_and(|value| value.as_bool() == Ok(&true));
                } else if sk.starts_with("EMP#") {
                    if !order.representative.is_empty() {
                        contents
                            .violations
                            .push(format!("{pk} has two representatives: {} and {sk}", order.representative));
                    }
                    order.representative.clone_from(&sk);
                    order.credited_refund = number(item, "RefundedAmount").unwrap_or_default();
                } else if sk.starts_with("PRODUCT#") {
                    order.lines.insert(sk.clone(), number(item, "Quantity").unwrap_or_default());
                }
            } else if pk.starts_with("PRODUCT#") && sk.starts_with("WAREHOUSE#") {
                contents.stock.insert((pk.clone(), sk.clone()), number(item, "Stock").unwrap_or(i64::MIN));
            } else if pk.starts_with("PRODUCT#") && sk.starts_with("MOVEMENT#") {
                let change = number(item, "StockChange").unwrap_or(i64::MIN);
                let mut add = |warehouse: String, change| {
                    *contents.moved.entry((pk.clone(), format!("WAREHOUSE#{warehouse}"))).or_default() += change;
                };
                add(key("Warehouse"), change);
                if let Some(to) = text(item, "ToWarehouse") {
                    add(to, -change);
                }
                if ["count", "write_off"].contains(&key("Kind").as_str()) {
                    *contents.adjusted.entry(pk.clone()).or_default() += change;
                }
            } else if pk.starts_with("PRODUCT#") && pk == sk {
                contents.total_stock.insert(pk.clone(), number(item, "TotalStock").unwrap_or(i64::MIN));
            } else if let Some((quarter, _)) = sk.split_once('#').filter(|(quarter, _)| quarter.contains("-Q")) {
                let key = (pk.clone(), quarter.to_owned(), key("Currency"));
                let stored_total = (number(item, "Total").unwrap_or_default(), data.clone().unwrap_or_default());
                if contents.totals.insert(key.clone(), stored_total).is_some() {
                    contents
                        .violations
                        .push(format!("there are two totals of the representative, quarter and currency {key:?}"));
                }
            }
            contents.items.insert(StoredItem { pk, sk, data });
        }
        for (id, order) in &mut contents.orders {
            order.refunds = refunds.get(id).copied().unwrap_or_default();
        }
        for (order, data) in data_by_order {
            let stored = &contents.orders[&order];
            let expected = BTreeSet::from([format!("{}-{}", stored.status, stored.placed_at)]);
            if data != expected {
                contents.violations.push(format!(
                    "{order} has the status {}, but the attribute `Data` of its relations is {data:?}",
                    stored.status
                ));
            }
        }
        contents
    }

    /// Returns the inconsistencies between main orders and their follow-up orders. If a main order states that it has n
    /// follow-up orders, these must exist with the part numbers 2 to n + 1, with the same customer and without an
    /// amount.
    fn inconsistent_follow_ups(&self) -> Vec<String> {
        let mut violations = Vec::new();
        let mut expected = BTreeSet::new();
        for (id, main) in self.orders.iter().filter(|(_, order)| order.follows.is_none()) {
            for part in (2..).zip(0..main.follow_ups).map(|(part, _)| part) {
                let id = format!("{id}.{part}");
                let follow_up = self.orders.get(&id);
                if follow_up.is_none_or(|of| of.customer != main.customer || (of.amount, of.refunded) != (0, 0)) {
                    violations.push(format!("{id} is counted, but it is {follow_up:?}"));
                }
                expected.insert(id);
            }
        }
        let follow_ups = self.orders.iter().filter(|(_, order)| order.follows.is_some());
        for (id, order) in follow_ups {
            let followed = format!("ORDER#{}", order.follows.as_deref().unwrap_or_default());
            if !expected.contains(id) || !self.orders.contains_key(&followed) || followed == *id {
                violations.push(format!("{id} follows {followed}, but its main order does not count it"));
            }
        }
        violations
    }

    /// Returns all inconsistencies. `arrived` is the quantity of each product that the warehouses received; `paid`
    /// contains the keys of the paid main orders, which must exist.
    pub fn inconsistencies(&self, arrived: &BTreeMap<String, i64>, paid: &BTreeSet<String>) -> Vec<String> {
        let mut violations = self.violations.clone();
        let ordered: BTreeSet<String> =
            self.orders.iter().filter(|(_, order)| order.follows.is_none()).map(|(id, _)| id.clone()).collect();
        violations.extend(self.inconsistent_follow_ups());
        violations
            .extend(paid.difference(&ordered).map(|order| format!("{order} was paid, but the order does not exist")));
        violations.extend(ordered.difference(paid).map(|order| format!("{order} exists, but was not paid")));
        let mut reserved = BTreeMap::<&str, i64>::new();
        let mut credited = BTreeMap::<(String, String, String), i64>::new();
        for (id, order) in &self.orders {
            if order.representative != format!("EMP#{}", order.stored_representative) {
                violations.push(format!(
                    "{id} has the representative {}, but its relation leads to {}",
                    order.stored_representative, order.representative
                ));
            }
            if order.credited_refund != order.refunded {
                let (refunded, relation) = (order.refunded, order.credited_refund);
                violations
                    .push(format!("{id} is refunded by {refunded}, but its representative's relation says {relation}"));
            }
            if order.refunded != order.refunds.min(order.amount) {
                violations
                    .push(format!("{id} is refunded by {}, but its refunds are {}", order.refunded, order.refunds));
            }
            if order.lines != order.stored_lines {
                violations.push(format!(
                    "{id} has the lines {:?}, but its own item has {:?}",
                    order.lines, order.stored_lines
                ));
            }
            if order.lines.is_empty() || order.representative.is_empty() || order.customer.is_empty() {
                violations.push(format!("{id} has no product, no representative or no customer"));
            }
            let is_reserved = ["OPEN", "PICKED", "SHIPPED", "DELIVERED"].contains(&order.status.as_str());
            let expected_effects = match order.status.as_str() {
                _ if is_reserved => vec!["deducted"],
                "RETURNED" if order.is_written_off => vec!["deducted", "written_off"],
                _ if order.warehouse.is_some() => vec!["deducted", "restored"],
                _ => vec![],
            };
            // The effects `exchanged` are left out: the products of an order may be exchanged between the deduction of
            // the stock and the next step of the order.
            let effects: Vec<&str> =
                order.effects.iter().map(String::as_str).filter(|effect| *effect != "exchanged").collect();
            if effects != expected_effects {
                violations.push(format!("{id} is {}, but its movements are {:?}", order.status, order.effects));
            }
            if is_reserved || order.is_written_off {
                if order.warehouse.is_none() {
                    violations.push(format!("{id} is {} but has no warehouse", order.status));
                }
                for (product, quantity) in &order.lines {
                    *reserved.entry(product).or_default() += quantity;
                }
            }
            let is_credited = !["RETURNED", "CANCELLED"].contains(&order.status.as_str()) && order.follows.is_none();
            if is_credited && order.representative != "EMP#-" {
                let month: u32 = order.placed_at[5..7].parse().unwrap_or_default();
                let quarter = format!("{}-Q{}", &order.placed_at[..4], month.div_ceil(3));
                *credited.entry((order.representative.clone(), quarter, order.currency.clone())).or_default() +=
                    order.amount - order.refunded;
            }
        }
        for (product, total) in &self.total_stock {
            let in_warehouses = self.stock.iter().filter(|((of, _), _)| of == product).map(|(_, stock)| stock);
            let (in_warehouses, received) =
                (in_warehouses.sum::<i64>(), arrived.get(product).copied().unwrap_or_default());
            let adjusted = self.adjusted.get(product).copied().unwrap_or_default();
            let left = received + adjusted - reserved.get(product.as_str()).copied().unwrap_or_default();
            if (*total, in_warehouses) != (left, left) {
                violations.push(format!(
                    "{product}: expected stock {left}, sum over warehouses {in_warehouses}, stored total {total}"
                ));
            }
        }
        for place in self.stock.keys().chain(self.moved.keys()).collect::<BTreeSet<_>>() {
            let (stock, moved) = (self.stock.get(place), self.moved.get(place));
            if stock != moved {
                violations.push(format!(
                    "{place:?} (product, warehouse) has the stock {stock:?}, but the movements {moved:?}"
                ));
            }
        }
        let negative = self.stock.iter().filter(|(_, stock)| **stock < 0);
        violations.extend(
            negative.map(|(place, stock)| format!("{place:?} (product, warehouse) has a negative stock: {stock}")),
        );
        for (key, sum) in &credited {
            let expected = Some((*sum, format!("{sum:019}")));
            if self.totals.get(key).cloned() != expected {
                violations.push(format!(
                    "{key:?} (representative, quarter, currency) has orders of {sum}, but the stored total is {:?}",
                    self.totals.get(key)
                ));
            }
        }
        let unexpected =
            self.totals.iter().filter(|(key, (stored_total, _))| *stored_total != 0 && !credited.contains_key(*key));
        violations.extend(unexpected.map(|(key, stored_total)| {
            format!(
                "{key:?} (representative, quarter, currency) has no orders, but the stored total is {stored_total:?}"
            )
        }));
        violations
    }
}
