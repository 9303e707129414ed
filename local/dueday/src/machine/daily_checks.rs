//! The checks and the clean-up of the local server, like the functions audit, reconcile and erase on AWS: each day it
//! compares the table with the gateway, audits the table, and removes deleted data from the database file.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use audit::NightlyAudit;
use chrono::{DateTime, TimeDelta, Utc};
use deployment::Deployment;
use erasing::Eraser;
use gateways::FullGateway;
use orders_table::OrdersTable;
use reconciling::DailyComparison;
use store::{Paging, TableError};
use tokio::sync::watch;
use tokio::time::timeout;

use super::data_folder::LockedFolder;
use crate::terminal::output;

/// The longest time for which the checks wait for the publication of earlier changes.
const MAX_PUBLICATION: Duration = Duration::from_secs(3_600);
/// The time between two searches for requested erasures and for due checks.
const SEARCH_INTERVAL: Duration = Duration::from_secs(600);
/// The time from the start of an audit until the next audit is due. It is less than a day, so that a server which is
/// started a bit earlier each day also audits each day.
const TIME_BETWEEN_AUDITS: TimeDelta = TimeDelta::hours(20);
/// The longest duration of the comparison, and of a part of an audit. The next day continues what is left.
const CHECK_TIME_LIMIT: TimeDelta = TimeDelta::hours(1);

/// The daily checks of the local tables, and the erasures.
pub struct DailyChecks {
    deployment: Deployment,
    audit: NightlyAudit,
    comparison: DailyComparison,
    eraser: Eraser,
    folder: Arc<LockedFolder>,
    /// When this process last began a part of an audit; `None` if it has begun none.
    latest_part_at: Cell<Option<DateTime<Utc>>>,
    /// Whether the latest comparison failed, so that the next search repeats it.
    is_comparison_owed: Cell<bool>,
}

/// What one search has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckedNow {
    /// Whether the table was compared and audited.
    pub is_audited: bool,
    /// The number of accounts that were erased.
    pub erased_accounts: u64,
}

impl DailyChecks {
    /// Creates the checks of `deployment` and of its `orders` table, which are in `folder`. `gateway` is the gateway of
    /// the deployment.
    pub fn new(
        deployment: &Deployment,
        orders: OrdersTable,
        gateway: Arc<dyn FullGateway>,
        folder: Arc<LockedFolder>,
    ) -> Self {
        let (table, clock) = (deployment.table.clone(), deployment.clock.clone());
        Self {
            deployment: deployment.clone(),
            audit: NightlyAudit { table: table.clone(), orders: Some(orders.clone()), clock: clock.clone() },
            comparison: DailyComparison::new(table.clone(), gateway, clock.clone()),
            eraser: Eraser::new(table, Some(orders), clock),
            folder,
            latest_part_at: Cell::new(None),
            is_comparison_owed: Cell::new(false),
        }
    }

    /// Erases accounts and makes the due checks until the future is dropped. An error is printed and tried again. Begins
    /// when `first_publication` shows that the earlier changes are published: before, paid months have no orders yet.
    pub async fn check_continuously(&self, mut first_publication: watch::Receiver<bool>) {
        // After the time-out, the checks begin nevertheless, and find what could not be published.
        let _ = timeout(MAX_PUBLICATION, first_publication.wait_for(|is_published| *is_published)).await;
        let mut has_deleted = false;
        loop {
            // The data of the previous search is removed now: its changes are published, so no stream record contains
            // it any more.
            if has_deleted {
                match self.folder.remove_deleted_data(self.deployment.clock.now()) {
                    Ok(()) => has_deleted = false,
                    Err(failure) => {
                        let message = failure.message();
                        output::print_message(format!("error: deleted data is still on the disk: {message}"));
                    }
                }
            }
            match self.check_if_due().await {
                Ok(checked) => has_deleted |= checked.is_audited || checked.erased_accounts > 0,
                Err(error) => output::print_message(format!("error: {error}")),
            }
            tokio::time::sleep(SEARCH_INTERVAL).await;
        }
    }

    /// Continues the requested erasures. If the latest audit began more than 20 hours ago, also compares the table with
    /// the gateway and audits it. An erasure or a comparison that fails is printed and tried again, and the other work
    /// continues.
    ///
    /// # Errors
    /// [`TableError`] if the table cannot be read or written.
    pub async fn check_if_due(&self) -> Result<CheckedNow, TableError> {
        let erased = self.eraser.continue_all_erasures(Some(self.deadline())).await;
        let erased_accounts = erased.map_or_else(
            |error| {
                output::print_message(format!("error: the requested erasures could not continue: {error}"));
                0
            },
            |report| report.erased,
        );
        let table = &self.deployment.table;
        let Some(settings) = table.get_settings().await? else { return Ok(CheckedNow::default()) };
        let now = self.deployment.clock.now();
        let audits = table.get_audits(&Paging::all(), now).await?.items;
        // An audit in the future was made with a clock that was ahead. It does not postpone the next one.
        let scheduled = audits.iter().find(|audit| audit.is_scheduled && audit.started_at <= now);
        let latest_audit = scheduled.map_or(settings.created_at(), |audit| audit.started_at);
        let is_interrupted = scheduled.is_some_and(|audit| audit.ended_at.is_none());
        // A large table is audited in several parts, one each day.
        let latest_part = self.latest_part_at.get().filter(|part_at| *part_at <= now);
        let latest = latest_part.or((!is_interrupted).then_some(latest_audit));
        let is_audited = latest.is_none_or(|latest| latest + TIME_BETWEEN_AUDITS <= now);
        if is_audited || self.is_comparison_owed.get() {
            let compared = self.comparison.compare(None, self.deadline()).await;
            self.is_comparison_owed.set(compared.is_err());
            if let Err(error) = compared {
                output::print_message(format!("error: the table could not be compared with the gateway: {error}"));
            }
        }
        if is_audited {
            self.latest_part_at.set(Some(now));
            self.audit.audit_next_part(&settings, self.deadline()).await?;
        }
        Ok(CheckedNow { is_audited, erased_accounts })
    }

    /// Returns the time at which a step that begins now must stop.
    fn deadline(&self) -> DateTime<Utc> {
        self.deployment.clock.now() + CHECK_TIME_LIMIT
    }
}
