//! The check of the numbers that the order desk stores: the stock and the quarter totals.

use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;
use orders::{AuditReport, OrdersAudit, OrdersTable};
use store::TableError;

use super::OrderDifference;
use crate::{BrokenInvariant, Invariant};

/// The largest number of scans that verify the differences of the first scan.
const VERIFYING_SCANS: i32 = 3;

/// Returns the violation of a number that could not be compared, for the reason `what`.
fn not_compared(key: impl ToString, what: impl Into<String>) -> BrokenInvariant {
    BrokenInvariant { invariant: Invariant::Compared, key: key.to_string(), what: what.into() }
}

/// Compares the stock and the quarter totals in `table` with the records from which they can be computed again. A change during
/// the check is no violation. If the scans do not end before `deadline`, the only violation is that nothing was compared.
pub async fn check_stored_numbers(
    table: &OrdersTable,
    clock: &dyn Clock,
    deadline: DateTime<Utc>,
) -> Result<Vec<BrokenInvariant>, TableError> {
    let too_late = || Ok(vec![not_compared("orders table", "the scans of the table did not end in time")]);
    let (mut audit, begun_at) = (OrdersAudit::begin(table), clock.now());
    while audit.next_orders().await?.is_some() {
        if clock.now() > deadline {
            return too_late();
        }
    }
    let scan_time: TimeDelta = clock.now() - begun_at;
    if audit.must_verify() && clock.now() + scan_time * VERIFYING_SCANS > deadline {
        return too_late();
    }
    let AuditReport { differences, unverified, unopened, unreadable, .. } = audit.finish(|| ()).await?;
    let mut all: Vec<BrokenInvariant> = Vec::new();
    all.extend(differences.iter().map(|difference| OrderDifference::from(difference).into()));
    all.extend(unreadable.iter().map(|error| OrderDifference::unreadable(error).into()));
    all.extend(unverified.iter().map(|number| not_compared(number, "it changed during each scan")));
    all.extend(unopened.iter().map(|number| not_compared(number, "it has no opening movement")));
    all.sort();
    Ok(all)
}
