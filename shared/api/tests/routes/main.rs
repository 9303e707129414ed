//! Tests of the payments API: its routes, its OpenAPI document and the examples in it.

mod examples;
mod router;
