//! Simulated months in which schedules do not start, runs are killed, the gateway does not respond and charging is
//! switched off. Every evening the function checks whether the batches of the day are done. The test compares the
//! function's result with a calendar, the gateway's ledger and the sent mails: no alarm is false, and no alarm is
//! missing. The module [`every_alarm`] does the same with random faults and with the other alarms.

mod every_alarm;
mod facts;
mod log;

use std::collections::BTreeMap;
use std::sync::Arc;

use audit_function::{AuditResponse, CONCERN_MESSAGE, DayCheckResponse, TableChecks};
use billing::{Account, Money, Subscription, SubscriptionId};
use chrono::{DateTime, Datelike as _, Days, NaiveDate, Utc};
use clock::{Clock as _, SimulatedClock};
use deployment::{Deployment, FaultyService, InMemoryDeployment};
use emulator::{EngineConnection, ExternalOperation, Fault, FaultInjector};
use sandbox::LedgerEntry;
use store::Batch;
use sweep::{BatchRequest, BatchTask, RunReport};
use testkit::{RecordedMails, fault_at_call, read_test_config, sample_account, sample_subscription, short_or_long};
use ulid::Ulid;

use log::LoggedErrors;

/// The number of days from the reminder to the due date.
const LEAD: u64 = 7;

/// The number of the outgoing call of a run (to the table, the gateway or the mailer) at which the run is killed. At
/// this call, no payment or reminder is complete yet.
const KILLED_AT_CALL: u64 = 5;

/// What happens to the runs of a day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Normal,
    NotStarted(Batch),
    Killed(Batch),
    /// The run is killed, and a later run of the day completes.
    KilledAndRepeated(Batch),
    GatewayDoesNotRespond,
    ChargingOff,
}

/// Returns what happens to the runs of the day with the number `n`. Two of three days are normal. Every third day has
/// the next of the other fates, in turn.
fn fate_of_day(n: u32) -> Fate {
    if !n.is_multiple_of(3) {
        return Fate::Normal;
    }
    match (n / 3) % 8 {
        0 => Fate::NotStarted(Batch::Payments),
        1 => Fate::NotStarted(Batch::Reminders),
        2 => Fate::Killed(Batch::Payments),
        3 => Fate::Killed(Batch::Reminders),
        4 => Fate::KilledAndRepeated(Batch::Payments),
        5 => Fate::KilledAndRepeated(Batch::Reminders),
        6 => Fate::GatewayDoesNotRespond,
        _ => Fate::ChargingOff,
    }
}

/// Returns the date that `text` describes.
fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// Returns the instant at the full hour `hour` of `day`, in UTC.
fn at(day: NaiveDate, hour: u32) -> DateTime<Utc> {
    day.and_hms_opt(hour, 0, 0).unwrap().and_utc()
}

/// Returns the due dates of the payment day `payment_day` from `first` to `last`, by a calendar that only this test
/// uses. In each month, the due date is that day, or the last day of a shorter month.
fn due_dates(payment_day: u32, first: NaiveDate, last: NaiveDate) -> Vec<NaiveDate> {
    let days = first.iter_days().take_while(|day| *day <= last);
    days.filter(|day| {
        let is_last_of_month = day.checked_add_days(Days::new(1)).unwrap().day() == 1;
        day.day() == payment_day || (is_last_of_month && day.day() < payment_day)
    })
    .collect()
}

/// The simulated deployment, with one subscription for each payment day. Each subscription has its own account.
struct World {
    system: InMemoryDeployment,
    mails: Arc<RecordedMails>,
    payment_days: BTreeMap<SubscriptionId, u32>,
}

impl World {
    /// Creates the deployment with 31 subscriptions.
    async fn new() -> Self {
        let mails = Arc::new(RecordedMails::default());
        let clock = SimulatedClock::new(at(date("2026-01-01"), 6), 7);
        let settings = [("DUEDAY_SHARDS", "1"), ("DUEDAY_MERCHANT", "Shop")];
        let system = InMemoryDeployment::new(read_test_config(&settings).unwrap(), clock, mails.clone()).await.unwrap();
        let mut payment_days = BTreeMap::new();
        for n in 0..31_u32 {
            let payment_day = n + 1;
            let subscription = Subscription {
                account: format!("account-{n}").parse().unwrap(),
                id: SubscriptionId::new(Ulid::from_parts(2, n.into())),
                ..sample_subscription(payment_day.into(), date("2026-01-01"))
            };
            let table = &system.deployment.table;
            table.put_account(&Account { id: subscription.account.clone(), ..sample_account() }).await.unwrap();
            table.create_subscription(&subscription, None).await.unwrap();
            payment_days.insert(subscription.id, payment_day);
        }
        Self { system, mails, payment_days }
    }

