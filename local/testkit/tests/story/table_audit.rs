//! Tests of the audit of a whole table: a valid table violates no invariant, and each violated invariant is reported.

use std::sync::Arc;

use audit::{GatewayLists, Invariant, InvariantChecker};
use aws_sdk_dynamodb::types::AttributeValue;
use billing::{OnResume, Payment, Subscription, SubscriptionStatus};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock, SimulatedClock};
use emulator::Engine;
use store::Table;
use sweep::BatchRequest;
use ulid::Ulid;

use crate::lifecycle::LEAD;
use crate::world::{World, billing_time, cancel, card, date, new_subscription, numbered_subscription};

/// Returns the checker of a table with four shards, at the billing time of `today`.
pub fn checker(today: &str) -> InvariantChecker {
    let records_kept = TimeDelta::days(190);
    InvariantChecker {
        shards: 4,
        today: date(today),
        now: billing_time(today),
        records_kept,
        longest_gap: 2,
        lead: LEAD(),
    }
}

/// Audits the whole table, and returns the violated invariants with their descriptions.
pub async fn violations(world: &World, today: &str) -> Vec<(Invariant, String)> {
    let (mut partitions, mut violations) = (world.table.account_partitions(), Vec::new());
    while let Some(partition) = partitions.next().await.unwrap() {
        violations
            .extend(checker(today).check_account(&partition).into_iter().map(|found| (found.invariant, found.what)));
    }
    violations
}

/// Creates a world with eight subscriptions and runs its payments for three months. In this time, customers pause,
/// cancel, and have declined cards.
pub async fn world_after_a_quarter() -> (World, Vec<Subscription>) {
    let world = World::new().await;
    let all: Vec<Subscription> = (0..8).map(|n| numbered_subscription(n, 10, "2026-01-01")).collect();
    for subscription in &all {
        world.store(subscription).await;
    }
    let lost_card = card("pm_card_visa_chargeDeclinedLostCard");
    world.change_subscription(&all[1], |s| Subscription { payment_method: lost_card.clone(), ..s.clone() }).await;
    for day in date("2026-01-08").iter_days().take_while(|day| *day <= date("2026-04-12")) {
        let on = |text: &str| day == date(text);
        let now = day.and_hms_opt(5, 0, 0).unwrap().and_utc();
        if on("2026-01-20") {
            world.change_subscription(&all[2], |s| s.pause(day).unwrap()).await;
            world.change_subscription(&all[3], |s| s.pause(day).unwrap()).await;
            world.change_subscription(&all[4], |s| s.cancel_at_period_end(day).unwrap()).await;
        }
        if on("2026-03-20") {
            world.change_subscription(&all[2], |s| s.resume(OnResume::Charge, LEAD(), day, now).unwrap()).await;
            world.change_subscription(&all[3], |s| s.cancel(day, now)).await;
            let new_card =
                billing::SubscriptionChanges { payment_method: Some(card("pm_card_visa")), ..Default::default() };
            world.change_subscription(&all[1], |s| s.apply_changes(&new_card, LEAD(), day).unwrap()).await;
        }
        world.run_payments(&day.to_string()).await;
    }
    (world, all)
}

#[tokio::test]
async fn audit_of_a_valid_table_finds_nothing() {
    let (world, _) = world_after_a_quarter().await;
    assert_eq!(violations(&world, "2026-04-12").await, []);
    let checker = checker("2026-04-12");
    let lists = GatewayLists::of_payments(payments_at_gateway(&world).await, DateTime::UNIX_EPOCH);
    assert!(lists.payments.len() > 20, "{}", lists.payments.len());
    let mut partitions = world.table.account_partitions();
    while let Some(partition) = partitions.next().await.unwrap() {
        assert_eq!(checker.check_gateway_lists(&partition, &lists), []);
    }
}

/// Returns all payments at the sandbox gateway. All subscriptions of these tests have the customer `cus_1`.
async fn payments_at_gateway(world: &World) -> Vec<Payment> {
    world.sandbox.payments_at(&"cus_1".parse().unwrap(), DateTime::UNIX_EPOCH, world.clock.now()).unwrap()
}

/// Deletes the items of `account` whose sort key starts with `sk_prefix`.
async fn delete_items(world: &World, account: &str, sk_prefix: &str) {
    for item in world.table.scan().await.unwrap() {
        let text = |name: &str| item[name].as_s().unwrap().clone();
        if text("PK") == format!("ACC#{account}") && text("SK").starts_with(sk_prefix) {
            let delete = world.table.client().delete_item().table_name(world.table.name());
            let key = |name: &str| AttributeValue::S(text(name));
            delete.key("PK", key("PK")).key("SK", key("SK")).send().await.unwrap();
        }
    }
}

