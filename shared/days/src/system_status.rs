//! The state of the whole system, for the command and the API: the batches of yesterday and today, the charges of
//! today, the latest checks, and the problems that a person must look at.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde::Serialize;
use strum::IntoEnumIterator as _;
use ulid::Ulid;

use super::postponed_payments::{count_postponed_payments, describe_postponed_payments};
use super::{DayReader, DayState};
use billing::{AuditRecord, ChargeTotal, DayReconciliation, PaymentLimit, Sums};
use store::{Batch, Paging, Settings, Table, TableError};

/// The maximum number of days from the latest day that was compared with the gateway to today. If more days have
/// passed, this is a problem. A day is compared on the following day, and the comparison may take until the end of the
/// following day. One more day is allowed, because compared days are days in UTC, and today is a date in the billing
/// time zone.
const MAX_DAYS_WITHOUT_COMPARISON: Days = Days::new(3);

/// How many of the newest audits are read to find the latest audit that has ended.
const AUDITS_TO_READ: usize = 20;

/// How many of the latest compared days are read. The differences that were found on these days are reported as
/// problems. A difference stays a problem until it was corrected or a person has accepted it, and the day was compared
/// again.
const COMPARISONS_TO_READ: usize = 100;

/// The state of the whole system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SystemStatus {
    /// The current date in the billing time zone.
    pub today: NaiveDate,
    /// True if charging is switched on.
    pub charging: bool,
    /// The limits of the payment batch, by name.
    pub limits: BTreeMap<String, String>,
    /// The state of the payment batch and of the reminder batch on yesterday (unless the table was created today) and
    /// on today.
    pub days: Vec<BatchDay>,
    /// The charges of today.
    pub charged_today: ChargedToday,
    /// The payment date of the oldest payment that is due and not settled; `None` if no payment is due.
    pub oldest_due_on: Option<NaiveDate>,
    /// The number of payments without a receipt, which a person must resolve.
    pub open_findings: usize,
    /// The number of due payments that no run finds, because a clock that was ahead has planned them for an impossibly
    /// late date.
    pub postponed_payments: u64,
    /// The latest audit; `None` if there was no audit in the last 90 days.
    pub latest_audit: Option<LatestAudit>,
    /// The latest day that was compared with the gateway; `None` if no day was compared.
    pub latest_comparison: Option<LatestComparison>,
    /// The problems that a person must look at; empty if there are none.
    pub problems: Vec<String>,
}

/// The state of one batch on one day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BatchDay {
    pub date: NaiveDate,
    pub batch: Batch,
    pub state: DayState,
    /// The number of complete shards: their run records prove that all due rows of the shard were processed. The day is
    /// complete if all shards are complete.
    pub complete_shards: usize,
    /// The number of all shards.
    pub shards: usize,
}

/// The charges of today: their number, and their total amount in each currency.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ChargedToday {
    pub payments: u64,
    pub sums: Sums,
}

/// The latest audit of the table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LatestAudit {
    pub id: Ulid,
    pub started_at: DateTime<Utc>,
    /// When the audit ended; `None` if it is running or was interrupted.
    pub ended_at: Option<DateTime<Utc>>,
    pub violations: u64,
}

/// The latest day that was compared with the gateway.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LatestComparison {
    /// The compared day in UTC.
    pub date: NaiveDate,
    /// When the comparison was complete; `None` if it is running or was interrupted.
    pub ended_at: Option<DateTime<Utc>>,
    pub differences: u64,
}

impl SystemStatus {
    /// Reads the state of the system at the time `now` from `table`, whose settings are `settings`. The variables of this
    /// process are compared with the policy of the table. Sends Query requests: for each batch and day, for each shard,
    /// and for the charges, the findings, the audits and the comparisons.
    pub async fn read(table: &Table, settings: &Settings, now: DateTime<Utc>) -> Result<Self, TableError> {
        let policy = table.policy();
        let (today, created_on) = (policy.date_at(now), policy.date_at(settings.created_at()));
        let yesterday = today.pred_opt().filter(|yesterday| *yesterday >= created_on);
        let mut days = Vec::new();
        for batch in Batch::ALL {
            let mut reader = DayReader::new(table, batch, settings.shards, now);
            for date in yesterday.into_iter().chain([today]) {
                days.push(BatchDay::read(&mut reader, batch, date).await?);
            }
        }
        days.sort_by_key(|day| day.date);
        let charged = table.get_charge_total(today).await?;
        let open_findings = table.get_open_findings().await?.len();
        let newest = |limit| Paging { limit: Some(limit), ..Paging::all() };
        let audits = table.get_audits(&newest(AUDITS_TO_READ), now).await?.into_items()?;
        let audits: Vec<LatestAudit> = audits.into_iter().map(LatestAudit::from).collect();
        let comparisons = table.get_reconciliations(&newest(COMPARISONS_TO_READ)).await?.into_items()?;
        let comparisons: Vec<LatestComparison> = comparisons.into_iter().map(LatestComparison::from).collect();
        let mut status = Self {
            today,
            charging: settings.charging,
            limits: PaymentLimit::iter()
                .map(|limit| (limit.to_string(), settings.payment_limits.text_of(limit)))
                .collect(),
            days,
            charged_today: charged.into(),
            oldest_due_on: oldest_due_on(table, settings.shards, today).await?,
            open_findings,
            postponed_payments: count_postponed_payments(table, settings.shards, today).await?,
            latest_audit: audits.first().cloned(),
            latest_comparison: comparisons.first().cloned(),
            problems: Vec::new(),
        };
        status.problems = status.find_problems(&audits, &comparisons);
        status.problems.extend(table.policy_differences().iter().map(ToString::to_string));
        Ok(status)
    }

