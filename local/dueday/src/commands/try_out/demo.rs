//! `dueday demo`: loads the data of a small example merchant, and simulates its last three months.
//!
//! The months are simulated in a table in memory. The items of this table are then copied to the table in the data
//! folder. The subscriptions are copied last, so the data folder never contains a subscription with unpaid past months,
//! even if the demo is interrupted or a server runs at the same time. A repeated demo simulates everything again, and
//! copies only the missing items. Both tables use the same gateway, which returns the same payment for each charge with
//! the same idempotency key.

use std::sync::Arc;

use chrono::{DateTime, Months, NaiveDate, NaiveTime, Utc};
use clock::{Clock, SimulatedClock};
use config::Env;
use deployment::Deployment;
use emulator::Engine;
use gateway_objects::{RefundRequester, refund_id_with_key};
use indicatif::ProgressBar;
use mail::MAIL_URL;
use serde::Serialize;
use simulator::DailyRuns;
use store::{Paging, PaymentCounts, ReminderCounts, Settings, Table};

use crate::commands::set_up::import::{self, ImportRow};
use crate::commands::try_out::demo_company;
use crate::commands::try_out::demo_mails::{SimulationNotices, UnsentMails};
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::gateway::STRIPE;
use crate::machine::listen::default_api_url;
use crate::machine::local_machine::LocalMachine;
use crate::terminal::progress::ProgressDisplay;
use crate::{Exit, Failure};

/// The subscriptions of the demo's merchant, in the format of `dueday import`.
const SUBSCRIPTIONS_CSV: &[u8] = include_bytes!("demo.csv");
/// The account for which the demo refunds a part of the newest payment.
const REFUNDED_ACCOUNT: &str = "hotel-aurora";
/// The number of months before today that are simulated. The demo's subscriptions begin at the start of the first
/// month.
const SIMULATED_MONTHS: Months = Months::new(3);

/// The output of the command with `--json`.
#[derive(Serialize)]
struct DemoReport {
    /// Whether the data folder already contained all subscriptions of the demo.
    already_loaded: bool,
    subscriptions: usize,
    from: NaiveDate,
    to: NaiveDate,
    payments: PaymentCounts,
    reminders: ReminderCounts,
}

/// Runs `dueday demo`.
pub async fn run_demo_command(context: &CommandContext) -> Result<Exit, Failure> {
    if Env::of_process().get(&MAIL_URL).is_some() {
        let reason = "DUEDAY_MAIL_URL is set, but the demo writes mails to invented customers: unset the variable";
        return Err(Failure::Refused(reason.to_owned()));
    }
    context.require_local_table("demo")?;
    if context.options.gateway() == Some(STRIPE) {
        let reason = "the demo's customers exist only at the sandbox gateway: run the demo without --gateway stripe";
        return Err(Failure::Refused(reason.to_owned()));
    }
    // A new folder gets this time zone. A folder with another one refuses a flag that differs; a variable that differs only
    // decides on which day the demo ends.
    let to = context.config.table.configured_policy.policy.date_at(context.clock.now());
    let rows = import::parse_import_rows(SUBSCRIPTIONS_CSV, to).map_err(Failure::Refused)?;
    // The simulated months end today, so the first of them begins on the following day of an earlier month.
    let day_before = to.checked_sub_months(SIMULATED_MONTHS).unwrap_or(to);
    let from = day_before.succ_opt().unwrap_or(to);
    let clock = Arc::new(SimulatedClock::new(day_before.and_time(NaiveTime::MIN).and_utc(), rand::random()));
    let machine = LocalMachine::open(context, FolderRequirement::CreateIfAbsent, clock.clone()).await?;
    let is_loaded = are_all_rows_stored(&machine.deployment.table, &rows).await?;
    let mut report = DemoReport {
        already_loaded: is_loaded,
        subscriptions: rows.len(),
        from,
        to,
        payments: PaymentCounts::default(),
        reminders: ReminderCounts::default(),
    };
    if !is_loaded {
        load_demo(context, &machine, clock, rows, day_before, &mut report).await?;
    }
    context.print(&report, || demo_text(context, &machine, &report))?;
    Ok(Exit::Done)
}

/// Simulates the months of the demo in memory, copies their items to the table of `machine`, and makes the changes of
/// today. `day_before` is the day before the first simulated day. Sets the counts of `report`.
async fn load_demo(
    context: &CommandContext,
    machine: &LocalMachine,
    clock: Arc<SimulatedClock>,
    rows: Vec<ImportRow>,
    day_before: NaiveDate,
    report: &mut DemoReport,
) -> Result<(), Failure> {
    check_demo_prices(machine, &rows).await?;
    let unsent = Arc::new(UnsentMails::default());
    let engine = Engine::in_memory();
    let past = create_memory_copy(&machine.deployment, &engine).await?;
    // The simulated table does not contain the payments of a demo that was interrupted, and charges them again with
    // the same idempotency keys.
    let past = Deployment { mailer: unsent.clone(), clock: clock.clone(), older_table_check: None, ..past };
    let notices = SimulationNotices::new(&past, &engine)?;
    for row in rows {
        let (account, id) = (row.new_account(clock.now()), row.id);
        past.create_subscription(&account, row.subscription(id), day_before).await?;
    }
    let copied = past.table.clone();
    (report.payments, report.reminders) =
        simulate_days(past, notices, clock, report.from, report.to, context.clock.now()).await?;
    demo_company::create_demo_company(&machine.order_desk(context).await?, context.clock.now()).await?;
    machine.deployment.table.copy_missing_items(&copied).await?;
    for mail in unsent.take() {
        machine.deployment.mailer.send(&mail).await?;
    }
    refund_one_payment(context, machine).await?;
    // This call places the orders of the simulated payments, and sends the mails that the simulation has not sent,
    // such as the mail about the refund.
    machine.publish_all_changes(context).await?;
    Ok(())
}

