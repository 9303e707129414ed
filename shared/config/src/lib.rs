//! Settings from environment variables. Each variable is declared in the crate that uses the variable, and is read once
//! into a typed value. For an invalid value, the error names the variable and the allowed values.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod current_secret;
mod env;
mod policy;
mod variable;

pub use current_secret::{CurrentSecret, SECRET_UNREADABLE, SecretReader};
pub use env::{ConfigError, Env, parse_displayable_url, parse_web_page_url};
pub use policy::*;
pub use variable::{CommandFlag, EnvVariable, ReadingFunction};
