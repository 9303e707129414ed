//! `GET /runs`: the records of the batches' runs for a date. For operators.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, NaiveDate, Utc};
use days::{DayReader, DayState, ShardProof, ShardState};
use rest::cursor::ListCursor;
use rest::openapi::UlidText;
use rest::parameters::{CivilDate, PageSize, Query};
use rest::{OperatorAccess, Problem, RequestTime};
use serde::{Deserialize, Serialize};
use store::{Batch, Cursor, Lane, Paging, RunCounts, RunRecord, RunSums, Table};
use utoipa::{IntoParams, ToSchema};

use super::forecast::SumView;
use crate::Api;

/// The query parameters of the list of runs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunsQuery {
    /// The date of the runs; today in the billing time zone if absent.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    date: Option<CivilDate>,
    /// Only runs of this batch; the runs of both batches if absent.
    #[serde(default)]
    #[param(inline, value_type = Batch, required = false)]
    batch: Option<Batch>,
    /// The `next_cursor` of the previous page; absent for the first page.
    #[serde(default)]
    #[param(inline)]
    cursor: ListCursor,
    /// The page size: the largest number of items of the page.
    #[serde(default)]
    #[param(inline)]
    limit: PageSize,
}

/// The state of a day, and a page of the records of its runs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunList)]
pub struct RunListView {
    /// The requested date.
    date: NaiveDate,
    /// The state of the requested date, according to the runs of the requested batches.
    state: DayState,
    /// The progress of the runs in each shard; the same on every page of the list.
    shards: Vec<ShardRunView>,
    /// The records of the runs, sorted by batch, shard and time.
    data: Vec<RunView>,
    /// The value of the parameter `cursor` for the next page; null on the last page.
    next_cursor: Option<String>,
}

/// The progress of a day's runs in one shard of the index.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ShardWalk)]
pub struct ShardRunView {
    /// The batch.
    batch: Batch,
    /// The number of the shard.
    shard: u32,
    /// The progress of the runs in the shard.
    walked: ShardState,
    /// The number of runs in this shard.
    runs: u64,
    /// The number of rows that the runs have seen, by outcome.
    counts: RunCounts,
    /// The total amounts of the attempts that the runs have settled.
    sums: RunSumsView,
    /// Whether the counts of every run add up: each row that the run has seen has one outcome.
    adds_up: bool,
    /// The reason why the latest run that ended early did so; null if no run ended early.
    stopped: Option<String>,
}

impl From<ShardProof> for ShardRunView {
    fn from(proof: ShardProof) -> Self {
        let ShardProof { batch, shard, walked, runs, counts, sums, adds_up, stopped, .. } = proof;
        Self { batch, shard, walked, runs, counts, sums: RunSumsView::from_sums(&sums), adds_up, stopped }
    }
}

/// The record of a run. A run processes the rows of one shard of an index in one invocation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub struct RunView {
    /// The batch.
    batch: Batch,
    /// The date whose due subscriptions the run processes.
    date: NaiveDate,
    /// The number of the shard.
    shard: u32,
    /// The id of the run.
    #[schema(value_type = UlidText)]
    id: String,
    /// The time at which the run began.
    started_at: DateTime<Utc>,
    /// The time by which the run must end; null if its record contains none.
    deadline: Option<DateTime<Utc>>,
    /// The time at which the run ended; null while it is running, and if its process was terminated.
    ended_at: Option<DateTime<Utc>>,
    /// The part of the shard that the run processes: the due payments or reminders, or the payments whose attempt is still
    /// open.
    lane: Lane,
    /// Whether the run began at the start of the lane. If not, it continued where an earlier run had ended.
    from_start: bool,
    /// Whether the run reached the end of the lane, whatever the outcome of each row.
    complete: bool,
    /// Why the run ended early; null if it did not.
    stopped: Option<String>,
    /// The number of rows that the run has seen, by outcome. `due` is the sum of the other numbers. Null while the run
    /// is running.
    counts: Option<RunCounts>,
    /// The total amounts of the attempts that the run has settled; null while the run is running.
    sums: Option<RunSumsView>,
}