    /// Runs the batch of `task` for `day` with the faults of `injector`. Returns the report of the run; `None` if the
    /// run failed or was killed. The check in the evening must then report that the batch is not done.
    async fn run<T: BatchTask>(
        &self,
        day: NaiveDate,
        injector: FaultInjector,
        task: impl FnOnce(&Deployment) -> T,
    ) -> Option<RunReport<T::Outcome>> {
        let injector = Arc::new(injector);
        let deployment = Deployment {
            gateway: Arc::new(FaultyService::new(self.system.sandbox.clone(), injector.clone())),
            ..self.system.with_connection(Arc::new(EngineConnection::with_injector(injector.clone()).without_retries()))
        };
        let sweep = deployment.batch_of_task(task(&deployment)).await.unwrap();
        let (request, deadline) = (BatchRequest::for_date(day), at(day, 23));
        injector.run(sweep.run(&request, deadline)).await.and_then(Result::ok)
    }

    /// Runs `batch` for `day` with the faults of `injector`. Returns the largest age of an attempt in doubt, in hours.
    async fn run_batch(&self, batch: Batch, day: NaiveDate, injector: FaultInjector) -> u64 {
        match batch {
            Batch::Payments => {
                let report = self.run(day, injector, Deployment::payment_task).await;
                report.map_or(0, |report| report.totals.oldest_in_doubt_hours(self.system.clock.now()))
            }
            Batch::Reminders => {
                self.run(day, injector, Deployment::reminder_task).await;
                0
            }
        }
    }

    /// Runs the payment batch and the reminder batch of `day`. `fate` is what happens to these runs.
    async fn run_day(&self, day: NaiveDate, fate: Fate) {
        let table = &self.system.deployment.table;
        table.set_charging(fate != Fate::ChargingOff, None).await.unwrap();
        for batch in Batch::ALL {
            self.system.clock.set(at(day, 6));
            let injector = match fate {
                Fate::NotStarted(missing) if missing == batch => continue,
                Fate::Killed(killed) | Fate::KilledAndRepeated(killed) if killed == batch => {
                    FaultInjector::active_during_runs(Arc::new(fault_at_call(KILLED_AT_CALL, Fault::CrashBefore)))
                }
                Fate::GatewayDoesNotRespond => {
                    FaultInjector::active_during_runs(Arc::new(|call: &emulator::ExternalCall<'_>| {
                        matches!(call.operation, ExternalOperation::Charge | ExternalOperation::PaymentsOf)
                            .then_some(Fault::LostBefore)
                    }))
                }
                _ => no_faults(),
            };
            self.run_batch(batch, day, injector).await;
        }
        if let Fate::KilledAndRepeated(batch) = fate {
            self.system.clock.set(at(day, 10));
            self.run_batch(batch, day, no_faults()).await;
        }
    }

    /// Returns the checks of the audit function.
    fn checks(&self) -> TableChecks {
        let Deployment { table, clock, .. } = self.system.deployment.clone();
        TableChecks::new(table, clock)
    }

    /// Returns the function's response to the check of `day` at 20:00.
    async fn check(&self, day: NaiveDate) -> DayCheckResponse {
        self.system.clock.set(at(day, 20));
        let response =
            self.checks().run_requested_check(serde_json::json!({ "check": "day" }), at(day, 21)).await.unwrap();
        let AuditResponse::Day(response) = response else { panic!("{response:?}") };
        response
    }

    /// Returns whether the gateway has a payment for each due date up to `day`. Panics if a due date is paid twice.
    fn is_everything_charged(&self, day: NaiveDate) -> bool {
        let mut charged: BTreeMap<SubscriptionId, Vec<NaiveDate>> = BTreeMap::new();
        for entry in self.system.sandbox.entries() {
            let LedgerEntry::Payment(payment) = entry else { continue };
            assert_eq!(payment.request.amount, Money::new(1299, "EUR".parse().unwrap()));
            charged.entry(payment.request.subscription).or_default().push(payment.request.due_on);
        }
        self.payment_days.iter().all(|(id, payment_day)| {
            let mut dates = charged.remove(id).unwrap_or_default();
            dates.sort();
            let due = due_dates(*payment_day, date("2026-01-02"), day);
            assert!(dates.len() <= due.len(), "{id}: charged for {dates:?}, due on {due:?}");
            dates == due
        })
    }

    /// Returns whether each customer has received a reminder for each payment whose reminder date is from February 1 to
    /// `day`. Panics if a customer has received too many reminders.
    fn is_everyone_reminded(&self, day: NaiveDate) -> bool {
        let mut reminded: BTreeMap<String, usize> = BTreeMap::new();
        for mail in self.mails.mails() {
            if mail.written_at >= at(date("2026-02-01"), 0) {
                *reminded.entry(mail.account.to_string()).or_default() += 1;
            }
        }
        let until = day.checked_add_days(Days::new(LEAD)).unwrap();
        (0..).zip(self.payment_days.values()).all(|(n, payment_day): (u32, _)| {
            let planned = due_dates(*payment_day, date("2026-02-08"), until).len();
            let sent = reminded.remove(&format!("account-{n}")).unwrap_or_default();
            assert!(sent <= planned, "account-{n}: {sent} reminders instead of {planned}");
            sent == planned
        })
    }
}

