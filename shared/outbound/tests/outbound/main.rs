//! Tests of outbound webhooks.

mod deliveries;
