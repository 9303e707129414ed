//! `dueday gateway check`: whether a gateway keeps the promises that the protocol relies on.

use std::cell::RefCell;
use std::time::Duration;

use billing::{Currency, GatewayToken};
use clap::Args;
use clock::SystemClock;
use gateways::conformance::{Checked, Observer, Progress, Report, Sample, Step, Verdict, check as check_all};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::values;
use crate::context::Context;
use crate::machine::gateway::Gateway;
use crate::terminal::output::{self, bad, count, good};
use crate::{Exit, Failure};

/// The shortest wait after which a list that shows only the last ten minutes is found out.
const DEFAULT_WAIT: &str = "11m";

/// `dueday gateway check`.
#[derive(Debug, Args)]
#[command(after_help = "\
It makes about 125 test payments, some refunds and a web page for the two customers, and removes none of them. So it refuses \
an account that moves money. At the end it waits, and then checks again whether the gateway still knows its keys and lists its payments, and \
whether a declined payment was made after all. What a gateway forgets later than that is not found.

The promises, and how they are said over HTTP, are in docs/gateways.md.

Examples:
  dueday gateway check http://127.0.0.1:7879 --processing pm_usBankAccount_success
  STRIPE_SECRET_KEY=sk_test_... dueday gateway check stripe \\
      --customer cus_QX9 --other-customer cus_QY3")]
pub struct CheckArgs {
    /// The URL of the gateway, or stripe
    #[arg(value_name = "GATEWAY")]
    pub named: String,
    /// A customer of the gateway
    #[arg(long, value_name = "TOKEN", default_value = "cus_conformance")]
    pub customer: GatewayToken,
    /// Another customer of the gateway
    #[arg(long, value_name = "TOKEN", default_value = "cus_conformance_other")]
    pub other_customer: GatewayToken,
    /// A payment method whose charges succeed
    #[arg(long, value_name = "TOKEN", default_value = "pm_card_visa")]
    pub payment_method: GatewayToken,
    /// A payment method whose charges are declined
    #[arg(long, value_name = "TOKEN", default_value = "pm_card_visa_chargeDeclinedInsufficientFunds")]
    pub declining: GatewayToken,
    /// A payment method whose charges stay in progress, such as a bank debit; not checked without one
    #[arg(long, value_name = "TOKEN")]
    pub processing: Option<GatewayToken>,
    /// A currency that it takes
    #[arg(long, value_name = "CURRENCY", default_value = "EUR")]
    pub currency: Currency,
    /// How long to wait before the last checks, such as 15s or 30m; 0s leaves them out
    #[arg(long, value_name = "TIME", default_value = DEFAULT_WAIT, value_parser = values::time)]
    pub wait: Duration,
}

#[derive(Serialize)]
struct Shown<'a> {
    promise: &'a str,
    /// How it is broken.
    broken: Option<&'a str>,
    /// Why it was not checked.
    not_checked: Option<&'a str>,
}

impl<'a> From<&'a Checked> for Shown<'a> {
    fn from(checked: &'a Checked) -> Self {
        let (broken, not_checked) = match &checked.verdict {
            Verdict::Kept => (None, None),
            Verdict::Broken(how) => (Some(how.as_str()), None),
            Verdict::NotChecked(why) => (None, Some(why.as_str())),
        };
        Self { promise: checked.promise, broken, not_checked }
    }
}

/// Prints each result as soon as it is known, and the progress of long steps on standard error.
struct Terminal {
    is_text: bool,
    bar: RefCell<Option<(Step, ProgressBar)>>,
    unwritten: RefCell<Option<Failure>>,
}

impl Terminal {
    fn new(is_text: bool) -> Self {
        Self { is_text, bar: RefCell::default(), unwritten: RefCell::default() }
    }

