//! The comparison of stored numbers with the records from which they can be computed again: the stock with its movements, the
//! total stock of a product with its stock in the warehouses, and the quarter totals with the orders.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::fulfilment::order::Order;
use crate::goods::movement::StockChange;
use crate::ids::{EmployeeId, ProductId, WarehouseId};
use crate::people::quarter::{Quarter, QuarterTotal};
use billing::{Currency, Money};

/// A stored item that the audit reads: a stored number, or a record from which a number can be computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AuditedItem {
    /// The stock of a product in a warehouse, in pieces. `is_opened` is whether the stock must be the sum of its
    /// recorded movements. It is false for a stock from before movements were recorded, until its opening movement is
    /// written.
    Stock {
        product: ProductId,
        warehouse: WarehouseId,
        pieces: u64,
        is_opened: bool,
    },
    /// The total stock of a product in all warehouses, in pieces.
    TotalStock {
        product: ProductId,
        pieces: u64,
    },
    /// The changes of the stock by a movement, such as a delivery or a transfer.
    Movement(Vec<StockChange>),
    Order(Box<Order>),
    QuarterTotal(QuarterTotal),
}

/// A stored number that the audit compares with the records from which it can be computed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AuditedNumber {
    Stock { product: ProductId, warehouse: WarehouseId },
    TotalStock { product: ProductId },
    QuarterTotal { representative: EmployeeId, quarter: Quarter, currency: Currency },
}

/// A stored number that differs from the records.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NumberDifference {
    pub number: AuditedNumber,
    /// The number that was computed from the records, in pieces or in minor units of the currency.
    pub expected: i64,
    /// The stored number; `None` if there is none.
    pub found: Option<i64>,
}

/// The stored stock of a product in a warehouse, and the sum of its recorded movements, in pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct StockEntry {
    /// The stored stock; `None` if there is no item.
    pieces: Option<i64>,
    is_opened: bool,
    /// The sum of the recorded movements.
    moved: i64,
}

/// The stored numbers, and the sums of the records, that one scan of the table has read. The size of a ledger depends
/// on the numbers of products, warehouses, representatives and quarters, not on the number of orders.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditLedger {
    stocks: BTreeMap<(ProductId, WarehouseId), StockEntry>,
    total_stocks: BTreeMap<ProductId, i64>,
    /// The stored quarter total, and the sum of the orders that count in this total, in minor units of the currency.
    quarter_totals: BTreeMap<(EmployeeId, Quarter, Currency), (Option<i64>, i64)>,
}

/// Returns a number of pieces as a signed number. A stock is never larger than `i64::MAX`.
fn signed_pieces(pieces: u64) -> i64 {
    i64::try_from(pieces).unwrap_or(i64::MAX)
}

impl fmt::Display for AuditedNumber {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stock { product, warehouse } => write!(text, "{product} in {warehouse}"),
            Self::TotalStock { product } => write!(text, "{product}"),
            Self::QuarterTotal { representative, quarter, currency } => {
                write!(text, "{representative} in {quarter} in {currency}")
            }
        }
    }
}

impl AuditedNumber {
    /// Returns `value` as text: an amount with its currency, or a number of pieces.
    pub fn format_value(&self, value: i64) -> String {
        match self {
            Self::Stock { .. } | Self::TotalStock { .. } => value.to_string(),
            Self::QuarterTotal { currency, .. } => Money::new(value, *currency).to_string(),
        }
    }
}

impl AuditLedger {
    /// Adds a stored item: saves the number that it contains, or adds its record to the sum for the number.
    pub fn add_item(&mut self, item: &AuditedItem) {
        match item {
            AuditedItem::Stock { product, warehouse, pieces, is_opened } => {
                let entry = self.stocks.entry((product.clone(), warehouse.clone())).or_default();
                (entry.pieces, entry.is_opened) = (Some(signed_pieces(*pieces)), *is_opened);
            }
            AuditedItem::TotalStock { product, pieces } => {
                self.total_stocks.insert(product.clone(), signed_pieces(*pieces));
            }
            AuditedItem::Movement(changes) => {
                for StockChange { product, warehouse, pieces } in changes {
                    let entry = self.stocks.entry((product.clone(), warehouse.clone())).or_default();
                    entry.moved = entry.moved.saturating_add(*pieces);
                }
            }
            AuditedItem::Order(order) => {
                let Some(representative) = &order.representative else { return };
                let amount = order.amount_in_quarter_total();
                let key = (representative.clone(), order.quarter(), amount.currency());
                let (_, sum) = self.quarter_totals.entry(key).or_default();
                *sum = sum.saturating_add(amount.minor());
            }
            AuditedItem::QuarterTotal(QuarterTotal { representative, quarter, total, .. }) => {
                let key = (representative.clone(), *quarter, total.currency());
                self.quarter_totals.entry(key).or_default().0 = Some(total.minor());
            }
        }
    }

