//! `dueday runs`: shows for each shard whether the run records prove that the runs of a day are complete.

use billing::MoneySums;
use chrono::NaiveDate;
use clap::Args;
use days::{Concern, DayReader, DayState, ProvenDay, RunFacts, ShardProof, ShardState, find_run_concerns};
use serde::Serialize;
use store::{Batch, RunSums};
use strum::IntoEnumIterator as _;

use crate::commands::every_day::reconcile::ReconciledDay;
use crate::commands::every_day::run::batch_parser;
use crate::commands::value_parsers::parse_date;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::output;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of shards.
const COLUMNS: [TableColumn; 7] = [
    TableColumn::unwrapped("batch"),
    TableColumn::number("shard"),
    TableColumn::unwrapped("state"),
    TableColumn::number("runs"),
    TableColumn::text("paid"),
    TableColumn::text("declined"),
    TableColumn::text("rows"),
];

/// The arguments of `dueday runs`.
#[derive(Debug, Args)]
#[command(after_help = "\
The states of a shard:
  complete     the runs processed all rows of the shard and left none unfinished
  running      the shard was complete, and another run is processing it again
  open         a run has started and has not ended
  missing      no run has started
  gap          a run started at a position that no earlier run had reached
  unfinished   every run reached its time limit before the end of the shard
  stopped      a run stopped or did not charge, and no later run was complete
  left_behind  the last runs left failed, in-doubt or leased rows
  rejected     the gateway rejected the charge of a row
  expired      records of that day have expired

A complete shard becomes incomplete if a later run of the day stops, leaves rows unfinished or is killed. It becomes \
complete again when a run of that day or of a later day processes the whole shard. The number of shards of a day is \
the number when its first run started.

The sums of paid and declined amounts only include runs that have ended. The receipts also contain the payments of a \
killed run.

The last line shows the stored comparison of the day with the gateway (`dueday reconcile`), if there is one. Its day \
is the day in UTC.

The command exits with 1 if a shard is not complete, running or expired, if its counts do not add up, if a successful \
payment has no receipt (`dueday findings`), if the gateway rejected the charge of a payment that is not settled yet, if a clock that was ahead has planned due payments for a later date (`dueday \
audit --fix`), or if the comparison with the gateway is not complete or found a difference.

Example:
  dueday runs --date 2027-01-31 --table TABLE")]
pub struct RunsArgs {
    /// The date of the runs; not in the future [default: today]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    pub date: Option<NaiveDate>,
    /// The batch [default: both]
    #[arg(value_parser = batch_parser())]
    pub batch: Option<Batch>,
}

/// The report on one day, as printed with `--json`: whether the day is done, the state of each shard, and the open
/// findings.
#[derive(Serialize)]
struct RunsReport {
    date: NaiveDate,
    complete: bool,
    state: DayState,
    /// The number of open findings: payments at the gateway without a receipt. No day is complete until a person has
    /// resolved all of them.
    open_findings: usize,
    /// The number of due payments that no run finds, because a clock that was ahead has planned them for a later date.
    /// Only counted for today.
    postponed_payments: u64,
    /// What needs a person, except for the states of the shards.
    problems: Vec<String>,
    shards: Vec<ShardProof>,
    /// The stored comparison of the day with the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    reconciliation: Option<ReconciledDay>,
}

/// Runs `dueday runs`.
pub async fn run_runs_command(context: &CommandContext, args: &RunsArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let today = context.today(&open_table.table);
    let date = args.date.unwrap_or(today);
    if date > today {
        return Err(Failure::Refused(format!(
            "--date {date} lies in the future: today is {today}, and runs are recorded when they start"
        )));
    }
    let mut days = Vec::new();
    for batch in Batch::ALL.into_iter().filter(|batch| args.batch.is_none_or(|only| only == *batch)) {
        let (table, now) = (&open_table.table, context.clock.now());
        let mut reader = DayReader::new(table, batch, open_table.settings.shards, now);
        days.push(ProvenDay::from(reader.read(date).await?));
    }
    let shards: Vec<ShardProof> = days.iter().flat_map(|day| day.shards.clone()).collect();
    let created_on = open_table.table.policy().date_at(open_table.settings.created_at());
    if date < created_on && shards.iter().all(|shard| shard.runs == 0) {
        return Err(Failure::Refused(format!("--date {date} is before the table was created, on {created_on}")));
    }
    let state = DayState::from_proofs(&shards);
    let facts = RunFacts::read(&open_table.table, &open_table.settings, days, context.clock.now()).await?;
    let concerns = find_other_concerns(&facts);
    let has_payments = args.batch.is_none_or(|only| only == Batch::Payments);
    let compared = if has_payments { open_table.table.get_reconciliation(date).await? } else { None };
    let reconciliation = compared.map(ReconciledDay::from);
    let RunFacts { open_findings, postponed_payments, .. } = facts;
    let complete = state.is_complete() && concerns.is_empty();
    let problems = concerns.iter().map(Concern::to_string).collect();
    let day = RunsReport { date, complete, state, open_findings, postponed_payments, problems, shards, reconciliation };
    let compared = day.reconciliation.as_ref();
    let result = compared.map(|compared| format!("Comparison with the gateway: {}\n", compared.result_text()));
    context.print(&day, || runs_text(context, &day) + &concerns_text(&concerns) + &result.unwrap_or_default())?;
    let is_compared = compared.is_none_or(|compared| compared.clean);
    Ok(Exit::done_if(state != DayState::NotDone && concerns.is_empty() && is_compared))
}

