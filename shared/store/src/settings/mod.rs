//! The item of the settings, and what follows from it: the configuration, the policy, the shards, and the check for a restored copy.

pub(crate) mod config;
pub(crate) mod copied_table;
pub(crate) mod policy;
pub(crate) mod reshard;
pub(crate) mod schema;
pub(crate) mod server_time;
pub(crate) mod settings_item;
