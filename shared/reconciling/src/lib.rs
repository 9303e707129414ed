//! Reconciliation of one day: compares the payments, refunds and disputes that the gateway lists with the table, and
//! the receipts, refunds and disputes of the table with the gateway.
//!
//! The comparison has four steps ([`billing::ReconciliationStep`]). Each step reads one list, one list page at a time.
//! After each list page, it stores its position and the differences, so an interrupted comparison continues at this
//! position. The memory does not grow with the number of payments of the day: it holds one list page of the gateway,
//! one account of the table, at most 100 differences, and the hashes of at most [`MAX_SEEN_PAYMENTS`] payments
//! ([`SeenPayments`]).
//!
//! The rules are pure functions of `gateways`, which the audit uses, too. A payment without a receipt is settled like a payment
//! that the gateway reports late, or stored as a finding (`charging::Findings`). If the event of a refund or a dispute
//! never came, its state at the gateway is stored (`applied_states.rs`). All other differences are only reported.
//! [`DailyComparison`] chooses the days that are compared automatically.
//!
//! A gateway need not list the payments of a day. In a table that was restored from a backup, `customer_lists.rs` then
//! compares the payments of each customer. [`DaysToCompare`] decides whether the comparisons of such a table are
//! sufficient for its confirmation.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod applied_states;
mod attempts_of_backup;
mod confirmation;
mod customer_lists;
mod daily_comparison;
mod gateway_lists;
mod reconciler;
mod request_retries;
mod seen_payments;
mod table_records;
mod without_receipt;

pub use confirmation::{ConfirmationProblem, DaysToCompare};
pub use daily_comparison::{DailyComparison, DailyComparisonError};
pub use reconciler::{CorrectionMode, ReconcileError, Reconciler, latest_comparable_day};
pub use seen_payments::{MAX_SEEN_PAYMENTS, SeenPayments};

/// The log message for a day with a difference, or with a list that could not be compared. The filter of an alarm in
/// `template.yaml` contains the same text.
pub const DIFFERENCES_MESSAGE: &str = "the gateway and the table differ";

/// The log message when the comparison of a day has ended, with or without differences. The filter of an alarm in
/// `template.yaml` contains the same text.
pub const DAY_COMPARED_MESSAGE: &str = "a day was compared with the gateway";
