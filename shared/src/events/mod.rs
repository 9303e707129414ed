//! Events on their way to those who listen: what `billing::events` makes, in the envelope that everybody knows.

mod cloud_event;
mod config;
mod told;

pub use cloud_event::CloudEvent;
pub use config::*;
pub use told::told;
