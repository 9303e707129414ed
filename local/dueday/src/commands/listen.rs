//! `dueday listen`: events, as they happen.

use std::time::Duration;

use clap::Args;

use super::kept_event::{Envelope, Wanted};
use crate::context::Context;
use crate::machine::data::{Folder, Machine, events_folder};
use crate::machine::journal::Lines;
use crate::terminal::output;
use crate::{Exit, Failure};

/// New lines are looked for this often.
const INTERVAL: Duration = Duration::from_millis(100);

/// `dueday listen`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs a `dueday` that serves the same data folder. With --json each event is a line: CloudEvents 1.0, described in
docs/events.

Example:
  dueday listen --type payment.succeeded --type payment.declined")]
pub struct ListenArgs {
    #[command(flatten)]
    wanted: Wanted,
}

pub async fn listen(context: &Context, args: &ListenArgs) -> Result<Exit, Failure> {
    context.local_only("listen")?;
    if Machine::open(context, Folder::Existing, context.clock.clone()).await?.running.is_none() {
        let serve = context.hint("");
        return Err(Failure::Refused(format!(
            "nothing happens here yet: start `{}` in another terminal",
            serve.trim()
        )));
    }
    let mut lines = Lines::new(events_folder(&context.options), None);
    let unreadable =
        |error: std::io::Error| Failure::File { path: events_folder(&context.options), reason: error.to_string() };
    lines.skip_all().map_err(unreadable)?;
    output::tell("Listening. Stop it with Ctrl-C.");
    loop {
        while let Some(line) = lines.next_line().map_err(unreadable)? {
            let Ok(event) = Envelope::read(&line) else { continue };
            if event.is(&args.wanted) {
                let text = if context.options.json { line } else { event.text(&line, context.config.zone) };
                output::write(&(text + "\n"))?;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Interrupted),
        }
    }
}
