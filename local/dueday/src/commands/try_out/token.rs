//! `dueday token`: creates an access token for the API of this machine.

use chrono::{DateTime, TimeDelta, Utc};
use clap::{ArgGroup, Args};
use config::Env;
use emulator::{LOCAL_AUDIENCE, LOCAL_ISSUER};
use rest::{Role, TokenRules, account_of_subject};
use serde::Serialize;
use serde_json::{Value, json};

use crate::commands::value_parsers::parse_number_in_range;
use crate::context::CommandContext;
use crate::machine::tokens::read_token_issuer;
use crate::{Exit, Failure};

/// The longest validity of a token, in hours: 30 days.
const MAX_HOURS: u32 = 720;

/// The arguments of `dueday token`.
#[derive(Debug, Args)]
#[command(after_help = "\
The API needs a token if it was started with `dueday --auth`. The token is signed with the key in the data folder, so \
it is valid only for the servers of this folder. Keep it secret: it cannot be revoked before it expires.

Examples:
  TOKEN=$(dueday token --role admin)
  TOKEN=$(dueday token --account acme)
  curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:7878/accounts/acme")]
#[command(group(ArgGroup::new("caller").required(true).args(["role", "account"])))]
#[group(skip)]
pub struct TokenArgs {
    /// Create a token of an operator with this role: read changes nothing, support changes accounts and refunds up to the
    /// limit of the day, admin may do everything
    #[arg(long, value_name = "ROLE")]
    role: Option<Role>,
    /// Create a token of an account: its id, or a subject such as auth0|123456, which is mapped to an id
    #[arg(long, value_name = "ACCOUNT", value_parser = parse_token_subject)]
    account: Option<String>,
    /// Hours until the token expires
    #[arg(long, value_name = "HOURS", default_value_t = 12)]
    #[arg(value_parser = |text: &str| parse_number_in_range(text, 1..=MAX_HOURS))]
    hours: u32,
}

/// A new token, as printed with `--json`.
#[derive(Serialize)]
struct CreatedToken {
    token: String,
    /// The account of the token; null for the token of an operator.
    account: Option<String>,
    expires_at: DateTime<Utc>,
}

/// Runs `dueday token`.
pub fn run_token_command(context: &CommandContext, args: &TokenArgs) -> Result<Exit, Failure> {
    context.require_local_table("dueday token")?;
    let rules = TokenRules::read(Env::of_process())?;
    let issuer = read_token_issuer(&context.options.data)?;
    let now = context.clock.now();
    let expires_at = now + TimeDelta::hours(args.hours.into());
    let token = issuer.sign(&token_claims(&rules, args, now, expires_at));
    let account = args.account.as_deref().map(|subject| account_of_subject(subject).to_string());
    let created = CreatedToken { token, account, expires_at };
    context.print(&created, || format!("{}\n", created.token))?;
    Ok(Exit::Done)
}

/// Returns the claims of a token for the operator or the account that `args` name.
fn token_claims(rules: &TokenRules, args: &TokenArgs, now: DateTime<Utc>, expires_at: DateTime<Utc>) -> Value {
    let scope = args.role.map_or_else(|| rules.account_scope(), |role| rules.scope_of_role(role));
    let subject = args.account.as_deref().unwrap_or("operator");
    let mut claims = json!({
        "iss": LOCAL_ISSUER,
        "aud": LOCAL_AUDIENCE,
        "sub": subject,
        "iat": now.timestamp(),
        "exp": expires_at.timestamp(),
        "scope": scope,
    });
    if args.account.is_some() {
        claims[rules.account_claim()] = subject.into();
    }
    claims
}

/// Parses the account id or the subject for which a token is created.
fn parse_token_subject(text: &str) -> Result<String, String> {
    let is_valid = !text.is_empty() && text.chars().count() <= 255 && !text.contains(char::is_control);
    if is_valid {
        Ok(text.to_owned())
    } else {
        Err("must be 1 to 255 characters without control characters".to_owned())
    }
}
