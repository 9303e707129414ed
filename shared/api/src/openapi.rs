//! The OpenAPI document of the payments' routes.

use rest::openapi::Description;
use serde_json::Value;

use crate::routes;

const DESCRIPTION: &str = "Recurring payments: accounts, their subscriptions and receipts, and what an operator asks. \
    Amounts are integers in minor units of the currency. Errors are problems (RFC 9457) that name the field and what is \
    allowed. A POST may carry an Idempotency-Key: the same caller, route, key and body get the same answer for 48 hours. \
    An account may read its own things, pause, resume and cancel, and change payment method and payment day; everything \
    else is the operator's.";

/// The OpenAPI 3.1 document of all routes, with an example of each.
pub fn document() -> Value {
    let (_, described) = routes::all().split_for_parts();
    rest::openapi::document(
        described,
        &Description {
            text: DESCRIPTION,
            tags: &[
                ("accounts", "Who pays"),
                ("subscriptions", "What is paid each month"),
                ("payment methods", "How a customer gives a card"),
                ("receipts", "What was paid in the last six months"),
                ("webhooks", "Programs that are told what happens"),
                ("operation", "What is due, and what the batches did"),
            ],
            examples: include_str!("../examples.json"),
        },
    )
}
