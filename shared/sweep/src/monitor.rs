//! The connection between a run and the code that has started the run: it shows the progress of the run to that code,
//! and lets that code end the run early.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use store::{Batch, RunCounts};

/// Shows the progress of a run, and ends the run early. The run and the code that has started the run share this
/// object.
#[derive(Debug)]
pub struct RunMonitor {
    must_end: AtomicBool,
    counts: Mutex<MonitoredCounts>,
}

/// The row counts of a run, which consists of walks: each walk processes the rows of one shard.
#[derive(Debug)]
struct MonitoredCounts {
    ended_walks: RunCounts,
    current_walk: RunCounts,
}

impl RunMonitor {
    /// Creates the monitor of a run of `batch`.
    pub fn new(batch: Batch) -> Self {
        let none = RunCounts::none(batch);
        let counts = Mutex::new(MonitoredCounts { ended_walks: none, current_walk: none });
        Self { must_end: AtomicBool::new(false), counts }
    }

    /// Returns the counts of the rows that the run has read so far.
    pub fn counts(&self) -> RunCounts {
        let counts = self.lock();
        counts.ended_walks.combined_with(counts.current_walk)
    }

    /// Ends the run: it starts no further row, waits for the rows that it has started, and closes its run record.
    pub fn end_run(&self) {
        self.must_end.store(true, Ordering::Relaxed);
    }

    /// Returns whether the run must start no further row.
    pub fn is_end_requested(&self) -> bool {
        self.must_end.load(Ordering::Relaxed)
    }

    /// Stores the `counts` of the current walk (the shard whose rows are being processed).
    pub(super) fn set_current_walk(&self, counts: RunCounts) {
        self.lock().current_walk = counts;
    }

    /// Stores that the current walk has ended with `counts`.
    pub(super) fn end_walk(&self, counts: RunCounts) {
        let mut stored = self.lock();
        stored.ended_walks = stored.ended_walks.combined_with(counts);
        stored.current_walk = RunCounts::none(counts.batch());
    }

    fn lock(&self) -> MutexGuard<'_, MonitoredCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
