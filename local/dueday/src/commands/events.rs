//! `dueday events`: what has happened, from the kept events.

use chrono::NaiveDate;
use clap::Args;

use super::kept_event::{Envelope, Wanted};
use super::values::date;
use crate::context::Context;
use crate::machine::data::{Folder, Machine, events_folder};
use crate::machine::kept_lines::Lines;
use crate::terminal::output;
use crate::{Exit, Failure};

/// `dueday events`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --json each event is a line, as it is kept: CloudEvents 1.0, described in docs/events.

On AWS they are in the stack's bucket: docs/events.md shows the queries.

Example:
  dueday events --from 2027-01-01 --to 2027-01-31 --type payment.succeeded")]
pub struct EventsArgs {
    /// The first day; the first that is kept if absent
    #[arg(long, value_name = "DATE", value_parser = date)]
    from: Option<NaiveDate>,
    /// The last day; today if absent
    #[arg(long, value_name = "DATE", value_parser = date)]
    to: Option<NaiveDate>,
    #[command(flatten)]
    wanted: Wanted,
}

pub async fn events(context: &Context, args: &EventsArgs) -> Result<Exit, Failure> {
    context.local_only("events")?;
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        return Err(Failure::Refused(format!("--from {from} is after --to {to}")));
    }
    let machine = Machine::open(context, Folder::Existing, context.clock.clone()).await?;
    machine.catch_up(context).await?;
    let folder = events_folder(&context.options);
    let unreadable = |reason: String| Failure::File { path: folder.clone(), reason };
    let (zone, mut clean) = (context.config.billing.zone, true);
    // Nothing is told before it has happened; a day begins in some zones before it does in UTC.
    let mut lines = Lines::new(folder.clone(), args.from.and_then(|from| from.pred_opt()));
    while let Some(line) = lines.next_line().map_err(|error| unreadable(error.to_string()))? {
        let event = Envelope::read(&line).map_err(|_| unreadable("a line is no event".to_owned()))?;
        let day = event.day(zone);
        let is_within = args.from.is_none_or(|from| day >= from) && args.to.is_none_or(|to| day <= to);
        if is_within && event.is(&args.wanted) {
            clean &= !event.is_unreadable();
            let text = if context.options.json { line } else { event.text(&line, zone) };
            output::print(&(text + "\n"))?;
        }
    }
    Ok(Exit::of(clean))
}
