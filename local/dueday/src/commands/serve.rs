//! `dueday` without a command: serves the whole system on one machine.

use std::io::IsTerminal as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use api::Api;
use axum::http::header;
use axum::middleware::map_response;
use axum::response::Response;
use axum::{Extension, Router};
use chrono::NaiveTime;
use clap::Args;
use config::Env;
use emulator::{Engine, EngineError, RunningEngine, ServerLimits};
use gateways::STRIPE_WEBHOOK_SECRET;
use gateways::SigningSecrets;
use inbound::StripeEventHandler;
use orders_api::OrdersApi;
use outbound::{AllowedAddresses, EndpointUrlCheck, MemoryQueue};
use rest::{Caller, PublicUrl, Role, TokenRules};
use serde_json::Value;
use store::Table;
use utoipa_swagger_ui::SwaggerUi;

use super::help_groups::SERVING_HEADING;
use super::value_parsers;
use crate::context::CommandContext;
use crate::machine::daily::DailyTimer;
use crate::machine::daily_checks::DailyChecks;
use crate::machine::data_folder::{FolderRequirement, LockOutcome, LockedFolder, RunningServer};
use crate::machine::deliveries::LocalDeliveries;
use crate::machine::gateway::{self, SelectedGateway};
use crate::machine::listen::{
    API_PORT_VARIABLE, DEFAULT_API_PORT, listen_failure, listen_on_port, listener_url, reachable_address,
};
use crate::machine::local_machine::LocalMachine;
use crate::machine::order_filler::OrderFiller;
use crate::machine::queues::LocalQueues;
use crate::machine::reminder_priority::ReminderPriority;
use crate::machine::tokens::{Authentication, read_or_create_token_issuer};
use crate::terminal::output;
use crate::{Exit, Failure};

/// The time between two deletions of expired items from the database file.
const TTL_INTERVAL: Duration = Duration::from_secs(3_600);

/// The content security policy of the API's documentation (Swagger UI). Its scripts come from this server, its icons are
/// in `data:` URLs, and it sets styles in the page.
const DOCUMENTATION_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                                    img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                                    form-action 'none'; frame-ancestors 'none'";

/// The options of `dueday` without a command: the addresses of its servers, and the time of the daily runs.
#[derive(Debug, Args)]
#[command(next_help_heading = SERVING_HEADING)]
pub struct ServeArgs {
    /// Address of the DynamoDB port and of the gateway (the API always uses the loopback address)
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", env = "DUEDAY_LISTEN")]
    #[arg(value_parser = value_parsers::parse_ip_address)]
    pub listen: IpAddr,
    /// Port of the API
    #[arg(long, value_name = "PORT", default_value_t = DEFAULT_API_PORT, env = API_PORT_VARIABLE)]
    #[arg(value_parser = value_parsers::parse_port)]
    pub api_port: u16,
    /// Port of the DynamoDB API
    #[arg(long, value_name = "PORT", default_value_t = 8000, env = "DUEDAY_DYNAMODB_PORT")]
    #[arg(value_parser = value_parsers::parse_port)]
    pub dynamodb_port: u16,
    /// Port of the sandbox gateway
    #[arg(long, value_name = "PORT", default_value_t = 7879, env = "DUEDAY_GATEWAY_PORT")]
    #[arg(value_parser = value_parsers::parse_port)]
    pub gateway_port: u16,
    /// Time of the first daily run; the second follows two hours later [04:00 to 19:59]
    #[arg(
        long,
        value_name = "HH:MM",
        default_value = "06:00",
        env = "DUEDAY_BILLING_TIME",
        value_parser = value_parsers::parse_billing_time
    )]
    pub billing_time: NaiveTime,
    /// Require an access token for the API; `dueday token` creates one
    #[arg(long)]
    pub auth: bool,
}

