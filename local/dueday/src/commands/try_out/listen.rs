//! `dueday listen`: prints new events, and forwards them to a URL.

use std::time::Duration;

use billing::{DeliveryResponse, EndpointUrl, ReceivedEvent, SigningSecret};
use clap::Args;
use clock::Clock;
use outbound::{AllowedAddresses, DELIVERY_TIMEOUT, WebhookSender};

use crate::commands::find::stored_event::{EventFilter, event_line};
use crate::context::CommandContext;
use crate::machine::data_folder::{FolderRequirement, stored_events_folder};
use crate::machine::local_machine::LocalMachine;
use crate::machine::stored_lines::StoredEventLines;
use crate::terminal::output;
use crate::{Exit, Failure};

/// The time between two checks for new events.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The arguments of `dueday listen`.
#[derive(Debug, Args)]
#[command(after_help = "\
The command needs a running `dueday` that serves the same data folder. With --json it prints each event as one line of \
JSON in the format CloudEvents 1.0. docs/events.md describes the events.

With --forward-to, the command also sends each event once to the URL, signed according to the Standard Webhooks \
specification, like an outbound webhook. It prints the secret for the signature at the start.

Examples:
  dueday listen --type payment.succeeded --type payment.declined
  dueday listen --forward-to http://127.0.0.1:3000/webhooks")]
pub struct ListenArgs {
    #[command(flatten)]
    filter: EventFilter,
    /// Send each event to this URL with POST
    #[arg(long, value_name = "URL")]
    forward_to: Option<EndpointUrl>,
    /// The secret for the signatures, whsec_... [default: a new secret]
    #[arg(long, value_name = "SECRET", env = "DUEDAY_WEBHOOK_SECRET", hide_env_values = true, requires = "forward_to")]
    secret: Option<SigningSecret>,
}

/// Sends events to the URL of --forward-to.
struct EventForwarder<'a> {
    url: &'a EndpointUrl,
    secret: SigningSecret,
    sender: WebhookSender,
}

impl<'a> EventForwarder<'a> {
    /// Creates the forwarder; `None` without --forward-to. Prints the secret if it is new.
    fn new(args: &'a ListenArgs) -> Result<Option<Self>, Failure> {
        let Some(url) = &args.forward_to else { return Ok(None) };
        let sender = WebhookSender::new(AllowedAddresses::Any, DELIVERY_TIMEOUT)
            .map_err(|error| Failure::Refused(error.to_string()))?;
        let secret = args.secret.clone().unwrap_or_else(|| {
            let new = SigningSecret::new(rand::random());
            output::print_message(format!("Forwarding events. The secret for the signatures is {}", new.reveal()));
            new
        });
        Ok(Some(Self { url, secret, sender }))
    }

    /// Sends `event` once. Returns the outcome of the delivery as text.
    async fn deliver_event(&self, event: &ReceivedEvent, clock: &dyn Clock) -> String {
        let secrets = std::slice::from_ref(&self.secret);
        match self.sender.deliver_event(self.url, secrets, &event.id, clock.now().timestamp(), &event.json).await {
            DeliveryResponse::Accepted(status) => output::green_text(&format!("delivered ({status})")),
            DeliveryResponse::Rejected { status, .. } => output::red_text(&format!("NOT DELIVERED ({status})")),
            DeliveryResponse::NoResponse(reason) => output::red_text(&format!("NOT DELIVERED ({reason})")),
        }
    }
}

/// Runs `dueday listen`.
pub async fn run_listen_command(context: &CommandContext, args: &ListenArgs) -> Result<Exit, Failure> {
    context.require_local_table("listen")?;
    let machine = LocalMachine::open(context, FolderRequirement::MustExist, context.clock.clone()).await?;
    let zone = machine.deployment.table.policy().zone;
    if machine.running.is_none() {
        let serve = context.command_line("");
        return Err(Failure::Refused(format!(
            "no server uses this data folder: start `{}` in another terminal",
            serve.trim()
        )));
    }
    let mut lines = StoredEventLines::new(stored_events_folder(&context.options), None);
    let unreadable = |error: std::io::Error| Failure::File {
        path: stored_events_folder(&context.options),
        reason: error.to_string(),
    };
    lines.skip_existing_lines().map_err(unreadable)?;
    let forward = EventForwarder::new(args)?;
    output::print_message("Listening. Stop it with Ctrl-C.");
    loop {
        while let Some(line) = lines.next_line().map_err(unreadable)? {
            let Ok(event) = ReceivedEvent::read(&line) else { continue };
            if !args.filter.matches(&event) {
                continue;
            }
            let delivery_result = match &forward {
                Some(forward) => forward.deliver_event(&event, context.clock.as_ref()).await + "  ",
                None => String::new(),
            };
            let text = if context.options.json { line } else { delivery_result + &event_line(&event, zone) };
            output::write_to_stdout(&(text + "\n"))?;
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Interrupted),
        }
    }
}
