//! The charges that are not yet in the stored charge total of the day.

use std::sync::{Mutex, MutexGuard, PoisonError};

use billing::{ChargeTotal, Settlement};
use chrono::NaiveDate;
use store::{Table, TableError};

/// The charges of one run, or of one other request, that are not yet in the stored charge total of the day. The rows
/// that a run processes at the same time share them.
///
/// A run writes them once for each list page of rows, and at its end. All other callers write them immediately after a
/// settlement. If the process ends before the write, or if the last write fails, the stored total lacks these charges.
#[derive(Debug, Default)]
pub struct UncountedCharges(Mutex<ChargeTotal>);

impl UncountedCharges {
    /// Adds the charge of the written settlement `settled`. A settlement without a receipt charges nothing.
    pub(crate) fn add_charge_of(&self, settled: &Settlement) {
        if let Some(receipt) = &settled.receipt {
            self.lock().add(receipt.amount);
        }
    }

    /// Adds the charges to the stored charge total of the day `today` in `shard`. Sends one UpdateItem request to
    /// `table`, or no request if there is no charge.
    ///
    /// # Errors
    /// [`TableError`] if the request failed: the charges stay uncounted, so the next call writes them.
    pub async fn write(&self, table: &Table, today: NaiveDate, shard: u32) -> Result<(), TableError> {
        let charged = std::mem::take(&mut *self.lock());
        if charged.charges() == 0 {
            return Ok(());
        }
        let written = table.add_to_charge_total(today, shard, &charged).await;
        if written.is_err() {
            self.lock().add_all(&charged);
        }
        written
    }

    /// Calls [`UncountedCharges::write`]. Logs an error instead of returning it, because the charge itself is already
    /// settled.
    pub async fn write_or_warn(&self, table: &Table, today: NaiveDate, shard: u32) {
        if let Err(error) = self.write(table, today, shard).await {
            let charges = self.lock().charges();
            tracing::warn!(%error, error_type = "Table", %today, shard, charges, "the charge total of the day lacks these charges, because it could not be updated");
        }
    }

    fn lock(&self) -> MutexGuard<'_, ChargeTotal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
