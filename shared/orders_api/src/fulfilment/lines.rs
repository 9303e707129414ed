//! A product and its quantity: the lines of an order, and the products of a SKU.

use orders::{MAX_QUANTITY, OrderLine, ProductId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use rest::Problem;

/// A number of pieces, from 1 to 1,000,000,000.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[schema(minimum = 1, maximum = 1_000_000_000)]
pub struct Quantity(u64);

impl Quantity {
    /// Returns the number of pieces.
    ///
    /// # Errors
    /// The problem response (400) for the field `quantity`, if the number is not from 1 to [`MAX_QUANTITY`].
    pub(crate) fn to_checked_number(self) -> Result<u64, Problem> {
        let Self(quantity) = self;
        if !(1..=MAX_QUANTITY).contains(&quantity) {
            return Err(Problem::invalid_field(
                "quantity",
                format!("must be from 1 to {MAX_QUANTITY}, not {quantity}"),
            ));
        }
        Ok(quantity)
    }
}

/// A product, and the quantity of it to ship.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutLine)]
pub struct LineFields {
    /// The merchant's identifier of the product.
    product: ProductId,
    /// The number of pieces.
    #[schema(value_type = Quantity)]
    quantity: u32,
}

/// A product and its quantity, in an order or in the set of products of a SKU.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderLine)]
pub struct LineView {
    /// The merchant's identifier of the product.
    pub product: ProductId,
    /// The number of pieces.
    #[schema(value_type = Quantity)]
    pub quantity: u32,
}

impl From<LineFields> for OrderLine {
    fn from(LineFields { product, quantity }: LineFields) -> Self {
        Self { product, quantity }
    }
}

impl From<OrderLine> for LineView {
    fn from(OrderLine { product, quantity }: OrderLine) -> Self {
        Self { product, quantity }
    }
}
