//! Tests of the HTTP API of the order desk: its routes, its OpenAPI document and the examples in it.

mod examples;
mod router;
