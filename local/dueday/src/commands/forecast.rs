//! `dueday forecast`: what will be charged on the days ahead.

use chrono::NaiveDate;
use clap::Args;
use serde::Serialize;
// USEMOD audit
use billing::{Day, Sums};

use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output::{self, count};
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 3] = [Column::whole("day"), Column::number("payments"), Column::text("in all")];

/// `dueday forecast`.
#[derive(Debug, Args)]
#[command(after_help = "\
By the calendar: every payment on its day, retries on theirs, nothing of what ends before. What customers and banks will \
do, it does not know.

Examples:
  dueday forecast
  dueday forecast --months 12 --json --table dueday")]
pub struct ForecastArgs {
    /// How many months to look ahead
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=12))]
    pub months: u32,
}

#[derive(Serialize)]
struct Ahead {
    from: NaiveDate,
    until: NaiveDate,
    payments: u64,
    sums: Sums,
    days: Vec<DayAhead>,
    unreadable: Vec<String>,
}

#[derive(Serialize)]
struct DayAhead {
    date: NaiveDate,
    payments: u64,
    sums: Sums,
}

pub async fn forecast(context: &Context, args: &ForecastArgs) -> Result<Exit, Failure> {
    let opened = Opened::open(context, Folder::Existing).await?;
    let today = context.today();
    let (forecast, unreadable) = audit::forecast(&opened.table, opened.settings.shards, today, args.months).await?;
    let day = |(date, day): (NaiveDate, &Day)| DayAhead { date, payments: day.charges(), sums: day.sums().clone() };
    let total = forecast.total();
    let ahead = Ahead {
        from: today,
        until: forecast.until(),
        payments: total.charges(),
        sums: total.sums().clone(),
        days: forecast.days().map(day).collect(),
        unreadable: unreadable.iter().map(ToString::to_string).collect(),
    };
    context.print(&ahead, || text(&ahead))?;
    ahead.unreadable.iter().for_each(|entry| output::tell(format!("unreadable: {entry}")));
    Ok(Exit::of(ahead.unreadable.is_empty()))
}

fn text(ahead: &Ahead) -> String {
    let Ahead { from, until, payments, sums, days, .. } = ahead;
    let planned = count(*payments, "payment");
    if days.is_empty() {
        return format!("{planned} from {from} until {until}\n");
    }
    let rows = days.iter().map(|day| vec![day.date.to_string(), day.payments.to_string(), day.sums.to_string()]);
    format!("{}{planned} from {from} until {until}: {sums}\n", table(&COLUMNS, rows))
}
