//! The totals of a run in addition to its row counts. Each batch has its own totals.

use std::fmt::Debug;
use std::ops::AddAssign;

use serde::Serialize;
use store::RunSums;

/// The totals of a run in addition to its row counts. The fields of their JSON are fields of the report.
pub trait RunTotals: Clone + PartialEq + Eq + Debug + Default + AddAssign + Serialize + Send + Sync {
    /// Returns the sums that the run record of a walk contains. `self` are the totals of the walk.
    fn sums(&self) -> RunSums {
        RunSums::default()
    }

    /// Logs those totals of a walk that each walk logs for itself. The log line of the run contains the other totals.
    fn log_walk(&self) {}

    /// Returns what a person must know about these totals of a run; `None` if there is nothing.
    fn warning(&self) -> Option<String> {
        None
    }
}
