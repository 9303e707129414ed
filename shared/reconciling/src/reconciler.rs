//! The comparison of one day, which can be interrupted after each list page.

use std::collections::HashSet;
use std::sync::Arc;

use billing::{DayReconciliation, DifferenceKind, GatewayDifference, Payment, ReconciliationStep, days_after};
use charging::{ChargingEngine, FindingError, LookUpError};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clock::Clock;
use gateway_objects::DisputeRecorder;
use gateways::{GatewayError, ListPage, ListProgress, Refunds, TimeRange};
use store::{Settings, Table, TableError};
use ulid::Ulid;

use crate::seen_payments::{MAX_SEEN_PAYMENTS, SeenPayments};

/// How long after the end of a day its comparison may start. Until then, a worker may not have written the receipt of a
/// payment of the day.
const SETTLING_TIME: TimeDelta = TimeDelta::hours(1);

/// Which corrections a comparison makes: whether it settles payments without a receipt, and stores the state of refunds and disputes at the gateway
/// whose event never came. Settling a payment writes its receipt, and advances the subscription to the next period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CorrectionMode {
    /// Settle the payment if that is safe; otherwise store the payment as a finding, about which a person decides.
    SettleOrStoreFinding,
    /// Only report the differences. The only item that is written is the result of the comparison.
    ReportOnly,
    /// For a table that was restored from a backup. Settle the payment like [`CorrectionMode::SettleOrStoreFinding`]. If
    /// the backup does not contain the attempt of the payment, but the month of the payment is due, also write a
    /// receipt.
    WriteReceiptsOfRestoredTable,
}

impl CorrectionMode {
    /// Returns the corrections that a comparison of the table with the settings `settings` makes.
    pub fn of_table(settings: &Settings) -> Self {
        match settings.copy_noticed_at {
            Some(_) => Self::WriteReceiptsOfRestoredTable,
            None => Self::SettleOrStoreFinding,
        }
    }
}

/// The reason why a day could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The receipt of a payment that a backup does not contain could not be written.
    #[error(transparent)]
    Finding(#[from] FindingError),
    #[error("the day {on} can be compared from {from} on, an hour after its end in UTC")]
    NotEnded { on: NaiveDate, from: DateTime<Utc> },
    #[error("the receipts of the day {on} have expired, so it cannot be compared")]
    Expired { on: NaiveDate },
    #[error(
        "the comparison of the day {on} makes no progress: the gateway returns the same list pages again and again"
    )]
    NoProgress { on: NaiveDate },
}

impl From<LookUpError> for ReconcileError {
    fn from(error: LookUpError) -> Self {
        match error {
            LookUpError::Table(error) => Self::Table(error),
            LookUpError::Gateway(error) => Self::Gateway(error),
        }
    }
}

/// Returns the latest day that can be compared at `now`.
pub fn latest_comparable_day(now: DateTime<Utc>) -> NaiveDate {
    let settled = now.checked_sub_signed(SETTLING_TIME).unwrap_or(now);
    settled.date_naive().pred_opt().unwrap_or(NaiveDate::MIN)
}

/// Compares days of a table with its gateway.
#[derive(Debug)]
pub struct Reconciler {
    pub(crate) table: Table,
    /// The id of the table. Payments that another table requested are ignored.
    pub(crate) table_id: Ulid,
    pub(crate) gateway: Arc<dyn Refunds>,
    pub(crate) engine: ChargingEngine,
    /// Stores the state of refunds at the gateway whose event never came.
    pub(crate) refunds: gateway_objects::RefundRequester,
    /// Stores the state of disputes at the gateway whose event never came.
    pub(crate) disputes: DisputeRecorder,
    pub(crate) corrections: CorrectionMode,
    pub(crate) clock: Arc<dyn Clock>,
    /// Today's date in the billing time zone, for settlements.
    pub(crate) today: NaiveDate,
    /// The payments of the compared day that have a matching receipt.
    pub(crate) seen: SeenPayments,
    /// The differences of the compared day that a person has accepted.
    accepted: HashSet<(DifferenceKind, String)>,
    /// The progress through the gateway's list of the current step.
    progress: ListProgress,
}

impl Reconciler {
    /// Creates a reconciler of the table with the id `table_id`, whose payments are made at `gateway`. `today` is
    /// today's date in the billing time zone.
    pub fn new(
        table: Table,
        table_id: Ulid,
        gateway: Arc<dyn Refunds>,
        corrections: CorrectionMode,
        clock: Arc<dyn Clock>,
        today: NaiveDate,
    ) -> Self {
        Self {
            engine: ChargingEngine::new(table.clone(), clock.clone()),
            refunds: gateway_objects::RefundRequester::new(table.clone(), gateway.clone(), clock.clone()),
            disputes: DisputeRecorder::new(table.clone(), clock.clone()),
            table,
            table_id,
            gateway,
            corrections,
            clock,
            today,
            seen: SeenPayments::new(MAX_SEEN_PAYMENTS),
            accepted: HashSet::new(),
            progress: ListProgress::default(),
        }
    }

    /// Changes the maximum number of payments that [`SeenPayments`] stores in memory.
    pub fn with_max_seen_payments(self, max: usize) -> Self {
        Self { seen: SeenPayments::new(max), ..self }
    }

    /// Returns the payments of the compared day that this comparison has found at the gateway and that have a matching
    /// receipt in the table.
    pub fn seen_payments(&self) -> &SeenPayments {
        &self.seen
    }

