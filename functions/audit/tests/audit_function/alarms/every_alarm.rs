//! Months with random faults. Runs and comparisons are killed at random calls, the gateway does not respond or its
//! responses are lost, payments appear at the gateway only, and items are damaged. Each day, the alarms are compared
//! with the facts ([`super::facts`]): no alarm is false, and no alarm is missing.
//!
//! The compared alarms are the alarms about both batches, attempts in doubt, payments without a receipt, differences
//! from the gateway, days that were not compared, and violations. The comparison runs without `DailyComparison`, so
//! its log lines are tested elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use audit_function::{AuditResponse, VIOLATIONS_MESSAGE};
use aws_sdk_dynamodb::types::AttributeValue;
use billing::PaymentMethod;
use charging::{FindingDecision, PAYMENT_WITHOUT_RECEIPT_MESSAGE};
use chrono::{Days, NaiveDate};
use deployment::FaultyService;
use emulator::{EngineConnection, ExternalCall, ExternalOperation, Fault, FaultInjector};
use gateways::ChargeRequest;
use reconciling::{CorrectionMode, Reconciler};
use sandbox::LedgerEntry;
use store::Batch;
use testkit::{fault_at_call, short_or_long, without_faults};

use super::facts::Facts;
use super::log::LoggedErrors;
use super::{World, at, date};

/// The largest number of the call at which a run is killed. Some runs make fewer calls, so they are not killed.
const LAST_CALL_OF_RUN: u64 = 40;
/// The largest number of the call at which a comparison is killed.
const LAST_CALL_OF_COMPARISON: u64 = 12;
/// An item with an unknown sort key, in the partition of the first account.
pub const UNKNOWN_SORT_KEY: &str = "UNKNOWN#1";
/// The beginning of the idempotency keys of payments that this test makes at the gateway.
pub const FOREIGN_KEY_PREFIX: &str = "made at the gateway";

/// A deterministic source of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    /// Returns a number from 0 to `end` - 1.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// What happens to the runs of a day. The number in `Killed` and `KilledAndRepeated` is the number of the call at which
/// the run is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Normal,
    NotStarted(Batch),
    Killed(Batch, u64, Fault),
    KilledAndRepeated(Batch, u64, Fault),
    GatewayDoesNotRespond,
    ResponsesOfChargesAreLost,
    ChargingOff,
}

/// What happens to the comparison with the gateway in the night after a day. The number in `Killed` is the number of
/// the call at which the comparison is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Night {
    Normal,
    NotStarted,
    Killed(u64),
}

/// The events of one day and of the night after it.
#[derive(Clone, Copy, Debug)]
struct Plan {
    fate: Fate,
    night: Night,
    /// Whether the gateway makes a second payment for a paid period.
    is_paid_twice: bool,
    /// Whether the amount of a receipt of the day is changed until the next morning.
    is_receipt_changed: bool,
    /// Whether an item with an unknown key is in the table until the next morning.
    has_unknown_item: bool,
}

impl Plan {
    /// Returns the plan of a day without faults.
    fn normal() -> Self {
        let (fate, night) = (Fate::Normal, Night::Normal);
        Self { fate, night, is_paid_twice: false, is_receipt_changed: false, has_unknown_item: false }
    }

    /// Returns a random plan of a day. `before` is what happened to the runs of the previous day.
    fn random(random: &mut Random, before: Fate) -> Self {
        let batch = if random.below(2) == 0 { Batch::Payments } else { Batch::Reminders };
        let fault = if random.below(2) == 0 { Fault::CrashBefore } else { Fault::CrashAfter };
        let call = 1 + random.below(LAST_CALL_OF_RUN);
        let fate = match random.below(20) {
            _ if before == Fate::GatewayDoesNotRespond && random.below(2) == 0 => before,
            0 => Fate::NotStarted(batch),
            1..=3 => Fate::Killed(batch, call, fault),
            4..=5 => Fate::KilledAndRepeated(batch, call, fault),
            6 => Fate::GatewayDoesNotRespond,
            7 => Fate::ResponsesOfChargesAreLost,
            8 => Fate::ChargingOff,
            _ => Fate::Normal,
        };
        let night = match random.below(10) {
            0 => Night::NotStarted,
            1 => Night::Killed(1 + random.below(LAST_CALL_OF_COMPARISON)),
            _ => Night::Normal,
        };
        Self {
            fate,
            night,
            is_paid_twice: random.below(12) == 0,
            // A killed comparison may have stored the difference before the receipt is corrected in the morning.
            is_receipt_changed: random.below(12) == 0 && !matches!(night, Night::Killed(_)),
            has_unknown_item: random.below(15) == 0,
        }
    }
}

