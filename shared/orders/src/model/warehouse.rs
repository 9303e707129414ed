//! Warehouses, and which of them an order is taken from.

use super::{OrderLine, PlaceId, ProductId, Stock, WarehouseId};
use billing::Label;

/// A warehouse.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warehouse {
    pub id: WarehouseId,
    pub name: Label,
    pub region: PlaceId,
    pub version: u64,
}

/// The warehouse that all of `lines` are taken from: one in `region` that has them all, else any that has. Of several, the
/// one that has most of the first line left, so that none is emptied before the others; then the first by its id. `None` if
/// no warehouse has them all.
pub fn warehouse_for<'a>(
    region: &PlaceId,
    lines: &[OrderLine],
    stock: &[Stock],
    warehouses: &'a [Warehouse],
) -> Option<&'a Warehouse> {
    let lies_in = |warehouse: &Warehouse, line: &OrderLine| {
        let here = |stock: &&Stock| stock.warehouse == warehouse.id && stock.product == line.product;
        stock.iter().find(here).map_or(0, |stock| stock.quantity)
    };
    let has_all =
        |warehouse: &&Warehouse| lines.iter().all(|line| lies_in(warehouse, line) >= u64::from(line.quantity));
    let left = |warehouse: &Warehouse| lines.first().map_or(0, |line| lies_in(warehouse, line));
    warehouses.iter().filter(has_all).max_by(|a, b| {
        let rank = |warehouse: &Warehouse| (warehouse.region == *region, left(warehouse));
        // Of equals, the first by its id.
        rank(a).cmp(&rank(b)).then_with(|| b.id.cmp(&a.id))
    })
}

/// The products of which no warehouse has what `lines` need.
pub fn lacking(lines: &[OrderLine], stock: &[Stock]) -> Vec<ProductId> {
    let is_there = |line: &OrderLine| {
        stock.iter().any(|stock| stock.product == line.product && stock.quantity >= u64::from(line.quantity))
    };
    lines.iter().filter(|line| !is_there(line)).map(|line| line.product.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warehouse_for_prefers_the_region_then_what_is_fullest_then_the_first() {
        let warehouse = |id: &str, region: &str| Warehouse {
            id: id.parse().unwrap(),
            name: id.parse().unwrap(),
            region: region.parse().unwrap(),
            version: 1,
        };
        let warehouses = [warehouse("ams", "eu"), warehouse("ber", "eu"), warehouse("chi", "us")];
        let line = |product: &str, quantity| OrderLine { product: product.parse().unwrap(), quantity };
        let stock = |rows: &[(&str, &str, u64)]| -> Vec<Stock> {
            rows.iter()
                .map(|(product, warehouse, quantity)| Stock {
                    product: product.parse().unwrap(),
                    warehouse: warehouse.parse().unwrap(),
                    quantity: *quantity,
                })
                .collect()
        };
        let both = [line("beans", 2), line("filters", 1)];
        for (lines, rows, chosen) in [
            (&both[..1], vec![("beans", "ams", 2), ("beans", "chi", 9)], Some("ams")),
            (&both[..1], vec![("beans", "ams", 1), ("beans", "chi", 9)], Some("chi")),
            (&both[..1], vec![("beans", "ams", 2), ("beans", "ber", 3)], Some("ber")),
            (&both[..1], vec![("beans", "ber", 3), ("beans", "ams", 3)], Some("ams")),
            (&both[..], vec![("beans", "ams", 2), ("filters", "ber", 1)], None),
            (&both[..], vec![("beans", "ams", 2), ("beans", "chi", 2), ("filters", "chi", 1)], Some("chi")),
            (&both[..1], vec![], None),
        ] {
            let found = warehouse_for(&"eu".parse().unwrap(), lines, &stock(&rows), &warehouses);
            assert_eq!(found.map(|warehouse| warehouse.id.as_str()), chosen, "{lines:?} {rows:?}");
            // No warehouse may have all although none of the products is lacking.
            assert!(chosen.is_none() || lacking(lines, &stock(&rows)).is_empty(), "{lines:?} {rows:?}");
        }
    }
}
