//! `dueday report`: shows the payments of each day, and whether the runs of the day are complete.

use audit::{ProductSales, ReportSource, ReportedDay, UnsettledNow, first_reportable_day};
use billing::{Money, Sums};
use chrono::{Datelike as _, NaiveDate};
use clap::Args;
use days::DayState;
use serde::Serialize;

use super::values::parse_date;
use crate::context::Context;
use crate::machine::data::FolderPolicy;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::{self, format_count};
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 5] = [
    Column::whole("day"),
    Column::whole("runs"),
    Column::text("product"),
    Column::number("payments"),
    Column::number("sum"),
];

/// The arguments of `dueday report`.
#[derive(Debug, Args)]
#[command(after_help = "\
The report is computed from the receipts. Receipts expire; the stored events contain older days (docs/events.md). A \
payment counts for the day on which it was made, whatever period it paid. A day without payments is only shown if its \
runs are not complete. For today, the report also counts the payments that are due or open now.

The command exits with 1 if the payment runs of a day are not complete: further payments of that day may follow.

Example:
  dueday report --from 2027-01-01 --to 2027-01-31 --table dueday")]
pub struct ReportArgs {
    /// The first day [default: the first day of this month]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    from: Option<NaiveDate>,
    /// The last day [default: today]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    to: Option<NaiveDate>,
}

/// The payments of several days, and whether the runs of these days are complete.
#[derive(Serialize)]
struct PaymentReport {
    from: NaiveDate,
    to: NaiveDate,
    complete: bool,
    payments: u64,
    sums: Sums,
    days: Vec<ReportedDay>,
    unreadable: Vec<String>,
}

pub async fn report(context: &Context, args: &ReportArgs) -> Result<Exit, Failure> {
    let today = context.today();
    let to = args.to.unwrap_or(today);
    let from = args.from.unwrap_or_else(|| today.with_day(1).unwrap_or(today));
    if to > today || to < from {
        return Err(Failure::Refused(format!("--to {to} must be from {from} to {today}")));
    }
    let open_table = OpenTable::open(context, FolderPolicy::MustExist).await?;
    let kept_from =
        first_reportable_day(open_table.table.receipt_retention(), context.config.billing.zone, context.clock.now());
    if from < kept_from {
        return Err(Failure::Refused(format!(
            "--from {from} must be {kept_from} or later: older receipts have expired. `dueday events` still lists \
             their payments"
        )));
    }
    let (table, zone, now) = (&open_table.table, context.config.billing.zone, context.clock.now());
    let reading = ReportSource { table, shards: open_table.settings.shards, zone, now };
    let report = audit::report(reading, from..=to).await?;
    let days = PaymentReport {
        from,
        to,
        complete: report.days.iter().all(|day| day.complete),
        payments: all_sales(&report.days).map(|sales| sales.payments).sum(),
        sums: all_sales(&report.days).map(|sales| sales.sum).collect(),
        unreadable: report.unreadable.iter().map(ToString::to_string).collect(),
        days: report.days,
    };
    context.print(&days, || text(&days))?;
    days.unreadable.iter().for_each(|item| output::print_message(format!("unreadable: {item}")));
    let is_done = days.days.iter().all(|day| day.state != DayState::NotDone);
    Ok(Exit::done_if(is_done && days.unreadable.is_empty()))
}

/// Returns the sales of all `days`, one item per day and product.
fn all_sales(days: &[ReportedDay]) -> impl Iterator<Item = &ProductSales> {
    days.iter().flat_map(|day| &day.taken)
}

fn text(report: &PaymentReport) -> String {
    let rows = report.days.iter().flat_map(|day| {
        let runs = match day.state {
            DayState::Done => output::green("done"),
            DayState::Running => output::green("running"),
            DayState::Expired => "expired".to_owned(),
            DayState::NotDone => output::red("NOT DONE"),
        };
        let first = vec![day.date.to_string(), runs];
        let without_payments = (day.taken.is_empty() && !day.complete).then(|| first.clone());
        let taken = day.taken.iter().enumerate().map(move |(index, taken)| {
            let day = if index == 0 { first.clone() } else { vec![String::new(); 2] };
            [day, vec![taken.sku.to_string(), taken.payments.to_string(), taken.sum.to_string()]].concat()
        });
        without_payments.into_iter().chain(taken)
    });
    let PaymentReport { from, to, payments, sums, .. } = report;
    let total = if sums.iter().next().is_some() { format!(": {sums}") } else { String::new() };
    let not_done: Vec<_> = report.days.iter().filter(|day| day.state == DayState::NotDone).collect();
    let now = report.days.iter().find_map(|day| day.now).filter(|now| *now != UnsettledNow::default());
    let now = now.map(|now| format!("now: {} due, {} open\n", now.due, now.open)).unwrap_or_default();
    let verdict = match not_done.len() {
        0 => "The runs of every day are complete.\n".to_owned(),
        1 => format!("The runs of {} are NOT complete: further payments of that day may follow.\n", not_done[0].date),
        days => format!(
            "The runs of {days} days from {} to {} are NOT complete: further payments of these days may follow.\n",
            not_done[0].date,
            not_done[days - 1].date
        ),
    };
    let rows: Vec<_> = rows.collect();
    let table = if rows.is_empty() { String::new() } else { table(&COLUMNS, rows) };
    let reversed: u64 = all_sales(&report.days).map(|sales| sales.reversed_payments).sum();
    let with_reversals = all_sales(&report.days).filter(|sales| sales.reversed_payments > 0);
    let reversals: Sums = with_reversals.map(|sales| Money::new(sales.reversed_amount, sales.sum.currency())).collect();
    let reversed = match reversed {
        0 => String::new(),
        _ => format!("The bank reversed {}: {reversals}\n", format_count(reversed, "payment")),
    };
    format!("{table}{} from {from} to {to}{total}\n{reversed}{now}{verdict}", format_count(*payments, "payment"))
}
