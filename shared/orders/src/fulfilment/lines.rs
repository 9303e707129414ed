//! The rules for the lines of a SKU or of an order: the products to ship and their quantities.

use std::collections::BTreeSet;

use crate::fulfilment::order::OrderLine;
use crate::ids::ProductId;

/// The largest quantity of a product in one line of a SKU or an order, or in one delivery to a warehouse.
pub const MAX_QUANTITY: u64 = 1_000_000_000;
/// The largest number of products of a SKU or an order. An order with more products might not fit into one DynamoDB
/// transaction.
pub const MAX_LINES: usize = 20;

/// The reason why [`check_order_lines`] rejects the lines of a SKU or an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderLinesError {
    #[error("at most {MAX_LINES} products can be listed, not {0}")]
    TooMany(usize),
    #[error("the product {0} is listed twice; list each product once")]
    DuplicateProduct(ProductId),
    #[error("the quantity of the product {0} must be from 1 to {MAX_QUANTITY}")]
    InvalidQuantity(ProductId),
}

/// Checks the lines of a SKU or an order: the products to ship and their quantities.
///
/// # Errors
/// There are more than [`MAX_LINES`] lines, a product is listed twice, or a quantity is not from 1 to [`MAX_QUANTITY`].
pub fn check_order_lines(lines: &[OrderLine]) -> Result<(), OrderLinesError> {
    if lines.len() > MAX_LINES {
        return Err(OrderLinesError::TooMany(lines.len()));
    }
    let mut products = BTreeSet::new();
    for OrderLine { product, quantity } in lines {
        if !products.insert(product) {
            return Err(OrderLinesError::DuplicateProduct(product.clone()));
        }
        if !(1..=MAX_QUANTITY).contains(&u64::from(*quantity)) {
            return Err(OrderLinesError::InvalidQuantity(product.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_line(product: &str, quantity: u32) -> OrderLine {
        OrderLine { product: product.parse().unwrap(), quantity }
    }

    #[test]
    fn check_lines_rejects_too_many_lines_duplicates_and_wrong_quantities() {
        let many = |count: usize| (0..count).map(|n| order_line(&format!("p{n}"), 1)).collect::<Vec<_>>();
        // The columns are: the lines, and the expected error (`None` if the lines are valid).
        for (lines, expected_error) in [
            (vec![], None),
            (many(20), None),
            (many(21), Some(OrderLinesError::TooMany(21))),
            (
                vec![order_line("p", 1), order_line("q", 1), order_line("p", 2)],
                Some(OrderLinesError::DuplicateProduct("p".parse().unwrap())),
            ),
            (vec![order_line("p", 0)], Some(OrderLinesError::InvalidQuantity("p".parse().unwrap()))),
            (vec![order_line("p", 1_000_000_000)], None),
            (vec![order_line("p", 1_000_000_001)], Some(OrderLinesError::InvalidQuantity("p".parse().unwrap()))),
        ] {
            assert_eq!(check_order_lines(&lines).err(), expected_error, "{lines:?}");
        }
    }
}
