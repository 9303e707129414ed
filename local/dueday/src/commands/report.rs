//! `dueday report`: what was taken on each day, and whether the day was done.

use audit::{Reading, ReportedDay, Taken, UnsettledNow, reported_from};
use billing::{Money, Sums};
use chrono::{Datelike as _, NaiveDate};
use clap::Args;
use days::DayState;
use serde::Serialize;

use super::values::date;
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output::{self, count};
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 5] = [
    Column::whole("day"),
    Column::whole("runs"),
    Column::text("product"),
    Column::number("payments"),
    Column::number("sum"),
];

/// `dueday report`.
#[derive(Debug, Args)]
#[command(after_help = "\
By the receipts, as long as they are kept: older days are in the kept events (docs/events.md). A payment is of the day on
which it was made, whatever month it was for. Days without payments are shown if they are not done. Of today it also counts
the payments that are due or open at this moment.

Exits with 1 if the runs of the payments of a day do not prove that it was done: more may be taken for it.

Example:
  dueday report --from 2027-01-01 --to 2027-01-31 --table dueday")]
pub struct ReportArgs {
    /// The first day; the first of this month if absent
    #[arg(long, value_name = "DATE", value_parser = date)]
    from: Option<NaiveDate>,
    /// The last day; today if absent
    #[arg(long, value_name = "DATE", value_parser = date)]
    to: Option<NaiveDate>,
}

#[derive(Serialize)]
struct Days {
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
    let opened = Opened::open(context, Folder::Existing).await?;
    let kept_from = reported_from(opened.table.receipts_kept(), context.config.billing.zone, context.clock.now());
    if from < kept_from {
        return Err(Failure::Refused(format!(
            "--from {from} must be {kept_from} or later: older receipts have expired. `dueday events` has them still"
        )));
    }
    let (table, zone, now) = (&opened.table, context.config.billing.zone, context.clock.now());
    let reading = Reading { table, shards: opened.settings.shards, zone, now };
    let report = audit::report(reading, from..=to).await?;
    let days = Days {
        from,
        to,
        complete: report.days.iter().all(|day| day.complete),
        payments: taken(&report.days).map(|taken| taken.payments).sum(),
        sums: taken(&report.days).map(|taken| taken.sum).collect(),
        unreadable: report.unreadable.iter().map(ToString::to_string).collect(),
        days: report.days,
    };
    context.print(&days, || text(&days))?;
    days.unreadable.iter().for_each(|item| output::tell(format!("unreadable: {item}")));
    let is_done = days.days.iter().all(|day| day.state != DayState::NotDone);
    Ok(Exit::of(is_done && days.unreadable.is_empty()))
}

/// What was taken on each of `days`, one product after the other.
fn taken(days: &[ReportedDay]) -> impl Iterator<Item = &Taken> {
    days.iter().flat_map(|day| &day.taken)
}

fn text(report: &Days) -> String {
    let rows = report.days.iter().flat_map(|day| {
        let runs = match day.state {
            DayState::Done => output::good("done"),
            DayState::Running => output::good("running"),
            DayState::Expired => "expired".to_owned(),
            DayState::NotDone => output::bad("NOT DONE"),
        };
        let first = vec![day.date.to_string(), runs];
        let nothing = (day.taken.is_empty() && !day.complete).then(|| first.clone());
        let taken = day.taken.iter().enumerate().map(move |(place, taken)| {
            let day = if place == 0 { first.clone() } else { vec![String::new(); 2] };
            [day, vec![taken.sku.to_string(), taken.payments.to_string(), taken.sum.to_string()]].concat()
        });
        nothing.into_iter().chain(taken)
    });
    let Days { from, to, payments, sums, .. } = report;
    let came_to = if sums.iter().next().is_some() { format!(": {sums}") } else { String::new() };
    let open: Vec<_> = report.days.iter().filter(|day| day.state == DayState::NotDone).collect();
    let now = report.days.iter().find_map(|day| day.now).filter(|now| *now != UnsettledNow::default());
    let now = now.map(|now| format!("now: {} due, {} open\n", now.due, now.open)).unwrap_or_default();
    let verdict = match open.len() {
        0 => "Every day was done.\n".to_owned(),
        1 => format!("{} was NOT done: more may be taken for it.\n", open[0].date),
        days => format!(
            "{days} days were NOT done, from {} to {}: more may be taken for them.\n",
            open[0].date,
            open[days - 1].date
        ),
    };
    let rows: Vec<_> = rows.collect();
    let table = if rows.is_empty() { String::new() } else { table(&COLUMNS, rows) };
    let reversed: u64 = taken(&report.days).map(|taken| taken.reversed_payments).sum();
    let with_reversals = taken(&report.days).filter(|taken| taken.reversed_payments > 0);
    let reversals: Sums = with_reversals.map(|taken| Money::new(taken.reversed_amount, taken.sum.currency())).collect();
    let reversed = match reversed {
        0 => String::new(),
        _ => format!("The bank took back {}: {reversals}\n", count(reversed, "payment")),
    };
    format!("{table}{} from {from} to {to}{came_to}\n{reversed}{now}{verdict}", count(*payments, "payment"))
}
