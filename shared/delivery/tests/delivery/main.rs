//! Tests of outbound webhooks and of notices to customers.

mod notices;
mod webhooks;
