//! `dueday why`: explains why a subscription was or was not charged on a day.

use api::ExplanationView;
use audit::{ChargeExplanation, explain_charge_on_day};
use billing::Money;
use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use clap::Args;

use crate::commands::subscription_args::SubscriptionSelector;
use crate::commands::value_parsers::parse_date;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::local_time::format_minutes;
use crate::terminal::output;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of records.
const COLUMNS: [TableColumn; 6] = [
    TableColumn::unwrapped("record"),
    TableColumn::unwrapped("due date"),
    TableColumn::unwrapped("recorded at"),
    TableColumn::number("amount"),
    TableColumn::unwrapped(""),
    TableColumn::text("details"),
];

/// The arguments of `dueday why`.
#[derive(Debug, Args)]
#[command(after_help = "\
The explanation uses the stored records, which expire at the same time as receipts, and the current state of the \
subscription.

The command exits with 0 if the records explain the result. It exits with 1 if the operator must act: a payment has \
been open for longer than a bank may process it, a payment is owed because a run did not process the shard or did not charge, or the reason is not recorded. It \
exits with 2 if the subscription does not exist.

Examples:
  dueday why acme
  dueday why acme 01JZXCVBNM0123456789ABCDEF --date 2027-01-31")]
pub struct WhyArgs {
    #[command(flatten)]
    pub selector: SubscriptionSelector,
    /// The date; a future date gives a forecast [default: today]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    pub date: Option<NaiveDate>,
}

/// Runs `dueday why`.
pub async fn run_why_command(context: &CommandContext, args: &WhyArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let (account, id) = (&args.selector.account, args.selector.find_subscription(&open_table.table).await?.id);
    let Some(explained) = explain_charge_on_day(&open_table.table, account, id, args.date, context.clock.now()).await?
    else {
        return Err(Failure::Refused(format!("there is no subscription {id} in the account {account}")));
    };
    let (needs_attention, text) =
        (explained.needs_attention(), explanation_text(&explained, open_table.table.policy().zone));
    context.print(&ExplanationView::from(explained), || text)?;
    Ok(Exit::done_if(!needs_attention))
}

fn explanation_text(explained: &ChargeExplanation, zone: Tz) -> String {
    format!("{explained}\n\n{}", format_table(&COLUMNS, rows_of_used_records(explained, zone)))
}

/// Returns one table row for each record that the explanation uses. Times are in the billing time zone `zone`.
fn rows_of_used_records(explained: &ChargeExplanation, zone: Tz) -> Vec<Vec<String>> {
    let ChargeExplanation { subscription, records, run, .. } = explained;
    let row = |record: String, due_on: String, at: String, amount: Option<Money>, detail: String| {
        let (amount, currency) = amount.map(|a| (a.decimal(), a.currency().to_string())).unwrap_or_default();
        vec![record, due_on, at, amount, currency, detail]
    };
    let at = |instant: DateTime<Utc>| format_minutes(instant, zone);
    let next = subscription.next_charge_on().map(|on| format!(", next payment {on}")).unwrap_or_default();
    let status = output::colored_status(&subscription.status.to_string()) + " now" + &next;
    let due_on = subscription.due_on.to_string();
    let mut rows = vec![row("subscription".into(), due_on, String::new(), Some(subscription.price), status)];
    rows.extend(subscription.attempt.iter().map(|open| {
        let detail = format!("open, leased until {}", at(open.leased_until));
        row(format!("attempt {}", open.no), open.due_on.to_string(), at(open.claimed_at), Some(open.amount), detail)
    }));
    rows.extend(records.attempts.iter().map(|attempt| {
        let detail = format!("{} ({})", attempt.outcome, attempt.code);
        let (record, due_on) = (format!("attempt {}", attempt.attempt_no), attempt.due_on.to_string());
        row(record, due_on, at(attempt.processed_at), Some(attempt.amount), detail)
    }));
    rows.extend(records.receipts.iter().map(|receipt| {
        let reversed =
            receipt.reversal.map(|reversal| format!(", reversed by the bank, reported at {}", at(reversal.at)));
        let detail = format!("payment {}{}", receipt.payment, reversed.unwrap_or_default());
        let due_on = receipt.due_on.to_string();
        row("receipt".into(), due_on, at(receipt.processed_at), Some(receipt.amount), detail)
    }));
    rows.extend(records.waived.iter().map(|waived| {
        let detail = waived.reason.to_string();
        row("waived".into(), waived.due_on.to_string(), at(waived.waived_at), None, detail)
    }));
    rows.extend(run.iter().map(|run| {
        let stopped = run.stopped.as_ref().map(|reason| format!("stopped: {reason}"));
        let counts = (run.runs > 0).then(|| run.counts.to_string());
        let detail: Vec<_> = [Some(run.walked.to_string()), counts, stopped].into_iter().flatten().collect();
        row(format!("runs of shard {}", run.shard), String::new(), String::new(), None, detail.join("; "))
    }));
    rows
}
