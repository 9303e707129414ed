//! `dueday demo`: a small merchant, and its last three months.
//!
//! The past is played in a table in memory, and then copied, subscriptions last. So the data folder never holds a
//! subscription whose past is still to be charged: not when the demo is interrupted, and not for a server that sweeps
//! the folder meanwhile. Begun again, it plays and copies what is not there yet. The gateway has one ledger for both, and
//! answers a charge of the same key with the same payment.

use std::sync::Arc;

use chrono::{DateTime, Months, NaiveDate, NaiveTime, Utc};
use clock::{Clock, SimulatedClock};
use config::Env;
use emulator::{Deployment, Engine};
use indicatif::ProgressBar;
use mail::MAIL_URL;
use serde::Serialize;
use simulator::DailyRuns;
use store::{PaymentCounts, ReminderCounts, Settings, Table};

use super::demo_company;
use super::import::{self, Row};
use crate::context::Context;
use crate::machine::data::{Folder, Machine};
use crate::{Exit, Failure};

/// The merchant's subscriptions.
const MERCHANT: &[u8] = include_bytes!("demo.csv");
/// How far back they began.
const MONTHS: Months = Months::new(3);

#[derive(Serialize)]
struct Loaded {
    /// There is nothing left to load.
    already_loaded: bool,
    subscriptions: usize,
    from: NaiveDate,
    to: NaiveDate,
    payments: PaymentCounts,
    reminders: ReminderCounts,
}

pub async fn demo(context: &Context) -> Result<Exit, Failure> {
    if Env::process().given(&MAIL_URL).is_some() {
        let reason = "DUEDAY_MAIL_URL is set, and the demo writes to customers who are not there: unset it";
        return Err(Failure::Refused(reason.to_owned()));
    }
    context.local_only("demo")?;
    let to = context.today();
    let rows = import::parse(MERCHANT, to).map_err(Failure::Refused)?;
    let from = to.checked_sub_months(MONTHS).unwrap_or(to);
    let eve = from.pred_opt().unwrap_or(from);
    let clock = Arc::new(SimulatedClock::new(eve.and_time(NaiveTime::MIN).and_utc(), rand::random()));
    let machine = Machine::open(context, Folder::MadeIfAbsent, clock.clone()).await?;
    let table = &machine.deployment.table;
    let absent = absent(table, rows).await?;
    let mut loaded = Loaded {
        already_loaded: absent.is_empty(),
        subscriptions: absent.len(),
        from,
        to,
        payments: PaymentCounts::default(),
        reminders: ReminderCounts::default(),
    };
    if !absent.is_empty() {
        let past = in_memory(&machine.deployment).await?;
        for row in absent {
            let (account, id) = (row.new_account(clock.now()), row.external_id.subscription_of(&row.account));
            past.enrol(&account, row.subscription(id), eve).await?;
        }
        let copied = past.table.clone();
        (loaded.payments, loaded.reminders) = play(past, clock, (from, to), context.clock.now()).await?;
        demo_company::found(&machine.order_desk(context).await?, context.clock.now()).await?;
        table.copy_from(&copied).await?;
        // What was paid is ordered.
        machine.catch_up(context).await?;
    }
    context.print(&loaded, || text(context, &machine, &loaded))?;
    Ok(Exit::Done)
}

/// Those of `rows` whose subscription is not in `table`.
async fn absent(table: &Table, rows: Vec<Row>) -> Result<Vec<Row>, Failure> {
    let mut absent = Vec::new();
    for row in rows {
        let id = row.external_id.subscription_of(&row.account);
        if table.get_subscription(&row.account, id).await?.is_none() {
            absent.push(row);
        }
    }
    Ok(absent)
}

/// The system `of`, with another table, in memory. It keeps the table's id, of which the keys of charges are made.
async fn in_memory(of: &Deployment) -> Result<Deployment, Failure> {
    let settings = of.table.init_settings(&of.config.table.initial_settings(of.clock.as_ref())).await?;
    let past = of.over(Engine::memory().client());
    past.table.create_if_absent().await?;
    past.table.init_settings(&Settings { charging: true, latest_run_at: None, ..settings }).await?;
    Ok(past)
}

/// Plays the days `from` to `to`, of the last one only what has been by `now`. Answers what was charged and reminded.
async fn play(
    past: Deployment,
    clock: Arc<SimulatedClock>,
    (from, to): (NaiveDate, NaiveDate),
    now: DateTime<Utc>,
) -> Result<(PaymentCounts, ReminderCounts), Failure> {
    let mut runs = DailyRuns::new(past, clock).await?;
    let days: Vec<NaiveDate> = from.iter_days().take_while(|day| *day <= to).collect();
    let bar = ProgressBar::new(u64::try_from(days.len()).unwrap_or(0));
    for day in days {
        let times: Vec<DateTime<Utc>> = runs.times(day).into_iter().filter(|time| *time <= now).collect();
        for time in times {
            runs.both(day, time).await?;
        }
        if runs.charged.in_doubt > 0 || runs.charged.failed > 0 {
            let reason =
                format!("the gateway did not answer a charge of {day}: nothing is loaded. Try again when it does");
            return Err(Failure::Refused(reason));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok((runs.charged, runs.reminded))
}

fn text(context: &Context, machine: &Machine, loaded: &Loaded) -> String {
    let Loaded { subscriptions, from, to, payments, reminders, .. } = loaded;
    let folder = context.options.data.display();
    if loaded.already_loaded {
        return format!("The demo is loaded already. To begin anew, stop dueday and delete {folder}.\n");
    }
    let api = machine.running.as_ref().map_or("http://127.0.0.1:7878", |running| &running.api);
    let serve = match machine.running {
        Some(_) => "and".to_owned(),
        None => format!("and, with `{}` going in another terminal,", context.hint("").trim_end()),
    };
    format!(
        "A small merchant is loaded: {subscriptions} subscriptions, played from {from} to {to}.\n\
         \x20 {} payments, {} declined tries, {} reminders (mails in {folder}/outbox)\n\
         \n\
         Try next\n\
         \x20 {}\n\
         \x20 {}\n\
         {serve}\n\
         \x20 curl {api}/accounts/harbour-books/subscriptions\n\
         \x20 curl {api}/accounts/harbour-books/receipts\n",
        payments.paid,
        payments.declined,
        reminders.sent,
        context.hint("orders list --status OPEN"),
        context.hint(&format!("due --date {}", to.checked_add_months(Months::new(1)).unwrap_or(*to))),
    )
}
