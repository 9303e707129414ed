//! Tests of the HTTP API of the order desk: its routes, its OpenAPI document and the examples.

mod examples;
mod router;
