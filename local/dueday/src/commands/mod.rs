//! The commands, in the groups of the help. Each file defines the arguments of one command, and runs it.

mod act;
mod every_day;
mod find;
mod hash;
mod help_groups;
mod list_output;
mod needed_role;
mod orders;
pub mod serve;
mod set_up;
mod subscription_args;
mod try_out;
mod value_parsers;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::act::{account, receipt, refund, subscription};
use self::every_day::{audit, due, findings, forecast, reconcile, report, resolve, run, runs, status};
use self::find::{accounts, duplicates, events, export, log, receipts, subscriptions, why};
use self::set_up::{
    charging, confirm_clock, confirm_table, deploy, doctor, gateway, import, move_gateway, reshard, settings, shards,
    webhooks,
};
use self::try_out::{completions, demo, listen, simulate, token};
use crate::context::CommandContext;
use crate::options::{Options, help_of_environment};
use crate::terminal::output;
use crate::{Exit, Failure};

/// Recurring payments on DynamoDB: the whole system on one machine.
///
/// Without a command, dueday serves the whole system: the table, the API and the sandbox gateway, and runs the batches
/// every day.
#[derive(Debug, Parser)]
#[command(name = "dueday", version, disable_help_subcommand = true, args_conflicts_with_subcommands = false)]
pub struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: serve::ServeArgs,
    #[command(flatten)]
    pub(crate) options: Options,
}

/// The text after the long help of `dueday`.
const EXAMPLES: &str = "\
Examples:
  dueday                           start the whole system
  dueday demo                      load a small merchant
  dueday due --date 2027-01-31     list the payments due by that day
  dueday run payments              charge the payments due today
  dueday import subscriptions.csv  import subscriptions
  dueday subscriptions acme        list an account's subscriptions
  dueday why acme SUBSCRIPTION     explain today's charge
  dueday export receipts           export all receipts as CSV

Commands use the local table, also while `dueday` serves it. With `--table NAME`, most commands use a table on AWS, \
with the credentials and the region of the AWS CLI.

Exit codes: 0 success; 1 success, but the output needs attention; 2 failed; 130 interrupted.";

/// The subcommands. Without a subcommand, `dueday` serves the whole system.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Load a small merchant and simulate its last three months
    Demo,
    /// Send the due reminders, or charge the due payments, once
    Run(run::RunArgs),
    /// List the payments and reminders that are due by a date
    Due(due::DueArgs),
    /// Forecast the payments of the coming months
    Forecast(forecast::ForecastArgs),
    /// Import subscriptions from a CSV file
    Import(import::ImportArgs),
    /// Show one account, or the first accounts of the table
    Accounts(accounts::AccountsArgs),
    /// Show an account's subscriptions, or the first of the table
    Subscriptions(subscriptions::SubscriptionsArgs),
    /// List ids that differ only in case, leading zeros or Unicode form
    Duplicates(duplicates::DuplicatesArgs),
    /// Show an account's receipts, newest first
    Receipts(receipts::ReceiptsArgs),
    /// Show a receipt, or send its mail again
    Receipt(receipt::ReceiptArgs),
    /// Refund a payment or a part of it
    Refund(refund::RefundArgs),
    /// Change an account, or let its customer enter a card
    Account(account::AccountArgs),
    /// Change, pause, resume, cancel or retry a subscription
    Subscription(subscription::SubscriptionArgs),
    /// Explain why a subscription was or was not charged on a day
    Why(why::WhyArgs),
    /// List and resolve payments at the gateway that have no receipt
    Findings(findings::FindingsArgs),
    /// Settle an open payment whose outcome only a person knows
    Resolve(resolve::ResolveArgs),
    /// Show for each shard whether the runs of a day are complete
    Runs(runs::RunsArgs),
    /// Show the payments of each day, and the state of its runs
    Report(report::ReportArgs),
    /// Show who changed an account and its subscriptions
    Log(log::LogArgs),
    /// List the stored events
    Events(events::EventsArgs),
    /// Print new events, and forward them to a URL
    Listen(listen::ListenArgs),
    /// Manage webhook endpoints, and send events to them again
    Webhooks(webhooks::WebhooksArgs),
    /// Manage orders, shipments and stock
    Orders(orders::OrdersArgs),
    /// Show the state of yesterday and today, and the open tasks
    Status(status::StatusArgs),
    /// Check the invariants of all items in the table
    Audit(audit::AuditArgs),
    /// Compare the payments of whole days with the gateway
    Reconcile(reconcile::ReconcileArgs),
    /// Switch charging on or off, or show the current state
    Charging(charging::ChargingArgs),
    /// Show or change the limits of the payment batch and the policy
    Settings(settings::SettingsArgs),
    /// Confirm that the clock is right although a recorded run has a later time
    ConfirmClock(confirm_clock::ConfirmClockArgs),
    /// Confirm that a restored or copied table may be charged
    ConfirmTable(confirm_table::ConfirmTableArgs),
    /// Move the table to another gateway; no payment may be open
    MoveGateway(move_gateway::MoveGatewayArgs),
    /// Show, estimate or increase the number of shards
    Shards(shards::ShardsArgs),
    /// Move subscriptions to their shards after the number of shards has changed
    Reshard(reshard::ReshardArgs),
    /// Create an access token for the API of this machine
    Token(token::TokenArgs),
    /// Serve the sandbox gateway separately, or check a gateway
    Gateway(gateway::GatewayArgs),
    /// Prepare the deployment on AWS
    Deploy(deploy::DeployArgs),
    /// Check a deployment on AWS, or the system on this machine
    Doctor(doctor::DoctorArgs),
    /// Export accounts, subscriptions, receipts or refunds
    Export(export::ExportArgs),
    /// Print the completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Simulate months in memory, and check every invariant
    Simulate(simulate::SimulateArgs),
}

