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
fn read_text_attribute(item: &Item, name: &str) -> Option<String> {
    item.get(name).and_then(|value| value.as_s().ok()).cloned()
}

/// Returns the number attribute `name` of `item`; `None` if the attribute is missing or has another type.
fn read_number_attribute(item: &Item, name: &str) -> Option<i64> {
    item.get(name).and_then(|value| value.as_n().ok()).and_then(|number| number.parse().ok())
}

/// Returns the sum of all refunds in `item` except the failed refunds.
fn sum_of_refunds(item: &Item) -> i64 {
    let refunds = item["Refunds"].as_l().into_iter().flatten().filter_map(|refund| refund.as_m().ok());
    let made = refunds.filter(|refund| refund["HasFailed"].as_bool() == Ok(&false));
    made.filter_map(|refund| read_number_attribute(refund, "Amount")).sum()
}

/// Returns the quantity of each product in the list `Lines` of the item of an order.
fn stored_lines(item: &Item) -> BTreeMap<String, i64> {
    let lines = item.get("Lines").and_then(|lines| lines.as_l().ok()).into_iter().flatten();
    let line = |line: &Item| {
        Some((format!("PRODUCT#{}", read_text_attribute(line, "Product")?), read_number_attribute(line, "Quantity")?))
    };
    lines.filter_map(|value| line(value.as_m().ok()?)).collect()
}

impl OrdersTableContents {
    /// Parses the stored items of the order desk's table.
    pub fn from_items(items: &[Item]) -> Self {
        let mut reader = OrdersTableReader::default();
        items.iter().for_each(|item| reader.add_item(item));
        reader.finish()
    }

    /// Adds the stock changes of the stock movement `item` of an order.
    fn add_order_movement(&mut self, item: &Item) {
        let warehouse = format!("WAREHOUSE#{}", read_text_attribute(item, "Warehouse").unwrap_or_default());
        let lines = item["Lines"].as_l().into_iter().flatten().filter_map(|line| line.as_m().ok());
        for line in lines {
            let product = format!("PRODUCT#{}", read_text_attribute(line, "Product").unwrap_or_default());
            let moved = self.moved.entry((product, warehouse.clone())).or_default();
            *moved += read_number_attribute(line, "StockChange").unwrap_or(i64::MIN);
        }
    }

    /// Adds the stock change of the stock movement `item` of the product with the key `product`.
    fn add_product_movement(&mut self, product: &str, item: &Item) {
        let attribute = |name| read_text_attribute(item, name).unwrap_or_default();
        let change = read_number_attribute(item, "StockChange").unwrap_or(i64::MIN);
        let mut add = |warehouse: String, change| {
            *self.moved.entry((product.to_owned(), format!("WAREHOUSE#{warehouse}"))).or_default() += change;
        };
        add(attribute("Warehouse"), change);
        if let Some(to) = read_text_attribute(item, "ToWarehouse") {
            add(to, -change);
        }
        if ["count", "write_off"].contains(&attribute("Kind").as_str()) {
            *self.adjusted.entry(product.to_owned()).or_default() += change;
        }
    }

    /// Adds the total `item` of the representative with the key `representative` in `quarter`. `sort_text` is the text
    /// by which the ranking is sorted.
    fn add_quarter_total(&mut self, representative: &str, quarter: &str, sort_text: String, item: &Item) {
        let currency = read_text_attribute(item, "Currency").unwrap_or_default();
        let key = (representative.to_owned(), quarter.to_owned(), currency);
        let stored_total = (read_number_attribute(item, "Total").unwrap_or_default(), sort_text);
        if self.totals.insert(key.clone(), stored_total).is_some() {
            self.violations.push(format!("there are two totals of the representative, quarter and currency {key:?}"));
        }
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
        violations.extend(self.inconsistent_follow_ups());
        violations.extend(self.inconsistent_payments(paid));
        violations.extend(self.orders.iter().flat_map(|(id, order)| order.inconsistencies(id)));
        violations.extend(self.inconsistent_stock(arrived));
        violations.extend(self.inconsistent_quarter_totals());
        violations
    }

    /// Returns the paid main orders that do not exist, and the main orders that were not paid.
    fn inconsistent_payments(&self, paid: &BTreeSet<String>) -> Vec<String> {
        let ordered: BTreeSet<String> =
            self.orders.iter().filter(|(_, order)| order.follows.is_none()).map(|(id, _)| id.clone()).collect();
        let missing = paid.difference(&ordered).map(|order| format!("{order} was paid, but the order does not exist"));
        let unpaid = ordered.difference(paid).map(|order| format!("{order} exists, but was not paid"));
        missing.chain(unpaid).collect()
    }

