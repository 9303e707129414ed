//! The access patterns of each entity.

pub(crate) mod accounts;
pub(crate) mod actions;
pub(crate) mod audits;
pub(crate) mod card_links;
pub(crate) mod changes;
pub(crate) mod claims;
pub(crate) mod creations;
pub(crate) mod cursors;
pub(crate) mod disputes;
pub(crate) mod due;
pub(crate) mod erasures;
pub(crate) mod findings;
pub(crate) mod inbound_events;
pub(crate) mod notice_claims;
pub(crate) mod outbound_webhooks;
pub(crate) mod payment_method_setups;
pub(crate) mod receipt_retention;
pub(crate) mod receipts;
pub(crate) mod reconciliations;
pub(crate) mod records;
pub(crate) mod refunds;
pub(crate) mod settlements;
pub(crate) mod stream;
pub(crate) mod subscriptions;
pub(crate) mod waiting_deliveries;
