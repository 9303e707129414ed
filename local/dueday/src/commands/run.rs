//! `dueday run`: runs a batch once.

use chrono::{NaiveDate, TimeDelta};
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use settling::unresolved_findings;
use store::Batch;
use sweep::BatchRequest;

use super::values::parse_date;
use crate::context::Context;
use crate::machine::data::{FolderPolicy, Machine};
use crate::terminal::output;
use crate::terminal::report::text;
use crate::{Exit, Failure};

/// The time after which a run that the operator started stops, even if rows are left.
const RUN_TIME_LIMIT: TimeDelta = TimeDelta::hours(12);

/// The arguments of `dueday run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dueday run reminders\n  dueday run payments --date 2027-01-31")]
pub struct RunArgs {
    /// The batch to run
    #[arg(value_parser = batch_parser())]
    pub batch: Batch,
    /// The date of the run; not in the future [default: today]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    pub date: Option<NaiveDate>,
}

/// Returns the parser of the command line for the name of a batch.
pub fn batch_parser() -> impl clap::builder::TypedValueParser<Value = Batch> {
    PossibleValuesParser::new(Batch::ALL.map(<&str>::from)).try_map(|name| name.parse::<Batch>())
}

pub async fn run(context: &Context, args: &RunArgs) -> Result<Exit, Failure> {
    context.require_local_table("run")?;
    let Machine { deployment, .. } = &Machine::open(context, FolderPolicy::MustExist, context.clock.clone()).await?;
    let request = BatchRequest::for_date(args.date.unwrap_or_else(|| context.today()));
    let deadline = context.clock.now() + RUN_TIME_LIMIT;
    let is_clean = match args.batch {
        Batch::Reminders => {
            let report = deployment.reminders().await?.run_in_parts(&request, deadline).await?;
            context.print(&report, || text(&report))?;
            report.is_done()
        }
        Batch::Payments => {
            let report = deployment.payments().await?.run_in_parts(&request, deadline).await?;
            context.print(&report, || text(&report))?;
            let unresolved = unresolved_findings(&deployment.table.get_open_findings().await?);
            unresolved.iter().for_each(output::print_message);
            report.is_done() && unresolved.is_none()
        }
    };
    Ok(Exit::done_if(is_clean))
}
