//! The choice of the warehouse that ships an order.

use crate::fulfilment::order::OrderLine;
use crate::goods::product::Stock;
use crate::goods::warehouse::Warehouse;
use crate::ids::PlaceId;

/// Returns a warehouse that has enough stock of all `lines`, or `None` if there is no such warehouse. If there are
/// several such warehouses, prefers a warehouse in `region`. Among these, prefers the largest stock of the product in
/// the first line, so that no warehouse is emptied before the others. Among warehouses with equal stock, chooses the
/// smallest id.
pub fn choose_warehouse<'a>(
    region: &PlaceId,
    lines: &[OrderLine],
    stock: &[Stock],
    warehouses: &'a [Warehouse],
) -> Option<&'a Warehouse> {
    let quantity_in = |warehouse: &Warehouse, line: &OrderLine| {
        let is_stock_of_line = |stock: &&Stock| stock.warehouse == warehouse.id && stock.product == line.product;
        stock.iter().find(is_stock_of_line).map_or(0, |stock| stock.quantity)
    };
    let has_all =
        |warehouse: &&Warehouse| lines.iter().all(|line| quantity_in(warehouse, line) >= u64::from(line.quantity));
    let first_line_stock = |warehouse: &Warehouse| lines.first().map_or(0, |line| quantity_in(warehouse, line));
    warehouses.iter().filter(has_all).max_by(|a, b| {
        let rank = |warehouse: &Warehouse| (warehouse.region == *region, first_line_stock(warehouse));
        // Among warehouses with equal ranks, choose the smallest id.
        rank(a).cmp(&rank(b)).then_with(|| b.id.cmp(&a.id))
    })
}

/// Returns the part of `lines` that one warehouse has in stock: the needed pieces of each product, or fewer if the
/// stock does not suffice. Considers the warehouses in `region` if one of them has one of the products; otherwise
/// considers all warehouses. Among the considered warehouses, chooses the one that has the most of the products, then
/// the most pieces, and then the smallest id. Returns an empty list if no warehouse has any of the products.
pub fn lines_in_stock(
    region: &PlaceId,
    lines: &[OrderLine],
    stock: &[Stock],
    warehouses: &[Warehouse],
) -> Vec<OrderLine> {
    let part_in = |warehouse: &Warehouse| -> Vec<OrderLine> {
        let in_stock = |line: &OrderLine| {
            let is_stock_of_line = |stock: &&Stock| stock.warehouse == warehouse.id && stock.product == line.product;
            let available = stock.iter().find(is_stock_of_line).map_or(0, |stock| stock.quantity);
            let quantity = line.quantity.min(u32::try_from(available).unwrap_or(u32::MAX));
            (quantity > 0).then(|| OrderLine { product: line.product.clone(), quantity })
        };
        lines.iter().filter_map(in_stock).collect()
    };
    let parts = warehouses.iter().map(|warehouse| (warehouse, part_in(warehouse)));
    let best = parts.filter(|(_, part)| !part.is_empty()).max_by_key(|(warehouse, part)| {
        let pieces: u64 = part.iter().fold(0, |sum, line| sum.saturating_add(line.quantity.into()));
        // Among warehouses for which the region, the products and the pieces are equal, choose the smallest id.
        (warehouse.region == *region, part.len(), pieces, std::cmp::Reverse(warehouse.id.clone()))
    });
    best.map(|(_, part)| part).unwrap_or_default()
}

