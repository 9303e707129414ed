//! The work of the hourly schedule: tries to fill all backordered orders, so that an interrupted request leaves no
//! order unfilled.

use chrono::{DateTime, TimeDelta, Utc};
use lambda_runtime::Diagnostic;
use orders::{FillCounts, OrderDesk, all_days};

/// The function does not start to fill another order if less than this time remains until the deadline of the
/// invocation.
const FILL_TIME_MARGIN: TimeDelta = TimeDelta::seconds(15);

/// Makes the planned changes of employees whose day has come, and tries to fill all backordered orders, until shortly
/// before `deadline`.
///
/// # Errors
/// A planned change or an order failed with an error, or there was not enough time for all orders.
pub async fn fill_backorders(desk: &OrderDesk, deadline: DateTime<Utc>) -> Result<FillCounts, Diagnostic> {
    let failed_changes = desk.apply_due_changes().await;
    match desk.fill_backorders(all_days(), deadline - FILL_TIME_MARGIN).await {
        filled @ FillCounts { not_attempted: 0, failed: 0, .. } if failed_changes == 0 => Ok(filled),
        FillCounts { not_attempted, failed, .. } => Err(Diagnostic {
            error_type: "Fill".to_owned(),
            error_message: format!(
                "backordered orders: failed: {failed}, not tried before the deadline: {not_attempted}; planned changes \
                 of employees: failed: {failed_changes}"
            ),
        }),
    }
}
