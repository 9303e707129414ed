//! `dueday reconcile`: compares the payments, refunds and disputes of whole days at the gateway with the table.

mod accept;

use std::collections::{BTreeMap, BTreeSet};

use billing::{ActionKind, DayReconciliation, DifferenceKind, GatewayDifference, GatewayList, ReconciledCounts};
use chrono::{DateTime, NaiveDate, Utc};
use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use reconciling::{CorrectionMode, ReconcileError, Reconciler, latest_comparable_day};
use serde::Serialize;

use crate::commands::value_parsers::parse_date;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::{self, format_count};
use crate::terminal::progress::ProgressDisplay;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};
pub use accept::AcceptArgs;

/// The columns of the table of compared days.
const DAY_COLUMNS: [TableColumn; 9] = [
    TableColumn::unwrapped("day (UTC)"),
    TableColumn::number("payments"),
    TableColumn::number("refunds"),
    TableColumn::number("disputes"),
    TableColumn::number("receipts"),
    TableColumn::number("settled"),
    TableColumn::number("applied"),
    TableColumn::number("accepted"),
    TableColumn::text("result"),
];

/// The columns of the table of differences.
const DIFFERENCE_COLUMNS: [TableColumn; 4] = [
    TableColumn::unwrapped("day (UTC)"),
    TableColumn::unwrapped("difference"),
    TableColumn::unwrapped("gateway's id"),
    TableColumn::text("problem"),
];

/// The arguments of `dueday reconcile`.
#[derive(Debug, Args)]
#[command(after_help = "\
Compares all payments, refunds and disputes that the gateway has created on a day in UTC with the table, and the \
receipts, refunds and disputes of that day in the table with the gateway. A payment without a receipt is settled if \
that is safe; otherwise it is a finding (`dueday findings`). `settled` is the number of payments that this command has \
settled. The state of a refund or a dispute whose event never came is stored as the gateway reports it; `applied` is the \
number of these refunds and disputes. Refunds and disputes of earlier days that have no outcome yet are compared too. Payments that the bank is still processing are not compared; the function on AWS compares their day again when the bank \
has had its time (`max-processing-days` of `dueday settings`).

If a difference must stay, `accept` stores the decision of a person and its reason. A later comparison of the day only \
counts the accepted difference.

The result of each day is stored, with the first 100 differences. If the command is interrupted, repeat it: it continues \
where it stopped. Each day reads the whole table once.

The command exits with 1 if there is a difference, or if the gateway does not offer a list.

With --table, also give --gateway with the deployed value.

Examples:
  dueday reconcile
  dueday reconcile --from 2027-01-01 --to 2027-01-31 --report-only
  dueday reconcile accept 2027-01-30 re_1QK8 --because 'refunded in the dashboard'")]
#[command(args_conflicts_with_subcommands = true)]
pub struct ReconcileArgs {
    #[command(subcommand)]
    pub command: Option<ReconcileCommand>,
    /// The first day to compare [default: only the day of --to]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    pub from: Option<NaiveDate>,
    /// The last day to compare; it must have ended at least an hour ago in UTC [default: the latest such day]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    pub to: Option<NaiveDate>,
    /// Do not settle payments without a receipt, store no findings, and apply no state of a refund or a dispute
    #[arg(long)]
    pub report_only: bool,
}

/// The commands for the differences of compared days.
#[derive(Debug, Subcommand)]
pub enum ReconcileCommand {
    /// Accept a difference: the next comparison of the day counts it, and does not report it
    Accept(AcceptArgs),
}

/// The result of one day in JSON output.
#[derive(Debug, Serialize)]
pub struct ReconciledDay {
    pub date: NaiveDate,
    /// Whether all lists of the gateway were compared, and no difference was found.
    pub clean: bool,
    pub ended_at: Option<DateTime<Utc>>,
    #[serde(flatten)]
    pub counts: ReconciledCounts,
    /// The gateway's lists that could not be compared.
    pub not_compared: BTreeSet<GatewayList>,
    /// Whether the payments of every customer in the table were compared, because the gateway does not list the
    /// payments of a day.
    pub customers_compared: bool,
    /// The number of differences by kind.
    pub differences: BTreeMap<DifferenceKind, u64>,
    /// The first differences.
    pub first_differences: Vec<GatewayDifference>,
}

impl From<DayReconciliation> for ReconciledDay {
    fn from(day: DayReconciliation) -> Self {
        Self {
            clean: day.is_clean(),
            date: day.on,
            ended_at: day.ended_at,
            counts: day.counts,
            not_compared: day.not_compared,
            customers_compared: day.customers_compared,
            differences: day.differences,
            first_differences: day.first_differences,
        }
    }
}