#[tokio::test]
async fn audit_reports_every_violated_invariant() {
    // Each entry contains the name of a case, the violated invariant, a part of the violation's description, and the
    // change of a valid subscription that causes the violation.
    type Corruption = fn(&Subscription) -> Subscription;
    let corruptions: [(&str, Invariant, &str, Corruption); 10] = [
        ("month skipped", Invariant::MonthAccountedFor, "2026-05 is neither paid nor waived nor owed", |s| {
            Subscription { due_on: date("2026-06-10"), ..s.clone() }
        }),
        ("due date moved back", Invariant::MonthAccountedFor, "2026-03 is paid or waived, but still owed", |s| {
            Subscription { due_on: date("2026-03-10"), ..s.clone() }
        }),
        (
            "not in the payment index",
            Invariant::Indexed,
            "the subscription is active, but the payment index does not contain it",
            |s| Subscription { next_payment_on: None, ..s.clone() },
        ),
        (
            "unpaid, but in the payment index",
            Invariant::Indexed,
            "the subscription is unpaid, but the payment index contains it on 2026-05-10",
            |s| Subscription { status: SubscriptionStatus::Unpaid, ..s.clone() },
        ),
        (
            "paused, but in the reminder index",
            Invariant::Indexed,
            "the subscription is paused, but the reminder index contains it",
            |s| Subscription {
                status: SubscriptionStatus::Paused,
                next_payment_on: None,
                next_reminder_on: Some(date("2026-05-03")),
                ..s.clone()
            },
        ),
        (
            "in a shard that does not exist",
            Invariant::ShardSwept,
            "the subscription is in shard 9, but the table has 4 shards, numbered from 0",
            |s| Subscription { shard: 9, ..s.clone() },
        ),
        ("due in the far future", Invariant::DatesNear, "the next due date is 2028-01-10", |s| Subscription {
            due_on: date("2028-01-10"),
            next_payment_on: Some(date("2028-01-10")),
            ..s.clone()
        }),
        (
            "payment planned before the due date",
            Invariant::DatesNear,
            "the next charge is planned for 2026-04-09",
            |s| Subscription { next_payment_on: Some(date("2026-04-09")), ..s.clone() },
        ),
        (
            "payment planned long after the due date",
            Invariant::DatesNear,
            "the next charge is planned for 2026-04-28",
            |s| Subscription { due_on: date("2026-04-20"), next_payment_on: Some(date("2026-04-28")), ..s.clone() },
        ),
        ("last payment in the future", Invariant::RecordedInPast, "the last payment was at 2027-04-10", |s| {
            Subscription { last_payment_at: Some(billing_time("2027-04-10")), ..s.clone() }
        }),
    ];
    let (prepared, all) = world_after_a_quarter().await;
    for (case, invariant, expected, corrupt) in corruptions {
        let world = prepared.copy().await;
        world.change_subscription(&all[0], corrupt).await;
        let found = violations(&world, "2026-04-12").await;
        let is_reported = found.iter().any(|(violated, what)| *violated == invariant && what.contains(expected));
        assert!(is_reported, "{case}: {found:?}");
    }
}

#[tokio::test]
async fn audit_reports_missing_and_orphaned_items() {
    let (world, all) = world_after_a_quarter().await;
    delete_items(&world, "account-0", "REC#2026-02").await;
    delete_items(&world, "account-3", "WAV#2026-02").await;
    delete_items(&world, "account-5", "SUB#").await;
    delete_items(&world, "account-6", "ACC#").await;
    let found = violations(&world, "2026-04-12").await;
    let texts: Vec<&str> = found.iter().map(|(_, what)| what.as_str()).collect();
    let missing_month = "2026-02 is neither paid nor waived nor owed";
    assert_eq!(texts.iter().filter(|text| **text == missing_month).count(), 2, "{found:?}");
    let id = all[5].id;
    assert!(
        texts.contains(
            &format!("the receipt of 2026-02-10 belongs to the subscription {id}, which does not exist").as_str()
        ),
        "{found:?}"
    );
    assert!(texts.contains(&"subscriptions exist, but the account does not"), "{found:?}");
    assert_eq!(found.len(), 2 + 4 + 1, "{found:?}");

    // The audit finds more violations if it also compares the table with the gateway's payments.
    let mut payments = payments_at_gateway(&world).await;
    let is_first_subscription = |payment: &&Payment| payment.subscription == all[0].id;
    let first = payments.iter().find(is_first_subscription).unwrap().clone();
    payments.push(Payment { id: "pay_again".parse().unwrap(), ..first.clone() });
    let lists = GatewayLists::of_payments(payments, DateTime::UNIX_EPOCH);
    let checker = checker("2026-04-12");
    let mut partitions = world.table.account_partitions();
    let mut found = Vec::new();
    while let Some(partition) = partitions.next().await.unwrap() {
        found.extend(checker.check_gateway_lists(&partition, &lists));
    }
    let texts: Vec<&str> = found.iter().map(|violation| violation.what.as_str()).collect();
    assert!(
        texts.contains(&format!("2026-01 was charged more than once: {}, pay_again", first.id).as_str()),
        "{texts:?}"
    );
    let again = format!("the receipt of this period is of {}", first.id);
    assert!(texts.iter().any(|text| text.starts_with("pay_again: ") && text.ends_with(&again)), "{texts:?}");
    assert_eq!(texts.len(), 3, "the third is the payment whose receipt was deleted: {texts:?}");
    let empty_lists = GatewayLists::of_payments(Vec::new(), DateTime::UNIX_EPOCH);
    let mut partitions = world.table.account_partitions();
    let partition = partitions.next().await.unwrap().unwrap();
    let unmatched = checker.check_gateway_lists(&partition, &empty_lists);
    assert_eq!(
        unmatched.len(),
        partition.receipts.len(),
        "the gateway lists no payment for any receipt: {unmatched:?}"
    );
}

