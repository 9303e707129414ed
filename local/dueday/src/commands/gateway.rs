//! `dueday gateway`: the sandbox gateway alone.

use std::net::IpAddr;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use shared::clock::SystemClock;

use super::values;
use crate::context::Context;
use crate::machine::gateway::{ledger, sandbox, serve};
use crate::terminal::output;
use crate::{Exit, Failure};

/// `dueday gateway`.
#[derive(Debug, Args)]
#[command(after_help = "\
It holds the data folder's ledger and nothing else: `dueday` can serve the rest of the same folder beside it.

Examples:
  dueday gateway
  dueday --gateway http://127.0.0.1:7879")]
pub struct GatewayArgs {
    /// Address of the gateway
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", env = "DUEDAY_LISTEN", value_parser = values::address)]
    pub listen: IpAddr,
    /// Port of the gateway
    #[arg(long, value_name = "PORT", default_value_t = 7879, env = "DUEDAY_GATEWAY_PORT", value_parser = values::port)]
    pub gateway_port: u16,
}

#[derive(Serialize)]
struct Serving {
    gateway: String,
    ledger: String,
}

pub async fn gateway(context: &Context, args: &GatewayArgs) -> Result<Exit, Failure> {
    context.local_only("gateway")?;
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