/// Returns an injector that injects no faults.
fn no_faults() -> FaultInjector {
    FaultInjector::active_during_runs(Arc::new(|_: &emulator::ExternalCall<'_>| None))
}

#[tokio::test]
async fn alarms_of_months_are_exactly_the_days_that_are_not_done() {
    let (last_day, min_quiet_days) = short_or_long(("2026-04-30", 50), ("2026-12-31", 200));
    let world = World::new().await;
    let (mut alarms, mut quiet) = (BTreeMap::new(), 0);
    for (n, day) in (0..).zip(date("2026-01-02").iter_days().take_while(|day| *day <= date(last_day))) {
        // January has no faults, so that the first reminders are sent on their days.
        let fate = if day < date("2026-02-01") { Fate::Normal } else { fate_of_day(n) };
        world.run_day(day, fate).await;
        let response = world.check(day).await;
        if day < date("2026-02-01") {
            assert_eq!(response.not_done, [], "{day}");
            continue;
        }
        let mut really_not_done = Vec::new();
        if !world.is_everyone_reminded(day) {
            really_not_done.push(Batch::Reminders);
        }
        if !world.is_everything_charged(day) {
            really_not_done.push(Batch::Payments);
        }
        assert_eq!(response.not_done, really_not_done, "{day}: {fate:?}");
        match really_not_done.is_empty() {
            true => quiet += 1,
            false => *alarms.entry(format!("{fate:?}")).or_insert(0) += 1,
        }
    }
    assert!(quiet > min_quiet_days, "{quiet}");
    let kinds: Vec<&str> = alarms.keys().map(String::as_str).collect();
    let expected = [
        "ChargingOff",
        "GatewayDoesNotRespond",
        "Killed(Payments)",
        "Killed(Reminders)",
        "NotStarted(Payments)",
        "NotStarted(Reminders)",
    ];
    assert_eq!(kinds, expected, "a run that was repeated on its day raises no alarm: {alarms:?}");
}

#[tokio::test]
async fn check_of_the_day_logs_everything_that_needs_a_person() {
    let world = World::new().await;
    let log = LoggedErrors::default();
    let _guard = testkit::capture_logs(log.clone());
    let (first, day) = (date("2026-01-01"), date("2026-01-02"));
    world.run_day(first, Fate::Normal).await;
    world.run_day(day, Fate::Normal).await;
    assert_eq!((world.check(day).await.problems, log.count(CONCERN_MESSAGE)), (Vec::new(), 0));
    let next = date("2026-01-03");
    world.run_day(next, Fate::ChargingOff).await;
    let problems = world.check(next).await.problems;
    assert_eq!(problems[0], "charging is switched off, so runs charge nothing");
    assert_eq!(log.count(CONCERN_MESSAGE), problems.len());
}
