//! On a schedule the desk looks again at all orders that wait for stock, so that a crash leaves none behind.

use chrono::{DateTime, TimeDelta, Utc};
use lambda_runtime::Diagnostic;
use orders::{Filled, OrderDesk, all_days};

/// So long before its deadline an invocation begins nothing more.
const MARGIN: TimeDelta = TimeDelta::seconds(15);

/// Fills what waits until shortly before `deadline`.
///
/// # Errors
/// Orders could not be looked at, or not in time.
pub async fn fill_waiting(desk: &OrderDesk, deadline: DateTime<Utc>) -> Result<Filled, Diagnostic> {
    match desk.fill_waiting(all_days(), deadline - MARGIN).await {
        filled @ Filled { not_looked_at: 0, failed: 0, .. } => Ok(filled),
        Filled { not_looked_at, failed, .. } => Err(Diagnostic {
            error_type: "Fill".to_owned(),
            error_message: format!(
                "of the orders that wait, {failed} could not be looked at, and {not_looked_at} not in time"
            ),
        }),
    }
}
