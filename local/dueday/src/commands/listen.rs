//! `dueday listen`: events, as they happen.

use std::time::Duration;

use billing::{Answer, EndpointUrl, Secret};
use clap::Args;
use clock::Clock;
use delivery::{Reach, Sender, TIMEOUT};

use super::kept_event::{Envelope, Wanted};
use crate::context::Context;
use crate::machine::data::{Folder, Machine, events_folder};
use crate::machine::kept_lines::Lines;
use crate::terminal::output;
use crate::{Exit, Failure};

/// New lines are looked for this often.
const INTERVAL: Duration = Duration::from_millis(100);

/// `dueday listen`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs a `dueday` that serves the same data folder. With --json each event is a line: CloudEvents 1.0, described in \
docs/events.md.

With --forward-to each event is posted to the URL, signed by the Standard Webhooks specification, once: what a program of \
yours will get from an endpoint. The secret to verify with is said at the start.

Examples:
  dueday listen --type payment.succeeded --type payment.declined
  dueday listen --forward-to http://127.0.0.1:3000/webhooks")]
pub struct ListenArgs {
    #[command(flatten)]
    wanted: Wanted,
    /// Post each event to this URL
    #[arg(long, value_name = "URL")]
    forward_to: Option<EndpointUrl>,
    /// Sign with this secret, whsec_...; a new one if absent
    #[arg(long, value_name = "SECRET", env = "DUEDAY_WEBHOOK_SECRET", hide_env_values = true, requires = "forward_to")]
    secret: Option<Secret>,
}

/// Where events are forwarded to.
struct Forward<'a> {
    url: &'a EndpointUrl,
    secret: Secret,
    sender: Sender,
}

impl<'a> Forward<'a> {
    fn new(args: &'a ListenArgs) -> Result<Option<Self>, Failure> {
        let Some(url) = &args.forward_to else { return Ok(None) };
        let sender = Sender::new(Reach::Anywhere, TIMEOUT).map_err(|error| Failure::Refused(error.to_string()))?;
        let secret = args.secret.clone().unwrap_or_else(|| {
            let new = Secret::new(rand::random());
            output::tell(format!("Forwarding. Verify with the secret {}", new.reveal()));
            new
        });
        Ok(Some(Self { url, secret, sender }))
    }

    /// Delivers the event of `line`, and says what came of it.
    async fn deliver(&self, event: &Envelope, line: &str, clock: &dyn Clock) -> String {
        let secrets = std::slice::from_ref(&self.secret);
        match self.sender.deliver(self.url, secrets, event.id(), clock.now().timestamp(), line).await {
            Answer::Taken(status) => output::good(&format!("taken ({status})")),
            Answer::Refused(status) => output::bad(&format!("NOT TAKEN ({status})")),
            Answer::None(reason) => output::bad(&format!("NOT TAKEN ({reason})")),
        }
    }
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
    let forward = Forward::new(args)?;
    output::tell("Listening. Stop it with Ctrl-C.");
    loop {
        while let Some(line) = lines.next_line().map_err(unreadable)? {
            let Ok(event) = Envelope::read(&line) else { continue };
            if !event.is(&args.wanted) {
                continue;
            }
            let told = match &forward {
                Some(forward) => forward.deliver(&event, &line, context.clock.as_ref()).await + "  ",
                None => String::new(),
            };
            let text = if context.options.json { line } else { told + &event.text(&line, context.config.billing.zone) };
            output::write(&(text + "\n"))?;
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Interrupted),
        }
    }
}
