//! Tests of the payments API: its routes, its OpenAPI document and the examples in it, and the list of problem types.

mod examples;
mod problem_types;
mod router;
