//! One file a command: its arguments, and its code.

mod accounts;
mod audit;
mod charging;
mod completions;
mod confirm_clock;
mod demo;
mod demo_company;
mod due;
mod events;
mod export;
mod findings;
mod forecast;
mod found;
mod gateway;
mod gateway_check;
mod import;
mod kept_event;
mod listen;
mod move_gateway;
mod orders;
mod receipt;
mod receipts;
mod refund;
mod report;
mod reshard;
mod resolve;
pub mod run;
mod runs;
pub mod serve;
mod shards;
mod simulate;
mod subscription;
mod subscriptions;
mod values;
mod why;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::context::Context;
use crate::options::Options;
use crate::{Exit, Failure};

/// Recurring payments on DynamoDB: the whole system on one machine.
///
/// Without a command it serves everything: the table, the API, the sandbox gateway, and the daily runs.
#[derive(Debug, Parser)]
#[command(name = "dueday", version, after_help = EXAMPLES, args_conflicts_with_subcommands = false)]
pub struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: serve::ServeArgs,
    #[command(flatten)]
    pub(crate) options: Options,
}

const EXAMPLES: &str = "\
Examples:
  dueday                           start everything
  dueday demo                      load a small merchant
  dueday due --date 2027-01-31     what is due by that day
  dueday run payments              charge what is due today
  dueday import subscriptions.csv  bring in subscriptions
  dueday subscriptions acme        look up an account's
  dueday why acme SUBSCRIPTION     why it was charged today
  dueday export receipts           copy all receipts as CSV

Commands work on the local table, also while `dueday` serves it. With `--table NAME`, those that need no local \
machine work on a table on AWS, with the credentials and the region that the AWS CLI would use.

Exit codes: 0 done; 1 done, and somebody must look; 2 not carried out; 130 interrupted.";

/// What to do instead of serving.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Load a small merchant and play its last three months
    Demo,
    /// Run a batch once: send what reminders are due, or charge what payments are due
    Run(run::RunArgs),
    /// Show what is due on or before a date
    Due(due::DueArgs),
    /// Show what will be charged on the days ahead
    Forecast(forecast::ForecastArgs),
    /// Bring in subscriptions from a CSV file; doing it again changes nothing
    Import(import::ImportArgs),
    /// Show an account, or the first of all
    Accounts(accounts::AccountsArgs),
    /// Show an account's subscriptions, or the first of all
    Subscriptions(subscriptions::SubscriptionsArgs),
    /// Show an account's receipts, newest first
    Receipts(receipts::ReceiptsArgs),
    /// Send a receipt again
    Receipt(receipt::ReceiptArgs),
    /// Give a payment back, or a part of it
    Refund(refund::RefundArgs),
    /// Pause, resume, cancel, uncancel or retry a subscription
    Subscription(subscription::SubscriptionArgs),
    /// Say why a subscription was charged on a day, or was not
    Why(why::WhyArgs),
    /// Show payments that have no receipt, and resolve them
    Findings(findings::FindingsArgs),
    /// Settle an open payment whose outcome only a person can know
    Resolve(resolve::ResolveArgs),
    /// Show whether a day's runs came to their end, shard by shard
    Runs(runs::RunsArgs),
    /// Show what was taken on each day, and whether the day was done
    Report(report::ReportArgs),
    /// Show what has happened, from the kept events
    Events(events::EventsArgs),
    /// Show events as they happen, or deliver them to a URL
    Listen(listen::ListenArgs),
    /// Look at orders, ship them, and keep stock
    Orders(orders::OrdersArgs),
    /// Read the whole table, and name every invariant that does not hold
    Audit(audit::AuditArgs),
    /// Switch charging on or off, or say which it is
    Charging(charging::ChargingArgs),
    /// Confirm that the clock is right, after a run was recorded at a later time
    ConfirmClock(confirm_clock::ConfirmClockArgs),
    /// Move a table to another gateway, while no payment is open
    MoveGateway(move_gateway::MoveGatewayArgs),
    /// Say how many shards the indexes have or need, or raise their number
    Shards(shards::ShardsArgs),
    /// Move subscriptions to the shards where they belong
    Reshard(reshard::ReshardArgs),
    /// Serve the sandbox gateway alone, in a process of its own
    Gateway(gateway::GatewayArgs),
    /// Copy all accounts, subscriptions or receipts as CSV or JSON lines
    Export(export::ExportArgs),
    /// Print the completion script of a shell
    Completions(completions::CompletionsArgs),
    /// Play months in a private table in memory, as fast as they can pass, and check every invariant
    Simulate(simulate::SimulateArgs),
}

impl Arguments {
    /// Whether a simulation is asked for.
    pub fn is_simulation(&self) -> bool {
        matches!(self.command, Some(Command::Simulate(_)))
    }
}

impl Command {
    /// Carries it out.
    ///
    /// # Errors
    /// [`Failure`], to be told to whoever typed it.
    pub async fn run(&self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Demo => demo::demo(context).await,
            Self::Run(args) => run::run(context, args).await,
            Self::Due(args) => due::due(context, args).await,
            Self::Forecast(args) => forecast::forecast(context, args).await,
            Self::Import(args) => import::import(context, args).await,
            Self::Accounts(args) => accounts::accounts(context, args).await,
            Self::Subscriptions(args) => subscriptions::subscriptions(context, args).await,
            Self::Receipts(args) => receipts::receipts(context, args).await,
            Self::Receipt(args) => receipt::receipt(context, args).await,
            Self::Refund(args) => refund::refund(context, args).await,
            Self::Subscription(args) => subscription::subscription(context, args).await,
            Self::Why(args) => why::why(context, args).await,
            Self::Findings(args) => findings::findings(context, args).await,
            Self::Resolve(args) => resolve::resolve(context, args).await,
            Self::Runs(args) => runs::runs(context, args).await,
            Self::Report(args) => report::report(context, args).await,
            Self::Events(args) => events::events(context, args).await,
            Self::Listen(args) => listen::listen(context, args).await,
            Self::Orders(args) => orders::orders(context, args).await,
            Self::Audit(args) => audit::audit(context, args).await,
            Self::Charging(args) => charging::charging(context, args).await,
            Self::ConfirmClock(args) => confirm_clock::confirm_clock(context, args).await,
            Self::MoveGateway(args) => move_gateway::move_gateway(context, args).await,
            Self::Shards(args) => shards::shards(context, args).await,
            Self::Reshard(args) => reshard::reshard(context, args).await,
            Self::Gateway(args) => gateway::gateway(context, args).await,
            Self::Export(args) => export::export(context, args).await,
            Self::Completions(args) => completions::completions(args),
            Self::Simulate(args) => simulate::simulate(context, args).await,
        }
    }
}

/// `error` with the usage of the command that was `typed`, and nothing that was given shown as if it were required.
pub fn with_plain_usage(mut error: clap::Error, typed: impl Iterator<Item = OsString>) -> clap::Error {
    if error.get(ContextKind::Usage).is_none() {
        return error;
    }
    let mut dueday = Arguments::command();
    dueday.build();
    let named = typed.skip(1).fold(&dueday, |command, word| command.find_subcommand(&word).unwrap_or(command));
    error.insert(ContextKind::Usage, ContextValue::StyledStr(named.clone().render_usage()));
    error
}