impl ReconciledDay {
    /// Returns the result as text, such as `2 paid_twice; could not be compared: refunds`.
    pub fn result_text(&self) -> String {
        let differences = self.differences.iter().map(|(kind, count)| format!("{count} {kind}"));
        let mut parts = vec![differences.collect::<Vec<_>>().join(", ")];
        let lists: Vec<String> = self.not_compared.iter().map(ToString::to_string).collect();
        if !lists.is_empty() {
            parts.push(format!("could not be compared: {}", lists.join(", ")));
        }
        if self.customers_compared {
            parts.push("only the payments of customers in the table were compared".to_owned());
        }
        if self.ended_at.is_none() {
            parts.push("not complete".to_owned());
        }
        parts.retain(|part| !part.is_empty());
        if parts.is_empty() {
            parts.push("no difference".to_owned());
        }
        if self.counts.processing > 0 {
            parts.push(format!("{} not compared", format_count(self.counts.processing, "processing payment")));
        }
        parts.join("; ")
    }
}

/// Compares the days of `args`, one after the other, or accepts a difference.
pub async fn run_reconcile_command(context: &CommandContext, args: &ReconcileArgs) -> Result<Exit, Failure> {
    if let Some(ReconcileCommand::Accept(args)) = &args.command {
        return accept::accept_difference(context, args).await;
    }
    let latest = latest_comparable_day(context.clock.now());
    let to = args.to.or(args.from.filter(|from| *from > latest)).unwrap_or(latest);
    let from = args.from.unwrap_or(to);
    if from > to {
        return Err(Failure::Refused(format!("--from {from} must not be after --to {to}")));
    }
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let gateway = open_table.gateway(context).await?;
    let corrections =
        if args.report_only { CorrectionMode::ReportOnly } else { CorrectionMode::of_table(&open_table.settings) };
    let mut reconciler = Reconciler::new(
        open_table.table.clone(),
        open_table.settings.table_id,
        gateway,
        corrections,
        context.clock.clone(),
        context.today(&open_table.table),
    );
    let (table, action) = (open_table.table.clone(), context.new_log_entry(ActionKind::ReconcilePayments, None));
    if corrections != CorrectionMode::ReportOnly {
        // If the command is interrupted, the action log keeps this entry, which contains no count.
        table.put_action(&action.on_job([])).await?;
    }
    let progress = ProgressDisplay::show(ProgressBar::new_spinner(), "{spinner} {msg}", |bar| bar.message());
    let mut days = Vec::new();
    for on in from.iter_days().take_while(|on| *on <= to) {
        progress.set_message(format!("comparing {on}"));
        let day = reconciler.reconcile(on, None).await.map_err(|error| match error {
            ReconcileError::Table(error) => Failure::from(error),
            error => Failure::Refused(error.to_string()),
        })?;
        days.push(ReconciledDay::from(day));
        let sum_of = |count: fn(&ReconciledCounts) -> u64| {
            days.iter().fold(0, |sum: u64, day| sum.saturating_add(count(&day.counts)))
        };
        let (settled, applied) = (sum_of(|counts| counts.settled), sum_of(|counts| counts.applied));
        if corrections != CorrectionMode::ReportOnly {
            // The entry that is written after the next day replaces this entry.
            table.put_action(&action.on_job([("settled", settled), ("applied", applied)])).await?;
        }
    }
    drop(progress);
    context.print(&days, || reconciliation_text(&days))?;
    open_table.mention_unpublished_changes(context)?;
    Ok(Exit::done_if(days.iter().all(|day| day.clean)))
}

fn reconciliation_text(days: &[ReconciledDay]) -> String {
    let rows = days.iter().map(|day| {
        let ReconciledCounts { payments, refunds, disputes, receipts, settled, applied, accepted, processing: _ } =
            day.counts;
        let result =
            if day.clean { output::green_text(&day.result_text()) } else { output::red_text(&day.result_text()) };
        let counts = [payments, refunds, disputes, receipts, settled, applied, accepted].map(|count| count.to_string());
        [day.date.to_string()].into_iter().chain(counts).chain([result]).collect()
    });
    let shown = days.iter().flat_map(|day| day.first_differences.iter().map(|difference| (day.date, difference)));
    let rows_of_differences: Vec<Vec<String>> = shown
        .map(|(date, GatewayDifference { kind, id, what })| {
            vec![date.to_string(), output::red_text(&kind.to_string()), id.clone(), what.clone()]
        })
        .collect();
    let kinds: BTreeSet<DifferenceKind> = days.iter().flat_map(|day| day.differences.keys().copied()).collect();
    if kinds.is_empty() {
        return format_table(&DAY_COLUMNS, rows);
    }
    let count: u64 = days.iter().flat_map(|day| day.differences.values()).fold(0, |sum, n| sum.saturating_add(*n));
    let steps: String = kinds.into_iter().map(|kind| format!("{kind}: {}\n", kind.next_step())).collect();
    format!(
        "{}\n{}{}\n\nNext steps\n{steps}If a difference must stay, accept it with `dueday reconcile accept DAY ID --because REASON`.\n",
        format_table(&DAY_COLUMNS, rows),
        format_table(&DIFFERENCE_COLUMNS, rows_of_differences),
        format_count(count, "difference"),
    )
}
