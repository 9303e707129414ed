//! `dueday why`: why a subscription was charged on a day, or was not.

use api::ExplanationView;
use audit::{Explanation, explain};
use billing::Money;
use chrono::{DateTime, NaiveDate, Utc};
use clap::Args;

use super::values::{Which, date};
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 6] = [
    Column::whole("record"),
    Column::whole("due date"),
    Column::whole("recorded at"),
    Column::number("amount"),
    Column::whole(""),
    Column::whole("says"),
];

/// `dueday why`.
#[derive(Debug, Args)]
#[command(after_help = "\
The answer comes from the records alone, which are kept for as long as receipts are, and from the subscription as it is \
now. With --table, give --time-zone as it is deployed: it says on which date a payment was made.

Exits with 0 when the records explain it. Exits with 1 when somebody must look: a payment is open, or is owed because the \
shard was not walked or the run held back, or for a reason that is not recorded. Exits with 2 when there is no such \
subscription.

Examples:
  dueday why acme 01JZXCVBNM0123456789ABCDEF
  dueday why acme 01JZXCVBNM0123456789ABCDEF --date 2027-01-31")]
pub struct WhyArgs {
    #[command(flatten)]
    pub which: Which,
    /// The day; today if absent, any day ahead as a forecast
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub date: Option<NaiveDate>,
}

pub async fn why(context: &Context, args: &WhyArgs) -> Result<Exit, Failure> {
    let opened = Opened::open(context, Folder::Existing).await?;
    let Which { account, subscription: id } = &args.which;
    let (zone, now) = (context.config.billing.zone, context.clock.now());
    let Some(explained) = explain(&opened.table, (account, *id), args.date, zone, now).await? else {
        return Err(Failure::Refused(format!("there is no subscription {id} in the account {account}")));
    };
    let (needs_attention, text) = (explained.needs_attention(), text(&explained));
    context.print(&ExplanationView::from(explained), || text)?;
    Ok(Exit::of(!needs_attention))
}

fn text(explained: &Explanation) -> String {
    format!("{explained}\n\n{}", table(&COLUMNS, evidence(explained)))
}

/// What the answer rests on, a line each.
fn evidence(explained: &Explanation) -> Vec<Vec<String>> {
    let Explanation { subscription, records, run, .. } = explained;
    let row = |record: String, due_on: String, at: String, amount: Option<Money>, says: String| {
        let (amount, currency) = amount.map(|a| (a.decimal(), a.currency().to_string())).unwrap_or_default();
        vec![record, due_on, at, amount, currency, says]
    };
    let at = |instant: DateTime<Utc>| instant.format("%Y-%m-%d %H:%M").to_string();
    let next = subscription.next_payment_on.map(|on| format!(", next payment {on}")).unwrap_or_default();
    let status = output::status(&subscription.status.to_string()) + " now" + &next;
    let due_on = subscription.due_on.to_string();
    let mut rows = vec![row("subscription".into(), due_on, String::new(), Some(subscription.price), status)];
    rows.extend(subscription.attempt.iter().map(|open| {
        let says = format!("open, held until {}", at(open.leased_until));
        row(format!("attempt {}", open.no), open.due_on.to_string(), at(open.claimed_at), Some(open.amount), says)
    }));
    rows.extend(records.attempts.iter().map(|attempt| {
        let says = format!("{} ({})", attempt.outcome, attempt.code);
        let (record, due_on) = (format!("attempt {}", attempt.attempt_no), attempt.due_on.to_string());
        row(record, due_on, at(attempt.processed_at), Some(attempt.amount), says)
    }));
    rows.extend(records.receipts.iter().map(|receipt| {
        let reversed =
            receipt.reversal.map(|reversal| format!(", taken back by the bank, known at {}", at(reversal.at)));
        let says = format!("payment {}{}", receipt.payment, reversed.unwrap_or_default());
        let due_on = receipt.due_on.to_string();
        row("receipt".into(), due_on, at(receipt.processed_at), Some(receipt.amount), says)
    }));
    rows.extend(records.waived.iter().map(|waived| {
        let says = waived.reason.to_string();
        row("waived".into(), waived.due_on.to_string(), at(waived.waived_at), None, says)
    }));
    rows.extend(run.iter().map(|run| {
        let stopped = run.stopped.as_ref().map(|reason| format!("stopped: {reason}"));
        let counts = (run.runs > 0).then(|| run.counts.to_string());
        let says: Vec<_> = [Some(run.walked.to_string()), counts, stopped].into_iter().flatten().collect();
        row(format!("runs of shard {}", run.shard), String::new(), String::new(), None, says.join("; "))
    }));
    rows
}