impl Arguments {
    /// Returns whether the command is `simulate`.
    pub fn is_simulation(&self) -> bool {
        matches!(self.command, Some(Command::Simulate(_)))
    }

    /// Refuses options that set a setting, such as `--table`, if the command is `deploy` or `completions`. These
    /// commands use no setting, because their output is the same for each table. `matches` is the parsed command line.
    ///
    /// # Errors
    /// An error that names the first of these options.
    fn refuse_unused_settings(&self, matches: &ArgMatches) -> Result<(), clap::Error> {
        if !matches!(self.command, Some(Command::Deploy(_) | Command::Completions(_))) {
            return Ok(());
        }
        let Some(flag) = Options::first_setting_flag(matches) else { return Ok(()) };
        let mut named = Arguments::command();
        named.build();
        let mut matches = matches;
        while let Some((name, of_subcommand)) = matches.subcommand() {
            named = named.find_subcommand(name).cloned().unwrap_or(named);
            matches = of_subcommand;
        }
        let reason = format!("{} does not use the option {flag}", named.get_bin_name().unwrap_or_default());
        Err(named.error(ErrorKind::ArgumentConflict, reason))
    }

    /// Returns whether the merchant's name is asked for if it is missing, because the command sends mails: the server,
    /// `run` or `receipt`. Other commands may send waiting notices, but do not ask for the name.
    pub fn asks_for_merchant(&self) -> bool {
        matches!(self.command, None | Some(Command::Run(_) | Command::Receipt(_)))
    }
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// If the command fails. The caller prints the error.
    pub async fn run(&self, context: &CommandContext) -> Result<Exit, Failure> {
        match self {
            Self::Demo => demo::run_demo_command(context).await,
            Self::Run(args) => run::run_batch_command(context, args).await,
            Self::Due(args) => due::run_due_command(context, args).await,
            Self::Forecast(args) => forecast::run_forecast_command(context, args).await,
            Self::Import(args) => import::run_import_command(context, args).await,
            Self::Accounts(args) => accounts::run_accounts_command(context, args).await,
            Self::Subscriptions(args) => subscriptions::run_subscriptions_command(context, args).await,
            Self::Duplicates(args) => duplicates::run_duplicates_command(context, args).await,
            Self::Receipts(args) => receipts::run_receipts_command(context, args).await,
            Self::Receipt(args) => receipt::run_receipt_command(context, args).await,
            Self::Refund(args) => refund::run_refund_command(context, args).await,
            Self::Account(args) => account::run_account_command(context, args).await,
            Self::Subscription(args) => subscription::run_subscription_command(context, args).await,
            Self::Why(args) => why::run_why_command(context, args).await,
            Self::Findings(args) => findings::run_findings_command(context, args).await,
            Self::Resolve(args) => resolve::run_resolve_command(context, args).await,
            Self::Runs(args) => runs::run_runs_command(context, args).await,
            Self::Report(args) => report::run_report_command(context, args).await,
            Self::Log(args) => log::run_log_command(context, args).await,
            Self::Events(args) => events::run_events_command(context, args).await,
            Self::Listen(args) => listen::run_listen_command(context, args).await,
            Self::Webhooks(args) => webhooks::run_webhooks_command(context, args).await,
            Self::Orders(args) => orders::run_orders_command(context, args).await,
            Self::Status(args) => status::run_status_command(context, args).await,
            Self::Audit(args) => audit::run_audit_command(context, args).await,
            Self::Reconcile(args) => reconcile::run_reconcile_command(context, args).await,
            Self::Charging(args) => charging::run_charging_command(context, args).await,
            Self::Settings(args) => settings::run_settings_command(context, args).await,
            Self::ConfirmClock(args) => confirm_clock::confirm_clock(context, args).await,
            Self::ConfirmTable(args) => confirm_table::confirm_copied_table(context, args).await,
            Self::MoveGateway(args) => move_gateway::move_gateway(context, args).await,
            Self::Shards(args) => shards::run_shards_command(context, args).await,
            Self::Reshard(args) => reshard::run_reshard_command(context, args).await,
            Self::Token(args) => token::run_token_command(context, args),
            Self::Gateway(args) => gateway::run_gateway_command(context, args).await,
            Self::Deploy(args) => deploy::run_deploy_command(context, args),
            Self::Doctor(args) => doctor::run_doctor_command(context, args).await,
            Self::Export(args) => export::run_export_command(context, args).await,
            Self::Completions(args) => completions::run_completions_command(args),
            Self::Simulate(args) => simulate::run_simulate_command(context, args).await,
        }
    }
}