#[tokio::test]
async fn audit_accepts_a_valid_open_attempt_and_reports_an_invalid_one() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    world.inject_charge_fault(emulator::Fault::LostAfter);
    world.run_payments("2026-03-10").await;
    assert_eq!(violations(&world, "2026-03-10").await, []);
    let partition = world.table.account_partitions().next().await.unwrap().unwrap();
    let lists = GatewayLists::of_payments(payments_at_gateway(&world).await, DateTime::UNIX_EPOCH);
    assert_eq!(
        checker("2026-03-10").check_gateway_lists(&partition, &lists),
        [],
        "a payment of an open attempt needs no receipt yet, because a later run will settle it"
    );
    let found = violations(&world, "2026-03-09").await;
    let is_reported = found.iter().any(|(violated, _)| *violated == Invariant::DatesNear);
    assert!(is_reported, "the audit must report the claim, which is in the future: {found:?}");
    world.change_subscription(&subscription, |s| Subscription { next_payment_on: None, ..s.clone() }).await;
    let found = violations(&world, "2026-03-10").await;
    assert_eq!(
        found,
        [(
            Invariant::Indexed,
            "an attempt is open, but the payment index does not contain the subscription".to_owned()
        )]
    );
    world.change_subscription(&subscription, cancel).await;
}

/// A simulated clock that claims to be the machine's clock, so that runs compare it with the clock of DynamoDB.
#[derive(Debug)]
struct FakeSystemClock(SimulatedClock);

impl Clock for FakeSystemClock {
    fn now(&self) -> DateTime<Utc> {
        self.0.now()
    }

    fn ulid(&self) -> Ulid {
        self.0.ulid()
    }

    fn random_secret(&self) -> [u8; 32] {
        self.0.random_secret()
    }

    fn is_system_clock(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_is_rejected_if_the_clock_of_the_machine_is_wrong_by_minutes() {
    let engine = Engine::in_memory();
    let served = engine.serve("127.0.0.1:0".parse().unwrap()).unwrap();
    let sdk = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
        .region(aws_sdk_dynamodb::config::Region::new("local"))
        .credentials_provider(aws_sdk_dynamodb::config::Credentials::new("local", "local", None, None, "local"))
        .endpoint_url(served.url())
        .build();
    let world = World::new().await;
    let table = Table::new(aws_sdk_dynamodb::Client::from_conf(sdk), "dueday");
    table.create_if_absent().await.unwrap();
    for (minutes, is_rejected) in [(0, false), (1, false), (4, true), (-4, true), (525_600, true)] {
        let machine_time = Utc::now() + TimeDelta::minutes(minutes);
        let clock = Arc::new(FakeSystemClock(SimulatedClock::new(machine_time, 1)));
        let mut deployment = world.system.deployment.clone();
        (deployment.table, deployment.clock) = (table.clone(), clock);
        let (payments, request) =
            (deployment.payment_batch().await.unwrap(), BatchRequest::for_date(machine_time.date_naive()));
        match payments.run(&request, machine_time + TimeDelta::hours(1)).await {
            Ok(_) => assert!(!is_rejected, "{minutes} minutes"),
            Err(error) => {
                let error = error.to_string();
                assert!(is_rejected && error.starts_with("this machine's clock says "), "{minutes} minutes: {error}");
            }
        }
    }
}
