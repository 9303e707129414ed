//! `dueday gateway`: serves the sandbox gateway in its own process, or checks a gateway.

use std::net::IpAddr;
use std::sync::Arc;

use clap::{Args, Subcommand};
use clock::SystemClock;
use emulator::{STRIPE_KEY, ServerLimits, StripeServer};
use serde::Serialize;

use crate::commands::set_up::gateway_check::{CheckGatewayArgs, check_gateway};
use crate::commands::value_parsers;
use crate::context::CommandContext;
use crate::machine::gateway::{open_sandbox_gateway, path_of_sandbox_ledger, serve_sandbox_gateway};
use crate::machine::listen::{listen_on_port, listener_url};
use crate::machine::private_folder::open_private_folder;
use crate::terminal::output;
use crate::{Exit, Failure};

/// The arguments of `dueday gateway`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
The gateway only uses the ledger in the data folder: at the same time `dueday` can serve the rest of the same folder.

Examples:
  dueday gateway
  dueday gateway --like-stripe
  dueday gateway check http://127.0.0.1:7879
  dueday --gateway http://127.0.0.1:7879"
)]
pub struct GatewayArgs {
    /// Address of the gateway
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", env = "DUEDAY_LISTEN")]
    #[arg(value_parser = value_parsers::parse_ip_address)]
    pub listen: IpAddr,
    /// Port of the gateway
    #[arg(long, value_name = "PORT", default_value_t = 7879, env = "DUEDAY_GATEWAY_PORT")]
    #[arg(value_parser = value_parsers::parse_port)]
    pub gateway_port: u16,
    /// Imitate the API of Stripe, for `--gateway stripe`; nothing is stored
    #[arg(long)]
    pub like_stripe: bool,
    #[command(subcommand)]
    pub command: Option<GatewayCommand>,
}

/// The subcommands of `dueday gateway`. Without a subcommand, the command serves the sandbox gateway.
#[derive(Debug, Subcommand)]
pub enum GatewayCommand {
    /// Check in test mode whether a gateway behaves as the charging protocol requires
    Check(CheckGatewayArgs),
}

/// The URL of the stand-in for Stripe, as printed with `--json`.
#[derive(Serialize)]
struct GatewayAddress {
    gateway: String,
}

/// The URL of the sandbox gateway and the path of its ledger, as printed with `--json`.
#[derive(Serialize)]
struct SandboxAddress {
    gateway: String,
    ledger: String,
}

/// Runs `dueday gateway`.
pub async fn run_gateway_command(context: &CommandContext, args: &GatewayArgs) -> Result<Exit, Failure> {
    if let Some(GatewayCommand::Check(args)) = &args.command {
        return check_gateway(context, args).await;
    }
    context.require_local_table("gateway")?;
    if args.like_stripe {
        return serve_stripe_stand_in(context, args).await;
    }
    let data = &context.options.data;
    open_private_folder(data)?;
    let sandbox = open_sandbox_gateway(&context.options, Arc::new(SystemClock))?;
    let url = serve_sandbox_gateway(sandbox, args.listen, args.gateway_port).await?;
    let address =
        SandboxAddress { gateway: url, ledger: path_of_sandbox_ledger(&context.options).display().to_string() };
    output::write_to_stdout(&context.render(&address, || sandbox_welcome_text(context, &address)))?;
    tokio::signal::ctrl_c().await?;
    output::print_message(format!("\nStopped. All payments are stored in {}.", address.ledger));
    Ok(Exit::Done)
}

/// Serves a stand-in for Stripe until the user presses Ctrl-C.
async fn serve_stripe_stand_in(context: &CommandContext, args: &GatewayArgs) -> Result<Exit, Failure> {
    let listener = listen_on_port(args.listen, args.gateway_port, "--gateway-port").await?;
    let gateway = listener_url(&listener);
    let server = StripeServer::new(Arc::new(SystemClock));
    tokio::spawn(emulator::serve_http(listener, server.clone().router(), ServerLimits::default()));
    // A data folder belongs to one gateway, and the default folder usually belongs to the sandbox gateway.
    let folder = if context.options.data_flag().is_empty() { " --data .dueday-stripe" } else { "" };
    let hint = context.command_line(&format!("--gateway stripe{folder}"));
    output::write_to_stdout(&context.render(&GatewayAddress { gateway: gateway.clone() }, || {
        format!(
            "A stand-in for Stripe is running: no money moves, nothing is stored. Stop it with Ctrl-C.\n\
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
    output::print_message(format!("\nStopped. {} succeeded.", output::format_count(paid as u64, "payment")));
    Ok(Exit::Done)
}

/// Returns the text that is printed when the sandbox gateway has started.
fn sandbox_welcome_text(context: &CommandContext, address: &SandboxAddress) -> String {
    let SandboxAddress { gateway, ledger } = address;
    format!(
        "The sandbox gateway is running: no money moves. Stop it with Ctrl-C.\n\
         \n\
         \x20 gateway     {gateway}\n\
         \x20 ledger      {ledger}\n\
         \n\
         Try next, in another terminal\n\
         \x20 {}\n\
         \n",
        context.command_line(&format!("--gateway {gateway}"))
    )
}
