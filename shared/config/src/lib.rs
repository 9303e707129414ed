//! How settings are read: environment variables, each declared by the crate that uses it, read once into typed values. One that is
//! set but wrong is an error that names the variable and says what is allowed.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod billing;
mod env;
mod variable;

pub use billing::*;
pub use env::{ConfigError, Env, plain_url, web_address};
pub use variable::{Flag, ReadBy, Variable};
