//! `dueday deploy init`: asks questions about a deployment on AWS, and writes the answers to `samconfig.toml`.

mod answers;
pub mod profiles;
mod removed_parameters;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::context::CommandContext;
use crate::terminal::confirmation::ask_question;
use crate::terminal::output;
use crate::{Exit, Failure};
use answers::{DeployAnswers, DeployQuestion, QUESTIONS};
use profiles::ProfileError;

/// The arguments of `dueday deploy`.
#[derive(Debug, Args)]
pub struct DeployArgs {
    #[command(subcommand)]
    pub action: DeployAction,
}

/// The subcommands of `dueday deploy`.
#[derive(Debug, Subcommand)]
pub enum DeployAction {
    /// Ask questions about the deployment, and write the profiles dev and prod to samconfig.toml
    Init(InitArgs),
}

/// The arguments of `dueday deploy init`: the answers that are not asked for.
#[derive(Debug, Args)]
#[command(after_help = "\
The command asks for each answer that no option gives, checks it, and writes the profiles `dev` and `prod` to \
samconfig.toml. `sam deploy` uses the profile `dev`, which charges at the sandbox gateway of its stack, and asks no questions. All other parameters of template.yaml \
have defaults; add them to `parameter_overrides` in samconfig.toml to change them.

Examples:
  dueday deploy init
  sam build && sam deploy
  sam build && sam deploy --config-env prod")]
pub struct InitArgs {
    /// The merchant's name in mails and receipts
    #[arg(long = "name", value_name = "NAME")]
    merchant: Option<String>,
    /// The sender of mails, such as "Shop <billing@example.com>"
    #[arg(long, value_name = "SENDER")]
    sender: Option<String>,
    /// The ARN of the AWS Secrets Manager secret with the key of Stripe; or the https URL of your own gateway, and the
    /// ARN of the secret with the key that signs the requests to it; or later, to write only the profile dev
    #[arg(long, value_name = "ARN|URL ARN|later")]
    charge_with: Option<String>,
    /// The billing time zone, such as Europe/Vienna
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// The issuer and the audiences of the API's tokens, such as "https://issuer.example.com/ dueday"; or none, to create
    /// an Amazon Cognito user pool
    #[arg(long, value_name = "ISSUER AUDIENCE|none")]
    tokens: Option<String>,
    /// The e-mail address that receives alarms
    #[arg(long, value_name = "ADDRESS")]
    alarms: Option<String>,
    /// core, for the API, the daily batches and the table only; or full, for all parts
    #[arg(long, value_name = "core|full")]
    parts: Option<String>,
    /// The folder with template.yaml
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Replace the answers in the profiles of an earlier `dueday deploy init`; the other parameters of these profiles are kept
    #[arg(long)]
    replace: bool,
}

/// Runs `dueday deploy`.
pub fn run_deploy_command(context: &CommandContext, args: &DeployArgs) -> Result<Exit, Failure> {
    match &args.action {
        DeployAction::Init(args) => run_deploy_init_command(context, args),
    }
}

/// Runs `dueday deploy init`.
fn run_deploy_init_command(context: &CommandContext, args: &InitArgs) -> Result<Exit, Failure> {
    let path = args.folder.join("samconfig.toml");
    if !args.folder.join("template.yaml").is_file() {
        let reason = format!("there is no template.yaml in {}: name its folder with --folder", args.folder.display());
        return Err(Failure::Refused(reason));
    }
    let failed = |source: io::Error| Failure::Data { path: path.clone(), source };
    let stored = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        stored => stored.map_err(failed)?,
    };
    let refused = |error: ProfileError| Failure::Refused(error.to_string());
    // This check is made before the questions, so that the merchant does not answer them in vain.
    profiles::check_profiles_are_replaceable(&stored, args.replace).map_err(refused)?;
    let given = [&args.merchant, &args.sender, &args.charge_with, &args.zone, &args.tokens, &args.alarms, &args.parts];
    let mut texts = Vec::new();
    for (question, given) in QUESTIONS.iter().zip(given) {
        texts.push(match given {
            Some(text) => question.check_answer(text).map_err(|reason| refuse_answer(question, &reason))?,
            None => ask_until_valid(question)?,
        });
    }
    let answers = DeployAnswers::new(texts);
    let text = profiles::replace_profiles(&stored, &answers).map_err(refused)?;
    std::fs::write(&path, &text).map_err(failed)?;
    let has_prod = profiles::has_production_profile(&text);
    let earlier = profiles::earlier_parameters(&stored).map_err(refused)?;
    let removed = removed_parameters::describe_removed_parameters(earlier.into_iter().flatten());
    let names: &[&str] = if has_prod { &["dev", "prod"] } else { &["dev"] };
    let written = json!({ "written": path.display().to_string(), "profiles": names });
    let prod = match has_prod {
        true => "sam build && sam deploy --config-env prod",
        false => "create the secret of the gateway, and run dueday deploy init --replace",
    };
    context.print(&written, || {
        format!(
            "{} has the profiles: {}.\n{removed}\nDeploy for tests:     sam build && sam deploy\n\
             Deploy for customers: {prod}\n\
             Check it afterwards:  dueday doctor --table TABLE (the output TableName of the stack)\n\
             Set the policy before the first customer signs up, such as the days of reminders and retries:\n\
             \x20 curl API_URL/health (the output ApiUrl; the first start of the API stores the defaults)\n\
             \x20 dueday settings get --table TABLE\n\
             \x20 dueday settings set retry-gaps 1,2,2,2 --table TABLE\n",
            path.display(),
            names.join(", ")
        )
    })?;
    Ok(Exit::Done)
}

/// Asks `question` until the answer is valid.
fn ask_until_valid(question: &DeployQuestion) -> Result<String, Failure> {
    loop {
        let answer = ask_question(&format!("\n{}\n{}", question.asked, question.explanation));
        match question.check_answer(&answer.unwrap_or_default()) {
            Ok(text) => return Ok(text),
            Err(reason) if io::stdin().is_terminal() && io::stderr().is_terminal() => {
                output::print_message(format!("error: the answer {reason}"));
            }
            Err(reason) => return Err(refuse_answer(question, &reason)),
        }
    }
}

/// Returns the failure for an invalid answer that an option gives, or that no person can correct.
fn refuse_answer(question: &DeployQuestion, reason: &str) -> Failure {
    Failure::Refused(format!("--{} {reason}", question.option))
}
