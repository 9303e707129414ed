//! `dueday forecast`: shows the planned payments of the coming days.

use billing::{ChargeTotal, MoneySums};
use chrono::NaiveDate;
use clap::Args;
use serde::Serialize;

use crate::commands::value_parsers::parse_number_in_range;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::{self, format_count};
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of planned payments.
const COLUMNS: [TableColumn; 3] =
    [TableColumn::unwrapped("day"), TableColumn::number("payments"), TableColumn::text("in all")];

/// The arguments of `dueday forecast`.
#[derive(Debug, Args)]
#[command(after_help = "\
The forecast follows the calendar: it counts every planned payment and every planned retry on its date, and no \
payments after the end of a subscription. It does not predict declined payments or changes by customers.

Examples:
  dueday forecast
  dueday forecast --months 12 --json --table TABLE")]
pub struct ForecastArgs {
    /// The number of months to forecast
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = |text: &str| parse_number_in_range::<u32>(text, 1..=12))]
    pub months: u32,
}

/// The output of the command with `--json`.
#[derive(Serialize)]
struct ForecastReport {
    from: NaiveDate,
    until: NaiveDate,
    payments: u64,
    sums: MoneySums,
    days: Vec<ForecastDay>,
    unreadable: Vec<String>,
}

/// The planned payments of one day.
#[derive(Serialize)]
struct ForecastDay {
    date: NaiveDate,
    payments: u64,
    sums: MoneySums,
}

/// Runs `dueday forecast`.
pub async fn run_forecast_command(context: &CommandContext, args: &ForecastArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let today = context.today(&open_table.table);
    let (forecast, unreadable) =
        audit::forecast_charges(&open_table.table, open_table.settings.shards, today, args.months).await?;
    let day = |(date, day): (NaiveDate, &ChargeTotal)| ForecastDay {
        date,
        payments: day.charges(),
        sums: day.sums().clone(),
    };
    let total = forecast.total();
    let report = ForecastReport {
        from: today,
        until: forecast.first_day_after(),
        payments: total.charges(),
        sums: total.sums().clone(),
        days: forecast.days().map(day).collect(),
        unreadable: unreadable.iter().map(ToString::to_string).collect(),
    };
    context.print(&report, || forecast_text(&report))?;
    report.unreadable.iter().for_each(|entry| output::print_message(format!("unreadable: {entry}")));
    Ok(Exit::done_if(report.unreadable.is_empty()))
}

fn forecast_text(report: &ForecastReport) -> String {
    let ForecastReport { from, until, payments, sums, days, .. } = report;
    let planned = format_count(*payments, "payment");
    let last = until.pred_opt().unwrap_or(*until);
    if days.is_empty() {
        return format!("{planned} from {from} to {last}\n");
    }
    let rows = days.iter().map(|day| vec![day.date.to_string(), day.payments.to_string(), day.sums.to_string()]);
    format!("{}{planned} from {from} to {last}: {sums}\n", format_table(&COLUMNS, rows))
}
