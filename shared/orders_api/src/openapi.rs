//! The OpenAPI document of the orders' routes.

use rest::openapi::Description;
use serde_json::Value;

const DESCRIPTION: &str = "Orders: each paid month of a SKU that is made of products becomes one order, taken from a \
    warehouse. An account may read its own orders, and say where they go; everything else is the operator's, and what employees \
    earn is for an operator with a scope of its own. A PUT may be sent again.";

/// The OpenAPI 3.1 document of all routes, with an example of each.
pub fn document() -> Value {
    let (_, described) = super::all().split_for_parts();
    rest::openapi::document(
        described,
        &Description {
            text: DESCRIPTION,
            tags: &[
                ("orders", "What is shipped for each paid month"),
                ("customers", "Where orders go, and who looks after whom"),
                ("products", "What is shipped, and how much of it is there"),
                ("warehouses", "Where it is shipped from"),
                ("employees", "Who works here"),
            ],
            examples: include_str!("../examples.json"),
        },
    )
}
