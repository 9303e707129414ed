//! What a SKU may be made of.

use std::collections::BTreeSet;

use super::{OrderLine, ProductId};

/// More of a product are not counted at once.
pub const MAX_QUANTITY: u64 = 1_000_000_000;
/// More products of a SKU would not fit into an order's transaction.
pub const MAX_LINES: usize = 20;

/// What is said of a SKU cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinesError {
    #[error("must be at most {MAX_LINES} products, not {0}")]
    TooMany(usize),
    #[error("must name {0} once")]
    Twice(ProductId),
    #[error("must be from 1 to {MAX_QUANTITY} of {0}")]
    Quantity(ProductId),
}

/// Whether a SKU can be made of `lines`.
///
/// # Errors
/// [`LinesError`].
pub fn check_lines(lines: &[OrderLine]) -> Result<(), LinesError> {
    if lines.len() > MAX_LINES {
        return Err(LinesError::TooMany(lines.len()));
    }
    let mut products = BTreeSet::new();
    for OrderLine { product, quantity } in lines {
        if !products.insert(product) {
            return Err(LinesError::Twice(product.clone()));
        }
        if !(1..=MAX_QUANTITY).contains(&u64::from(*quantity)) {
            return Err(LinesError::Quantity(product.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(product: &str, quantity: u32) -> OrderLine {
        OrderLine { product: product.parse().unwrap(), quantity }
    }

    #[test]
    fn sku_is_made_of_so_many_products_each_once() {
        let many = |count: usize| (0..count).map(|n| line(&format!("p{n}"), 1)).collect::<Vec<_>>();
        for (lines, wrong) in [
            (vec![], None),
            (many(20), None),
            (many(21), Some(LinesError::TooMany(21))),
            (vec![line("p", 1), line("q", 1), line("p", 2)], Some(LinesError::Twice("p".parse().unwrap()))),
            (vec![line("p", 0)], Some(LinesError::Quantity("p".parse().unwrap()))),
            (vec![line("p", 1_000_000_000)], None),
            (vec![line("p", 1_000_000_001)], Some(LinesError::Quantity("p".parse().unwrap()))),
        ] {
            assert_eq!(check_lines(&lines).err(), wrong, "{lines:?}");
        }
    }
}
