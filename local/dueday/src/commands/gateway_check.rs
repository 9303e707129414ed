//! `dueday gateway check`: whether a gateway keeps what the protocol relies on.

use clap::Args;
use serde::Serialize;
use shared::billing::{Currency, GatewayToken};
use shared::gateway::conformance::{Checked, Sample, check as check_all};

use crate::context::Context;
use crate::machine::gateway::Gateway;
use crate::terminal::output::{self, bad, count, good};
use crate::{Exit, Failure};

/// `dueday gateway check`.
#[derive(Debug, Args)]
#[command(after_help = "\
It charges, declines and refunds, so it refuses a gateway that moves money. What is promised and how it is said over HTTP is in \
docs/gateways.md.

Examples:
  dueday gateway check http://127.0.0.1:7879
  STRIPE_SECRET_KEY=sk_test_... dueday gateway check stripe \\
      --customer cus_QX9")]
pub struct CheckArgs {
    /// The URL of the gateway, or stripe
    #[arg(value_name = "GATEWAY")]
    pub named: String,
    /// A customer of the gateway's
    #[arg(long, value_name = "TOKEN", default_value = "cus_conformance")]
    pub customer: GatewayToken,
    /// A payment method whose charges succeed
    #[arg(long, value_name = "TOKEN", default_value = "pm_card_visa")]
    pub payment_method: GatewayToken,
    /// A payment method whose charges are declined
    #[arg(long, value_name = "TOKEN", default_value = "pm_card_visa_chargeDeclinedInsufficientFunds")]
    pub declining: GatewayToken,
    /// A currency that it takes
    #[arg(long, value_name = "CURRENCY", default_value = "EUR")]
    pub currency: Currency,
}

#[derive(Serialize)]
struct Shown<'a> {
    promise: &'a str,
    /// How it was broken.
    broken: Option<&'a str>,
}

pub async fn check(context: &Context, args: &CheckArgs) -> Result<Exit, Failure> {
    let gateway = Gateway::named(&args.named)?.client(context.clock.clone());
    let account = gateway.account().await.map_err(|error| Failure::Refused(error.to_string()))?;
    if account.live {
        return Err(Failure::Refused(format!("{account} moves money: check it in its test mode")));
    }
    let sample = Sample {
        customer: args.customer.clone(),
        succeeds: args.payment_method.clone(),
        declines: args.declining.clone(),
        currency: args.currency,
        run: context.clock.ulid(),
        now: context.clock.now(),
    };
    let is_text = !context.options.json;
    let mut unwritten = None;
    let all = check_all(gateway.as_ref(), &sample, |checked| {
        if is_text && let Err(error) = output::write(&line(checked)) {
            unwritten.get_or_insert(error);
        }
    });
    let all = all.await;
    unwritten.map_or(Ok(()), Err)?;
    let broken = all.iter().filter(|checked| checked.broken.is_some()).count();
    let shown: Vec<Shown<'_>> =
        all.iter().map(|Checked { promise, broken }| Shown { promise, broken: broken.as_deref() }).collect();
    context.print(&shown, || match broken {
        0 => format!("\n{account} keeps {}.\n", count(all.len() as u64, "promise")),
        broken => format!("\n{account} breaks {} of {}.\n", broken, count(all.len() as u64, "promise")),
    })?;
    Ok(Exit::of(broken == 0))
}

fn line(checked: &Checked) -> String {
    match &checked.broken {
        None => format!("{}    {}\n", good("kept"), checked.promise),
        Some(how) => format!("{}  {}\n          {how}\n", bad("broken"), checked.promise),
    }
}
