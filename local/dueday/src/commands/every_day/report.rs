//! `dueday report`: shows the payments of each day, and whether the runs of the day are complete.

use audit::{ProductSales, ReportSource, ReportedDay, ReportedDaysError, UnsettledNow};
use billing::{Money, MoneySums};
use chrono::NaiveDate;
use clap::Args;
use days::{Concern, DayState, RunFacts};
use serde::Serialize;

use crate::commands::every_day::runs::{concerns_text, find_other_concerns};
use crate::commands::value_parsers::parse_date;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::{self, format_count};
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of payments by day and product.
const COLUMNS: [TableColumn; 9] = [
    TableColumn::unwrapped("day"),
    TableColumn::unwrapped("runs"),
    TableColumn::text("product"),
    TableColumn::number("payments"),
    TableColumn::number("gross"),
    TableColumn::number("refunded"),
    TableColumn::number("reversed"),
    TableColumn::number("net"),
    TableColumn::unwrapped(""),
];

/// The arguments of `dueday report`.
#[derive(Debug, Args)]
#[command(after_help = "\
The report is computed from the receipts. Receipts expire; the stored events contain older days (docs/events.md). A \
payment counts for the day on which it was made, whatever period it paid. A day without payments is only shown if its \
runs are not complete. For today, the report also counts the payments that are due or open now.

Gross is the amount of the payments of a day. Refunded is what the merchant has paid back on that day, or will pay back \
by a refund that was requested on it, whenever the payment was made; a refund that fails later is subtracted on the day \
on which it fails. Reversed is what the bank has taken back on that day. Net is gross without both.

The command exits with 1 if the payment runs of a day, or the reminder runs of an ended day, are not complete: further \
payments of that day may follow. A report that contains today also exits with 1 if a payment has no receipt, or if the \
gateway rejected a charge that is not settled yet.

Example:
  dueday report --from 2027-01-01 --to 2027-01-31 --table TABLE")]
pub struct ReportArgs {
    /// The first day [default: the first day of this month]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    from: Option<NaiveDate>,
    /// The last day; a date in the future stands for today [default: today]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    to: Option<NaiveDate>,
}

/// The payments of several days with their total amounts, and whether the runs of these days are complete.
#[derive(Serialize)]
struct PaymentReport {
    from: NaiveDate,
    to: NaiveDate,
    complete: bool,
    payments: u64,
    /// The gross amounts.
    sums: MoneySums,
    refunded: MoneySums,
    reversed: MoneySums,
    net: MoneySums,
    days: Vec<ReportedDay>,
    /// What needs a person, except for the states of the runs.
    problems: Vec<String>,
    unreadable: Vec<String>,
}

/// Runs `dueday report`.
pub async fn run_report_command(context: &CommandContext, args: &ReportArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let source = ReportSource { table: &open_table.table, settings: &open_table.settings, now: context.clock.now() };
    let reported = source.reported_days(args.from, args.to).map_err(|error| refuse_reported_days(args, error))?;
    let (from, to) = (*reported.start(), *reported.end());
    let report = audit::build_sales_report(source, reported).await?;
    let (now, today) = (context.clock.now(), context.today(&open_table.table));
    // A payment without a receipt that was found later does not change what is known about past days.
    let facts = match to == today {
        true => RunFacts::read(&open_table.table, &open_table.settings, report.proven, now).await?,
        false => RunFacts::without_payments(report.proven, today),
    };
    let concerns = find_other_concerns(&facts);
    let amounts = |minor: fn(&ProductSales) -> i64| {
        sales_of_all_days(&report.days).map(move |sales| Money::new(minor(sales), sales.sum.currency()))
    };
    let is_not_zero = |amount: &Money| amount.minor() != 0;
    let days = PaymentReport {
        from,
        to,
        complete: report.days.iter().all(|day| day.complete),
        payments: sales_of_all_days(&report.days).map(|sales| sales.payments).sum(),
        sums: amounts(|sales| sales.sum.minor()).collect(),
        refunded: amounts(|sales| sales.refunded_amount).filter(is_not_zero).collect(),
        reversed: amounts(|sales| sales.reversed_amount).filter(is_not_zero).collect(),
        net: amounts(|sales| sales.net_amount).collect(),
        problems: concerns.iter().map(Concern::to_string).collect(),
        unreadable: report.unreadable.iter().map(ToString::to_string).collect(),
        days: report.days,
    };
    context.print(&days, || report_text(&days) + &concerns_text(&concerns))?;
    days.unreadable.iter().for_each(|item| output::print_message(format!("unreadable: {item}")));
    let is_done = days.days.iter().all(|day| day.state != DayState::NotDone);
    Ok(Exit::done_if(is_done && concerns.is_empty() && days.unreadable.is_empty()))
}

