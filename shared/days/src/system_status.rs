//! The state of the whole system, for the command and the API: the batches of yesterday and today, the charges of
//! today, the latest checks, and the causes that need a person.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Serialize, Serializer};
use strum::IntoEnumIterator as _;

use super::concern::Concern;
use super::find_concerns::find_concerns;
use super::late_payments::late_payments_since;
use super::proven_day::ProvenDay;
use super::queue_state::QueueState;
use super::run_facts::RunFacts;
use super::system_facts::{CheckSchedule, LatestAudit, LatestComparison, SystemFacts};
use super::{DayReader, DayState};
use billing::{MoneySums, PaymentLimit};
use store::{Batch, Paging, Settings, Table, TableError};

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
    /// The state of the payment batch and of the reminder batch on yesterday (unless the table was created yesterday or
    /// today) and on today.
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
    /// The causes that need a person, each as a sentence without its next step; empty if there are none.
    #[serde(rename = "problems", serialize_with = "serialize_texts")]
    pub concerns: Vec<Concern>,
}

/// The facts that are not in the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessFacts {
    /// The queues of the deployment, or the reason why they could not be read. Empty if the caller cannot read them, because
    /// alarms check them.
    pub queues: Result<Vec<QueueState>, String>,
    pub check_schedule: CheckSchedule,
}

impl ProcessFacts {
    /// The facts of a process that reads no queues, in a deployment with audits and comparisons.
    pub fn without_queues() -> Self {
        Self { queues: Ok(Vec::new()), check_schedule: CheckSchedule::Elsewhere }
    }
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
    pub sums: MoneySums,
    /// Whether a run of today has not recorded its end, so that it may have charged more.
    pub may_be_more: bool,
}

impl SystemStatus {
    /// Reads the state of the system at the time `now` from `table`, whose settings are `settings`. The variables of this
    /// process are compared with the policy of the table, and `process` contains what only this process knows. Sends Query
    /// requests: for each batch and day, for each shard, and for the charges, the findings, the audits and the comparisons.
    pub async fn read(
        table: &Table,
        settings: &Settings,
        process: ProcessFacts,
        now: DateTime<Utc>,
    ) -> Result<Self, TableError> {
        let today = table.policy().date_at(now);
        let facts = read_facts(table, settings, process, today, now).await?;
        let charged = table.get_charge_total(today).await?;
        Ok(Self {
            today,
            charging: settings.charging,
            limits: PaymentLimit::iter()
                .map(|limit| (limit.to_string(), settings.payment_limits.value_text(limit)))
                .collect(),
            days: facts.runs.days.iter().map(BatchDay::from).collect(),
            charged_today: ChargedToday {
                payments: charged.charges(),
                sums: charged.sums().clone(),
                may_be_more: facts.runs.may_have_uncounted_charges(),
            },
            oldest_due_on: oldest_due_on(table, settings.shards, today).await?,
            open_findings: facts.runs.open_findings,
            postponed_payments: facts.runs.postponed_payments,
            // An audit or a comparison in the future was made with a clock that was ahead.
            latest_audit: facts.audits.iter().find(|audit| audit.started_at <= now).cloned(),
            latest_comparison: facts.comparisons.iter().find(|compared| compared.date <= today).cloned(),
            concerns: find_concerns(&facts),
        })
    }
}

/// Reads the facts from which the state of the system and the concerns follow.
async fn read_facts(
    table: &Table,
    settings: &Settings,
    process: ProcessFacts,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> Result<SystemFacts, TableError> {
    let ProcessFacts { queues, check_schedule } = process;
    let created_on = table.policy().date_at(settings.created_at());
    // On the day on which the table was created, the runs may have been over.
    let yesterday = today.pred_opt().filter(|yesterday| *yesterday > created_on);
    let dates: Vec<NaiveDate> = yesterday.into_iter().chain([today]).collect();
    let days = read_days(table, settings, &dates, now).await?;
    let newest = |limit| Paging { limit: Some(limit), ..Paging::all() };
    let audits = table.get_audits(&Paging::all(), now).await?;
    let comparisons = table.get_reconciliations(&newest(COMPARISONS_TO_READ)).await?;
    let erasures = table.get_erasures(&Paging::all()).await?;
    let endpoints = table.get_webhook_endpoints(&Paging::all()).await?;
    let disabled = endpoints.items.into_iter().filter_map(|endpoint| Some((endpoint.id, endpoint.disabled_because?)));
    let texts = |errors: Vec<TableError>| errors.iter().map(ToString::to_string).collect();
    let unreadable_records = [erasures.unreadable, audits.unreadable, comparisons.unreadable].into_iter().flatten();
    Ok(SystemFacts {
        now,
        runs: RunFacts::read(table, settings, days, now).await?,
        created_on,
        charging: settings.charging,
        latest_run_at: settings.latest_run_at,
        copy_noticed_at: settings.copy_noticed_at,
        late_payments_since: late_payments_since(table, settings, today, now).await?,
        disabled_endpoints: disabled.collect(),
        unreadable_endpoints: texts(endpoints.unreadable),
        erasures: erasures.items,
        unreadable_records: texts(unreadable_records.collect()),
        audits: audits.items.into_iter().map(LatestAudit::from).collect(),
        comparisons: comparisons.items.into_iter().map(LatestComparison::from).collect(),
        policy_differences: table.policy_differences().iter().map(ToString::to_string).collect(),
        queues,
        check_schedule,
    })
}

/// Reads the run records of both batches on each of `dates`. Returns a day for each batch and date, the earliest first.
async fn read_days(
    table: &Table,
    settings: &Settings,
    dates: &[NaiveDate],
    now: DateTime<Utc>,
) -> Result<Vec<ProvenDay>, TableError> {
    let mut days = Vec::new();
    for batch in Batch::ALL {
        let mut reader = DayReader::new(table, batch, settings.shards, now);
        for date in dates {
            days.push(ProvenDay::from(reader.read(*date).await?));
        }
    }
    days.sort_by_key(|day| day.date);
    Ok(days)
}

/// Serializes each of `concerns` as its sentence.
fn serialize_texts<S: Serializer>(concerns: &[Concern], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(concerns.iter().map(ToString::to_string))
}

impl From<&ProvenDay> for BatchDay {
    fn from(day: &ProvenDay) -> Self {
        let (complete_shards, shards) = (day.complete_shards(), day.shards.len());
        Self { date: day.date, batch: day.batch, state: day.state(), complete_shards, shards }
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
