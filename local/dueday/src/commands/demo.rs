//! `dueday demo`: a small merchant, and its last three months.

use std::process::ExitCode;
use std::sync::Arc;

use chrono::{DateTime, Months, NaiveDate, NaiveTime, Utc};
use indicatif::ProgressBar;
use serde::Serialize;
use shared::billing::SubscriptionId;
use shared::clock::{Clock, SimulatedClock, SystemClock};
use shared::table::{PaymentCounts, ReminderCounts};

use crate::Failure;
use crate::arguments::Settings;
use crate::commands::import_file;
use crate::machine::data::Machine;
use crate::terminal::output;
use simulator::DailyRuns;

/// The merchant's subscriptions.
const MERCHANT: &[u8] = include_bytes!("demo.csv");
/// How far back they began.
const MONTHS: Months = Months::new(3);

#[derive(Serialize)]
struct Loaded {
    subscriptions: usize,
    from: NaiveDate,
    to: NaiveDate,
    payments: PaymentCounts,
    reminders: ReminderCounts,
}

pub async fn demo(settings: &Settings) -> Result<ExitCode, Failure> {
    let rows = import_file::parse(MERCHANT).map_err(Failure::Refused)?;
    let config = settings.config()?;
    let now = SystemClock.now();
    let today = now.with_timezone(&config.zone).date_naive();
    let from = today.checked_sub_months(MONTHS).unwrap_or(today);
    let eve = from.pred_opt().unwrap_or(from);
    let clock = Arc::new(SimulatedClock::new(eve.and_time(NaiveTime::MIN).and_utc(), 1));
    let Machine { deployment, .. } = &Machine::open(settings, clock.clone()).await?;
    let first = rows.first().map(|row| row.account.clone());
    if let Some(account) = first
        && deployment.table.get_account(&account).await?.is_some()
    {
        if settings.json {
            output::json(&serde_json::json!({"already_loaded": true}))?;
        } else {
            let folder = settings.data.display();
            output::print(&format!("The demo is loaded already. To begin anew, stop dueday and delete {folder}.\n"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let subscriptions = rows.len();
    for row in rows {
        let (account, subscription) =
            (row.new_account(clock.now()), row.subscription(SubscriptionId::new(clock.ulid())));
        deployment.enrol(&account, subscription, eve).await?;
    }
    let mut runs = DailyRuns::new(deployment.clone(), clock).await?;
    let days: Vec<NaiveDate> = from.iter_days().take_while(|day| *day <= today).collect();
    let bar = ProgressBar::new(u64::try_from(days.len()).unwrap_or(0));
    for day in days {
        // Of today, only what has already been.
        let times: Vec<DateTime<Utc>> = runs.times(day).into_iter().filter(|time| *time <= now).collect();
        for time in times {
            runs.both(day, time).await?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let loaded = Loaded { subscriptions, from, to: today, payments: runs.charged, reminders: runs.reminded };
    if settings.json {
        output::json(&loaded)?;
    } else {
        output::print(&text(&loaded, settings))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(loaded: &Loaded, settings: &Settings) -> String {
    let Loaded { subscriptions, from, to, payments, reminders } = loaded;
    format!(
        "A small merchant is loaded: {subscriptions} subscriptions, played from {from} to {to}.\n\
         \x20 {} payments, {} declined tries, {} reminders (mails in {})\n\
         \n\
         Try next\n\
         \x20 cargo run -- due --date {}\n\
         and, with `cargo run` going in another terminal,\n\
         \x20 curl http://127.0.0.1:7878/accounts/harbour-books/subscriptions\n\
         \x20 curl http://127.0.0.1:7878/accounts/harbour-books/receipts\n",
        payments.paid,
        payments.declined,
        reminders.sent,
        settings.data.join("outbox").display(),
        to.checked_add_months(Months::new(1)).unwrap_or(*to),
    )
}
