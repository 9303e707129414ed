//! The steps of an erasure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing::{AccountId, Erasure, ErasureObstacle, ErasureStep};
use chrono::{DateTime, Utc};
use clock::Clock;
use orders_table::OrdersTable;
use store::{Items, Key, POSITION_SEPARATOR, Paging, Table, TableError, key_of_item, owner_of_removable_item};

use crate::ERASURE_FAILED_MESSAGE;
use crate::request::{describe_obstacles, find_erasure_obstacles};

/// The largest number of accounts whose erasures share one scan of the table.
const MAX_ACCOUNTS_PER_SCAN: usize = 100;
/// The number of Scan requests after which the position of a scan is stored.
const PAGES_PER_UPDATE: u32 = 20;

/// Erases accounts whose erasure was requested.
#[derive(Clone, Debug)]
pub struct Eraser {
    table: Table,
    /// The table of the order desk; `None` if the deployment has no order desk.
    orders: Option<OrdersTable>,
    clock: Arc<dyn Clock>,
}

/// The result of a call of [`Eraser::continue_all_erasures`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ErasingReport {
    /// The number of accounts that were erased.
    pub erased: u64,
    /// The number of erasures that a later call continues, because the deadline of this call was reached.
    pub in_progress: u64,
    /// The accounts whose erasure waits, each with the reason, such as an order that is not shipped yet.
    pub waiting: BTreeMap<AccountId, String>,
    /// The accounts in `waiting` whose erasure was requested [`Erasure::MAX_WAIT`] ago or earlier.
    pub overdue: BTreeSet<AccountId>,
    /// The number of erasures that failed. A later call tries again.
    pub failed: u64,
}

/// Whether a step of an erasure has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StepResult {
    Ended,
    /// The step waits, or the deadline was reached. A later call continues the step.
    Paused,
}

impl Eraser {
    /// Creates the eraser of `table`. `orders` is the table of the order desk; `None` if there is none.
    pub fn new(table: Table, orders: Option<OrdersTable>, clock: Arc<dyn Clock>) -> Self {
        Self { table, orders, clock }
    }

    /// Continues all requested erasures until `deadline`. If `deadline` is `None`, continues until each erasure has
    /// ended or must wait, for example for an order that is not shipped yet. An error in one erasure is logged, and
    /// does not stop the other erasures.
    ///
    /// # Errors
    /// [`TableError`] if the list of erasures cannot be read, or the scan of the table fails.
    pub async fn continue_all_erasures(&self, deadline: Option<DateTime<Utc>>) -> Result<ErasingReport, TableError> {
        self.table.refresh_policy(self.clock.now()).await?;
        let page = self.table.get_erasures(&Paging::all()).await?;
        let mut report = ErasingReport::default();
        for error in page.unreadable {
            report.failed = report.failed.saturating_add(1);
            tracing::error!(%error, error_type = "Table", "{ERASURE_FAILED_MESSAGE}");
        }
        // The futures of the steps are boxed, so that the futures of the callers stay small.
        Box::pin(self.continue_erasures(page.items, deadline, &mut report)).await?;
        Ok(report)
    }

    /// Continues the erasure of `account` until the erasure ends or waits. Returns the reason why the erasure waits;
    /// `None` if it has ended.
    ///
    /// # Errors
    /// [`TableError`] if a request fails. A later call continues the erasure.
    pub async fn erase_account(&self, account: &AccountId) -> Result<Option<String>, TableError> {
        let Some(erasure) = self.table.get_erasure(account).await? else { return Ok(None) };
        let prepared = self.erase_in_order_desk(erasure).await?;
        let mut scanned = self.scan_for_erasures(vec![prepared], None).await?;
        let Some(scanned) = scanned.pop() else { return Ok(None) };
        Ok(self.erase_own_partition(scanned, None).await?.and_then(|erasure| erasure.waits_for))
    }