/// Creates the failure for a value of `--from` or `--to` that is not allowed. The message contains the option and, if
/// it was given, the value.
fn refuse_reported_days(args: &ReportArgs, error: ReportedDaysError) -> Failure {
    let field = error.field();
    let date = if field == "from" { args.from } else { args.to };
    let value = date.map(|date| format!(" {date}")).unwrap_or_default();
    let hint = match error {
        ReportedDaysError::FromIsExpired { .. } => ". `dueday events` still lists their payments",
        ReportedDaysError::FromIsInFuture { .. } => ". `dueday forecast` shows the planned payments",
        ReportedDaysError::ToIsBeforeFrom { .. } => "",
    };
    Failure::Refused(format!("--{field}{value} {error}{hint}"))
}

/// Returns the sales of all `days`, one item per day and product.
fn sales_of_all_days(days: &[ReportedDay]) -> impl Iterator<Item = &ProductSales> {
    days.iter().flat_map(|day| &day.taken)
}

fn report_text(report: &PaymentReport) -> String {
    let rows = report.days.iter().flat_map(|day| {
        let runs = match day.state {
            DayState::Done => output::green_text("done"),
            DayState::Running => output::green_text("running"),
            DayState::Expired => "expired".to_owned(),
            DayState::NotDone => output::red_text("NOT DONE"),
        };
        let first = vec![day.date.to_string(), runs];
        let without_payments = (day.taken.is_empty() && !day.complete).then(|| first.clone());
        let taken = day.taken.iter().enumerate().map(move |(index, taken)| {
            let day = if index == 0 { first.clone() } else { vec![String::new(); 2] };
            [day, sales_cells(taken)].concat()
        });
        without_payments.into_iter().chain(taken)
    });
    let PaymentReport { from, to, payments, .. } = report;
    let not_done: Vec<_> = report.days.iter().filter(|day| day.state == DayState::NotDone).collect();
    let now = report.days.iter().find_map(|day| day.now).filter(|now| *now != UnsettledNow::default());
    let now = now.map(|now| format!("now: {} due, {} open\n", now.due, now.open)).unwrap_or_default();
    let verdict = match not_done.len() {
        // The reminders of today do not count: see `ReportedDay::complete`.
        0 if report.days.iter().any(|day| day.now.is_some()) => {
            "The runs of every day are complete; of today, the payment runs.\n".to_owned()
        }
        0 => "The runs of every day are complete.\n".to_owned(),
        1 => format!("The runs of {} are NOT complete: see `dueday runs --date {0}`.\n", not_done[0].date),
        days => format!(
            "The runs of {days} days from {} to {} are NOT complete: see `dueday runs --date DATE`.\n",
            not_done[0].date,
            not_done[days - 1].date
        ),
    };
    let rows: Vec<_> = rows.collect();
    let table = if rows.is_empty() { String::new() } else { format_table(&COLUMNS, rows) };
    format!(
        "{table}{} from {from} to {to}{}\n{now}{verdict}",
        format_count(*payments, "payment"),
        totals_text(report).unwrap_or_default()
    )
}

/// Returns the cells of the product, the number of payments, and the amounts. The cells of the refunded and the
/// reversed amount are empty if the amount is zero.
fn sales_cells(sales: &ProductSales) -> Vec<String> {
    let currency = sales.sum.currency();
    let decimal = |minor: i64| Money::new(minor, currency).decimal();
    let unless_zero = |minor: i64| if minor == 0 { String::new() } else { decimal(minor) };
    vec![
        sales.sku.to_string(),
        sales.payments.to_string(),
        sales.sum.decimal(),
        unless_zero(sales.refunded_amount),
        unless_zero(sales.reversed_amount),
        decimal(sales.net_amount),
        currency.to_string(),
    ]
}

/// Returns the text of the total amounts; `None` without payments. If nothing was refunded or reversed, the gross and
/// the net amount are equal, and the text contains the amount once.
fn totals_text(report: &PaymentReport) -> Option<String> {
    let PaymentReport { sums, refunded, reversed, net, .. } = report;
    sums.iter().next()?;
    let is_returned = |sums: &MoneySums| sums.iter().next().is_some();
    if !is_returned(refunded) && !is_returned(reversed) {
        return Some(format!(": {sums}"));
    }
    let returned = [("refunded", refunded), ("reversed by the bank", reversed)];
    let returned = returned.into_iter().filter(|(_, sums)| is_returned(sums));
    let returned: String = returned.map(|(name, sums)| format!("{name}: {sums}\n")).collect();
    Some(format!("\ngross: {sums}\n{returned}net: {net}"))
}
