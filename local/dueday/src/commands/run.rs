//! `dueday run`: a batch, once.

use chrono::{NaiveDate, TimeDelta};
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use settling::unresolved;
use store::Batch;
use sweep::BatchRequest;

use super::values::date;
use crate::context::Context;
use crate::machine::data::{Folder, Machine};
use crate::terminal::output;
use crate::terminal::report::text;
use crate::{Exit, Failure};

/// A run by hand is given this long.
const TIME_FOR_A_RUN: TimeDelta = TimeDelta::hours(12);

/// `dueday run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dueday run reminders\n  dueday run payments --date 2027-01-31")]
pub struct RunArgs {
    /// The batch
    #[arg(value_parser = batch())]
    pub batch: Batch,
    /// The day to sweep; today if absent, never a day ahead
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub date: Option<NaiveDate>,
}

/// Reads a batch by its name.
pub fn batch() -> impl clap::builder::TypedValueParser<Value = Batch> {
    PossibleValuesParser::new(Batch::ALL.map(<&str>::from)).try_map(|name| name.parse::<Batch>())
}

pub async fn run(context: &Context, args: &RunArgs) -> Result<Exit, Failure> {
    context.local_only("run")?;
    let Machine { deployment, .. } = &Machine::open(context, Folder::Existing, context.clock.clone()).await?;
    let request = BatchRequest::on(args.date.unwrap_or_else(|| context.today()));
    let deadline = context.clock.now() + TIME_FOR_A_RUN;
    let is_clean = match args.batch {
        Batch::Reminders => {
            let report = deployment.reminders().await?.run_in_parts(&request, deadline).await?;
            context.print(&report, || text(&report))?;
            report.is_done()
        }
        Batch::Payments => {
            let report = deployment.payments().await?.run_in_parts(&request, deadline).await?;
            context.print(&report, || text(&report))?;
            let unresolved = unresolved(&deployment.table.get_open_findings().await?);
            unresolved.iter().for_each(output::tell);
            report.is_done() && unresolved.is_none()
        }
    };
    Ok(Exit::of(is_clean))
}
