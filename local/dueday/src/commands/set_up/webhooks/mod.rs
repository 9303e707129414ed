//! `dueday webhooks`: lists, creates and changes the webhook endpoints of the merchant.

mod deliveries;
mod text;

use std::sync::Arc;

use api::{EndpointView, EndpointWithSecret};
use billing::{ActionKind, EventType};
use clap::{Args, Subcommand};
use encryption::{ENCRYPTION_KEYS, EncryptionKeys};
use outbound::{
    AllowedAddresses, EndpointChange, EndpointError, EndpointSecrets, EndpointUrlCheck, WebhookEndpoints,
    parse_event_type,
};
use store::{Paging, TableError};
use ulid::Ulid;

use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::terminal::output;
use crate::{Exit, Failure};

/// The arguments of `dueday webhooks`.
#[derive(Debug, Args)]
#[command(after_help = "\
A webhook endpoint is a URL to which Dueday posts events. Without a subcommand, the command lists all endpoints, and \
exits with 1 if one is disabled or cannot be read. `create` and `rotate-secret` print the signing secret, which is not \
printed again.

Examples:
  dueday webhooks
  dueday webhooks create https://shop.example.com/hook --type payment.succeeded
  dueday webhooks deliveries ENDPOINT --status failed
  dueday webhooks redeliver ENDPOINT --failed")]
pub struct WebhooksArgs {
    #[command(subcommand)]
    pub action: Option<WebhooksAction>,
}

/// The subcommands of `dueday webhooks`. Without a subcommand, the command lists the endpoints.
#[derive(Debug, Subcommand)]
pub enum WebhooksAction {
    /// Create an endpoint, and print its secret once
    Create(CreateEndpointArgs),
    /// Show an endpoint
    Show(EndpointArgs),
    /// Send events to a disabled endpoint again
    Enable(EndpointArgs),
    /// Send no more events to an endpoint
    Disable(EndpointArgs),
    /// Change the URL or the event types of an endpoint
    Change(ChangeEndpointArgs),
    /// Replace the secret of an endpoint, and print the new secret once
    RotateSecret(EndpointArgs),
    /// Encrypt the secrets of all endpoints with the first encryption key
    EncryptSecrets,
    /// Remove an endpoint
    Remove(RemoveEndpointArgs),
    /// List the deliveries of the last 30 days to an endpoint
    Deliveries(deliveries::DeliveriesArgs),
    /// Send one event again, or all events whose delivery has failed
    Redeliver(deliveries::RedeliverArgs),
}

/// The argument that selects an endpoint.
#[derive(Clone, Copy, Debug, Args)]
pub struct EndpointArgs {
    /// The endpoint's id
    #[arg(value_parser = parse_endpoint_id)]
    pub endpoint: Ulid,
}

/// The arguments of `dueday webhooks create`.
#[derive(Debug, Args)]
pub struct CreateEndpointArgs {
    /// The URL to which events are posted; on AWS it must be an https URL with a public address
    pub url: String,
    /// An event type that the endpoint receives; can be repeated [default: all types]
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_event_type)]
    pub types: Vec<EventType>,
}

/// The arguments of `dueday webhooks change`.
#[derive(Debug, Args)]
#[group(required = true, multiple = true, args = ["url", "types"])]
pub struct ChangeEndpointArgs {
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    /// The new URL
    #[arg(long)]
    pub url: Option<String>,
    /// An event type that the endpoint receives; can be repeated, and replaces the former types
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_event_type)]
    pub types: Vec<EventType>,
}

/// The arguments of `dueday webhooks remove`.
#[derive(Debug, Args)]
pub struct RemoveEndpointArgs {
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub confirmation: ConfirmationArgs,
}

/// Parses the id of an endpoint.
fn parse_endpoint_id(text: &str) -> Result<Ulid, String> {
    text.parse().map_err(|_| "must be the id of an endpoint, as `dueday webhooks` lists it".to_owned())
}

/// Returns the failure of the command that was refused because of `error`.
fn failure_of_endpoint_error(error: EndpointError) -> Failure {
    match error {
        EndpointError::Table(error) => error.into(),
        EndpointError::Url(_) | EndpointError::Address(_) => Failure::Refused(format!("the URL {error}")),
        EndpointError::NoEncryptionKeys => Failure::Refused(format!(
            "{error}: set {} to the text of the stack's secret EncryptionKeys (docs/operations.md, \"Encryption keys\")",
            ENCRYPTION_KEYS.name
        )),
        error => Failure::Refused(error.to_string()),
    }
}

