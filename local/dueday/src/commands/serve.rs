//! `dueday`: the whole system on one machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use api::Api;
use axum::Extension;
use chrono::{DateTime, NaiveTime, Utc};
use clap::Args;
use config::Env;
use delivery::Reach;
use emulator::{EngineError, Limits};
use gateways::STRIPE_WEBHOOK_SECRET;
use gateways::SigningSecrets;
use inbound::StripeEvents;
use orders::{OrderDesk, all_days};
use orders_api::OrdersApi;
use rest::Caller;
use rest::caller::ReadsConfidential;
use store::Table;
use utoipa_swagger_ui::SwaggerUi;

use super::values;
use crate::context::Context;
use crate::machine::daily::Daily;
use crate::machine::data::{Held, Holder, Machine, Running};
use crate::machine::deliveries::Deliveries;
use crate::machine::gateway::{self, Gateway};
use crate::machine::listen::{listen, reachable, refused, url};
use crate::terminal::output;
use crate::{Exit, Failure};

/// Expired items are deleted this often.
const TTL_INTERVAL: Duration = Duration::from_secs(3_600);
/// Orders that wait are looked at again this often.
const FILL_INTERVAL: Duration = Duration::from_secs(3_600);

/// Where the servers listen, and when the daily runs are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Serving")]
pub struct ServeArgs {
    /// Address of the DynamoDB port and of the gateway (the API stays on loopback)
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", env = "DUEDAY_LISTEN", value_parser = values::address)]
    pub listen: IpAddr,
    /// Port of the API
    #[arg(long, value_name = "PORT", default_value_t = 7878, env = "DUEDAY_API_PORT", value_parser = values::port)]
    pub api_port: u16,
    /// Port that speaks DynamoDB
    #[arg(long, value_name = "PORT", default_value_t = 8000, env = "DUEDAY_DYNAMODB_PORT", value_parser = values::port)]
    pub dynamodb_port: u16,
    /// Port of the sandbox gateway
    #[arg(long, value_name = "PORT", default_value_t = 7879, env = "DUEDAY_GATEWAY_PORT", value_parser = values::port)]
    pub gateway_port: u16,
    /// Time of the daily run, and again two hours later [04:00 to 21:00]
    #[arg(
        long,
        value_name = "HH:MM",
        default_value = "06:00",
        env = "DUEDAY_BILLING_TIME",
        value_parser = values::billing_time
    )]
    pub billing_time: NaiveTime,
}

pub async fn serve(context: &Context, args: &ServeArgs) -> Result<Exit, Failure> {
    context.local_only("dueday")?;
    let mut held = match Held::take(context, &context.clock).await? {
        Holder::This(held) => *held,
        Holder::Other(running) => {
            let what = running.map_or("starting".to_owned(), |r| format!("process {}, API at {}", r.pid, r.api));
            return Err(Failure::InUse { path: context.options.data.clone(), what });
        }
    };
    let api_listener = listen(IpAddr::V4(Ipv4Addr::LOCALHOST), args.api_port, "--api-port").await?;
    let gateway = match &held.gateway {
        Gateway::Inside(sandbox) => gateway::serve(sandbox.clone(), args.listen, args.gateway_port).await?,
        Gateway::At(url) => url.clone(),
        Gateway::Stripe(_) | Gateway::Unusable(_) => gateway::STRIPE.to_owned(),
    };
    let dynamodb_address = SocketAddr::new(args.listen, args.dynamodb_port);
    let dynamodb = held.engine.serve(dynamodb_address).map_err(|error| match error {
        EngineError::Listen { address, source } => refused(address, source, "--dynamodb-port"),
        other => other.into(),
    })?;
    let running = Running {
        pid: std::process::id(),
        api: url(&api_listener),
        dynamodb: format!("http://{}", reachable(dynamodb.address)),
        gateway,
    };
    held.announce(&running)?;
    let held = Arc::new(held);
    let Machine { deployment, .. } = &Machine::on(held.clone(), context, context.clock.clone()).await?;
    let (deliveries, queue) = Deliveries::new(deployment.table.clone(), held.deliverer(context)?);
    let follower = held.follower(context, Some(queue.clone())).await?;
    let desk = held.order_desk(context).await?;
    let api = Api::new(deployment.table.clone(), context.config.of_api(), context.clock.clone()).await?;
    let api = api
        .with_gateway(held.gateway.client(context.clock.clone()), &context.config.charging)
        .with_deliveries(Arc::new(queue), Reach::Anywhere);
    // On loopback, whoever reaches the API is its operator.
    let orders = OrdersApi::new(desk.clone(), context.clock.clone());
    let description = rest::openapi::local_document(api::document(), orders_api::document());
    let pages = SwaggerUi::new("/docs").external_url_unchecked("/openapi.json", description);
    let mut routes = api.with_docs().routes().merge(orders.routes());
    if let Some(events) = stripe_events(&held.gateway, deployment.table.clone(), context)? {
        routes = routes.merge(inbound::routes(Arc::new(events)));
    }
    let routes = rest::router(routes).merge(pages);
    let routes = routes.layer(Extension(ReadsConfidential)).layer(Extension(Caller::Operator));
    tokio::spawn(emulator::serve(api_listener, routes, Limits::default()));

    output::write(&context.said(&running, || welcome(context, args, &running)))?;
    let daily = Daily::new(deployment, args.billing_time, context.options.json).await?;
    tokio::select! {
        stopped = daily.run() => stopped?,
        () = delete_expired(&held) => {}
        () = fill_waiting(&desk) => {}
        () = follower.follow() => {}
        () = follower.post.keep_sending() => {}
        () = deliveries.run(context.clock.as_ref()) => {}
        _ = tokio::signal::ctrl_c() => {
            output::tell(format!("\nStopped. Everything is kept in {}.", context.options.data.display()));
        }
    }
    Ok(Exit::Done)
}

