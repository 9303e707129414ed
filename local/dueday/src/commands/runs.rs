//! `dueday runs`: whether a day was walked to its end, as its run records prove it.

use billing::Sums;
use chrono::NaiveDate;
use clap::Args;
use days::{DayReader, DayState, ShardProof, Walked};
use serde::Serialize;
use settling::unresolved;
use store::{Batch, RunSums};
use strum::IntoEnumIterator as _;

use super::run::batch;
use super::values::date;
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 7] = [
    Column::whole("batch"),
    Column::number("shard"),
    Column::whole("walked"),
    Column::number("runs"),
    Column::text("paid"),
    Column::text("declined"),
    Column::text("rows"),
];

/// `dueday runs`.
#[derive(Debug, Args)]
#[command(after_help = "\
  complete     runs lead from the shard's start to its end and left nothing behind
  running      it was complete, and another run is walking it
  open         a run has begun and has not ended
  missing      no run has begun
  gap          a run went on from where none had ended
  unfinished   every run ran out of time
  stopped      a run stopped or held back, and none was complete since
  left_behind  the last walk left rows failed, in doubt or under a lease
  rejected     the gateway refused a charge
  expired      records of that day have expired

A complete shard is so no longer when a later run of the day stops, leaves rows or is cut off, until a run of that day or \
of a later one has walked the shard to its end. A day has the shards that there were when its first run began.

What was paid and declined is told by runs that have ended: what a killed run charged is in the receipts.

Exits with 1 if a shard is neither complete, running nor expired, if its counts do not add up, or if a successful payment has no \
receipt (`dueday findings`).

Example:
  dueday runs --date 2027-01-31 --table dueday")]
pub struct RunsArgs {
    /// The day; today if absent, never a day ahead
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub date: Option<NaiveDate>,
    /// One of the batches; both if absent
    #[arg(value_parser = batch())]
    pub batch: Option<Batch>,
}

#[derive(Serialize)]
struct ProvedDay {
    date: NaiveDate,
    complete: bool,
    state: DayState,
    /// Successful payments without a receipt: no day is done while a person has not resolved them.
    open_findings: usize,
    shards: Vec<ShardProof>,
}

pub async fn runs(context: &Context, args: &RunsArgs) -> Result<Exit, Failure> {
    let today = context.today();
    let date = args.date.unwrap_or(today);
    if date > today {
        return Err(Failure::Refused(format!(
            "{date} lies in the future: today is {today}, and runs are recorded as they begin"
        )));
    }
    let opened = Opened::open(context, Folder::Existing).await?;
    let mut shards = Vec::new();
    for batch in Batch::ALL.into_iter().filter(|batch| args.batch.is_none_or(|only| only == *batch)) {
        let (table, zone, now) = (&opened.table, context.config.billing.zone, context.clock.now());
        let mut reader = DayReader::new(table, batch, opened.settings.shards, zone, now);
        shards.extend(reader.read(date).await?.prove());
    }
    let state = DayState::of(&shards);
    let has_payments = args.batch.is_none_or(|only| only == Batch::Payments);
    let open = if has_payments { opened.table.get_open_findings().await? } else { Vec::new() };
    let complete = state.is_done() && open.is_empty();
    let day = ProvedDay { date, complete, state, open_findings: open.len(), shards };
    let unresolved = unresolved(&open).map(|unresolved| unresolved + "\n").unwrap_or_default();
    context.print(&day, || text(&day) + &unresolved)?;
    Ok(Exit::of(state != DayState::NotDone && open.is_empty()))
}

fn text(day: &ProvedDay) -> String {
    let rows = day.shards.iter().map(|proof| {
        let walked = match (proof.walked, proof.adds_up) {
            (Walked::Complete | Walked::Running, false) => output::bad("does not add up"),
            (Walked::Complete | Walked::Running, true) => output::good(&proof.walked.to_string()),
            (Walked::Expired, _) => proof.walked.to_string(),
            (walked, _) => output::bad(&walked.to_string()),
        };
        let mut rows = proof.counts.to_string();
        if let Some(stopped) = &proof.stopped {
            rows += &format!("; stopped: {stopped}");
        }
        let (paid, declined) = (proof.sums.paid.to_string(), proof.sums.declined.to_string());
        vec![proof.batch.to_string(), proof.shard.to_string(), walked, proof.runs.to_string(), paid, declined, rows]
    });
    let ProvedDay { date, state, shards, .. } = day;
    let verdict = match (state, not_proved(shards)) {
        (DayState::NotDone, Some(not_proved)) => {
            format!("{date} was NOT done: of {} shards, {not_proved}", shards.len())
        }
        (DayState::NotDone, None) => format!("{date} was NOT done"),
        (DayState::Expired, _) => format!("{date} cannot be judged any more: records of it have expired"),
        (DayState::Running, _) => format!("{date} was done in every shard, and a run is running"),
        (DayState::Done, _) => format!("{date} was done in every shard"),
    };
    let mut sums = RunSums::default();
    day.shards.iter().for_each(|proof| sums.add(&proof.sums));
    let came_to =
        |what: &str, sums: &Sums| if sums.iter().next().is_some() { format!("{what} {sums}\n") } else { String::new() };
    let money = came_to("paid", &sums.paid) + &came_to("declined", &sums.declined);
    format!("{}{money}{verdict}\n", table(&COLUMNS, rows))
}

/// How many shards are not proved, by what their records show: `2 missing, 1 open`.
fn not_proved(shards: &[ShardProof]) -> Option<String> {
    let left = Walked::iter().map(|walked| {
        let count = shards.iter().filter(|proof| proof.walked == walked && !proof.holds()).count();
        let word = match walked {
            Walked::Complete | Walked::Running => "with counts that do not add up".to_owned(),
            Walked::LeftBehind => "with rows left behind".to_owned(),
            walked => walked.to_string(),
        };
        (count > 0).then(|| format!("{count} {word}"))
    });
    let left: Vec<String> = left.flatten().collect();
    (!left.is_empty()).then(|| left.join(", "))
}
