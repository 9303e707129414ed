//! `dueday runs`: whether a day was walked to its end, as its run records prove it.

use chrono::NaiveDate;
use clap::Args;
use serde::Serialize;
use shared::audit::{ShardProof, Walked, prove};
use shared::billing::Sums;
use shared::table::{Batch, Paging, RunSums};
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
  open         a run has begun and has not ended
  missing      no run has begun
  gap          a run went on from where none had ended
  unfinished   every run ran out of time
  stopped      a run stopped or held back, and none was complete since
  left_behind  the last walk left rows that failed or are in doubt
  rejected     the gateway refused a charge

What was paid and declined is told by runs that have ended: what a killed run charged is in the receipts.

Exits with 1 unless every shard is complete and its counts add up.

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
        let records = opened.table.get_runs_by_date(batch, date, &Paging::all()).await?.items;
        shards.extend(prove(batch, opened.settings.shards, &records));
    }
    let day = ProvedDay { date, complete: shards.iter().all(ShardProof::holds), shards };
    context.print(&day, || text(&day))?;
    Ok(Exit::of(day.complete))
}

fn text(day: &ProvedDay) -> String {
    let rows = day.shards.iter().map(|proof| {
        let walked = match (proof.walked, proof.adds_up) {
            (Walked::Complete, false) => output::bad("does not add up"),
            (Walked::Complete, true) => output::good(&proof.walked.to_string()),
            (walked, _) => output::bad(&walked.to_string()),
        };
        let mut rows = proof.counts.to_string();
        if let Some(stopped) = &proof.stopped {
            rows += &format!("; stopped: {stopped}");
        }
        let (paid, declined) = (proof.sums.paid.to_string(), proof.sums.declined.to_string());
        vec![proof.batch.to_string(), proof.shard.to_string(), walked, proof.runs.to_string(), paid, declined, rows]
    });
    let verdict = match in_doubt(&day.shards) {
        None => format!("{} was done in every shard", day.date),
        Some(in_doubt) => {
            format!("{} was NOT done: of {} shards, {in_doubt}", day.date, day.shards.len())
        }
    };
    let mut sums = RunSums::default();
    day.shards.iter().for_each(|proof| sums.add(&proof.sums));
    let came_to =
        |what: &str, sums: &Sums| if sums.iter().next().is_some() { format!("{what} {sums}\n") } else { String::new() };
    let money = came_to("paid", &sums.paid) + &came_to("declined", &sums.declined);
    format!("{}{money}{verdict}\n", table(&COLUMNS, rows))
}

/// How many shards are not proved, by what their records show: `2 missing, 1 open`.
fn in_doubt(shards: &[ShardProof]) -> Option<String> {
    let left = Walked::iter().map(|walked| {
        let count = shards.iter().filter(|proof| proof.walked == walked && !proof.holds()).count();
        let word = match walked {
            Walked::Complete => "with counts that do not add up".to_owned(),
            Walked::LeftBehind => "with rows left behind".to_owned(),
            walked => walked.to_string(),
        };
        (count > 0).then(|| format!("{count} {word}"))
    });
    let left: Vec<String> = left.flatten().collect();
    (!left.is_empty()).then(|| left.join(", "))
}