    fn bar(&self, Progress { step, done, of }: Progress) -> ProgressBar {
        let mut shown = self.bar.borrow_mut();
        if let Some((_, bar)) = shown.as_ref().filter(|(shown, _)| *shown == step) {
            return bar.clone();
        }
        let (template, begun) = match step {
            Step::Charging => ("{bar:30} {pos} of {len} payments", format!("Making {of} payments.")),
            Step::Waiting => (
                "{bar:30} {pos} of {len} s: whether the gateway forgets or changes something later",
                format!("Waiting {}, to see whether the gateway forgets or changes something later.", seconds(of)),
            ),
        };
        let bar = ProgressBar::new(of);
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        if bar.is_hidden() && done == 1 {
            // Standard error is no terminal: one line for each step.
            output::tell(begun);
        }
        *shown = Some((step, bar.clone()));
        bar
    }
}

impl Observer for Terminal {
    fn checked(&self, checked: &Checked) {
        if let Some((_, bar)) = self.bar.take() {
            bar.finish_and_clear();
        }
        if self.is_text
            && let Err(error) = output::print(&line(checked))
        {
            self.unwritten.borrow_mut().get_or_insert(error);
        }
    }

    fn progress(&self, progress: &Progress) {
        self.bar(*progress).set_position(progress.done);
    }
}

pub async fn check(context: &Context, args: &CheckArgs) -> Result<Exit, Failure> {
    let gateway = Gateway::named(&args.named)?.client(context.clock.clone());
    let account = gateway.account().await.map_err(|error| Failure::Refused(error.to_string()))?;
    if account.live {
        return Err(Failure::Refused(format!("{account} moves money: check it in its test mode")));
    }
    let sample = Sample {
        customer: args.customer.clone(),
        other_customer: args.other_customer.clone(),
        succeeds: args.payment_method.clone(),
        declines: args.declining.clone(),
        processes: args.processing.clone(),
        currency: args.currency,
        run: context.clock.ulid(),
        wait: args.wait,
    };
    output::tell(format!(
        "Making test payments and refunds for {} and {} at {account}; they are not removed. The last checks come after a wait of {}.",
        args.customer,
        args.other_customer,
        seconds(args.wait.as_secs())
    ));
    let terminal = Terminal::new(!context.options.json);
    let report = check_all(gateway.as_ref(), &sample, &SystemClock, &terminal).await;
    terminal.unwritten.into_inner().map_or(Ok(()), Err)?;
    let shown: Vec<Shown<'_>> = report.checked.iter().map(Shown::from).collect();
    context.print(&shown, || format!("\n{}", summary(&account.to_string(), &report, args.wait)))?;
    Ok(Exit::of(report.broken() == 0))
}

fn summary(account: &str, report: &Report, wait: Duration) -> String {
    let (broken, not_checked) = (report.broken(), report.not_checked());
    let number = |number: usize| number as u64;
    let kept = report.checked.len() - broken - not_checked;
    let mut text = match broken {
        0 => format!("{account} keeps {}", count(number(kept), "promise")),
        broken => format!("{account} breaks {broken} of {}", count(number(kept + broken), "promise")),
    };
    text += &match not_checked {
        0 => ".\n".to_owned(),
        not_checked => format!("; {not_checked} not checked.\n"),
    };
    text += &format!(
        "It waited {}: what the gateway forgets or pays later than that is not found.\n",
        seconds(wait.as_secs())
    );
    text + &format!(
        "Left behind in its test data: {}, {} and a web page.\n",
        count(number(report.payment_ids.len()), "payment"),
        count(number(report.refunds), "refund")
    )
}

fn seconds(number: u64) -> String {
    match (number / 60, number % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

fn line(checked: &Checked) -> String {
    let promise = checked.promise;
    match &checked.verdict {
        Verdict::Kept => format!("{}         {promise}\n", good("kept")),
        Verdict::Broken(how) => format!("{}       {promise}\n             {how}\n", bad("broken")),
        Verdict::NotChecked(why) => format!("not checked  {promise}\n             {why}\n"),
    }
}
