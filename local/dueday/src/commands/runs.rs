//! `dueday runs`: whether a day was walked to its end, as its run records prove it.

use std::process::ExitCode;
use std::sync::Arc;

use chrono::NaiveDate;
use serde::Serialize;
use shared::audit::{ShardProof, Walked, prove};
use shared::clock::{Clock, SystemClock};
use shared::table::{Batch, Paging};

use crate::Failure;
use crate::arguments::{Runs, Settings};
use crate::machine::data::Opened;
use crate::terminal::output::{self, Column};

const COLUMNS: [Column; 5] = [
    Column::whole("batch"),
    Column::number("shard"),
    Column::whole("walked"),
    Column::number("runs"),
    Column::text("rows"),
];

#[derive(Serialize)]
struct Day {
    date: NaiveDate,
    complete: bool,
    shards: Vec<ShardProof>,
}

pub async fn runs(settings: &Settings, command: &Runs) -> Result<ExitCode, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let opened = Opened::open(settings, clock.clone()).await?;
    let date = command.date.unwrap_or_else(|| clock.now().with_timezone(&opened.config.zone).date_naive());
    let only = command.batch.map(Batch::from);
    let mut shards = Vec::new();
    for batch in Batch::ALL.into_iter().filter(|batch| only.is_none_or(|only| only == *batch)) {
        let records = opened.table.get_runs_by_date(batch, date, &Paging::all()).await?.items;
        shards.extend(prove(batch, opened.settings.shards, &records));
    }
    let day = Day { date, complete: shards.iter().all(ShardProof::holds), shards };
    if settings.json {
        output::json(&day)?;
    } else {
        output::print(&text(&day))?;
    }
    Ok(if day.complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(day: &Day) -> String {
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
        vec![proof.batch.to_string(), proof.shard.to_string(), walked, proof.runs.to_string(), rows]
    });
    let open = day.shards.iter().filter(|proof| !proof.holds()).count();
    let verdict = match open {
        0 => format!("{} was walked to its end in every shard", day.date),
        open => format!("{} was NOT walked to its end: {open} of {} shards are open", day.date, day.shards.len()),
    };
    format!("{}{verdict}\n", output::table(&COLUMNS, rows))
}
