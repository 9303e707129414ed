//! The check of the numbers that the order desk stores: the stock and the quarter totals.

use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;
use orders_table::{OrdersAudit, OrdersAuditReport, OrdersTable};
use store::TableError;

use super::OrderDifference;
use crate::{BrokenInvariant, Invariant};

/// The largest number of further scans that verify the differences which the first scan has found.
const VERIFYING_SCANS: i32 = 3;

/// Returns the violation of a number that could not be compared, for the reason `what`.
fn comparison_violation(key: impl ToString, what: impl Into<String>) -> BrokenInvariant {
    BrokenInvariant { invariant: Invariant::Compared, key: key.to_string(), what: what.into() }
}

/// Returns the violation to report if [`check_stored_numbers`] did not end in time although it had the whole time of an
/// invocation.
pub fn numbers_not_compared() -> BrokenInvariant {
    comparison_violation("orders table", "the scans of the table did not end in time")
}

/// Compares the stock and the quarter totals in `table` with the records from which they can be computed again. A
/// number that changes during the check is no violation. Returns `None` if the scans do not end before `deadline`; then
/// no number was compared. Ignores items that cannot be read, because [`orders_table::OrdersScan`] returns them.
pub async fn check_stored_numbers(
    table: &OrdersTable,
    clock: &dyn Clock,
    deadline: DateTime<Utc>,
) -> Result<Option<Vec<BrokenInvariant>>, TableError> {
    let (mut audit, begun_at) = (OrdersAudit::begin(table), clock.now());
    while audit.next_orders().await?.is_some() {
        if clock.now() > deadline {
            return Ok(None);
        }
    }
    let scan_time: TimeDelta = clock.now() - begun_at;
    if audit.must_verify() && clock.now() + scan_time * VERIFYING_SCANS > deadline {
        return Ok(None);
    }
    let Some(report) = audit.finish_in_time(|| clock.now() <= deadline).await? else { return Ok(None) };
    let OrdersAuditReport { differences, unverified, unopened, .. } = report;
    let mut all: Vec<BrokenInvariant> = Vec::new();
    all.extend(differences.iter().map(|difference| OrderDifference::from(difference).into()));
    all.extend(unverified.iter().map(|number| comparison_violation(number, "it changed during each scan")));
    all.extend(unopened.iter().map(|number| comparison_violation(number, "it has no opening movement")));
    all.sort();
    Ok(Some(all))
}