/// The total amounts of paid and of declined attempts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunSums)]
pub struct RunSumsView {
    /// The total amount of the paid attempts in each currency.
    paid: Vec<SumView>,
    /// The total amount of the declined attempts in each currency.
    declined: Vec<SumView>,
}

impl RunSumsView {
    fn from_sums(RunSums { paid, declined }: &RunSums) -> Self {
        Self { paid: SumView::from_sums(paid), declined: SumView::from_sums(declined) }
    }
}

impl RunView {
    fn new(batch: Batch, run: RunRecord) -> Self {
        let (lane, is_complete) = (run.lane(), run.is_complete());
        let (ended_at, stopped, counts, sums) = match run.end {
            Some(end) => (Some(end.ended_at), end.stopped, Some(end.counts), Some(RunSumsView::from_sums(&end.sums))),
            None => (None, None, None, None),
        };
        Self {
            batch,
            date: run.on,
            shard: run.shard,
            id: run.id.to_string(),
            started_at: run.started_at,
            deadline: run.deadline,
            ended_at,
            lane,
            from_start: run.from.is_none_or(|from| from.is_start_of_lane()),
            complete: is_complete,
            stopped,
            counts,
            sums,
        }
    }
}

/// List the runs of a day
///
/// Returns the state of the day, the progress in each shard, and the records of the runs, sorted by batch, shard and
/// time.
#[utoipa::path(
    get,
    path = "/runs",
    operation_id = "list_runs",
    tag = "operation",
    params(RunsQuery),
    responses((status = 200, description = "A page of the runs", body = RunListView))
)]
pub async fn list_batch_runs(
    State(api): State<Api>,
    now: RequestTime,
    _: OperatorAccess,
    Query(RunsQuery { date, batch: only, cursor, limit }): Query<RunsQuery>,
) -> Result<Json<RunListView>, Problem> {
    let date = date.map_or(now.today, NaiveDate::from);
    let (from, mut after) = cursor.decode(parse_run_list_cursor)?.unzip();
    let shards = api.read_shard_count().await?;
    let mut list =
        RunListView { date, state: DayState::NotDone, shards: Vec::new(), data: Vec::new(), next_cursor: None };
    let is_requested = |batch: &Batch| only.is_none_or(|only| only == *batch);
    let is_not_listed_yet = |batch: &Batch| from.is_none_or(|from| *batch == from || from == Batch::Reminders);
    if from.is_some_and(|from| !is_requested(&from)) {
        return Err(Problem::refused_field("cursor", "belongs to the other batch"));
    }
    let mut proofs = Vec::new();
    for batch in Batch::ALL.into_iter().filter(is_requested) {
        let mut reader = DayReader::new(&api.table, batch, shards, now.at);
        proofs.extend(reader.read(date).await?.prove_shards());
    }
    list.state = DayState::from_proofs(&proofs);
    list.shards = proofs.into_iter().map(ShardRunView::from).collect();
    for batch in Batch::ALL.into_iter().filter(is_requested).filter(is_not_listed_yet) {
        let left = limit.0.saturating_sub(list.data.len());
        if left == 0 {
            list.next_cursor = Some(ListCursor::encode(&format!("{batch} {}", Table::cursor_before_runs().as_str())));
            break;
        }
        let limit = Some(left);
        let page = api.table.get_runs_by_date(batch, date, &Paging { after: after.take(), limit }).await?;
        list.data.extend(page.items.into_iter().map(|run| RunView::new(batch, run)));
        if let Some(next) = page.next {
            list.next_cursor = Some(ListCursor::encode(&format!("{batch} {}", next.as_str())));
            break;
        }
    }
    Ok(Json(list))
}

/// Parses the cursor of the list of runs: a batch, and the position in the list of that batch's runs.
fn parse_run_list_cursor(text: String) -> Option<(Batch, Cursor)> {
    let (batch, position) = text.split_once(' ')?;
    Some((batch.parse().ok()?, Table::cursor_of_runs(position.to_owned())?))
}