/// The alarms of a day and of the night after it.
#[derive(PartialEq, Eq, Default, Debug)]
pub struct Alarms {
    /// The batches that are not done in the evening.
    pub not_done: Vec<Batch>,
    /// Whether the outcome of an attempt is unknown for a day or longer.
    pub is_attempt_in_doubt: bool,
    /// The days that differ from the gateway, among the days that were compared in the night.
    pub different_days: Vec<NaiveDate>,
    /// Whether no day was compared in the night.
    pub is_no_day_compared: bool,
    /// The number of payments without a receipt that were stored as findings in the night.
    pub payments_without_receipt: usize,
    /// Whether the audit has found violations.
    pub has_violations: bool,
}

impl Alarms {
    /// Returns the names of the alarms that fire.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.not_done.iter().map(|batch| format!("{batch} not done")).collect();
        let others = [
            ("in doubt", self.is_attempt_in_doubt),
            ("differs", !self.different_days.is_empty()),
            ("not compared", self.is_no_day_compared),
            ("without receipt", self.payments_without_receipt > 0),
            ("violations", self.has_violations),
        ];
        names.extend(others.into_iter().filter(|(_, fires)| *fires).map(|(name, _)| name.to_owned()));
        names
    }
}

impl World {
    /// Runs the payment batch and the reminder batch of `day`. `fate` is what happens to these runs. Returns the
    /// largest age of an attempt in doubt, in hours, in the reports of the payment runs that have ended.
    async fn run_batches(&self, day: NaiveDate, fate: Fate) -> u64 {
        let table = &self.system.deployment.table;
        table.set_charging(fate != Fate::ChargingOff, None).await.unwrap();
        let mut oldest_in_doubt_hours = 0;
        for batch in Batch::ALL {
            self.system.clock.set(at(day, 6));
            let injector = match fate {
                Fate::NotStarted(missing) if missing == batch => continue,
                Fate::Killed(killed, call, fault) | Fate::KilledAndRepeated(killed, call, fault) if killed == batch => {
                    FaultInjector::active_during_runs(Arc::new(fault_at_call(call, fault)))
                }
                Fate::GatewayDoesNotRespond => {
                    FaultInjector::active_during_runs(Arc::new(|call: &ExternalCall<'_>| {
                        matches!(call.operation, ExternalOperation::Charge | ExternalOperation::PaymentsOf)
                            .then_some(Fault::LostBefore)
                    }))
                }
                Fate::ResponsesOfChargesAreLost => {
                    FaultInjector::active_during_runs(Arc::new(|call: &ExternalCall<'_>| {
                        (call.operation == ExternalOperation::Charge).then_some(Fault::LostAfter)
                    }))
                }
                _ => super::no_faults(),
            };
            oldest_in_doubt_hours = self.run_batch(batch, day, injector).await.max(oldest_in_doubt_hours);
        }
        if let Fate::KilledAndRepeated(batch, ..) = fate {
            self.system.clock.set(at(day, 10));
            oldest_in_doubt_hours = self.run_batch(batch, day, super::no_faults()).await.max(oldest_in_doubt_hours);
        }
        oldest_in_doubt_hours
    }

    /// Makes a second payment at the gateway for the due date `day`, which has the payment `paid`.
    fn pay_again(&self, day: NaiveDate, paid: &ChargeRequest) {
        let request = ChargeRequest {
            idempotency_key: format!("{FOREIGN_KEY_PREFIX} {day}"),
            attempt_no: 7,
            payment_method: PaymentMethod { ..paid.payment_method.clone() },
            ..paid.clone()
        };
        self.system.sandbox.charge_at(&request, at(day, 15)).unwrap();
    }

    /// Sets the amount of the receipt with these keys to `minor`, directly in the table.
    async fn set_receipt_amount(&self, (pk, sk): &(String, String), minor: i64) {
        let table = &self.system.deployment.table;
        let update = table.client().update_item().table_name(table.name()).key("PK", AttributeValue::S(pk.clone()));
        let update = update.key("SK", AttributeValue::S(sk.clone())).update_expression("SET ProcessedAmount = :amount");
        update.expression_attribute_values(":amount", AttributeValue::N(minor.to_string())).send().await.unwrap();
    }

    /// Writes an item with an unknown sort key to the partition of an account, or removes it.
    async fn set_unknown_item(&self, is_present: bool) {
        let table = &self.system.deployment.table;
        let key = [("PK", "ACC#account-0"), ("SK", UNKNOWN_SORT_KEY)];
        let key = key.map(|(name, value)| (name.to_owned(), AttributeValue::S(value.to_owned())));
        if is_present {
            table.client().put_item().table_name(table.name()).set_item(Some(key.into())).send().await.unwrap();
        } else {
            table.client().delete_item().table_name(table.name()).set_key(Some(key.into())).send().await.unwrap();
        }
    }

    /// Compares `day` with the gateway, and the six days before it whose comparison has not ended, as the function
    /// `reconcile` does at night. Returns the compared days, and whether each of them agrees with the gateway.
    async fn compare(&self, day: NaiveDate, night: Night) -> Vec<(NaiveDate, bool)> {
        let injector = match night {
            Night::NotStarted => return Vec::new(),
            Night::Killed(call) => {
                Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(call, Fault::CrashBefore))))
            }
            Night::Normal => without_faults(),
        };
        let connection = Arc::new(EngineConnection::with_injector(injector.clone()).without_retries());
        let table = &self.system.deployment.table;
        let settings = table.get_settings().await.unwrap().unwrap();
        let mut reconciler = Reconciler::new(
            self.system.with_connection(connection).table,
            settings.table_id,
            Arc::new(FaultyService::new(self.system.sandbox.clone(), injector.clone())),
            CorrectionMode::of_table(&settings),
            self.system.clock.clone(),
            day.succ_opt().unwrap(),
        );
        let mut ended = Vec::new();
        let compare = async {
            for on in (0..7).filter_map(|ago| day.checked_sub_days(Days::new(ago))) {
                let stored = table.get_reconciliation(on).await.unwrap();
                if on < date("2026-01-02") || stored.is_some_and(|stored| stored.ended_at.is_some()) {
                    continue;
                }
                let compared = reconciler.reconcile(on, None).await.unwrap();
                ended.push((on, compared.is_clean()));
            }
        };
        injector.run(compare).await;
        ended
    }

    /// Audits the table, and returns whether the audit has found violations.
    async fn audit(&self, day: NaiveDate) -> bool {
        let checks = self.checks();
        let response = checks.run_requested_check(serde_json::json!({ "check": "table" }), at(day, 23)).await.unwrap();
        let AuditResponse::Table(response) = response else { panic!("{response:?}") };
        assert!(response.complete, "{response:?}");
        response.violations > 0
    }

    /// Closes all open findings (successful payments without a receipt), as a person does in the morning.
    async fn close_findings(&self, today: NaiveDate) {
        let (deployment, decision) = (&self.system.deployment, FindingDecision::CloseAlthoughPaid);
        let (engine, gateway) = (deployment.charging_engine(), self.system.sandbox.as_ref());
        for open in deployment.table.get_open_findings().await.unwrap() {
            engine.resolve_finding(gateway, &open.account, &open.payment, decision, "kept", today).await.unwrap();
        }
    }
}

