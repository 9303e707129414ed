//! Tests of notices to customers.

mod notices;
mod shipment_notices;
mod subscription_notices;
