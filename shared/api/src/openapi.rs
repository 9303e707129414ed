//! The OpenAPI document of this API.

use rest::openapi::OpenApiDescription;
use serde_json::Value;

use crate::routes;

/// The description of the API in its OpenAPI document.
const DESCRIPTION: &str = "Recurring payments: accounts, their subscriptions and receipts, and reports for operators. \
    Amounts are integers in minor units of the currency. Errors are problems (RFC 9457) that name the field and the \
    allowed values. If an operation has the header Idempotency-Key, the same caller, route, key and body get the same \
    response for 48 hours. A caller with an account's token may read the data of that account, pause, resume, cancel \
    and retry its subscriptions, and change their payment method and payment day. A deployment can forbid accounts some \
    of these changes. All other requests need an operator's token.";

/// Returns the OpenAPI 3.1 document of all routes, with an example for each operation.
pub fn openapi_document() -> Value {
    let (_, described) = routes::all_api_routes().split_for_parts();
    rest::openapi::build_openapi_document(
        described,
        &OpenApiDescription {
            text: DESCRIPTION,
            tags: &[
                ("accounts", "The accounts of customers"),
                ("subscriptions", "Monthly payments of an account"),
                ("payment methods", "Web pages on which customers enter a payment method"),
                ("receipts", "Receipts of successful payments, and refunds"),
                ("webhooks", "Outbound webhooks: endpoints of the merchant that receive events"),
                ("operation", "Due payments, forecasts, runs and reports for operators; health of the API"),
            ],
            examples: include_str!("../examples.json"),
        },
    )
}
