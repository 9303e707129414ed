//! Turns on, in every build, the features of dependencies that only tests would turn on otherwise.
//!
//! Cargo chooses the features of a dependency for all packages that a command builds together. Without this crate `cargo test` would choose
//! others than `cargo run` for libraries below the AWS SDKs, and compile all of those again. There is no code here; the features stand in
//! `Cargo.toml`.
