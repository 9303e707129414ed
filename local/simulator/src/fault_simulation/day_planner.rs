//! Plans the days of a simulation with faults: the batch runs, the customer requests and the operator tasks of each
//! day, with their instants.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use emulator::batch_run_times_on;
use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;

use crate::calendar::month_of;
use crate::oracle::{CustomerAction, ExpectedSubscription};
use crate::simulated_gateway::GatewayEvent;
use crate::stored_items::StoredStatus;

/// On average, one customer request per subscription is sent in this number of days.
const REQUEST_ONE_IN: u32 = 25;
/// On average, one outage begins in this number of days without an outage.
const OUTAGE_ONE_IN: u32 = 45;
/// On average, an operator switches charging off for some hours once in this number of days.
const CHARGING_OFF_ONE_IN: u32 = 60;
/// On average, an operator sets a ceiling (a maximum number of charges per day) for some hours once in this number of
/// days.
const CEILING_ONE_IN: u32 = 15;
/// The ceilings that operators set are lower than this number of charges.
const MAX_CEILING: u64 = 10;
/// On average, one shard is added in this number of days.
const NEW_SHARD_ONE_IN: u32 = 90;
/// On average, one subscription is created in this number of days.
const NEW_SUBSCRIPTION_ONE_IN: u32 = 30;
/// If the table has this number of shards, no more shards are added.
const MAX_SHARDS: u32 = 4;

/// The test payment methods to which customers change. Charges with the first six payment methods succeed.
const PAYMENT_METHODS: [&str; 11] = [
    "pm_card_visa",
    "pm_card_mastercard",
    "pm_card_amex",
    "pm_card_jcb",
    "pm_card_visa_debit",
    "pm_usBankAccount_success",
    "pm_usBankAccount_insufficientFunds",
    "pm_card_visa_chargeDeclined",
    "pm_card_visa_chargeDeclinedInsufficientFunds",
    "pm_card_visa_chargeDeclinedLostCard",
    // The gateway does not know this payment method, and rejects every charge with it.
    "pm_card_unknown",
];

/// A task that starts at a planned instant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlannedTask {
    /// The payment batch runs for this date.
    RunPayments(NaiveDate),
    /// The reminder batch runs for this date.
    RunReminders(NaiveDate),
    /// A customer sends a request; the subscription and the action are chosen when the task starts.
    SendCustomerRequest,
    /// An operator sends a request that creates a subscription.
    CreateSubscription,
    /// An operator resolves a payment attempt that has been open for a long time.
    ResolveAttempt,
    /// The gateway delivers this event.
    DeliverEvent(GatewayEvent),
    /// An operator switches charging on (`true`) or off.
    SwitchCharging(bool),
    /// An operator sets the maximum number of charges per day; `None` removes it.
    SetCeiling(Option<u64>),
    /// An operator increases the number of shards to this number.
    SetShards(u32),
    /// A backup of the table is made, with which the table is replaced at the end of the simulation.
    CopyTable,
}

/// The kind of an outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SimulatedOutage {
    /// The whole system is down: no run starts.
    System,
    /// No request reaches the gateway.
    Gateway,
}

/// Plans the tasks of each day, and stores the current outage and the current number of shards from one day to the
/// next.
#[derive(Debug)]
pub struct DayPlanner {
    /// The current number of shards.
    pub shards: u32,
    /// The current outage, and the number of days that it still lasts, including today.
    outage: Option<(SimulatedOutage, u32)>,
    /// The number of days with an outage so far.
    pub outage_days: u32,
}

impl DayPlanner {
    pub fn new(shards: u32) -> Self {
        Self { shards, outage: None, outage_days: 0 }
    }

    /// Advances to the next day, and returns the kind of outage on that day; `None` if there is no outage.
    pub fn advance_to_next_day(&mut self, rng: &mut ChaCha8Rng) -> Option<SimulatedOutage> {
        self.outage = self.outage.and_then(|(kind, days)| Some((kind, days.checked_sub(1).filter(|left| *left > 0)?)));
        if self.outage.is_none() && rng.random_ratio(1, OUTAGE_ONE_IN) {
            let kind = if rng.random() { SimulatedOutage::System } else { SimulatedOutage::Gateway };
            // Some outages last longer than a month.
            let days = if rng.random_ratio(1, 12) { 40 } else { rng.random_range(1..=5) };
            self.outage = Some((kind, days));
        }
        self.outage_days += u32::from(self.outage.is_some());
        self.outage.map(|(kind, _)| kind)
    }