/// Reads the arguments of the process. If the arguments are wrong or request help, prints the error or the help, and
/// ends the process.
pub fn read_arguments() -> Arguments {
    let dueday = help_groups::allow_negative_numbers(Arguments::command());
    let long_footer = format!("{EXAMPLES}\n\n{}", help_of_environment());
    let command_line = help_groups::replace_help_word(std::env::args_os());
    let matches = help_groups::with_grouped_help(dueday, &long_footer).try_get_matches_from(command_line);
    let arguments = matches.and_then(|matches| {
        let arguments = Arguments::from_arg_matches(&matches)?;
        arguments.refuse_unused_settings(&matches)?;
        needed_role::check_role_for_command(&mut Arguments::command(), &matches, arguments.options.role)?;
        Ok(arguments)
    });
    arguments.unwrap_or_else(|error| {
        let error = with_plain_usage(error, std::env::args_os());
        // The arguments could not be parsed, so the option `--json` is searched among the texts of the arguments.
        if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
            let text = error.render().to_string();
            output::print_error(text.trim_start_matches("error: ").trim_end(), true);
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

/// Returns `error` with the general usage line of the command in `arguments`. In clap's own usage line, the options
/// that the user gave would look as if they were required.
fn with_plain_usage(mut error: clap::Error, arguments: impl Iterator<Item = OsString>) -> clap::Error {
    if error.get(ContextKind::Usage).is_none() {
        return error;
    }
    let mut dueday = Arguments::command();
    dueday.build();
    let named = arguments.skip(1).fold(&dueday, |command, word| command.find_subcommand(&word).unwrap_or(command));
    error.insert(ContextKind::Usage, ContextValue::StyledStr(named.clone().render_usage()));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_exactly_one_group_of_the_help() {
        let dueday = Arguments::command();
        let mut commands: Vec<&str> = dueday.get_subcommands().map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = help_groups::grouped_command_names().collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, commands);
    }
}
