//! `dueday events`: lists the stored events.

use billing::ReceivedEvent;
use chrono::NaiveDate;
use clap::Args;

use crate::commands::find::stored_event::{EventFilter, event_line, reports_unreadable_record};
use crate::commands::list_output::account_not_found;
use crate::commands::value_parsers::parse_date;
use crate::context::CommandContext;
use crate::machine::data_folder::{FolderRequirement, stored_events_folder};
use crate::machine::local_machine::LocalMachine;
use crate::machine::stored_lines::StoredEventLines;
use crate::terminal::output;
use crate::{Exit, Failure};

/// The arguments of `dueday events`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --json the command prints each event as one line of JSON in the format CloudEvents 1.0. docs/events.md describes \
the events.

On AWS the events are in the stack's bucket; docs/events.md contains queries for them.

Example:
  dueday events --from 2027-01-01 --to 2027-01-31 --type payment.succeeded")]
pub struct EventsArgs {
    /// The first day [default: the first stored day]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    from: Option<NaiveDate>,
    /// The last day [default: today]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    to: Option<NaiveDate>,
    #[command(flatten)]
    filter: EventFilter,
}

/// Runs `dueday events`.
pub async fn run_events_command(context: &CommandContext, args: &EventsArgs) -> Result<Exit, Failure> {
    context.require_local_table("events")?;
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        return Err(Failure::Refused(format!("--from {from} is after --to {to}")));
    }
    let machine = LocalMachine::open(context, FolderRequirement::MustExist, context.clock.clone()).await?;
    machine.publish_all_changes(context).await?;
    if let Some(account) = &args.filter.account
        && machine.deployment.table.get_stored_account(account).await?.is_none()
    {
        return Err(account_not_found(account));
    }
    let folder = stored_events_folder(&context.options);
    let unreadable = |reason: String| Failure::File { path: folder.clone(), reason };
    let (zone, mut clean) = (machine.deployment.table.policy().zone, true);
    // Reading begins with the file of the UTC day before `from`: `from` is a day in the billing time zone, which may
    // begin on that UTC day. Earlier files cannot contain events of `from`, because an event is published after its
    // change.
    let mut lines = StoredEventLines::new(folder.clone(), args.from.and_then(|from| from.pred_opt()));
    while let Some(line) = lines.next_line().map_err(|error| unreadable(error.to_string()))? {
        let event =
            ReceivedEvent::read(&line).map_err(|_| unreadable("a line of a file is not an event".to_owned()))?;
        let time = event.time.ok_or_else(|| unreadable(format!("the event {} has no valid time", event.id)))?;
        let day = time.with_timezone(&zone).date_naive();
        let is_within = args.from.is_none_or(|from| day >= from) && args.to.is_none_or(|to| day <= to);
        if is_within && args.filter.matches(&event) {
            clean &= !reports_unreadable_record(&event);
            let text = if context.options.json { line } else { event_line(&event, zone) };
            output::print_text(&(text + "\n"))?;
        }
    }
    Ok(Exit::done_if(clean))
}