    /// Plans a day with faults, and returns its tasks with their instants.
    pub fn plan_with_faults(
        &mut self,
        day: NaiveDate,
        zone: Tz,
        subscriptions: u32,
        outage: Option<SimulatedOutage>,
        rng: &mut ChaCha8Rng,
    ) -> Vec<(DateTime<Utc>, PlannedTask)> {
        let mut tasks = Vec::new();
        if outage != Some(SimulatedOutage::System) {
            tasks.extend(plan_runs(day, zone, rng));
        }
        tasks.extend(plan_customer_requests(day, zone, subscriptions, rng));
        tasks.extend(self.plan_operator_tasks(day, zone, rng));
        tasks
    }

    /// Plans the tasks of operators on a day with faults, except the runs that they start.
    fn plan_operator_tasks(
        &mut self,
        day: NaiveDate,
        zone: Tz,
        rng: &mut ChaCha8Rng,
    ) -> Vec<(DateTime<Utc>, PlannedTask)> {
        let mut tasks = Vec::new();
        let runs = batch_run_times(day, zone);
        if rng.random_ratio(1, NEW_SUBSCRIPTION_ONE_IN) {
            tasks.push((random_time_near_first_run(day, zone, rng), PlannedTask::CreateSubscription));
        }
        if rng.random_ratio(1, 2) {
            let at = random_time_after(runs[1] + TimeDelta::hours(2), 90, rng);
            tasks.push((at, PlannedTask::ResolveAttempt));
        }
        if rng.random_ratio(1, CHARGING_OFF_ONE_IN) {
            tasks.push((random_time_after(runs[0], 8, rng), PlannedTask::SwitchCharging(false)));
            let on_at = random_time_after(runs[1] - TimeDelta::hours(1), 120, rng);
            tasks.push((on_at, PlannedTask::SwitchCharging(true)));
        }
        if rng.random_ratio(1, CEILING_ONE_IN) {
            let ceiling = rng.random_range(0..MAX_CEILING);
            tasks.push((runs[0] - TimeDelta::hours(1), PlannedTask::SetCeiling(Some(ceiling))));
            let removed_at = random_time_after(runs[0] + TimeDelta::minutes(5), 180, rng);
            tasks.push((removed_at, PlannedTask::SetCeiling(None)));
        }
        if self.shards < MAX_SHARDS && rng.random_ratio(1, NEW_SHARD_ONE_IN) {
            self.shards += 1;
            tasks.push((random_time_after(runs[0], 8, rng), PlannedTask::SetShards(self.shards)));
        }
        tasks
    }

    /// Plans a day without faults, and returns its tasks with their instants: only the batch runs.
    pub fn plan_without_faults(day: NaiveDate, zone: Tz) -> Vec<(DateTime<Utc>, PlannedTask)> {
        let both = |time| {
            [(time, PlannedTask::RunReminders(day)), (time + TimeDelta::minutes(20), PlannedTask::RunPayments(day))]
        };
        batch_run_times(day, zone).into_iter().flat_map(both).collect()
    }
}

/// Returns the two instants of a day at which both batches run.
fn batch_run_times(day: NaiveDate, zone: Tz) -> [DateTime<Utc>; 2] {
    batch_run_times_on(day, NaiveTime::from_hms_opt(6, 0, 0).unwrap_or_default(), zone)
}

