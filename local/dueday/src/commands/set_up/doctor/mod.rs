//! `dueday doctor`: checks a deployment on AWS, or the system on this machine, before the first run. It changes nothing.

mod alarms;
mod aws_cli;
mod before;
mod check_result;
mod deployment;
mod dynamodb_table;
mod gateway_account;
mod machine;
mod mails;
mod parts;
pub mod queues;
mod rights;
mod secrets;
mod settings;
mod stack;
mod stream_reader;
mod stripe_account;
mod token_claim;

use clap::Args;

use crate::commands::serve::ServeArgs;
use crate::context::CommandContext;
use crate::{Exit, Failure};
use check_result::DoctorCheck;

/// The arguments of `dueday doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
The command only reads, and prints one line for each check: good; wrong, with the remedy; or not checked, with the \
reason, such as a missing permission. It exits with 0 only if every check is good.

With --table, it checks the deployment of this table. It reads the parameters of the stack, and most services of AWS, \
with the AWS CLI, which must be installed. docs/operations.md lists the permissions. With --before, it reads a profile \
of samconfig.toml in the current folder, and checks the AWS account before the first deployment: Amazon SES, the quota \
of Lambda, and your permissions. Without --table and --before, it checks the system on this machine.

Examples:
  dueday doctor --before prod
  dueday doctor --table TABLE
  dueday doctor --table payments-restored --stack dueday --json
  dueday doctor")]
pub struct DoctorArgs {
    /// The stack of the deployment [default: the stack with this table]
    #[arg(long, value_name = "NAME")]
    pub stack: Option<String>,
    /// Check the AWS account before the first deployment of a profile in samconfig.toml [default: prod]
    #[arg(long, value_name = "PROFILE", num_args = 0..=1, default_missing_value = "prod", conflicts_with = "stack")]
    pub before: Option<String>,
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// Runs `dueday doctor`.
pub async fn run_doctor_command(context: &CommandContext, args: &DoctorArgs) -> Result<Exit, Failure> {
    let findings = match (context.options.table(), &args.before) {
        (Some(_), Some(_)) => {
            return Err(Failure::Refused(
                "--before checks an account without a deployment: leave --table out".to_owned(),
            ));
        }
        (None, Some(profile)) => before::check_before_deployment(profile).await?,
        (Some(table), None) => deployment::check_deployment(context, table, args.stack.as_deref()).await?,
        (None, None) if args.stack.is_some() => {
            return Err(Failure::Refused("--stack needs --table with the name of the table".to_owned()));
        }
        (None, None) => machine::check_local_machine(context, &args.serve).await,
    };
    context.print(&findings, || check_result::format_check_results(&findings))?;
    Ok(Exit::done_if(findings.iter().all(DoctorCheck::is_good)))
}
