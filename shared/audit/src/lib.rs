//! Analyses of the tables: explanations why a subscription was or was not charged on a day, checks of invariants of the
//! payments table and the orders table, reconciliation with the gateway, forecasts and reports. The only items that
//! this crate writes are the records of audits.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod account_check;
mod charge_reason;
mod consistency;
mod endpoints;
mod explanation;
mod explanation_text;
mod forecast;
mod gateway_lists;
mod invariants;
mod nightly;
mod orders;
mod other_items;
mod past_holds;
mod prices;
mod reconciliation;
mod recorded_times;
mod recorder;
mod repair;
mod report;
mod unfinished_runs;

pub use charge_reason::{ChargeReason, LaterOutcome, find_charge_reason};
pub use endpoints::{check_endpoints, unreadable_endpoint};
pub use explanation::{ChargeExplanation, ReasonCode, explain_charge_on_day};
pub use forecast::forecast_charges;
pub use gateway_lists::GatewayLists;
pub use invariants::{BrokenInvariant, Invariant, InvariantChecker};
pub use nightly::{NightlyAudit, is_audit_late};
pub use orders::{
    MAX_ORDER_DELAY, OrderChecker, OrderDifference, OrderSummary, OrdersComparison, check_stored_numbers,
    compare_orders_with_receipts, is_account_erased, numbers_not_compared, order_id_of_receipt,
};
pub use other_items::check_other_items;
pub use past_holds::{HoldKind, HoldRecords, PastHold};
pub use prices::check_prices;
pub use reconciliation::Reconciliation;
pub use recorder::{AuditRecorder, MAX_SHOWN_VIOLATIONS};
pub use repair::SubscriptionRepair;
pub use report::{
    ProductSales, ReportSource, ReportedDay, ReportedDaysError, SalesReport, UnsettledNow, build_sales_report,
    first_reportable_day,
};
pub use unfinished_runs::unfinished_runs;
