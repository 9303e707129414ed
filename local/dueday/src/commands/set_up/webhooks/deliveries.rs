//! `dueday webhooks deliveries` and `dueday webhooks redeliver`: lists the deliveries to a webhook endpoint, and sends
//! events again.

use std::fmt::Display;

use api::DeliveryView;
use billing::{ActionKind, Delivery, DeliveryKey, DeliveryStatus};
use clap::Args;
use outbound::{EndpointError, WebhookEndpoints};
use serde_json::{Value, json};
use store::Paging;

use super::{EndpointArgs, failure_of_endpoint_error, text};
use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;
use crate::terminal::output;
use crate::{Exit, Failure};

/// The arguments of `dueday webhooks deliveries`.
#[derive(Debug, Args)]
pub struct DeliveriesArgs {
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    /// Only deliveries with this status: pending, delivered or failed
    #[arg(long, value_name = "STATUS", value_parser = parse_delivery_status)]
    pub status: Option<DeliveryStatus>,
}

/// The arguments of `dueday webhooks redeliver`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false, args = ["event", "failed"])]
pub struct RedeliverArgs {
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    /// The event's id
    pub event: Option<String>,
    /// Send all events whose delivery has failed
    #[arg(long)]
    pub failed: bool,
}

/// Parses the status of a delivery.
fn parse_delivery_status(text: &str) -> Result<DeliveryStatus, String> {
    text.parse().map_err(|_| "must be pending, delivered or failed".to_owned())
}

/// Lists the deliveries to an endpoint.
pub async fn list_deliveries(
    context: &CommandContext,
    open_table: &OpenTable,
    endpoints: &WebhookEndpoints,
    args: &DeliveriesArgs,
) -> Result<Exit, Failure> {
    let deliveries = read_deliveries(context, open_table, args.endpoint, args.status).await?;
    if deliveries.is_empty() {
        endpoints.get(args.endpoint.endpoint).await.map_err(failure_of_endpoint_error)?;
    }
    let views: Vec<DeliveryView> = deliveries.into_iter().map(DeliveryView::from).collect();
    context.print(&views, || text::delivery_table(&views))?;
    Ok(Exit::Done)
}

/// Restarts the selected deliveries. The running server sends them; if no server runs, the next server sends them after
/// its start.
pub async fn restart_deliveries(
    context: &CommandContext,
    open_table: &OpenTable,
    endpoints: &WebhookEndpoints,
    args: &RedeliverArgs,
) -> Result<Exit, Failure> {
    let endpoint = args.endpoint.endpoint;
    if context.options.table().is_some() {
        let reason = "with --table, this command cannot add events to the delivery queue: send POST \
            /webhook-endpoints/ENDPOINT/deliveries/EVENT/redeliver to the API instead";
        return Err(Failure::Refused(reason.to_owned()));
    }
    let keys: Vec<DeliveryKey> = match &args.event {
        Some(event) => vec![DeliveryKey { endpoint, event: event.clone() }],
        None => {
            let failed = read_deliveries(context, open_table, args.endpoint, Some(DeliveryStatus::Failed)).await?;
            failed.into_iter().map(|delivery| delivery.key).collect()
        }
    };
    if endpoints.get(endpoint).await.map_err(failure_of_endpoint_error)?.disabled_because.is_some() {
        return Err(failure_of_endpoint_error(EndpointError::Disabled));
    }
    let api = open_table.running_api_url();
    let mut restarted = Vec::new();
    for key in &keys {
        let result = match &api {
            // Each server has its delivery queue in memory, so only the running server itself can add the delivery to
            // its queue.
            Some(api) => request_redelivery(api, key).await,
            None => {
                let action = context.new_log_entry(ActionKind::RedeliverEvent, None);
                endpoints
                    .redeliver(key, &action)
                    .await
                    .map_err(failure_of_endpoint_error)
                    .map(|delivery| json!(DeliveryView::from(delivery)))
            }
        };
        match result {
            // If the stored event of a delivery is missing, the other failed deliveries are still restarted.
            Err(Failure::Refused(reason)) if args.failed => output::print_message(format!("error: {reason}")),
            result => restarted.push(result?),
        }
    }
    context.print(&restarted, || match restarted.len() {
        0 => "The endpoint has no failed delivery.\n".to_owned(),
        count => {
            let when = if api.is_some() { "" } else { ", as soon as `dueday` runs" };
            let events = output::format_count(u64::try_from(count).unwrap_or(u64::MAX), "event");
            format!("{events} will be sent again{when}\n")
        }
    })?;
    Ok(Exit::done_if(restarted.len() == keys.len()))
}

/// Asks the running local server at the URL `api` to repeat the delivery `key`. Returns the restarted delivery.
async fn request_redelivery(api: &str, DeliveryKey { endpoint, event }: &DeliveryKey) -> Result<Value, Failure> {
    let failed =
        |reason: &dyn Display| Failure::Refused(format!("the running server did not redeliver the event: {reason}"));
    let url = format!("{api}/webhook-endpoints/{endpoint}/deliveries/{event}/redeliver");
    let response = reqwest::Client::new().post(url).json(&json!({})).send().await.map_err(|error| failed(&error))?;
    let is_success = response.status().is_success();
    let body: Value = response.json().await.map_err(|error| failed(&error))?;
    if is_success { Ok(body) } else { Err(failed(&body["detail"].as_str().unwrap_or("it gave no reason"))) }
}

/// Returns the deliveries of the last 30 days to `endpoint` that have `status`. Prints an error for each delivery that
/// cannot be read.
async fn read_deliveries(
    context: &CommandContext,
    open_table: &OpenTable,
    EndpointArgs { endpoint }: EndpointArgs,
    status: Option<DeliveryStatus>,
) -> Result<Vec<Delivery>, Failure> {
    let page = open_table.table.get_deliveries(endpoint, &Paging::all(), context.clock.now()).await?;
    for error in &page.unreadable {
        output::print_message(format!("error: {error}"));
    }
    let is_selected = |delivery: &Delivery| status.is_none_or(|status| delivery.status == status);
    Ok(page.items.into_iter().filter(is_selected).collect())
}
