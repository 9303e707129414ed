//! A product and its quantity: the lines of an order, and the products of a SKU.

use ::orders::{OrderLine, ProductId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::products::Quantity;

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