/// What Stripe tells by itself is worked on where its signing secret is known.
fn stripe_events(gateway: &Gateway, table: Table, context: &Context) -> Result<Option<StripeEvents>, Failure> {
    let env = Env::process();
    let (Gateway::Stripe(stripe), Some(text)) = (gateway, env.given(&STRIPE_WEBHOOK_SECRET)) else { return Ok(None) };
    let secrets = SigningSecrets::parse(&text)
        .map_err(|error| Failure::Refused(format!("{} {error}", STRIPE_WEBHOOK_SECRET.name)))?;
    Ok(Some(StripeEvents::new(table, stripe.clone(), secrets, context.config.of_webhooks(), context.clock.clone())))
}

async fn delete_expired(held: &Held) {
    loop {
        tokio::time::sleep(TTL_INTERVAL).await;
        held.engine.delete_expired();
    }
}

/// Orders that wait are filled when stock or an address comes; what a kill has left behind, here.
async fn fill_waiting(desk: &OrderDesk) {
    loop {
        let done = desk.fill_waiting(all_days(), DateTime::<Utc>::MAX_UTC).await;
        if done.failed > 0 {
            output::tell(format!(
                "error: {} that wait could not be looked at",
                output::count(done.failed.into(), "order")
            ));
        }
        tokio::time::sleep(FILL_INTERVAL).await;
    }
}

fn welcome(context: &Context, args: &ServeArgs, running: &Running) -> String {
    let Running { api, dynamodb, gateway, .. } = running;
    let data = context.options.data.display();
    let (what_of_it, open) = match context.options.gateway() {
        None => ("sandbox: no money moves", "the DynamoDB port and the gateway listen"),
        Some(_) => ("elsewhere, by --gateway", "the DynamoDB port listens"),
    };
    let warning = if args.listen.is_loopback() {
        String::new()
    } else {
        format!(
            "\nWARNING: {open} on {}: whoever reaches this machine can read\n\
             and write everything. Use it only on a network you trust.\n",
            args.listen
        )
    };
    format!(
        "Dueday is running. Stop it with Ctrl-C.\n\
         \n\
         \x20 API         {api}  (its description: {api}/docs)\n\
         \x20 DynamoDB    {dynamodb}  (AWS CLI, NoSQL Workbench; any credentials)\n\
         \x20 gateway     {gateway}  ({what_of_it})\n\
         \x20 data        {data}\n\
         \x20 mails       {data}/outbox\n\
         \x20 events      {data}/events\n\
         {warning}\n\
         Try next, in another terminal\n\
         \x20 {}\n\
         \x20 curl {api}/accounts/harbour-books/receipts\n\
         \x20 {}\n\
         \n",
        context.hint("demo"),
        context.hint("due")
    )
}
