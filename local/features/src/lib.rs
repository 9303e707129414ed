//! Turns on, in every build, the features of dependencies that only tests would turn on otherwise.
//!
//! Cargo chooses the features of a dependency for all packages that one command builds. Without this crate,
//! `cargo test` would choose other features than `cargo run` for libraries that the AWS SDKs use, and compile those
//! libraries and the SDKs again. This crate has no code; the features are in `Cargo.toml`.