/// Simulates the days up to `last_day` with random plans, and asserts that the alarms of each day are its facts. Adds
/// the number of each alarm to `fired`.
async fn simulate(seed: u64, last_day: NaiveDate, fired: &mut BTreeMap<String, u32>) {
    let world = World::new().await;
    let log = LoggedErrors::default();
    let _guard = testkit::capture_logs(log.clone());
    let (mut random, mut plan, mut quiet) = (Random(seed), Plan::normal(), 0);
    for day in date("2026-01-02").iter_days().take_while(|day| *day <= last_day) {
        // January has no faults, so that the first reminders are sent on their days.
        plan = if day < date("2026-02-01") { Plan::normal() } else { Plan::random(&mut random, plan.fate) };
        let next = day.succ_opt().unwrap();

        let open_before = Facts::read(&world).await.attempts_since(at(day, 6));
        let oldest_in_doubt_hours = world.run_batches(day, plan.fate).await;
        let mut alarms = Alarms { is_attempt_in_doubt: oldest_in_doubt_hours >= 24, ..Alarms::default() };
        alarms.not_done = world.check(day).await.not_done;
        let evening = Facts::read(&world).await;
        // On these days, the run ends with a report, but may settle no attempt.
        let may_keep_attempts = matches!(plan.fate, Fate::GatewayDoesNotRespond | Fate::ResponsesOfChargesAreLost);
        let mut facts = Alarms {
            not_done: evening.batches_not_done(&world, day),
            is_attempt_in_doubt: may_keep_attempts && open_before.iter().any(|open| evening.has_attempt(open)),
            ..Alarms::default()
        };

        let receipt = evening.receipts_of(day).first().copied();
        if let Some(receipt) = receipt {
            if plan.is_paid_twice {
                world.pay_again(day, &receipt.charge_request(&world));
            }
            if plan.is_receipt_changed {
                world.set_receipt_amount(&receipt.key, 1298).await;
            }
        }
        world.set_unknown_item(plan.has_unknown_item).await;

        world.system.clock.set(at(next, 2));
        let found_before = log.count(PAYMENT_WITHOUT_RECEIPT_MESSAGE);
        let compared = world.compare(day, plan.night).await;
        alarms.payments_without_receipt = log.count(PAYMENT_WITHOUT_RECEIPT_MESSAGE) - found_before;
        alarms.is_no_day_compared = compared.is_empty();
        alarms.different_days = compared.iter().filter(|(_, is_clean)| !is_clean).map(|(on, _)| *on).collect();
        let night = Facts::read(&world).await;
        facts.is_no_day_compared = night.days_compared_since(at(next, 2)).is_empty();
        facts.different_days =
            night.days_compared_since(at(next, 2)).into_iter().filter(|on| night.differs(&world, *on)).collect();
        facts.different_days.sort_by(|a, b| b.cmp(a));
        facts.payments_without_receipt = night.findings_since(at(next, 2));

        world.system.clock.set(at(next, 4));
        let logged_before = log.count(VIOLATIONS_MESSAGE);
        alarms.has_violations = world.audit(next).await;
        assert_eq!(
            log.count(VIOLATIONS_MESSAGE) > logged_before,
            alarms.has_violations,
            "{day}: the alarm reads the log"
        );
        facts.has_violations = night.has_violations(day);
        assert_eq!(alarms, facts, "seed {seed}, {day}: {plan:?}");
        if day < date("2026-02-01") {
            assert_eq!(alarms, Alarms::default(), "{day}");
        }

        world.system.clock.set(at(next, 5));
        world.close_findings(next).await;
        if let Some(receipt) = receipt.filter(|_| plan.is_receipt_changed) {
            world.set_receipt_amount(&receipt.key, 1299).await;
        }
        world.set_unknown_item(false).await;
        match alarms.names().as_slice() {
            [] => quiet += u32::from(day >= date("2026-02-01")),
            names => names.iter().for_each(|name| *fired.entry(name.clone()).or_insert(0) += 1),
        }
    }
    let made: Vec<LedgerEntry> = world.system.sandbox.entries();
    assert!(made.len() > 60, "seed {seed}: {}", made.len());
    assert!(quiet > 8, "seed {seed}: {quiet} days without an alarm: {fired:?}");
}

#[tokio::test]
async fn every_alarm_is_a_fact_and_every_fact_raises_its_alarm() {
    // The simulations are shorter than a year, because reading the facts is slow: it reads the whole table three times
    // for each day.
    let (last_day, seeds) = short_or_long(("2026-03-10", 8..=8), ("2026-03-31", 7..=8));
    let mut fired = BTreeMap::new();
    for seed in seeds {
        // The future is too large for the stack of a test.
        Box::pin(simulate(seed, date(last_day), &mut fired)).await;
    }
    let names: Vec<&str> = fired.keys().map(String::as_str).collect();
    let all = [
        "differs",
        "in doubt",
        "not compared",
        "payments not done",
        "reminders not done",
        "violations",
        "without receipt",
    ];
    assert_eq!(names, all, "each alarm has fired: {fired:?}");
}