    /// Returns the inconsistencies between the stock, the total stock, the stock movements, the orders, and `arrived`,
    /// the quantity of each product that the warehouses received.
    fn inconsistent_stock(&self, arrived: &BTreeMap<String, i64>) -> Vec<String> {
        let mut violations = Vec::new();
        let deducted = self.deducted_quantities();
        for (product, total) in &self.total_stock {
            let in_warehouses = self.stock.iter().filter(|((of, _), _)| of == product).map(|(_, stock)| stock);
            let (in_warehouses, received) =
                (in_warehouses.sum::<i64>(), arrived.get(product).copied().unwrap_or_default());
            let adjusted = self.adjusted.get(product).copied().unwrap_or_default();
            let left = received + adjusted - deducted.get(product.as_str()).copied().unwrap_or_default();
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
        violations
    }

    /// Returns the quantity of each product that the orders have deducted from the stock and not restored.
    fn deducted_quantities(&self) -> BTreeMap<&str, i64> {
        let mut deducted = BTreeMap::<&str, i64>::new();
        for order in self.orders.values().filter(|order| order.is_reserved() || order.is_written_off) {
            for (product, quantity) in &order.lines {
                *deducted.entry(product).or_default() += quantity;
            }
        }
        deducted
    }

    /// Returns the sum of the orders that count toward each total, by representative, quarter and currency.
    fn credited_sums(&self) -> BTreeMap<(String, String, String), i64> {
        let mut credited = BTreeMap::<(String, String, String), i64>::new();
        for order in self.orders.values() {
            let is_credited = !["RETURNED", "CANCELLED"].contains(&order.status.as_str()) && order.follows.is_none();
            if is_credited && order.representative != "EMP#-" {
                let month: u32 = order.placed_at[5..7].parse().unwrap_or_default();
                let quarter = format!("{}-Q{}", &order.placed_at[..4], month.div_ceil(3));
                *credited.entry((order.representative.clone(), quarter, order.currency.clone())).or_default() +=
                    order.amount - order.refunded;
            }
        }
        credited
    }

    /// Returns the totals that are not the sum of the orders that count toward them.
    fn inconsistent_quarter_totals(&self) -> Vec<String> {
        let mut violations = Vec::new();
        let credited = self.credited_sums();
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

impl StoredOrder {
    /// Reads the attributes of the order's own item, which is also the relation to the customer with the key
    /// `customer`.
    fn read_own_item(&mut self, customer: &str, item: &Item) {
        let attribute = |name| read_text_attribute(item, name).unwrap_or_default();
        self.customer = customer.to_owned();
        self.stored_representative = read_text_attribute(item, "Representative").unwrap_or("-".to_owned());
        self.status = attribute("Status");
        self.amount = read_number_attribute(item, "PaymentAmount").unwrap_or_default();
        self.refunded = read_number_attribute(item, "RefundedAmount").unwrap_or_default();
        self.currency = attribute("Currency");
        self.placed_at = attribute("PlacedDate");
        self.bucket = item.get("Bucket").and_then(|n| n.as_n().ok()).cloned().unwrap_or_default();
        self.warehouse = read_text_attribute(item, "Warehouse");
        self.stored_lines = stored_lines(item);
        self.follow_ups = read_number_attribute(item, "FollowUps").unwrap_or_default();
        self.follows = read_text_attribute(item, "Follows");
        self.is_written_off = item.get("WrittenOff").is_some_and(|value| value.as_bool() == Ok(&true));
    }

    /// Returns whether the products of the order are deducted from the stock because of its status.
    fn is_reserved(&self) -> bool {
        ["OPEN", "PICKED", "SHIPPED", "DELIVERED"].contains(&self.status.as_str())
    }

    /// Returns the inconsistencies of the order with the key `id`: between its own item, its relations, its refunds and
    /// its stock movements.
    fn inconsistencies(&self, id: &str) -> Vec<String> {
        let mut violations = Vec::new();
        if self.representative != format!("EMP#{}", self.stored_representative) {
            violations.push(format!(
                "{id} has the representative {}, but its relation leads to {}",
                self.stored_representative, self.representative
            ));
        }
        if self.credited_refund != self.refunded {
            let (refunded, relation) = (self.refunded, self.credited_refund);
            violations
                .push(format!("{id} is refunded by {refunded}, but its representative's relation says {relation}"));
        }
        if self.refunded != self.refunds.min(self.amount) {
            violations.push(format!("{id} is refunded by {}, but its refunds are {}", self.refunded, self.refunds));
        }
        if self.lines != self.stored_lines {
            violations
                .push(format!("{id} has the lines {:?}, but its own item has {:?}", self.lines, self.stored_lines));
        }
        if self.lines.is_empty() || self.representative.is_empty() || self.customer.is_empty() {
            violations.push(format!("{id} has no product, no representative or no customer"));
        }
        // The effects `exchanged` are left out: the products of an order may be exchanged between the deduction of the
        // stock and the next step of the order.
        let effects: Vec<&str> =
            self.effects.iter().map(String::as_str).filter(|effect| *effect != "exchanged").collect();
        if effects != self.expected_effects() {
            violations.push(format!("{id} is {}, but its movements are {:?}", self.status, self.effects));
        }
        if (self.is_reserved() || self.is_written_off) && self.warehouse.is_none() {
            violations.push(format!("{id} is {} but has no warehouse", self.status));
        }
        violations
    }

    /// Returns the stock effects of the movements that an order with this status has.
    fn expected_effects(&self) -> Vec<&'static str> {
        match self.status.as_str() {
            _ if self.is_reserved() => vec!["deducted"],
            "RETURNED" if self.is_written_off => vec!["deducted", "written_off"],
            _ if self.warehouse.is_some() => vec!["deducted", "restored"],
            _ => vec![],
        }
    }
}

/// Reads the items of the table one after the other. Some attributes can be compared only when all items are read.
#[derive(Default)]
struct OrdersTableReader {
    contents: OrdersTableContents,
    /// The attribute `Data` of the relations of each order.
    data_by_order: BTreeMap<String, BTreeSet<String>>,
    /// The sum of all refunds except the failed refunds, by the key of the order.
    refunds: BTreeMap<String, i64>,
}

impl OrdersTableReader {
    fn add_item(&mut self, item: &Item) {
        let attribute = |name| read_text_attribute(item, name).unwrap_or_default();
        let stored = StoredItem { pk: attribute("PK"), sk: attribute("SK"), data: read_text_attribute(item, "Data") };
        let StoredItem { pk, sk, data } = &stored;
        let contents = &mut self.contents;
        if pk.starts_with("ORDER#") {
            self.add_item_of_order(&stored, item);
        } else if pk.starts_with("PRODUCT#") && sk.starts_with("WAREHOUSE#") {
            contents.stock.insert((pk.clone(), sk.clone()), read_number_attribute(item, "Stock").unwrap_or(i64::MIN));
        } else if pk.starts_with("PRODUCT#") && sk.starts_with("MOVEMENT#") {
            contents.add_product_movement(pk, item);
        } else if pk.starts_with("PRODUCT#") && pk == sk {
            contents.total_stock.insert(pk.clone(), read_number_attribute(item, "TotalStock").unwrap_or(i64::MIN));
        } else if let Some((quarter, _)) = sk.split_once('#').filter(|(quarter, _)| quarter.contains("-Q")) {
            contents.add_quarter_total(pk, quarter, data.clone().unwrap_or_default(), item);
        }
        self.contents.items.insert(stored);
    }

    /// Adds `item`, an order's own item or an item that belongs to an order. `stored` contains its key.
    fn add_item_of_order(&mut self, stored: &StoredItem, item: &Item) {
        let StoredItem { pk, sk, data } = stored;
        if sk == "REFUNDS" {
            // The item with the refunds of a paid month can exist before the order of this month, or without an order.
            self.refunds.insert(pk.clone(), sum_of_refunds(item));
            return;
        }
        let order = self.contents.orders.entry(pk.clone()).or_default();
        if sk.starts_with("MOVEMENT#") {
            order.effects.push(read_text_attribute(item, "Effect").unwrap_or_default());
            self.contents.add_order_movement(item);
            return;
        }
        self.data_by_order.entry(pk.clone()).or_default().insert(data.clone().unwrap_or_default());
        if sk.starts_with("CUSTOMER#") {
            order.read_own_item(sk, item);
        } else if sk.starts_with("EMP#") {
            if !order.representative.is_empty() {
                let violation = format!("{pk} has two representatives: {} and {sk}", order.representative);
                self.contents.violations.push(violation);
            }
            order.representative.clone_from(sk);
            order.credited_refund = read_number_attribute(item, "RefundedAmount").unwrap_or_default();
        } else if sk.starts_with("PRODUCT#") {
            order.lines.insert(sk.clone(), read_number_attribute(item, "Quantity").unwrap_or_default());
        }
    }

    /// Adds the refunds to their orders, compares the status of each order with its relations, and returns the
    /// contents.
    fn finish(self) -> OrdersTableContents {
        let Self { mut contents, data_by_order, refunds } = self;
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
}
