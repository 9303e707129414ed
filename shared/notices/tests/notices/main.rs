//! Tests of notices to customers.

mod addresses;
mod changes_in_each_state;
mod notices;
mod promises;
mod shipment_notices;
mod subscription_notices;
