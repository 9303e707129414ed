//! `GET /runs`: what the batches recorded of a date. For the operator.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, NaiveDate, Utc};
use days::{DayReader, DayState, ShardProof, Walked};
use rest::caller::Operator;
use rest::cursor::ShownCursor;
use rest::parameters::{CivilDate, Limit, Query};
use rest::{Now, Problem};
use serde::{Deserialize, Serialize};
use store::{Batch, Cursor, Lane, Paging, RunCounts, RunRecord, RunSums, Table};
use utoipa::{IntoParams, ToSchema};

use super::forecast::SumView;
use crate::Api;

/// Which runs are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunsQuery {
    /// The date of the runs; today in the billing time zone if absent.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    date: Option<CivilDate>,
    /// Only this batch's; both batches' if absent.
    #[serde(default)]
    #[param(inline, value_type = Batch, required = false)]
    batch: Option<Batch>,
    /// The `next_cursor` of an earlier page; absent for the first.
    #[serde(default)]
    #[param(inline)]
    cursor: ShownCursor,
    /// At most this many items.
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
}

/// What the runs of a date prove, and a page of their records.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunList)]
pub struct RunListView {
    /// The date that was asked about.
    date: NaiveDate,
    /// What the runs prove of the day, of all batches that were asked for.
    state: DayState,
    /// Whether each shard was walked to its end, whatever page is asked for.
    shards: Vec<ShardWalk>,
    /// The records of the runs, by batch, shard and time.
    data: Vec<RunView>,
    /// What `cursor` takes to go on; null at the list's end.
    next_cursor: Option<String>,
}

/// What the runs of a day prove of one shard.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShardWalk {
    /// The batch.
    batch: Batch,
    /// The shard of the index.
    shard: u32,
    /// How far the shard was walked.
    walked: Walked,
    /// The number of runs.
    runs: u64,
    /// What became of the rows all runs saw.
    counts: RunCounts,
    /// What the attempts that they settled come to.
    sums: RunSumsView,
    /// Whether every run accounts for all it saw.
    adds_up: bool,
    /// Why the last run that stopped did so.
    stopped: Option<String>,
}

impl From<ShardProof> for ShardWalk {
    fn from(proof: ShardProof) -> Self {
        let ShardProof { batch, shard, walked, runs, counts, sums, adds_up, stopped } = proof;
        Self { batch, shard, walked, runs, counts, sums: RunSumsView::of(&sums), adds_up, stopped }
    }
}

/// One invocation's walk over one shard of an index.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub struct RunView {
    /// The batch.
    batch: Batch,
    /// The date that was asked about.
    date: NaiveDate,
    /// The shard of the index.
    shard: u32,
    /// The run's identifier.
    id: String,
    /// When it began.
    started_at: DateTime<Utc>,
    /// Its time limit; null if its record names none.
    deadline: Option<DateTime<Utc>>,
    /// Null while it goes on, and for ever if it was cut off.
    ended_at: Option<DateTime<Utc>>,
    /// The lane of the walk: what is due, or after it the payments that are open.
    lane: Lane,
    /// Whether it began at the lane's start; if not, it went on where an earlier one ended.
    from_start: bool,
    /// Whether it came to the lane's end, whatever became of each row.
    complete: bool,
    /// Why it stopped by itself.
    stopped: Option<String>,
    /// What became of the rows it saw: `due` is the sum of the others; null while it goes on.
    counts: Option<RunCounts>,
    /// What the attempts that it settled come to; null while it goes on.
    sums: Option<RunSumsView>,
}

/// What was paid and what was declined.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunSums)]
pub struct RunSumsView {
    /// Of the payments that were made, by currency.
    paid: Vec<SumView>,
    /// Of the payments that were declined, by currency.
    declined: Vec<SumView>,
}

impl RunSumsView {
    fn of(RunSums { paid, declined }: &RunSums) -> Self {
        Self { paid: SumView::of(paid), declined: SumView::of(declined) }
    }
}

impl RunView {
    fn new(batch: Batch, run: RunRecord) -> Self {
        let (lane, is_complete) = (run.lane(), run.is_complete());
        let (ended_at, stopped, counts, sums) = match run.end {
            Some(end) => (Some(end.ended_at), end.stopped, Some(end.counts), Some(RunSumsView::of(&end.sums))),
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

/// What the batches recorded of a date
///
/// Whether each shard was walked to its end, and the records by batch, shard and time; of both batches unless one is asked
/// for.
#[utoipa::path(
    get,
    path = "/runs",
    operation_id = "list_runs",
    tag = "operation",
    params(RunsQuery),
    responses((status = 200, description = "A page of them", body = RunListView))
)]
pub async fn list(
    State(api): State<Api>,
    now: Now,
    _: Operator,
    Query(RunsQuery { date, batch: only, cursor, limit }): Query<RunsQuery>,
) -> Result<Json<RunListView>, Problem> {
    let date = date.map_or(now.today, NaiveDate::from);
    let (from, mut after) = cursor.read(read)?.unzip();
    let shards = api.shards().await?;
    let mut list =
        RunListView { date, state: DayState::NotDone, shards: Vec::new(), data: Vec::new(), next_cursor: None };
    let is_asked = |batch: &Batch| only.is_none_or(|only| only == *batch);
    let is_ahead = |batch: &Batch| from.is_none_or(|from| *batch == from || from == Batch::Reminders);
    if from.is_some_and(|from| !is_asked(&from)) {
        return Err(Problem::refused("cursor", "is of the other batch"));
    }
    let mut proofs = Vec::new();
    for batch in Batch::ALL.into_iter().filter(is_asked) {
        let mut reader = DayReader::new(&api.table, batch, shards, api.billing.zone, now.at);
        proofs.extend(reader.read(date).await?.prove());
    }
    list.state = DayState::of(&proofs);
    list.shards = proofs.into_iter().map(ShardWalk::from).collect();
    for batch in Batch::ALL.into_iter().filter(is_asked).filter(is_ahead) {
        let left = limit.0.saturating_sub(list.data.len());
        if left == 0 {
            list.next_cursor = Some(ShownCursor::shown(&format!("{batch} {}", Table::cursor_before_runs().as_str())));
            break;
        }
        let limit = Some(left);
        let page = api.table.get_runs_by_date(batch, date, &Paging { after: after.take(), limit }).await?;
        list.data.extend(page.items.into_iter().map(|run| RunView::new(batch, run)));
        if let Some(next) = page.next {
            list.next_cursor = Some(ShownCursor::shown(&format!("{batch} {}", next.as_str())));
            break;
        }
    }
    Ok(Json(list))
}

/// Reads a cursor: the batch, and the place among its runs.
fn read(text: String) -> Option<(Batch, Cursor)> {
    let (batch, place) = text.split_once(' ')?;
    Some((batch.parse().ok()?, Table::cursor_of_runs(place.to_owned())?))
}