    /// Continues `erasures` until `deadline`, and adds the results to `report`.
    async fn continue_erasures(
        &self,
        erasures: Vec<Erasure>,
        deadline: Option<DateTime<Utc>>,
        report: &mut ErasingReport,
    ) -> Result<(), TableError> {
        // Group the erasures by the position of their scan: the erasures with the same position share a scan.
        let mut by_position: BTreeMap<Option<String>, Vec<Erasure>> = BTreeMap::new();
        for erasure in erasures {
            let account = erasure.account.clone();
            match Box::pin(self.erase_in_order_desk(erasure)).await {
                Ok(erasure) => by_position.entry(position_of_scan(&erasure)).or_default().push(erasure),
                Err(error) => report.add_failure(&account, &error),
            }
        }
        for group in by_position
            .into_values()
            .flat_map(|group| group.chunks(MAX_ACCOUNTS_PER_SCAN).map(<[Erasure]>::to_vec).collect::<Vec<_>>())
        {
            for erasure in Box::pin(self.scan_for_erasures(group, deadline)).await? {
                let account = erasure.account.clone();
                match Box::pin(self.erase_own_partition(erasure, deadline)).await {
                    Ok(None) => report.erased = report.erased.saturating_add(1),
                    Ok(Some(erasure)) => report.add_unfinished(erasure, self.clock.now()),
                    Err(error) => report.add_failure(&account, &error),
                }
            }
        }
        Ok(())
    }

    /// Carries out the first step: removes the shipping addresses of the account from the order desk, and the personal data
    /// from its entries of the action log. If an order must still be shipped, the step waits.
    async fn erase_in_order_desk(&self, stored: Erasure) -> Result<Erasure, TableError> {
        if stored.step != ErasureStep::OrderDesk {
            return Ok(stored);
        }
        let mut next = stored.clone();
        if let Some(orders) = &self.orders {
            let mut to_ship = orders.count_orders_to_ship(&stored.account).await?;
            while to_ship == 0 {
                let removed = orders.remove_addresses(&stored.account).await?;
                (0..removed).for_each(|_| next.counts.count_pseudonymised());
                // The count reads an index, which can miss an order whose status is changing, so count the orders again
                // before the step ends.
                to_ship = orders.count_orders_to_ship(&stored.account).await?;
                if removed == 0 {
                    break;
                }
            }
            if to_ship > 0 {
                next.waits_for = Some(ErasureObstacle::OpenOrders(to_ship).to_string());
                return self.table.update_erasure(&stored, next).await;
            }
        }
        let mut actions = self.table.order_actions_of_account(&stored.account);
        while let Some(page) = actions.read_page().await? {
            for action in page {
                if self.table.pseudonymise_item(&action).await? {
                    next.counts.count_pseudonymised();
                }
            }
        }
        next.end_step();
        self.table.update_erasure(&stored, next).await
    }

    /// Scans the table once. Removes all items that belong to the accounts in `group` and are outside of the accounts'
    /// own partitions. The scans of all erasures in `group` must continue at the same position. Returns the erasures as
    /// they are stored after the scan.
    async fn scan_for_erasures(
        &self,
        group: Vec<Erasure>,
        deadline: Option<DateTime<Utc>>,
    ) -> Result<Vec<Erasure>, TableError> {
        let (mut scanned, others): (Vec<Erasure>, Vec<Erasure>) =
            group.into_iter().partition(|erasure| erasure.step == ErasureStep::OtherPartitions);
        let Some(first) = scanned.first() else { return Ok(others) };
        let after = first.position.as_deref().and_then(|text| Key::from_position(text, POSITION_SEPARATOR));
        let mut items = self.table.items_of_other_partitions(after);
        let mut progress = scanned.clone();
        for page_number in 1_u32.. {
            let Some(page) = items.read_page().await? else { break };
            for item in page {
                let owner = owner_of_removable_item(&item);
                let Some(owner) = progress.iter_mut().find(|e| Some(e.account.as_str()) == owner.as_deref()) else {
                    continue;
                };
                self.table.delete_item(key_of_item(&item)).await?;
                owner.counts.count_removed();
            }
            let is_over = self.is_past_deadline(deadline);
            let position = items.last_evaluated_key().map(|key| key_of_item(key).to_position(POSITION_SEPARATOR));
            if position.is_some() && (is_over || page_number.is_multiple_of(PAGES_PER_UPDATE)) {
                progress.iter_mut().for_each(|erasure| erasure.position.clone_from(&position));
                scanned = self.update_erasures(&scanned, progress).await?;
                progress = scanned.clone();
                if is_over {
                    return Ok(scanned.into_iter().chain(others).collect());
                }
            }
        }
        progress.iter_mut().for_each(Erasure::end_step);
        Ok(self.update_erasures(&scanned, progress).await?.into_iter().chain(others).collect())
    }

