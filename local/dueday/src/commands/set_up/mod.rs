//! Commands that set up and change the system.

pub mod charging;
pub mod confirm_clock;
pub mod confirm_table;
pub mod deploy;
pub mod doctor;
pub mod gateway;
pub mod gateway_check;
pub mod import;
pub mod move_gateway;
pub mod reshard;
pub mod settings;
pub mod shards;
pub mod webhooks;
