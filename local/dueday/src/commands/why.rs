//! `dueday why`: why a subscription was charged on a day, or was not.

use std::process::ExitCode;
use std::sync::Arc;

use api::ExplanationView;
use chrono::{DateTime, Utc};
use shared::audit::{Explanation, explain};
use shared::billing::Money;
use shared::clock::{Clock, SystemClock};

use crate::Failure;
use crate::arguments::{Settings, Why};
use crate::machine::data::Opened;
use crate::terminal::output::{self, Column};

const COLUMNS: [Column; 6] = [
    Column::whole("record"),
    Column::whole("due date"),
    Column::whole("recorded at"),
    Column::number("amount"),
    Column::whole(""),
    Column::whole("says"),
];

pub async fn why(settings: &Settings, command: &Why) -> Result<ExitCode, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let opened = Opened::open(settings, clock.clone()).await?;
    let (account, id) = (&command.which.account, command.which.subscription);
    let explained = explain(&opened.table, (account, id), command.date, opened.config.zone, clock.now()).await?;
    let Some(explained) = explained else {
        return Err(Failure::Refused(format!("there is no subscription {id} in the account {account}")));
    };
    let needs_attention = explained.needs_attention();
    if settings.json {
        output::json(&ExplanationView::from(explained))?;
    } else {
        output::print(&text(&explained))?;
    }
    Ok(if needs_attention { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn text(explained: &Explanation) -> String {
    format!("{explained}\n\n{}", output::table(&COLUMNS, evidence(explained)))
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
        let (due_on, says) = (receipt.due_on.to_string(), format!("payment {}", receipt.payment));
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
