//! `dueday gateway`: serves the sandbox gateway alone, or checks a gateway.

use std::net::IpAddr;
use std::sync::Arc;

use clap::{Args, Subcommand};
use clock::SystemClock;
use emulator::{Limits, STRIPE_KEY, StripeServer};
use serde::Serialize;

use super::gateway_check::{CheckArgs, check};
use super::values;
use crate::context::Context;
use crate::machine::gateway::{ledger, sandbox, serve};
use crate::machine::listen::{listen, url};
use crate::terminal::output;
use crate::{Exit, Failure};

/// `dueday gateway`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
It holds the data folder's ledger and nothing else: `dueday` can serve the rest of the same folder beside it.

Examples:
  dueday gateway
  dueday gateway --like-stripe
  dueday gateway check http://127.0.0.1:7879
  dueday --gateway http://127.0.0.1:7879"
)]
pub struct GatewayArgs {
    /// Address of the gateway
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", env = "DUEDAY_LISTEN", value_parser = values::address)]
    pub listen: IpAddr,
    /// Port of the gateway
    #[arg(long, value_name = "PORT", default_value_t = 7879, env = "DUEDAY_GATEWAY_PORT", value_parser = values::port)]
    pub gateway_port: u16,
    /// Speak as Stripe does, for `--gateway stripe`; nothing is kept
    #[arg(long)]
    pub like_stripe: bool,
    #[command(subcommand)]
    pub command: Option<GatewayCommand>,
}

/// Instead of serving one.
#[derive(Debug, Subcommand)]
pub enum GatewayCommand {
    /// Check a gateway in its test mode: whether it keeps the promises that charging relies on
    Check(CheckArgs),
}

#[derive(Serialize)]
struct Standing {
    gateway: String,
}

#[derive(Serialize)]
struct Serving {
    gateway: String,
    ledger: String,
}

pub async fn gateway(context: &Context, args: &GatewayArgs) -> Result<Exit, Failure> {
    if let Some(GatewayCommand::Check(args)) = &args.command {
        return check(context, args).await;
    }
    context.local_only("gateway")?;
    if args.like_stripe {
        return like_stripe(context, args).await;
    }
    let data = &context.options.data;
    std::fs::create_dir_all(data).map_err(|source| Failure::Data { path: data.clone(), source })?;
    let sandbox = sandbox(&context.options, Arc::new(SystemClock))?;
    let url = serve(sandbox, args.listen, args.gateway_port).await?;
    let serving = Serving { gateway: url, ledger: ledger(&context.options).display().to_string() };
    output::write(&context.said(&serving, || welcome(context, &serving)))?;
    tokio::signal::ctrl_c().await?;
    output::tell(format!("\nStopped. Everything is kept in {}.", serving.ledger));
    Ok(Exit::Done)
}

async fn like_stripe(context: &Context, args: &GatewayArgs) -> Result<Exit, Failure> {
    let listener = listen(args.listen, args.gateway_port, "--gateway-port").await?;
    let gateway = url(&listener);
    let server = StripeServer::new(Arc::new(SystemClock));
    tokio::spawn(emulator::serve(listener, server.clone().router(), Limits::default()));
    let hint = context.hint("--gateway stripe");
    output::write(&context.said(&Standing { gateway: gateway.clone() }, || {
        format!(
            "A stand-in for Stripe is running: no money moves, nothing is kept. Stop it with Ctrl-C.\n\
             \n\
             \x20 Stripe      {gateway}\n\
             \n\
             Try next, in another terminal\n\
             \x20 STRIPE_API_BASE={gateway} STRIPE_SECRET_KEY={STRIPE_KEY} {hint}\n\
             \n"
        )
    }))?;
    tokio::signal::ctrl_c().await?;
    let paid = server.intents().iter().filter(|intent| intent.status == "succeeded").count();
    output::tell(format!("\nStopped. {} succeeded.", output::count(paid as u64, "payment")));
    Ok(Exit::Done)
}

fn welcome(context: &Context, serving: &Serving) -> String {
    let Serving { gateway, ledger } = serving;
    format!(
        "The sandbox gateway is running: no money moves. Stop it with Ctrl-C.\n\
         \n\
         \x20 gateway     {gateway}\n\
         \x20 ledger      {ledger}\n\
         \n\
         Try next, in another terminal\n\
         \x20 {}\n\
         \n",
        context.hint(&format!("--gateway {gateway}"))
    )
}