/// Runs `dueday webhooks`.
pub async fn run_webhooks_command(context: &CommandContext, args: &WebhooksArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let allowed = match context.options.table() {
        Some(_) => AllowedAddresses::PublicOnly,
        None => AllowedAddresses::Any,
    };
    let clock = context.clock.clone();
    let (table, keys) = (open_table.table.clone(), open_table.encryption_keys(context)?);
    let addresses = EndpointUrlCheck::new(allowed);
    let endpoints = WebhookEndpoints::new(table, keys.clone(), addresses, Arc::clone(&clock));
    let action = |kind: ActionKind| context.new_log_entry(kind, None);
    let change = async |endpoint: EndpointArgs, change: EndpointChange| {
        let changed = endpoints
            .change(endpoint.endpoint, change, &action(ActionKind::ChangeEndpoint))
            .await
            .map_err(failure_of_endpoint_error)?;
        print_endpoint(context, &EndpointView::new(&changed, clock.now()))
    };
    match &args.action {
        None => list_endpoints(context, &open_table, keys).await,
        Some(WebhooksAction::Create(args)) => {
            // Earlier changes are published first, so that their events are not sent to the new endpoint.
            open_table.publish_all_changes(context).await?;
            let (new, secret) =
                endpoints.prepare(&args.url, args.types.clone()).await.map_err(failure_of_endpoint_error)?;
            open_table.table.create_webhook_endpoint(&new, Some(&action(ActionKind::CreateEndpoint))).await?;
            print_endpoint_with_secret(context, &EndpointWithSecret::new(&new, &secret, clock.now()))
        }
        Some(WebhooksAction::Show(args)) => {
            let stored = endpoints.get(args.endpoint).await.map_err(failure_of_endpoint_error)?;
            print_endpoint(context, &EndpointView::new(&stored, clock.now()))
        }
        Some(WebhooksAction::Enable(args)) => {
            change(*args, EndpointChange { enabled: Some(true), ..EndpointChange::default() }).await
        }
        Some(WebhooksAction::Disable(args)) => {
            change(*args, EndpointChange { enabled: Some(false), ..EndpointChange::default() }).await
        }
        Some(WebhooksAction::Change(args)) => {
            let types = Some(args.types.clone()).filter(|types| !types.is_empty());
            change(args.endpoint, EndpointChange { url: args.url.clone(), types, enabled: None }).await
        }
        Some(WebhooksAction::RotateSecret(args)) => {
            let action = action(ActionKind::RotateEndpointSecret);
            let (rotated, secret) =
                endpoints.rotate_secret(args.endpoint, &action).await.map_err(failure_of_endpoint_error)?;
            print_endpoint_with_secret(context, &EndpointWithSecret::new(&rotated, &secret, clock.now()))
        }
        Some(WebhooksAction::EncryptSecrets) => encrypt_endpoint_secrets(context, &open_table, &endpoints).await,
        Some(WebhooksAction::Remove(args)) => {
            let id = args.endpoint.endpoint;
            args.confirmation.confirm(&format!("Remove the webhook endpoint {id}?"))?;
            endpoints.remove(id, &action(ActionKind::RemoveEndpoint)).await.map_err(failure_of_endpoint_error)?;
            context
                .print(&serde_json::json!({ "removed": id.to_string() }), || format!("removed the endpoint {id}\n"))?;
            Ok(Exit::Done)
        }
        Some(WebhooksAction::Deliveries(args)) => {
            deliveries::list_deliveries(context, &open_table, &endpoints, args).await
        }
        Some(WebhooksAction::Redeliver(args)) => {
            deliveries::restart_deliveries(context, &open_table, &endpoints, args).await
        }
    }
}

/// Lists all endpoints. If `keys` are given, reports the endpoints whose secrets cannot be decrypted.
async fn list_endpoints(
    context: &CommandContext,
    open_table: &OpenTable,
    keys: Option<EncryptionKeys>,
) -> Result<Exit, Failure> {
    let mut page = open_table.table.get_webhook_endpoints(&Paging::all()).await?;
    let now = context.clock.now();
    if let Some(keys) = keys {
        let secrets = EndpointSecrets::new(keys, context.clock.clone());
        let decrypted = page.items.iter().map(|endpoint| secrets.signing_secrets(endpoint, now));
        page.unreadable.extend(decrypted.filter_map(Result::err));
    }
    let views: Vec<EndpointView> = page.items.iter().map(|endpoint| EndpointView::new(endpoint, now)).collect();
    for error in &page.unreadable {
        output::print_message(format!("error: {error}"));
    }
    let is_healthy = page.unreadable.is_empty() && views.iter().all(|view| view.enabled);
    context.print(&views, || text::endpoint_table(&views))?;
    Ok(Exit::done_if(is_healthy))
}

/// Encrypts the secrets of all endpoints with the first encryption key. Reports the endpoints whose secrets cannot be
/// decrypted.
async fn encrypt_endpoint_secrets(
    context: &CommandContext,
    open_table: &OpenTable,
    endpoints: &WebhookEndpoints,
) -> Result<Exit, Failure> {
    let page = open_table.table.get_webhook_endpoints(&Paging::all()).await?;
    let (mut encrypted, mut errors) = (0_u64, page.unreadable);
    for endpoint in page.items {
        let action = context.new_log_entry(ActionKind::EncryptEndpointSecrets, None);
        match endpoints.encrypt_secrets(endpoint.id, &action).await {
            Ok(()) => encrypted += 1,
            Err(EndpointError::Table(error @ TableError::Unreadable { .. })) => errors.push(error),
            Err(error) => return Err(failure_of_endpoint_error(error)),
        }
    }
    for error in &errors {
        output::print_message(format!("error: {error}"));
    }
    context.print(&serde_json::json!({ "encrypted": encrypted }), || {
        format!("the secrets of {} are encrypted with the first key\n", output::format_count(encrypted, "endpoint"))
    })?;
    Ok(Exit::done_if(errors.is_empty()))
}

/// Prints one endpoint.
fn print_endpoint(context: &CommandContext, view: &EndpointView) -> Result<Exit, Failure> {
    context.print(view, || text::endpoint_text(view))?;
    Ok(Exit::Done)
}

/// Prints one endpoint and its secret.
fn print_endpoint_with_secret(context: &CommandContext, view: &EndpointWithSecret) -> Result<Exit, Failure> {
    let secret = || format!("{}secret: {}\n", text::endpoint_text(&view.endpoint), view.secret);
    context.print(view, secret)?;
    if !context.options.json {
        output::print_message("Store the secret now: it is not printed again.");
    }
    Ok(Exit::Done)
}
