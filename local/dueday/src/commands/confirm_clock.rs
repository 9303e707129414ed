//! `dueday confirm-clock`: an operator confirms that the clock is right, although a run was recorded at a later time.

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;
use sweep::MAX_CLOCK_DIFFERENCE;

use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::{Exit, Failure};

/// `dueday confirm-clock`.
#[derive(Debug, Args)]
#[command(after_help = "\
A run whose clock is more than an hour behind the latest recorded run does not begin: one of the two clocks is wrong. If it was \
the clock of the earlier run, look with `dueday audit` at what that run has written, and confirm that this machine's clock is \
right. Runs begin again then, on one machine and on AWS.

Examples:
  dueday confirm-clock
  dueday confirm-clock --table dueday")]
pub struct ConfirmClockArgs {}

#[derive(Serialize)]
struct Confirmed {
    now: DateTime<Utc>,
    latest_run_at: Option<DateTime<Utc>>,
    confirmed: bool,
}

pub async fn confirm_clock(context: &Context, _: &ConfirmClockArgs) -> Result<Exit, Failure> {
    let opened = Opened::open(context, Folder::Existing).await?;
    let now = context.clock.now();
    let theirs = opened.table.time().await?;
    if let Some(theirs) = theirs.filter(|theirs| (now - *theirs).abs() > MAX_CLOCK_DIFFERENCE) {
        return Err(Failure::Refused(format!("this machine's clock says {now}, and the table's responses {theirs}")));
    }
    let latest_run_at = opened.settings.latest_run_at;
    let later = latest_run_at.filter(|latest| *latest > now);
    if let Some(latest) = later {
        opened.table.confirm_clock(now, latest).await?;
    }
    let text = match (later, latest_run_at) {
        (Some(latest), _) => format!("confirmed: it is {now}; a run was recorded at {latest}, which is ahead\n"),
        (None, Some(latest)) => {
            format!("there is nothing to confirm: it is {now}, and the latest run was at {latest}\n")
        }
        (None, None) => format!("there is nothing to confirm: it is {now}, and no run is recorded\n"),
    };
    context.print(&Confirmed { now, latest_run_at, confirmed: later.is_some() }, || text)?;
    Ok(Exit::Done)
}
