//! What an order desk's table holds, read attribute by attribute, and whether it can be true. It shares no code with what it
//! judges.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;

type Item = HashMap<String, AttributeValue>;

/// An order, with its edges.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoredOrder {
    pub customer: String,
    /// By its edge.
    pub representative: String,
    /// By its own item.
    pub credited_to: String,
    pub status: String,
    pub amount: i64,
    pub currency: String,
    pub placed_at: String,
    pub bucket: String,
    pub warehouse: Option<String>,
    /// Products, and how many.
    pub lines: BTreeMap<String, i64>,
}

/// An item of any kind: its keys, and `Data` if it has one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StoredEdge {
    pub pk: String,
    pub sk: String,
    pub data: Option<String>,
}

/// The whole table.
#[derive(Clone, Debug, Default)]
pub struct OrderBooks {
    pub orders: BTreeMap<String, StoredOrder>,
    /// By product and warehouse.
    pub stock: BTreeMap<(String, String), i64>,
    /// By product, as kept.
    pub total_stock: BTreeMap<String, i64>,
    /// By representative, quarter and currency: what is kept, and the text that it is sorted by.
    pub totals: BTreeMap<(String, String, String), (i64, String)>,
    pub edges: BTreeSet<StoredEdge>,
    wrong: Vec<String>,
}

fn text(item: &Item, name: &str) -> Option<String> {
    item.get(name).and_then(|value| value.as_s().ok()).cloned()
}

fn number(item: &Item, name: &str) -> Option<i64> {
    item.get(name).and_then(|value| value.as_n().ok()).and_then(|number| number.parse().ok())
}

impl OrderBooks {
    /// The books of a table whose items are these.
    pub fn read(items: &[Item]) -> Self {
        let mut books = Self::default();
        let mut data_of = BTreeMap::<String, BTreeSet<String>>::new();
        for item in items {
            let key = |name| text(item, name).unwrap_or_default();
            let (pk, sk, data) = (key("PK"), key("SK"), text(item, "Data"));
            if pk.starts_with("ORDER#") {
                data_of.entry(pk.clone()).or_default().insert(data.clone().unwrap_or_default());
                let order = books.orders.entry(pk.clone()).or_default();
                if sk.starts_with("CUSTOMER#") {
                    order.customer.clone_from(&sk);
                    order.credited_to = text(item, "Representative").unwrap_or("-".to_owned());
                    order.status = key("Status");
                    order.amount = number(item, "PaymentAmount").unwrap_or_default();
                    order.currency = key("Currency");
                    order.placed_at = key("PlacedDate");
                    order.bucket = item.get("Bucket").and_then(|n| n.as_n().ok()).cloned().unwrap_or_default();
                    order.warehouse = text(item, "Warehouse");
                } else if sk.starts_with("EMP#") {
                    if !order.representative.is_empty() {
                        books.wrong.push(format!("{pk} is credited to {} and to {sk}", order.representative));
                    }
                    order.representative.clone_from(&sk);
                } else if sk.starts_with("PRODUCT#") {
                    order.lines.insert(sk.clone(), number(item, "Quantity").unwrap_or_default());
                }
            } else if pk.starts_with("PRODUCT#") && sk.starts_with("WAREHOUSE#") {
                books.stock.insert((pk.clone(), sk.clone()), number(item, "Stock").unwrap_or(i64::MIN));
            } else if pk.starts_with("PRODUCT#") && pk == sk {
                books.total_stock.insert(pk.clone(), number(item, "TotalStock").unwrap_or(i64::MIN));
            } else if let Some((quarter, _)) = sk.split_once('#').filter(|(quarter, _)| quarter.contains("-Q")) {
                let key = (pk.clone(), quarter.to_owned(), key("Currency"));
                let kept = (number(item, "Total").unwrap_or_default(), data.clone().unwrap_or_default());
                if books.totals.insert(key.clone(), kept).is_some() {
                    books.wrong.push(format!("{key:?} has two totals"));
                }
            }
            books.edges.insert(StoredEdge { pk, sk, data });
        }
        for (order, data) in data_of {
            let stored = &books.orders[&order];
            let expected = BTreeSet::from([format!("{}-{}", stored.status, stored.placed_at)]);
            if data != expected {
                books.wrong.push(format!("{order} is {}, and its edges say {data:?}", stored.status));
            }
        }
        books
    }

    /// What cannot be true, after `arrived` of each product came, if the months of `paid` were to be ordered.
    pub fn wrong(&self, arrived: &BTreeMap<String, i64>, paid: &BTreeSet<String>) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        let ordered: BTreeSet<String> = self.orders.keys().cloned().collect();
        wrong.extend(paid.difference(&ordered).map(|order| format!("{order} was paid and not ordered")));
        wrong.extend(ordered.difference(paid).map(|order| format!("{order} was ordered and not paid")));
        let mut taken = BTreeMap::<&str, i64>::new();
        let mut credited = BTreeMap::<(String, String, String), i64>::new();
        for (id, order) in &self.orders {
            if order.representative != format!("EMP#{}", order.credited_to) {
                wrong.push(format!("{id} says {}, and its edge {}", order.credited_to, order.representative));
            }
            if order.lines.is_empty() || order.representative.is_empty() || order.customer.is_empty() {
                wrong.push(format!("{id} lacks an edge"));
            }
            if ["OPEN", "PICKED", "SHIPPED", "DELIVERED"].contains(&order.status.as_str()) {
                if order.warehouse.is_none() {
                    wrong.push(format!("{id} is {} from no warehouse", order.status));
                }
                for (product, quantity) in &order.lines {
                    *taken.entry(product).or_default() += quantity;
                }
            }
            if !["RETURNED", "CANCELLED"].contains(&order.status.as_str()) && order.representative != "EMP#-" {
                let month: u32 = order.placed_at[5..7].parse().unwrap_or_default();
                let quarter = format!("{}-Q{}", &order.placed_at[..4], month.div_ceil(3));
                *credited.entry((order.representative.clone(), quarter, order.currency.clone())).or_default() +=
                    order.amount;
            }
        }
        for (product, total) in &self.total_stock {
            let here = self.stock.iter().filter(|((of, _), _)| of == product).map(|(_, stock)| stock);
            let (here, came) = (here.sum::<i64>(), arrived.get(product).copied().unwrap_or_default());
            let left = came - taken.get(product.as_str()).copied().unwrap_or_default();
            if (*total, here) != (left, left) {
                wrong
                    .push(format!("{product}: {left} must be left, {here} lie in warehouses, {total} in all are kept"));
            }
        }
        let negative = self.stock.iter().filter(|(_, stock)| **stock < 0);
        wrong.extend(negative.map(|(place, stock)| format!("{place:?} holds {stock}")));
        for (key, sum) in &credited {
            let expected = Some((*sum, format!("{sum:019}")));
            if self.totals.get(key).cloned() != expected {
                wrong.push(format!("{key:?} has ordered {sum}, and {:?} is kept", self.totals.get(key)));
            }
        }
        let unearned = self.totals.iter().filter(|(key, (kept, _))| *kept != 0 && !credited.contains_key(*key));
        wrong.extend(unearned.map(|(key, kept)| format!("{key:?} has ordered nothing, and {kept:?} is kept")));
        wrong
    }
}