/// Checks whether the gateway can charge the prices of `rows`.
async fn check_demo_prices(machine: &LocalMachine, rows: &[ImportRow]) -> Result<(), Failure> {
    // A gateway that does not respond now is reported by the first simulated run.
    let rules = machine.gateway.amount_rules().await.unwrap_or_default();
    for ImportRow { account, price, .. } in rows {
        let refused = |refusal| Failure::Refused(format!("the demo's price {price} of {account} {refusal}"));
        rules.check_amount(*price).map_err(refused)?;
    }
    Ok(())
}

/// Refunds half of the newest payment of one customer.
async fn refund_one_payment(context: &CommandContext, machine: &LocalMachine) -> Result<(), Failure> {
    let (table, account) = (&machine.deployment.table, REFUNDED_ACCOUNT.parse().expect("a valid account id"));
    let receipts = table.get_receipts_by_account(&account, &Paging::all(), context.clock.now()).await?.items;
    let Some(receipt) = receipts.first() else { return Ok(()) };
    let refunds = RefundRequester::new(table.clone(), machine.gateway.clone(), context.clock.clone());
    let id = refund_id_with_key(&account, &receipt.id(), "demo");
    let refund = refunds.refund(&account, &receipt.id(), id, Some(receipt.amount.minor() / 2), None).await;
    refund.map(drop).map_err(|error| Failure::Refused(format!("the demo's refund was not made: {error}")))
}

/// Returns whether `table` has the subscriptions of all `rows`.
async fn are_all_rows_stored(table: &Table, rows: &[ImportRow]) -> Result<bool, Failure> {
    for row in rows {
        let id = row.id;
        if table.get_subscription(&row.account, id).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns a deployment like `of` with an empty table in `engine`. The new table has the table id of the original
/// table, so that charges for both tables have the same idempotency keys.
async fn create_memory_copy(of: &Deployment, engine: &Engine) -> Result<Deployment, Failure> {
    let settings = of.table.init_settings(&of.config.table.initial_settings(of.clock.as_ref())).await?;
    let past = of.with_client(engine.client());
    past.table.create_if_absent().await?;
    past.table
        .init_settings(&Settings {
            charging: true,
            dynamodb_id: None,
            copy_noticed_at: None,
            copy_noticed_in: None,
            latest_run_at: None,
            latest_payment_run_at: None,
            ..settings
        })
        .await?;
    Ok(past)
}

/// Simulates the first runs of each day from `from` to `to`. On the last day, they begin at `now` if that is earlier
/// than their usual time, so that the server finds no due payment. Returns the counts of payments and reminders.
async fn simulate_days(
    past: Deployment,
    mut notices: SimulationNotices,
    clock: Arc<SimulatedClock>,
    from: NaiveDate,
    to: NaiveDate,
    now: DateTime<Utc>,
) -> Result<(PaymentCounts, ReminderCounts), Failure> {
    let mut runs = DailyRuns::new(past, clock).await?;
    let days: Vec<NaiveDate> = from.iter_days().take_while(|day| *day <= to).collect();
    let bar = ProgressBar::new(u64::try_from(days.len()).unwrap_or(0));
    let bar =
        ProgressDisplay::show(bar, "{bar:40} {pos}/{len} days", |bar| format!("{} days simulated", bar.position()));
    for day in days {
        // The second runs of a day are left out: they find nothing to do after complete first runs.
        let [time, _] = runs.batch_run_times_on(day);
        let charged_before = runs.charged;
        runs.run_both_batches(day, time.min(now)).await?;
        // Notices result only from payments in this simulation. So the stream is read only after a run with payments,
        // because reading the stream takes most of the time.
        if runs.charged != charged_before {
            notices.send_new_notices().await?;
        }
        if runs.charged.in_doubt > 0 || runs.charged.failed > 0 {
            let reason = format!(
                "the gateway did not respond to a charge of {day}, so the demo was not loaded. Try again later"
            );
            return Err(Failure::Refused(reason));
        }
        bar.inc(1);
    }
    drop(bar);
    Ok((runs.charged, runs.reminded))
}

fn demo_text(context: &CommandContext, machine: &LocalMachine, report: &DemoReport) -> String {
    let DemoReport { subscriptions, from, to, payments, reminders, .. } = report;
    let folder = context.options.data.display();
    if report.already_loaded {
        return format!("The demo is loaded already. To start again, stop dueday and delete {folder}.\n");
    }
    let api = machine.running.as_ref().map_or_else(default_api_url, |running| running.api.clone());
    let serve = match machine.running {
        Some(_) => "and".to_owned(),
        None => format!("and, while `{}` runs in another terminal,", context.command_line("").trim_end()),
    };
    format!(
        "A small merchant is loaded: {subscriptions} subscriptions, simulated from {from} to {to}.\n\
         \x20 {} payments, {} declined attempts, {} reminders (mails in {folder}/outbox)\n\
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
        context.command_line("report"),
        context.command_line("forecast"),
    )
}
