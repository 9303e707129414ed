//! Turns on the features of dependencies that only the tests need, so that each build uses the same features.
//!
//! Cargo chooses the features of a dependency for all packages that one command builds. Without this crate,
//! `cargo test` would choose other features than `cargo run` for libraries that the AWS SDKs use. Cargo would
//! then compile those libraries and the SDKs again. This crate has no code; its `Cargo.toml` lists the features.
