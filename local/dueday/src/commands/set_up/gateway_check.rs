//! `dueday gateway check`: checks whether a gateway keeps the promises that the charging protocol requires.

use std::cell::RefCell;
use std::time::Duration;

use billing::{Currency, GatewayToken};
use clap::Args;
use clock::SystemClock;
use gateways::conformance::{
    CheckObserver, CheckParameters, CheckStep, ConformanceProgress, ConformanceReport, PromiseResult, PromiseVerdict,
    check_conformance,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::commands::value_parsers;
use crate::context::CommandContext;
use crate::machine::gateway::SelectedGateway;
use crate::terminal::output::{self, format_count, green_text, red_text};
use crate::{Exit, Failure};

/// The default time to wait before the last checks. The time is long enough to detect a gateway that lists only the
/// payments of the last ten minutes.
const DEFAULT_WAIT: &str = "11m";

/// The arguments of `dueday gateway check`.
#[derive(Debug, Args)]
#[command(after_help = "\
The check makes about 130 test payments, some refunds and a checkout page for the two customers, and does not remove \
them. Therefore it refuses live accounts. At the end it waits, and then checks whether the gateway still knows the \
idempotency keys, still lists the payments, and has not made a declined payment later. It cannot detect later losses \
and late payments.

With DUEDAY_GATEWAY_KEY, it signs its requests and checks that the gateway refuses requests without a valid signature.

docs/gateways.md lists the promises and the HTTP requests for them.

Examples:
  dueday gateway check http://127.0.0.1:7879 --processing pm_usBankAccount_success
  STRIPE_SECRET_KEY=sk_test_... dueday gateway check stripe \\
      --customer cus_QX9 --other-customer cus_QY3")]
pub struct CheckGatewayArgs {
    /// The URL of the gateway, or stripe
    #[arg(value_name = "GATEWAY")]
    pub gateway: String,
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
    /// A payment method whose charges stay in progress, such as a bank debit; if absent, the promises about such
    /// charges are not checked
    #[arg(long, value_name = "TOKEN")]
    pub processing: Option<GatewayToken>,
    /// A currency that the gateway accepts
    #[arg(long, value_name = "CURRENCY", default_value = "EUR")]
    pub currency: Currency,
    /// How long to wait before the last checks, such as 15s or 30m; 0s skips them
    #[arg(long, value_name = "TIME", default_value = DEFAULT_WAIT, value_parser = value_parsers::parse_duration)]
    pub wait: Duration,
}

/// The result of the check of one promise, as printed with `--json`.
#[derive(Serialize)]
struct PromiseView<'a> {
    promise: &'a str,
    /// The observed violation of the promise; `None` if none was observed.
    broken: Option<&'a str>,
    /// The reason why the promise was not checked; `None` if it was checked.
    not_checked: Option<&'a str>,
}

impl<'a> From<&'a PromiseResult> for PromiseView<'a> {
    fn from(result: &'a PromiseResult) -> Self {
        let (broken, not_checked) = match &result.verdict {
            PromiseVerdict::Kept => (None, None),
            PromiseVerdict::Broken(how) => (Some(how.as_str()), None),
            PromiseVerdict::NotChecked(why) => (None, Some(why.as_str())),
        };
        Self { promise: result.promise, broken, not_checked }
    }
}

/// Prints the result of each promise when the check of the promise ends, and shows the progress of long steps on
/// standard error.
struct TerminalObserver {
    /// Whether each result is printed as text immediately. False with --json: the caller then prints all results at the
    /// end.
    is_text: bool,
    bar: RefCell<Option<(CheckStep, ProgressBar)>>,
    output_error: RefCell<Option<Failure>>,
}

impl TerminalObserver {
    fn new(is_text: bool) -> Self {
        Self { is_text, bar: RefCell::default(), output_error: RefCell::default() }
    }

    /// Returns the progress bar of `step`. Shows a new progress bar if the step has just begun.
    fn progress_bar(&self, ConformanceProgress { step, done, total }: ConformanceProgress) -> ProgressBar {
        let mut shown = self.bar.borrow_mut();
        if let Some((_, bar)) = shown.as_ref().filter(|(shown, _)| *shown == step) {
            return bar.clone();
        }
        let (template, start_message) = match step {
            CheckStep::Charging => ("{bar:30} {pos} of {len} payments", format!("Making {total} payments.")),
            CheckStep::Waiting => (
                "{bar:30} waiting, {pos} of {len} s: will the gateway forget or change something later?",
                format!(
                    "Waiting {}, to see whether the gateway forgets or changes something later.",
                    format_seconds(total)
                ),
            ),
        };
        let bar = ProgressBar::new(total);
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        if bar.is_hidden() && done == 1 {
            // Standard error is not a terminal: print one line per step instead of a progress bar.
            output::print_message(start_message);
        }
        *shown = Some((step, bar.clone()));
        bar
    }
}