/// Plans the runs of both batches on a day with faults on which the system is not down.
fn plan_runs(day: NaiveDate, zone: Tz, rng: &mut ChaCha8Rng) -> Vec<(DateTime<Utc>, PlannedTask)> {
    let mut tasks = Vec::new();
    let runs = batch_run_times(day, zone);
    for (time, is_second) in runs.into_iter().zip([false, true]) {
        // The second run of a day is not always started.
        if is_second && rng.random() {
            continue;
        }
        // A run may start twice at nearly the same time, or not at all.
        let run_count =
            |rng: &mut ChaCha8Rng| 1 + u32::from(rng.random_ratio(1, 5)) - u32::from(rng.random_ratio(1, 6));
        for _ in 0..run_count(rng) {
            tasks.push((random_time_after(time, 6, rng), PlannedTask::RunReminders(day)));
        }
        for _ in 0..run_count(rng) {
            // An operator may start a run for an earlier date.
            let date = if rng.random_ratio(1, 30) { day - Days::new(rng.random_range(1..4)) } else { day };
            tasks.push((random_time_after(time, 10, rng), PlannedTask::RunPayments(date)));
        }
        // Sometimes the payment batch runs once more. The leases of the earlier run may expire before this run starts.
        if rng.random_ratio(1, 10) {
            let at = random_time_after(time + TimeDelta::minutes(20), 50, rng);
            tasks.push((at, PlannedTask::RunPayments(day)));
        }
    }
    if rng.random_ratio(1, 12) {
        // Sometimes an operator starts runs late in the evening, and these runs continue after midnight.
        let late = runs[0] + TimeDelta::minutes(17 * 60 + 40);
        tasks.push((random_time_after(late, 19, rng), PlannedTask::RunPayments(day)));
        tasks.push((random_time_after(late, 19, rng), PlannedTask::RunReminders(day)));
    }
    tasks
}

/// Plans the requests of the customers of `subscriptions` subscriptions. Half of them are sent near the first runs.
fn plan_customer_requests(
    day: NaiveDate,
    zone: Tz,
    subscriptions: u32,
    rng: &mut ChaCha8Rng,
) -> Vec<(DateTime<Utc>, PlannedTask)> {
    let mut tasks = Vec::new();
    let [first_run, _] = batch_run_times(day, zone);
    for _ in 0..subscriptions {
        if rng.random_ratio(1, REQUEST_ONE_IN) {
            let is_near_runs = rng.random_ratio(1, 2);
            let at = if is_near_runs {
                random_time_after(first_run - TimeDelta::minutes(3), 20, rng)
            } else {
                random_time_near_first_run(day, zone, rng)
            };
            tasks.push((at, PlannedTask::SendCustomerRequest));
        }
    }
    tasks
}

/// Returns a random instant from `time` to `minutes` minutes after it.
fn random_time_after(time: DateTime<Utc>, minutes: i64, rng: &mut ChaCha8Rng) -> DateTime<Utc> {
    time + TimeDelta::seconds(rng.random_range(0..=minutes * 60))
}

/// Returns a random instant, from 5 hours before the first run of the day to 15 hours after it.
fn random_time_near_first_run(day: NaiveDate, zone: Tz, rng: &mut ChaCha8Rng) -> DateTime<Utc> {
    let first_run = batch_run_times(day, zone)[0];
    first_run + TimeDelta::minutes(rng.random_range(-300..=900))
}

/// Returns a random action for the customer of the subscription `expected`. The action may be invalid in the current
/// state of the subscription.
pub fn random_action(expected: &ExpectedSubscription, rng: &mut ChaCha8Rng) -> CustomerAction {
    let card = |rng: &mut ChaCha8Rng| {
        CustomerAction::ChangeCard(PAYMENT_METHODS.choose(rng).copied().unwrap_or("pm_card_visa").to_owned())
    };
    match expected.status {
        StoredStatus::Paused if rng.random_ratio(3, 4) => CustomerAction::Resume,
        StoredStatus::Unpaid | StoredStatus::PastDue if rng.random_ratio(3, 4) => card(rng),
        _ if expected.ends.is_some() && rng.random_ratio(1, 2) => CustomerAction::Uncancel,
        _ => match rng.random_range(0..100) {
            0..2 => CustomerAction::Cancel,
            2..9 => CustomerAction::CancelAtPeriodEnd,
            9..13 => CustomerAction::Uncancel,
            13..35 => CustomerAction::Pause,
            35..40 => CustomerAction::Resume,
            40..60 => card(rng),
            60..63 => CustomerAction::CorrectPrice(rng.random_range(1..50) * 100),
            63..66 => {
                let reason = if rng.random() { "merchant" } else { "paid_elsewhere" };
                CustomerAction::WaiveMonth(month_of(expected.due), reason)
            }
            66..80 => CustomerAction::ChangePrice(rng.random_range(1..50) * 100),
            _ => CustomerAction::ChangePaymentDay(rng.random_range(1..=31)),
        },
    }
}
