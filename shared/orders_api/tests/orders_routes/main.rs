//! The API of the order desk: its routes, its description, its examples.

mod examples;
mod router;