    /// Returns the problems that a person must look at. `audits` are the latest audits and `comparisons` the latest
    /// comparisons with the gateway, the newest first.
    fn find_problems(&self, audits: &[LatestAudit], comparisons: &[LatestComparison]) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.charging {
            problems.push("charging is switched off, so runs charge nothing".to_owned());
        }
        let earlier = self.days.iter().filter(|day| day.date < self.today && day.state == DayState::NotDone);
        problems.extend(earlier.map(|day| {
            let BatchDay { date, batch, complete_shards, shards, .. } = day;
            format!("the {batch} of {date} are not done: {complete_shards} of {shards} shards are complete")
        }));
        if let Some(date) = self.oldest_due_on.filter(|date| *date < self.today) {
            problems.push(format!("payments are due and not settled; the oldest has been due since {date}"));
        }
        if self.open_findings > 0 {
            problems.push(format!("payments without a receipt: {}", self.open_findings));
        }
        if self.postponed_payments > 0 {
            problems.push(describe_postponed_payments(self.postponed_payments));
        }
        // Report the violations of the newest audit and of the newest ended audit. An audit on AWS takes many nights,
        // so a running audit has not checked all accounts yet.
        let ended = audits.iter().position(|audit| audit.ended_at.is_some()).unwrap_or_default();
        let counted = audits.iter().enumerate().filter(|(n, audit)| (*n == 0 || *n == ended) && audit.violations > 0);
        problems.extend(
            counted.map(|(_, audit)| format!("violations that the audit {} found: {}", audit.id, audit.violations)),
        );
        let different = comparisons.iter().filter(|day| day.differences > 0);
        problems.extend(different.map(|LatestComparison { date, differences, .. }| {
            format!("differences between the table and the gateway on {date}: {differences}")
        }));
        if let Some(date) = self.latest_comparison.as_ref().map(|compared| compared.date)
            && date + MAX_DAYS_WITHOUT_COMPARISON < self.today
        {
            problems.push(format!("no day after {date} was compared with the gateway"));
        }
        problems
    }
}

impl BatchDay {
    /// Reads the state of `batch` on the day `date`.
    async fn read(reader: &mut DayReader<'_>, batch: Batch, date: NaiveDate) -> Result<Self, TableError> {
        let proofs = reader.read(date).await?.prove();
        let complete_shards = proofs.iter().filter(|proof| proof.is_complete()).count();
        Ok(Self { date, batch, state: DayState::from_proofs(&proofs), complete_shards, shards: proofs.len() })
    }
}

impl From<AuditRecord> for LatestAudit {
    fn from(audit: AuditRecord) -> Self {
        let violations = audit.violation_count();
        Self { id: audit.id, started_at: audit.started_at, ended_at: audit.ended_at, violations }
    }
}

impl From<DayReconciliation> for LatestComparison {
    fn from(day: DayReconciliation) -> Self {
        Self { date: day.on, ended_at: day.ended_at, differences: day.difference_count() }
    }
}

impl From<ChargeTotal> for ChargedToday {
    fn from(total: ChargeTotal) -> Self {
        Self { payments: total.charges(), sums: total.sums().clone() }
    }
}

/// Returns the payment date of the oldest row in the payment index that is due on or before `today`; `None` if no row
/// is due.
async fn oldest_due_on(table: &Table, shards: u32, today: NaiveDate) -> Result<Option<NaiveDate>, TableError> {
    let mut oldest = None;
    for shard in 0..shards {
        let mut after = None;
        loop {
            let page = table.get_due_payments_by_date(shard, today, after.as_ref(), 1).await?;
            if let Some(row) = page.rows.first() {
                // An index entry with an unreadable date also counts as due, because the index returned the entry.
                let date = row.position.on.parse().unwrap_or(today);
                oldest = Some(oldest.map_or(date, |oldest: NaiveDate| oldest.min(date)));
                break;
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(oldest)
}