/// Returns the products of which no warehouse has the needed quantity. The quantity of each is the number of pieces
/// that the warehouse with the largest stock of the product lacks. Empty if each product is in stock, even if in
/// different warehouses.
pub fn missing_lines(lines: &[OrderLine], stock: &[Stock]) -> Vec<OrderLine> {
    let largest_stock = |line: &OrderLine| {
        let of_product = stock.iter().filter(|stock| stock.product == line.product);
        of_product.map(|stock| stock.quantity).max().unwrap_or_default()
    };
    let missing = |line: &OrderLine| {
        let available = u32::try_from(largest_stock(line)).unwrap_or(u32::MAX);
        let quantity = line.quantity.checked_sub(available).filter(|missing| *missing > 0)?;
        Some(OrderLine { product: line.product.clone(), quantity })
    };
    lines.iter().filter_map(missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warehouse_choice_prefers_the_region_then_the_largest_stock_then_the_first_id() {
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
        // The columns are: the lines of the order, the stock as (product, warehouse, quantity), the expected warehouse
        // for the region "eu" (`None` if no single warehouse has all products), and the missing lines.
        for (lines, rows, chosen, missing) in [
            (&both[..1], vec![("beans", "ams", 2), ("beans", "chi", 9)], Some("ams"), vec![]),
            (&both[..1], vec![("beans", "ams", 1), ("beans", "chi", 9)], Some("chi"), vec![]),
            (&both[..1], vec![("beans", "ams", 2), ("beans", "ber", 3)], Some("ber"), vec![]),
            (&both[..1], vec![("beans", "ber", 3), ("beans", "ams", 3)], Some("ams"), vec![]),
            // Each product is in stock, but in different warehouses.
            (&both[..], vec![("beans", "ams", 2), ("filters", "ber", 1)], None, vec![]),
            (&both[..], vec![("beans", "ams", 2), ("beans", "chi", 2), ("filters", "chi", 1)], Some("chi"), vec![]),
            (
                &both[..],
                vec![("beans", "ams", 1), ("beans", "chi", 0)],
                None,
                vec![line("beans", 1), line("filters", 1)],
            ),
            (&both[..], vec![("filters", "chi", 1)], None, vec![line("beans", 2)]),
            (&both[..1], vec![], None, vec![line("beans", 2)]),
        ] {
            let found = choose_warehouse(&"eu".parse().unwrap(), lines, &stock(&rows), &warehouses);
            assert_eq!(found.map(|warehouse| warehouse.id.as_str()), chosen, "{lines:?} {rows:?}");
            assert_eq!(missing_lines(lines, &stock(&rows)), missing, "{lines:?} {rows:?}");
        }
    }

    #[test]
    fn part_in_stock_is_from_one_warehouse_preferably_in_the_region_with_the_most_products() {
        let warehouses = [("ams", "eu"), ("ber", "eu"), ("nyc", "na")].map(|(id, region)| Warehouse {
            id: id.parse().unwrap(),
            name: "Warehouse".parse().unwrap(),
            region: region.parse().unwrap(),
            version: 1,
        });
        let line =
            |(product, quantity): &(&str, u32)| OrderLine { product: product.parse().unwrap(), quantity: *quantity };
        let lines: Vec<OrderLine> = [("beans", 3), ("cups", 2)].iter().map(line).collect();
        // The columns are: the stock, and the part of the order that is in stock.
        for (stock, expected) in [
            (vec![], vec![]),
            (vec![("ams", "beans", 0)], vec![]),
            (vec![("ams", "beans", 2)], vec![("beans", 2)]),
            (vec![("ams", "beans", 9)], vec![("beans", 3)]),
            (vec![("ams", "beans", 9), ("ber", "cups", 1), ("ber", "beans", 1)], vec![("beans", 1), ("cups", 1)]),
            (vec![("ams", "cups", 1), ("ber", "beans", 2)], vec![("beans", 2)]),
            (vec![("ams", "cups", 2), ("ber", "beans", 2)], vec![("cups", 2)]),
            (vec![("ams", "cups", 1), ("nyc", "cups", 2), ("nyc", "beans", 3)], vec![("cups", 1)]),
            (vec![("nyc", "beans", 1), ("nyc", "tea", 9)], vec![("beans", 1)]),
        ] {
            let in_stock: Vec<Stock> = stock
                .iter()
                .map(|(warehouse, product, quantity)| Stock {
                    warehouse: warehouse.parse().unwrap(),
                    product: product.parse().unwrap(),
                    quantity: *quantity,
                })
                .collect();
            let part = lines_in_stock(&"eu".parse().unwrap(), &lines, &in_stock, &warehouses);
            assert_eq!(part, expected.iter().map(line).collect::<Vec<_>>(), "{stock:?}");
        }
    }
}