    /// Replaces each erasure in `stored` with the erasure at the same position in `next`. Returns the erasures as
    /// stored.
    async fn update_erasures(&self, stored: &[Erasure], next: Vec<Erasure>) -> Result<Vec<Erasure>, TableError> {
        let mut written = Vec::new();
        for (stored, next) in stored.iter().zip(next) {
            written.push(self.table.update_erasure(stored, next).await?);
        }
        Ok(written)
    }

    /// Carries out the last steps, in the partition of the account. Returns the stored erasure if it has not ended;
    /// `None` if the account is erased.
    async fn erase_own_partition(
        &self,
        mut stored: Erasure,
        deadline: Option<DateTime<Utc>>,
    ) -> Result<Option<Erasure>, TableError> {
        loop {
            let mut next = stored.clone();
            let end = match stored.step {
                ErasureStep::OrderDesk | ErasureStep::OtherPartitions => return Ok(Some(stored)),
                ErasureStep::Subscriptions => self.remove_subscriptions(&mut next, deadline).await?,
                ErasureStep::Records => {
                    let items = self.table.items_of_account(&next.account, "", next.position.clone());
                    self.erase_items(items, &mut next, deadline, false).await?
                }
                ErasureStep::Account => {
                    self.table.finish_erasure(&stored, self.clock.now()).await?;
                    return Ok(None);
                }
            };
            if end == StepResult::Ended {
                next.end_step();
            }
            stored = self.table.update_erasure(&stored, next).await?;
            if end == StepResult::Paused {
                return Ok(Some(stored));
            }
        }
    }

    /// Removes the subscriptions of the account. Before it removes the first subscription, checks again that no payment
    /// is owed and no refund or dispute is in progress: the gateway may have reported a dispute since the erasure was
    /// requested.
    async fn remove_subscriptions(
        &self,
        erasure: &mut Erasure,
        deadline: Option<DateTime<Utc>>,
    ) -> Result<StepResult, TableError> {
        if erasure.position.is_none() {
            let found =
                describe_obstacles(&find_erasure_obstacles(&self.table, &erasure.account, self.clock.now()).await?);
            erasure.waits_for = Some(found).filter(|found| !found.is_empty());
            if erasure.waits_for.is_some() {
                return Ok(StepResult::Paused);
            }
        }
        let items = self.table.subscription_items(&erasure.account, erasure.position.clone());
        self.erase_items(items, erasure, deadline, true).await
    }

    /// Removes each of `items` if `is_removed` is true; otherwise removes only the personal data in each of them. Sets
    /// the position of `erasure` after each list page.
    async fn erase_items(
        &self,
        mut items: Items,
        erasure: &mut Erasure,
        deadline: Option<DateTime<Utc>>,
        is_removed: bool,
    ) -> Result<StepResult, TableError> {
        while let Some(page) = items.read_page().await? {
            for item in page {
                if is_removed {
                    self.table.delete_item(key_of_item(&item)).await?;
                    erasure.counts.count_removed();
                } else if self.table.pseudonymise_item(&item).await? {
                    erasure.counts.count_pseudonymised();
                }
            }
            let Some(last) = items.last_evaluated_key() else { break };
            erasure.position = Some(key_of_item(last).sk);
            if self.is_past_deadline(deadline) {
                return Ok(StepResult::Paused);
            }
        }
        Ok(StepResult::Ended)
    }

    /// Returns whether `deadline` has passed; false if there is no deadline.
    fn is_past_deadline(&self, deadline: Option<DateTime<Utc>>) -> bool {
        deadline.is_some_and(|deadline| self.clock.now() >= deadline)
    }
}

/// Returns the position of the scan of `erasure`; `None` if the scan has not begun or has ended.
fn position_of_scan(erasure: &Erasure) -> Option<String> {
    erasure.position.clone().filter(|_| erasure.step == ErasureStep::OtherPartitions)
}

impl ErasingReport {
    /// Logs that the erasure of `account` failed because of `error`, and counts the failure.
    fn add_failure(&mut self, account: &AccountId, error: &TableError) {
        self.failed = self.failed.saturating_add(1);
        tracing::error!(%account, %error, error_type = "Table", "{ERASURE_FAILED_MESSAGE}");
    }

    /// Adds `erasure`, which waits or is in progress.
    fn add_unfinished(&mut self, erasure: Erasure, now: DateTime<Utc>) {
        if erasure.is_overdue(now) {
            self.overdue.insert(erasure.account.clone());
        }
        match erasure.waits_for {
            Some(waits_for) => {
                self.waiting.insert(erasure.account, waits_for);
            }
            None => self.in_progress = self.in_progress.saturating_add(1),
        }
    }
}
