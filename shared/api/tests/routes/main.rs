//! The payments API: its routes, its description, its examples.

mod examples;
mod router;