    /// Returns all stored numbers that differ from the records. A stock from before movements were recorded is compared
    /// with its movements only if it has an opening movement.
    pub fn differences(&self) -> Vec<NumberDifference> {
        let mut all = Vec::new();
        let mut compare = |number: AuditedNumber, expected: i64, found: Option<i64>| {
            if found.unwrap_or_default() != expected {
                all.push(NumberDifference { number, expected, found });
            }
        };
        let mut sums: BTreeMap<&ProductId, i64> = BTreeMap::new();
        for ((product, warehouse), entry) in &self.stocks {
            let sum = sums.entry(product).or_default();
            *sum = sum.saturating_add(entry.pieces.unwrap_or_default());
            if entry.is_opened || entry.pieces.is_none() {
                let number = AuditedNumber::Stock { product: product.clone(), warehouse: warehouse.clone() };
                compare(number, entry.moved, entry.pieces);
            }
        }
        let products: BTreeSet<&ProductId> = sums.keys().copied().chain(self.total_stocks.keys()).collect();
        for product in products {
            let expected = sums.get(product).copied().unwrap_or_default();
            let number = AuditedNumber::TotalStock { product: product.clone() };
            compare(number, expected, self.total_stocks.get(product).copied());
        }
        for ((representative, quarter, currency), (found, expected)) in &self.quarter_totals {
            let (representative, quarter, currency) = (representative.clone(), *quarter, *currency);
            compare(AuditedNumber::QuarterTotal { representative, quarter, currency }, *expected, *found);
        }
        all
    }

    /// Returns the stocks from before movements were recorded that have no opening movement yet. Each is returned with
    /// the pieces that its recorded movements do not explain.
    pub fn stocks_without_opening(&self) -> Vec<StockChange> {
        let unopened = self.stocks.iter().filter(|(_, entry)| !entry.is_opened && entry.pieces.is_some());
        let opening = |((product, warehouse), entry): (&(ProductId, WarehouseId), &StockEntry)| StockChange {
            product: product.clone(),
            warehouse: warehouse.clone(),
            pieces: entry.pieces.unwrap_or_default().saturating_sub(entry.moved),
        };
        unopened.map(opening).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the stored item with the stock of the product `beans` in `warehouse`.
    fn stock_item(warehouse: &str, pieces: u64, is_opened: bool) -> AuditedItem {
        let (product, warehouse) = ("beans".parse().unwrap(), warehouse.parse().unwrap());
        AuditedItem::Stock { product, warehouse, pieces, is_opened }
    }

    /// Returns the item of a movement that changed the stock of `beans` in `warehouse` by `pieces`.
    fn movement_item(warehouse: &str, pieces: i64) -> AuditedItem {
        let (product, warehouse) = ("beans".parse().unwrap(), warehouse.parse().unwrap());
        AuditedItem::Movement(vec![StockChange { product, warehouse, pieces }])
    }

    /// Returns the stored item with the total stock of `beans` in all warehouses.
    fn total_stock_item(pieces: u64) -> AuditedItem {
        AuditedItem::TotalStock { product: "beans".parse().unwrap(), pieces }
    }

    #[test]
    fn stock_that_is_not_the_sum_of_its_movements_is_a_difference() {
        // The columns are: the stored items, and the differences as "number: expected, found".
        for (items, expected) in [
            (
                vec![
                    movement_item("ams", 9),
                    stock_item("ams", 7, true),
                    movement_item("ams", -2),
                    total_stock_item(7),
                ],
                vec![],
            ),
            (
                vec![movement_item("ams", 9), stock_item("ams", 8, true), total_stock_item(8)],
                vec!["beans in ams: 9, Some(8)"],
            ),
            (vec![movement_item("ams", 9), stock_item("ams", 9, true), total_stock_item(8)], vec!["beans: 9, Some(8)"]),
            (vec![movement_item("ams", 9), total_stock_item(0)], vec!["beans in ams: 9, None"]),
            (vec![stock_item("ams", 9, true), total_stock_item(9)], vec!["beans in ams: 0, Some(9)"]),
            (
                vec![
                    stock_item("ams", 3, true),
                    movement_item("ams", 3),
                    stock_item("nyc", 4, true),
                    movement_item("nyc", 4),
                    total_stock_item(7),
                ],
                vec![],
            ),
            (vec![total_stock_item(2)], vec!["beans: 0, Some(2)"]),
            // The stock from before movements were recorded is not compared with its movements.
            (vec![stock_item("ams", 7, false), movement_item("ams", -2), total_stock_item(7)], vec![]),
        ] {
            let mut ledger = AuditLedger::default();
            items.iter().for_each(|item| ledger.add_item(item));
            let differences = ledger.differences();
            let texts: Vec<String> = differences
                .iter()
                .map(|difference| format!("{}: {}, {:?}", difference.number, difference.expected, difference.found))
                .collect();
            assert_eq!(texts, expected, "{items:?}");
        }
    }

    #[test]
    fn opening_movement_is_the_stock_that_the_recorded_movements_do_not_explain() {
        let mut ledger = AuditLedger::default();
        for item in
            [stock_item("ams", 7, false), movement_item("ams", -2), stock_item("nyc", 3, true), movement_item("nyc", 3)]
        {
            ledger.add_item(&item);
        }
        let unopened = ledger.stocks_without_opening();
        assert_eq!(unopened.len(), 1);
        assert_eq!((unopened[0].warehouse.as_str(), unopened[0].pieces), ("ams", 9));
    }
}
