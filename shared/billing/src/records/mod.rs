//! The records of a payment: an attempt to charge it, the payment at the gateway, its receipt, its refunds and its disputes.

pub(crate) mod attempt;
pub(crate) mod attempt_record;
pub(crate) mod dispute;
pub(crate) mod payment;
pub(crate) mod payment_method_setup;
pub(crate) mod payment_records;
pub(crate) mod receipt;
pub(crate) mod receipt_id;
pub(crate) mod receipt_number;
pub(crate) mod refund;
pub(crate) mod waived_period;