    /// Compares the day `on`, and stores the progress and the result. If an earlier comparison of the day was
    /// interrupted, continues that comparison; if it has ended, compares the day again. If `deadline` has passed, stops
    /// before the next list page, and returns the comparison without the time of its end (`ended_at`).
    ///
    /// # Errors
    /// - [`ReconcileError::NotEnded`] and [`ReconcileError::Expired`] if the day cannot be compared.
    /// - [`ReconcileError::Table`] and [`ReconcileError::Gateway`] if a request failed. The next call continues.
    /// - [`ReconcileError::NoProgress`] if the gateway returns the same list pages again and again. The next call
    ///   continues.
    pub async fn reconcile(
        &mut self,
        on: NaiveDate,
        deadline: Option<DateTime<Utc>>,
    ) -> Result<DayReconciliation, ReconcileError> {
        let stored = self.table.get_reconciliation(on).await?;
        self.reconcile_after(stored, on, deadline).await
    }

    /// Compares the day `on` like [`Reconciler::reconcile`], without reading the stored comparison of the day again.
    /// `stored` is this comparison; `None` if there is none.
    ///
    /// # Errors
    /// The same errors as in [`Reconciler::reconcile`].
    pub async fn reconcile_after(
        &mut self,
        stored: Option<DayReconciliation>,
        on: NaiveDate,
        deadline: Option<DateTime<Utc>>,
    ) -> Result<DayReconciliation, ReconcileError> {
        self.check_day(on)?;
        let mut day = self.begin_comparison(stored, on).await?;
        self.seen.clear();
        if day.counts.payments > 0 && day.ended_at.is_none() {
            self.table
                .read_seen_payments(&day, |hash| {
                    self.seen.insert_stored_hash(hash);
                })
                .await?;
        }
        let accepted = self.table.get_accepted_differences(on).await?;
        self.accepted = accepted.into_iter().map(|accepted| (accepted.kind, accepted.id)).collect();
        let range = TimeRange::of_day(on);
        self.progress = ListProgress::default();
        while day.ended_at.is_none() && deadline.is_none_or(|deadline| self.clock.now() < deadline) {
            let mut next = day.clone();
            match day.step {
                ReconciliationStep::Payments => self.compare_payments(&range, &mut next).await?,
                ReconciliationStep::Refunds => self.compare_refunds(&range, &mut next).await?,
                ReconciliationStep::Disputes => self.compare_disputes(&range, &mut next).await?,
                ReconciliationStep::Records => self.compare_records(&range, &mut next).await?,
            }
            match &next.position {
                None => {
                    next.end_step(self.clock.now());
                    self.progress = ListProgress::default();
                }
                // Without this check, the comparison would never end, for example if the gateway returns the same
                // cursor again and again.
                Some(_) if next.position == day.position => return Err(ReconcileError::NoProgress { on }),
                Some(_) => {}
            }
            let seen = self.seen.take_unstored_hashes();
            if !seen.is_empty() {
                self.table.put_seen_payments(&next, &seen).await?;
            }
            day = self.table.update_reconciliation(&day, next).await?;
        }
        Ok(day)
    }

    /// Checks that the day `on` can be compared: all of its receipts are written, and none of them has expired.
    fn check_day(&self, on: NaiveDate) -> Result<(), ReconcileError> {
        let now = self.clock.now();
        if on > latest_comparable_day(now) {
            let end = TimeRange::of_day(on).to;
            return Err(ReconcileError::NotEnded { on, from: end.checked_add_signed(SETTLING_TIME).unwrap_or(end) });
        }
        let oldest = now.checked_sub_signed(self.table.receipt_retention()).map(|oldest| oldest.date_naive());
        if oldest.is_some_and(|oldest| on < days_after(oldest, 1)) {
            return Err(ReconcileError::Expired { on });
        }
        Ok(())
    }

    /// Returns the comparison of the day `on` with which this call continues: `stored` if that comparison was
    /// interrupted, otherwise a new comparison.
    async fn begin_comparison(
        &self,
        stored: Option<DayReconciliation>,
        on: NaiveDate,
    ) -> Result<DayReconciliation, ReconcileError> {
        let report_only = self.corrections == CorrectionMode::ReportOnly;
        let new = DayReconciliation { report_only, ..DayReconciliation::new(on, self.clock.now()) };
        match stored {
            Some(interrupted) if interrupted.ended_at.is_none() && interrupted.report_only == report_only => {
                Ok(interrupted)
            }
            Some(stored) => Ok(self.table.update_reconciliation(&stored, new).await?),
            None => {
                // Ignore whether the item was created: if another process has created it at the same time, the first
                // update of the comparison fails.
                self.table.create_reconciliation(&new).await?;
                Ok(new)
            }
        }
    }

    /// Records that `page` of the gateway's list was read.
    ///
    /// # Errors
    /// [`ReconcileError::NoProgress`] if the list makes no progress.
    pub(crate) fn record_progress<T>(&mut self, page: &ListPage<T>, on: NaiveDate) -> Result<(), ReconcileError> {
        self.progress.record(page).map_err(|_| ReconcileError::NoProgress { on })
    }

    /// Adds `difference` to the comparison `day`. If a person has accepted the difference, only counts it.
    pub(crate) fn add_difference(&self, day: &mut DayReconciliation, difference: GatewayDifference) {
        match self.is_accepted(&difference) {
            true => day.counts.accepted = day.counts.accepted.saturating_add(1),
            false => day.add_difference(difference),
        }
    }

    /// Returns whether a person has accepted `difference`.
    pub(crate) fn is_accepted(&self, difference: &GatewayDifference) -> bool {
        self.accepted.contains(&(difference.kind, difference.id.clone()))
    }

    /// Returns whether this table requested `payment`.
    pub(crate) fn was_requested_by_this_table(&self, payment: &Payment) -> bool {
        payment.table.is_none_or(|table| table == self.table_id)
    }
}
