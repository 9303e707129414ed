//! The OpenAPI document of the HTTP API of the order desk.

use rest::openapi::OpenApiDescription;
use serde_json::Value;

/// The description of the API at the top of the OpenAPI document.
const DESCRIPTION: &str = "The order desk ships products to customers. The SKU of a subscription stands for a set of \
    products. Each paid month of the subscription becomes one order of these products, which is shipped from a \
    warehouse. A SKU without products creates no orders. An order is `BACKORDERED` until its products are reserved: \
    deducted from the stock of a warehouse. An account may read its own orders and set its shipping address. All other \
    operations are only for operators; hiring, hire dates and salaries need an additional scope. It is safe to repeat \
    a PUT request.";

/// Returns the OpenAPI 3.1 document of all routes, with an example of each operation.
pub fn openapi_document() -> Value {
    let (_, described) = crate::all_orders_api_routes().split_for_parts();
    rest::openapi::build_openapi_document(
        described,
        &OpenApiDescription {
            text: DESCRIPTION,
            tags: &[
                ("orders", "The orders of products, one for each paid month of a subscription"),
                ("customers", "Shipping addresses and representatives of customers"),
                ("products", "Products, their stock, and the set of products that each SKU stands for"),
                ("warehouses", "The warehouses that orders are shipped from"),
                ("company", "The regions, countries, locations, jobs and departments to which other data refers"),
                ("employees", "The employees of the merchant"),
            ],
            examples: include_str!("../examples.json"),
        },
    )
}