/// Runs `dueday` without a command: serves the whole system until the user presses Ctrl-C.
pub async fn serve_whole_system(context: &CommandContext, args: &ServeArgs) -> Result<Exit, Failure> {
    context.require_local_table("dueday")?;
    if std::io::stderr().is_terminal() {
        output::print_message(format!("Dueday starts with the data in {}.", context.options.data.display()));
    }
    let mut locked_folder = lock_data_folder(context).await?;
    let api_listener = listen_on_port(IpAddr::V4(Ipv4Addr::LOCALHOST), args.api_port, "--api-port").await?;
    let gateway = serve_gateway(&locked_folder.gateway, args).await?;
    let dynamodb = serve_dynamodb(&locked_folder.engine, args)?;
    let running = RunningServer {
        pid: std::process::id(),
        api: listener_url(&api_listener),
        dynamodb: format!("http://{}", reachable_address(dynamodb.address)),
        gateway,
    };
    locked_folder.write_server_urls(&running)?;
    let locked_folder = Arc::new(locked_folder);
    let machine = LocalMachine::with_locked_folder(
        locked_folder.clone(),
        FolderRequirement::CreateIfAbsent,
        context,
        context.clock.clone(),
    )
    .await?;
    let deployment = &machine.deployment;
    let (deliveries, queue) = LocalDeliveries::new(deployment.table.clone(), locked_folder.create_deliverer(context)?);
    let reminder_priority = ReminderPriority::default();
    let follower = locked_folder.create_follower(context, Some(queue.clone())).await?;
    let follower = follower.with_reminder_priority(reminder_priority.clone());
    let desk = locked_folder.order_desk(context).await?;
    let queues = LocalQueues::new(deployment.table.clone(), context.clock.clone(), &context.options);
    let api = create_api(&machine, &locked_folder, queue, queues.clone(), context).await?;
    let filler = OrderFiller::new(desk.clone());
    let checks = DailyChecks::new(deployment, desk.table.clone(), machine.gateway.clone(), locked_folder.clone());
    let merchant = &context.config.merchant.name;
    let orders = OrdersApi::new(desk, deployment.table.clone(), merchant, context.clock.clone());
    let routes = api.with_docs().routes().merge(filler.observe_changes(orders.routes()));
    let events = stripe_event_handler(&locked_folder.gateway, deployment.table.clone(), context)?;
    let routes = complete_routes(routes, events, &running.api, context, args)?;
    tokio::spawn(emulator::serve_http(api_listener, routes, ServerLimits::default()));

    output::write_to_stdout(&context.render(&running, || welcome_text(context, args, &running)))?;
    let daily = DailyTimer::new(deployment, args.billing_time, queues, context.options.json).await?;
    let daily = daily.with_reminder_priority(reminder_priority);
    tokio::select! {
        stopped = daily.run_batches_daily() => stopped?,
        () = delete_expired_items_hourly(&locked_folder) => {}
        () = checks.check_continuously(follower.first_publication()) => {}
        () = filler.fill_waiting_orders_continuously() => {}
        () = follower.publish_continuously() => {}
        () = follower.notice_sender.send_continuously() => {}
        () = deliveries.make_due_deliveries(context.clock.as_ref()) => {}
        _ = tokio::signal::ctrl_c() => {
            output::print_message(format!("\nStopped. All data is stored in {}.", context.options.data.display()));
        }
    }
    Ok(Exit::Done)
}

/// Locks the data folder.
///
/// # Errors
/// [`Failure::InUse`] if another process has locked the folder.
async fn lock_data_folder(context: &CommandContext) -> Result<LockedFolder, Failure> {
    match LockedFolder::lock(context, &context.clock).await? {
        LockOutcome::Acquired(locked_folder) => Ok(*locked_folder),
        LockOutcome::HeldByOther(running) => {
            let user = running.map_or("starting".to_owned(), |r| format!("process {}, API at {}", r.pid, r.api));
            Err(Failure::InUse { path: context.options.data.clone(), user })
        }
    }
}

/// Serves the sandbox, if `gateway` is the sandbox. Returns the URL of the gateway.
async fn serve_gateway(gateway: &SelectedGateway, args: &ServeArgs) -> Result<String, Failure> {
    match gateway {
        SelectedGateway::Sandbox(sandbox) => {
            gateway::serve_sandbox_gateway(sandbox.clone(), args.listen, args.gateway_port).await
        }
        SelectedGateway::Http(url, _) => Ok(url.clone()),
        SelectedGateway::Stripe(_) | SelectedGateway::Unavailable(_) => Ok(gateway::STRIPE.to_owned()),
    }
}

/// Serves the DynamoDB API of `engine`, until the returned server is dropped.
fn serve_dynamodb(engine: &Engine, args: &ServeArgs) -> Result<RunningEngine, Failure> {
    engine.serve(SocketAddr::new(args.listen, args.dynamodb_port)).map_err(|error| match error {
        EngineError::Listen { address, source } => listen_failure(address, source, "--dynamodb-port"),
        other => other.into(),
    })
}

/// Creates the API of the payments of `machine`, which sends webhook deliveries to `queue`.
async fn create_api(
    machine: &LocalMachine,
    locked_folder: &LockedFolder,
    queue: MemoryQueue,
    queues: LocalQueues,
    context: &CommandContext,
) -> Result<Api, Failure> {
    let (deployment, config) = (&machine.deployment, &context.config);
    let api = Api::new(deployment.table.clone(), &config.table, config.merchant.clone(), context.clock.clone()).await?;
    let gateway = locked_folder.gateway.client(context.clock.clone());
    Ok(api
        .with_checked_gateway(gateway, &config.charging, deployment.older_table_check.clone())
        .with_encryption(locked_folder.keys.clone())
        .with_deliveries(Arc::new(queue), EndpointUrlCheck::new(AllowedAddresses::Any))
        .with_queues(Arc::new(queues)))
}

