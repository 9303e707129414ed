//! The work of the function when the schedule invokes it each minute: it fills the backordered orders for which a fill
//! task exists.

use chrono::{DateTime, TimeDelta, Utc};
use lambda_runtime::Diagnostic;
use orders_desk::{FillCounts, OrderDesk};

/// The time before the deadline of an invocation in which the function does not begin to fill another order.
const FILL_TIME_MARGIN: TimeDelta = TimeDelta::seconds(15);
/// The longest time that one invocation fills orders. It is shorter than the minute after which the next invocation
/// continues, so that usually no two invocations work on the same tasks.
const FILL_TIME_LIMIT: TimeDelta = TimeDelta::seconds(50);

/// Works on the fill tasks until shortly before `deadline`, at most for 50 seconds. The next invocation continues with the
/// unfinished tasks.
///
/// # Errors
/// An order or a task failed with an error.
pub async fn fill_waiting_orders(desk: &OrderDesk, deadline: DateTime<Utc>) -> Result<FillCounts, Diagnostic> {
    let deadline = (deadline - FILL_TIME_MARGIN).min(desk.clock().now() + FILL_TIME_LIMIT);
    match desk.fill_waiting_orders(deadline).await {
        filled @ FillCounts { failed: 0, .. } => Ok(filled),
        FillCounts { failed, .. } => Err(Diagnostic {
            error_type: "Fill".to_owned(),
            error_message: format!("backordered orders or fill tasks that failed: {failed}"),
        }),
    }
}