impl CheckObserver for TerminalObserver {
    fn report_checked_promise(&self, result: &PromiseResult) {
        if let Some((_, bar)) = self.bar.take() {
            bar.finish_and_clear();
        }
        if self.is_text
            && let Err(error) = output::print_text(&promise_result_line(result))
        {
            self.output_error.borrow_mut().get_or_insert(error);
        }
    }

    fn report_progress(&self, progress: &ConformanceProgress) {
        self.progress_bar(*progress).set_position(progress.done);
    }
}

/// Runs `dueday gateway check`.
pub async fn check_gateway(context: &CommandContext, args: &CheckGatewayArgs) -> Result<Exit, Failure> {
    let checked = SelectedGateway::from_name(&args.gateway).await?;
    let http_client = match &checked {
        SelectedGateway::Http(_, client) => Some(client.as_ref().clone()),
        _ => None,
    };
    let gateway = checked.client(context.clock.clone());
    let account = gateway.account().await.map_err(|error| Failure::Refused(error.to_string()))?;
    if account.live {
        return Err(Failure::Refused(format!("{account} is a live account: check the gateway in its test mode")));
    }
    let parameters = CheckParameters {
        customer: args.customer.clone(),
        other_customer: args.other_customer.clone(),
        succeeding_method: args.payment_method.clone(),
        declining_method: args.declining.clone(),
        processing_method: args.processing.clone(),
        currency: args.currency,
        http_client,
        run: context.clock.ulid(),
        wait: args.wait,
    };
    output::print_message(format!(
        "Making test payments and refunds for {} and {} at {account}; they are not removed. The last checks follow \
         after {}.",
        args.customer,
        args.other_customer,
        format_seconds(args.wait.as_secs())
    ));
    let terminal = TerminalObserver::new(!context.options.json);
    let report = check_conformance(gateway.as_ref(), &parameters, &SystemClock, &terminal).await;
    terminal.output_error.into_inner().map_or(Ok(()), Err)?;
    let shown: Vec<PromiseView<'_>> = report.results.iter().map(PromiseView::from).collect();
    context.print(&shown, || format!("\n{}", conformance_summary_text(&account.to_string(), &report, args.wait)))?;
    Ok(Exit::done_if(report.count_broken_promises() == 0))
}

/// Returns the text about the numbers of kept, broken and unchecked promises.
fn conformance_summary_text(account: &str, report: &ConformanceReport, wait: Duration) -> String {
    let (broken, not_checked) = (report.count_broken_promises(), report.count_unchecked_promises());
    let number = |number: usize| number as u64;
    let kept = report.results.len() - broken - not_checked;
    let mut text = match broken {
        0 => format!("{account} keeps {}", format_count(number(kept), "promise")),
        broken => format!("{account} breaks {broken} of {}", format_count(number(kept + broken), "promise")),
    };
    text += &match not_checked {
        0 => ".\n".to_owned(),
        not_checked => format!("; {not_checked} not checked.\n"),
    };
    text += &format!(
        "The check waited {}; it cannot detect payments that the gateway forgets or makes later.\n",
        format_seconds(wait.as_secs())
    );
    text + &format!(
        "The gateway's test data now contains {}, {} and a checkout page of this check. The check does not remove them.\n",
        format_count(number(report.payment_ids.len()), "payment"),
        format_count(number(report.refunds), "refund")
    )
}

/// Formats a time in seconds, such as `11 min` or `1 min 30 s`.
fn format_seconds(number: u64) -> String {
    match (number / 60, number % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// Formats the result of the check of one promise.
fn promise_result_line(result: &PromiseResult) -> String {
    let promise = result.promise;
    match &result.verdict {
        PromiseVerdict::Kept => format!("{}         {promise}\n", green_text("kept")),
        PromiseVerdict::Broken(how) => format!("{}       {promise}\n             {how}\n", red_text("broken")),
        PromiseVerdict::NotChecked(why) => format!("not checked  {promise}\n             {why}\n"),
    }
}
