//! The work of the function when the schedule invokes it each minute. It makes the planned changes of employees that
//! are due, and fills the backordered orders for which a fill task exists.

use chrono::{DateTime, TimeDelta, Utc};
use lambda_runtime::Diagnostic;
use orders::{FillCounts, OrderDesk};

/// The time before the deadline of an invocation in which the function does not begin to fill another order.
const FILL_TIME_MARGIN: TimeDelta = TimeDelta::seconds(15);
/// The longest time that one invocation fills orders. It is shorter than the minute after which the next invocation
/// continues, so that usually no two invocations work on the same tasks.
const FILL_TIME_LIMIT: TimeDelta = TimeDelta::seconds(50);

/// Makes the planned changes of employees that are due, and then works on the fill tasks until shortly before
/// `deadline`, at most for 50 seconds. The next invocation continues with the unfinished tasks.
///
/// # Errors
/// A planned change, an order or a task failed with an error.
pub async fn fill_waiting_orders(desk: &OrderDesk, deadline: DateTime<Utc>) -> Result<FillCounts, Diagnostic> {
    let deadline = (deadline - FILL_TIME_MARGIN).min(desk.clock().now() + FILL_TIME_LIMIT);
    let failed_changes = desk.apply_due_changes().await;
    match desk.fill_waiting_orders(deadline).await {
        filled @ FillCounts { failed: 0, .. } if failed_changes == 0 => Ok(filled),
        FillCounts { failed, .. } => Err(Diagnostic {
            error_type: "Fill".to_owned(),
            error_message: format!(
                "backordered orders or fill tasks that failed: {failed}; planned changes of employees that failed: \
                 {failed_changes}"
            ),
        }),
    }
}