/// Returns what needs a person according to `facts`, except for the states of the runs, which have their own table.
pub fn find_other_concerns(facts: &RunFacts) -> Vec<Concern> {
    find_run_concerns(facts).into_iter().filter(|concern| !concern.is_state_of_runs()).collect()
}

/// Returns the text of the `concerns` with their next steps.
pub fn concerns_text(concerns: &[Concern]) -> String {
    let text = |concern: &Concern| format!("{}\n  {}\n", output::red_text(&concern.to_string()), concern.next_step());
    concerns.iter().map(text).collect()
}

/// Returns the sentence that states how to complete the runs of a day.
fn advice_to_complete_runs(context: &CommandContext, day: &RunsReport) -> String {
    // Another run of the day does not charge a rejected payment: its next attempt is on a later day.
    let can_be_completed = |proof: &&ShardProof| !proof.is_complete() && proof.walked != ShardState::Rejected;
    let mut batches: Vec<Batch> = day.shards.iter().filter(can_be_completed).map(|proof| proof.batch).collect();
    batches.dedup();
    if batches.is_empty() {
        return "The rejected charges are tried on later days, and this day stays incomplete: see them with `dueday why`."
            .to_owned();
    }
    let commands: Vec<String> =
        batches.iter().map(|batch| context.command_line(&format!("run {batch} --date {}", day.date))).collect();
    match context.options.table() {
        Some(_) => "Start the day again: docs/trouble.md, \"A day is not done\".".to_owned(),
        None => format!("Complete them with `{}`.", commands.join("` and `")),
    }
}

fn runs_text(context: &CommandContext, day: &RunsReport) -> String {
    let rows = day.shards.iter().map(|proof| {
        let walked = match (proof.walked, proof.adds_up) {
            (ShardState::Complete | ShardState::Running, false) => output::red_text("does not add up"),
            (ShardState::Complete | ShardState::Running, true) => output::green_text(&proof.walked.to_string()),
            (ShardState::Expired, _) => proof.walked.to_string(),
            (walked, _) => output::red_text(&walked.to_string()),
        };
        let mut rows = proof.counts.to_string();
        if let Some(stopped) = &proof.stopped {
            rows += &format!("; stopped: {stopped}");
        }
        let (paid, declined) = (proof.sums.paid.to_string(), proof.sums.declined.to_string());
        vec![proof.batch.to_string(), proof.shard.to_string(), walked, proof.runs.to_string(), paid, declined, rows]
    });
    let RunsReport { date, state, shards, .. } = day;
    let verdict = match (state, incomplete_shards_text(shards)) {
        (DayState::NotDone, Some(incomplete_shards)) => {
            let shards = format!("of {} shards, {incomplete_shards}", shards.len());
            format!("The runs of {date} are NOT complete: {shards}\n{}", advice_to_complete_runs(context, day))
        }
        (DayState::NotDone, None) => {
            format!("The runs of {date} are NOT complete\n{}", advice_to_complete_runs(context, day))
        }
        (DayState::Expired, _) => format!("The runs of {date} cannot be checked any more: their records have expired"),
        (DayState::Running, _) => format!(
            "The runs of {date} are complete in every shard, and another run has begun that has not recorded its end"
        ),
        (DayState::Done, _) => format!("The runs of {date} are complete in every shard"),
    };
    let mut sums = RunSums::default();
    day.shards.iter().for_each(|proof| sums.add(&proof.sums));
    let total_line = |what: &str, sums: &MoneySums| {
        if sums.iter().next().is_some() { format!("{what} {sums}\n") } else { String::new() }
    };
    let money = total_line("paid", &sums.paid) + &total_line("declined", &sums.declined);
    format!("{}{money}{verdict}\n", format_table(&COLUMNS, rows))
}

/// Returns the number of incomplete shards in each state, such as `2 missing, 1 open`. `None` if all shards are
/// complete.
fn incomplete_shards_text(shards: &[ShardProof]) -> Option<String> {
    let counts = ShardState::iter().map(|walked| {
        let count = shards.iter().filter(|proof| proof.walked == walked && !proof.is_complete()).count();
        let word = match walked {
            ShardState::Complete | ShardState::Running => "with counts that do not add up".to_owned(),
            ShardState::LeftBehind => "with unfinished rows".to_owned(),
            walked => walked.to_string(),
        };
        (count > 0).then(|| format!("{count} {word}"))
    });
    let counts: Vec<String> = counts.flatten().collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}