/// Adds the inbound webhooks that `events` handles, the documentation and the authentication to `routes`, the routes of
/// the API at `api_url`.
fn complete_routes(
    routes: Router,
    events: Option<StripeEventHandler>,
    api_url: &str,
    context: &CommandContext,
    args: &ServeArgs,
) -> Result<Router, Failure> {
    let routes = match events {
        Some(events) => routes.merge(inbound::stripe_webhook_routes(Arc::new(events))),
        None => routes,
    };
    let document = rest::openapi::merge_openapi_documents(api::openapi_document(), orders_api::openapi_document());
    let description = if args.auth { document } else { rest::openapi::make_tokens_optional(document) };
    let routes = rest::complete_router(routes).merge(api_documentation_routes(description));
    let public_url = PublicUrl::parse(api_url).map_err(Failure::Refused)?;
    let routes = routes.layer(Extension(public_url));
    Ok(match args.auth {
        true => create_authentication(context)?.protect(routes),
        // Without `--auth`, every caller is an operator. This is safe, because the API listens only on the loopback
        // address.
        false => routes.layer(Extension(Caller::Operator(Role::Admin))),
    })
}

/// Returns the routes of the web page that shows `description`, the OpenAPI document of the API. Other pages cannot show
/// the page in a frame, where they could make a person click on it, and the page loads nothing from other hosts.
fn api_documentation_routes(description: Value) -> Router {
    let pages: Router = SwaggerUi::new("/docs").external_url_unchecked("/openapi.json", description).into();
    let headers =
        [(header::CONTENT_SECURITY_POLICY, DOCUMENTATION_POLICY), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    pages.layer(map_response(move |response: Response| {
        let headers = headers.clone();
        async move { (headers, response) }
    }))
}

/// Returns the handler of inbound webhooks from Stripe; `None` if the gateway is not Stripe, or if the signing secret
/// of the webhooks is not set.
fn stripe_event_handler(
    gateway: &SelectedGateway,
    table: Table,
    context: &CommandContext,
) -> Result<Option<StripeEventHandler>, Failure> {
    let env = Env::of_process();
    let (SelectedGateway::Stripe(stripe), Some(text)) = (gateway, env.get(&STRIPE_WEBHOOK_SECRET)) else {
        return Ok(None);
    };
    let secrets = SigningSecrets::parse(&text)
        .map_err(|error| Failure::Refused(format!("{} {error}", STRIPE_WEBHOOK_SECRET.name)))?;
    Ok(Some(StripeEventHandler::new(table, stripe.clone(), secrets, context.clock.clone())))
}

/// Creates the authentication of API requests, with the token issuer of the data folder.
fn create_authentication(context: &CommandContext) -> Result<Authentication, Failure> {
    let rules = TokenRules::read(Env::of_process())?;
    let issuer = Arc::new(read_or_create_token_issuer(&context.options.data)?);
    Ok(Authentication { issuer, rules, clock: context.clock.clone() })
}

/// Deletes the expired items of the tables each hour, until the future is dropped.
async fn delete_expired_items_hourly(locked_folder: &LockedFolder) {
    loop {
        tokio::time::sleep(TTL_INTERVAL).await;
        locked_folder.engine.delete_expired();
    }
}

/// Returns the text that is printed when the servers have started.
fn welcome_text(context: &CommandContext, args: &ServeArgs, running: &RunningServer) -> String {
    let RunningServer { api, dynamodb, gateway, .. } = running;
    let data = context.options.data.display();
    let (gateway_note, open) = match context.options.gateway() {
        None => ("sandbox: no money moves", "the DynamoDB port and the gateway listen"),
        Some(_) => ("external, set by --gateway", "the DynamoDB port listens"),
    };
    let warning = if args.listen.is_loopback() {
        String::new()
    } else {
        format!(
            "\nWARNING: {open} on {}: everyone who can reach this machine\n\
             can read and change all data. Use this only on a trusted network.\n",
            args.listen
        )
    };
    let tokens = match args.auth {
        true => {
            format!(
                "  tokens      every request to the API needs one: {}\n",
                context.command_line("token --role admin")
            )
        }
        false => String::new(),
    };
    let header = match args.auth {
        true => format!(" -H \"Authorization: Bearer $({})\"", context.command_line("token --role admin")),
        false => String::new(),
    };
    let demo = || [context.command_line("demo"), format!("curl{header} {api}/accounts/harbour-books/receipts")];
    // `dueday demo` is suggested only with the sandbox gateway, because no other gateway has the customers of the demo.
    let demo = context.options.gateway().is_none().then(demo).into_iter().flatten();
    let next: String = demo.chain([context.command_line("forecast")]).map(|command| format!("  {command}\n")).collect();
    format!(
        "Dueday is running. Stop it with Ctrl-C.\n\
         \n\
         \x20 API         {api}  (documentation: {api}/docs)\n\
         \x20 DynamoDB    {dynamodb}  (AWS CLI, NoSQL Workbench; any credentials)\n\
         \x20 gateway     {gateway}  ({gateway_note})\n\
         \x20 data        {data}\n\
         \x20 mails       {data}/outbox\n\
         \x20 events      {data}/events\n\
         {tokens}\
         {warning}\n\
         Try next, in another terminal\n\
         {next}\n"
    )
}
