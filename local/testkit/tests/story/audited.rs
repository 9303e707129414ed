//! The audit of a whole table: what is sound has no finding, and each invariant that is broken is named.

use std::sync::Arc;

use audit::{GatewayLists, Invariant, Judge};
use aws_sdk_dynamodb::types::AttributeValue;
use billing::{OnResume, Payment, Status, Subscription};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock, SimulatedClock};
use emulator::Engine;
use store::Table;
use sweep::BatchRequest;
use ulid::Ulid;

use crate::lifecycle::LEAD;
use crate::world::{World, another, cancelled, card, date, morning, new_subscription};

fn judge(today: &str) -> Judge {
    let (records_kept, lease) = (TimeDelta::days(190), TimeDelta::minutes(20));
    Judge { shards: 4, today: date(today), now: morning(today), records_kept, retry_days: 7, lease }
}

/// What is broken, and where, in the words of the audit.
async fn broken(world: &World, today: &str) -> Vec<(Invariant, String)> {
    let (mut partitions, mut broken) = (world.table.partitions(), Vec::new());
    while let Some(partition) = partitions.next().await.unwrap() {
        broken.extend(judge(today).judge(&partition).into_iter().map(|broken| (broken.invariant, broken.what)));
    }
    broken
}

/// Three months of a world in which customers pause, cancel and fail to pay.
async fn quarter() -> (World, Vec<Subscription>) {
    let world = World::new().await;
    let all: Vec<Subscription> = (0..8).map(|n| another(n, 10, "2026-01-01")).collect();
    for subscription in &all {
        world.has(subscription).await;
    }
    let hard = card("pm_card_visa_chargeDeclinedLostCard");
    world.customer(&all[1], |s| Subscription { payment_method: hard.clone(), ..s.clone() }).await;
    for day in date("2026-01-08").iter_days().take_while(|day| *day <= date("2026-04-12")) {
        let on = |text: &str| day == date(text);
        let now = day.and_hms_opt(5, 0, 0).unwrap().and_utc();
        if on("2026-01-20") {
            world.customer(&all[2], |s| s.pause(day).unwrap()).await;
            world.customer(&all[3], |s| s.pause(day).unwrap()).await;
            world.customer(&all[4], |s| s.cancel_at_period_end(day).unwrap()).await;
        }
        if on("2026-03-20") {
            world.customer(&all[2], |s| s.resume(OnResume::Charge, LEAD(), day, now).unwrap()).await;
            world.customer(&all[3], |s| s.cancel(day, now)).await;
            let good = billing::Changes { payment_method: Some(card("pm_card_visa")), ..Default::default() };
            world.customer(&all[1], |s| s.change(&good, LEAD(), day).unwrap()).await;
        }
        world.charge(&day.to_string()).await;
    }
    (world, all)
}

#[tokio::test]
async fn audit_of_a_sound_table_finds_nothing() {
    let (world, _) = quarter().await;
    assert_eq!(broken(&world, "2026-04-12").await, []);
    let judge = judge("2026-04-12");
    let listed = GatewayLists::of_payments(listed(&world).await, DateTime::UNIX_EPOCH);
    assert!(listed.payments.len() > 20, "{}", listed.payments.len());
    let mut partitions = world.table.partitions();
    while let Some(partition) = partitions.next().await.unwrap() {
        assert_eq!(judge.judge_lists(&partition, &listed), []);
    }
}

async fn listed(world: &World) -> Vec<Payment> {
    world.sandbox.payments_at(&"cus_1".parse().unwrap(), DateTime::UNIX_EPOCH, world.clock.now()).unwrap()
}

async fn delete(world: &World, account: &str, sk_begins: &str) {
    for item in world.table.scan().await.unwrap() {
        let text = |name: &str| item[name].as_s().unwrap().clone();
        if text("PK") == format!("ACC#{account}") && text("SK").starts_with(sk_begins) {
            let delete = world.table.client().delete_item().table_name(world.table.name());
            let key = |name: &str| AttributeValue::S(text(name));
            delete.key("PK", key("PK")).key("SK", key("SK")).send().await.unwrap();
        }
    }
}

#[tokio::test]
async fn audit_names_every_invariant_that_is_broken() {
    type Break = fn(&Subscription) -> Subscription;
    let breaks: [(&str, Invariant, &str, Break); 10] =
        [
            ("skipped", Invariant::MonthAccountedFor, "2026-05 is neither paid nor waived nor owed", |s| {
                Subscription { due_on: date("2026-06-10"), ..s.clone() }
            }),
            ("moved back", Invariant::MonthAccountedFor, "2026-03 is paid or waived, and owed still", |s| {
                Subscription { due_on: date("2026-03-10"), ..s.clone() }
            }),
            ("lost", Invariant::Indexed, "it is active, and no run will find it", |s| Subscription {
                next_payment_on: None,
                ..s.clone()
            }),
            ("left", Invariant::Indexed, "it is unpaid, and in the payment index on 2026-05-10", |s| Subscription {
                status: Status::Unpaid,
                ..s.clone()
            }),
            ("reminded", Invariant::Indexed, "it is paused, and in the reminder index", |s| Subscription {
                status: Status::Paused,
                next_payment_on: None,
                next_reminder_on: Some(date("2026-05-03")),
                ..s.clone()
            }),
            ("elsewhere", Invariant::ShardSwept, "it is in shard 9, and there are 4, from 0", |s| Subscription {
                shard: 9,
                ..s.clone()
            }),
            ("ahead", Invariant::DatesNear, "it is due on 2028-01-10", |s| Subscription {
                due_on: date("2028-01-10"),
                next_payment_on: Some(date("2028-01-10")),
                ..s.clone()
            }),
            ("planned before it is due", Invariant::DatesNear, "it is to be charged on 2026-04-09", |s| Subscription {
                next_payment_on: Some(date("2026-04-09")),
                ..s.clone()
            }),
            ("planned long after it is due", Invariant::DatesNear, "it is to be charged on 2026-04-28", |s| {
                Subscription { due_on: date("2026-04-20"), next_payment_on: Some(date("2026-04-28")), ..s.clone() }
            }),
            ("paid ahead", Invariant::DatesNear, "it was last paid at 2027-04-10", |s| Subscription {
                last_payment_at: Some(morning("2027-04-10")),
                ..s.clone()
            }),
        ];
    for (story, invariant, what, breaks) in breaks {
        let (world, all) = quarter().await;
        world.customer(&all[0], breaks).await;
        let found = broken(&world, "2026-04-12").await;
        assert!(found.iter().any(|(of, said)| *of == invariant && said.contains(what)), "{story}: {found:?}");
    }
}

#[tokio::test]
async fn audit_names_records_that_are_lost_or_of_nobody() {
    let (world, all) = quarter().await;
    delete(&world, "account-0", "REC#2026-02").await;
    delete(&world, "account-3", "WAV#2026-02").await;
    delete(&world, "account-5", "SUB#").await;
    delete(&world, "account-6", "ACC#").await;
    let found = broken(&world, "2026-04-12").await;
    let said: Vec<&str> = found.iter().map(|(_, what)| what.as_str()).collect();
    let lost = "2026-02 is neither paid nor waived nor owed";
    assert_eq!(said.iter().filter(|said| **said == lost).count(), 2, "{found:?}");
    let id = all[5].id;
    assert!(said.contains(&format!("a receipt of 2026-02-10 is of no subscription {id}").as_str()), "{found:?}");
    assert!(said.contains(&"it has subscriptions, and there is no such account"), "{found:?}");
    assert_eq!(found.len(), 2 + 4 + 1, "{found:?}");

    // What the gateway lists tells more.
    let mut listed = listed(&world).await;
    let mine = |payment: &&Payment| payment.subscription == all[0].id;
    let first = listed.iter().find(mine).unwrap().clone();
    listed.push(Payment { id: "pay_again".parse().unwrap(), ..first.clone() });
    let listed = GatewayLists::of_payments(listed, DateTime::UNIX_EPOCH);
    let judge = judge("2026-04-12");
    let mut partitions = world.table.partitions();
    let mut found = Vec::new();
    while let Some(partition) = partitions.next().await.unwrap() {
        found.extend(judge.judge_lists(&partition, &listed));
    }
    let said: Vec<&str> = found.iter().map(|broken| broken.what.as_str()).collect();
    assert!(said.contains(&format!("2026-01 was charged by {}, pay_again", first.id).as_str()), "{said:?}");
    assert!(said.contains(&"pay_again has no receipt"), "{said:?}");
    assert_eq!(said.len(), 3, "and the one whose receipt is lost: {said:?}");
    let nothing = GatewayLists::of_payments(Vec::new(), DateTime::UNIX_EPOCH);
    let mut partitions = world.table.partitions();
    let partition = partitions.next().await.unwrap().unwrap();
    let unknown = judge.judge_lists(&partition, &nothing);
    assert_eq!(unknown.len(), partition.receipts.len(), "receipts without their payments: {unknown:?}");
}

#[tokio::test]
async fn audit_knows_what_an_open_attempt_may_be() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.has(&subscription).await;
    world.next_charge(emulator::Fault::LostAfter);
    world.charge("2026-03-10").await;
    assert_eq!(broken(&world, "2026-03-10").await, []);
    let partition = world.table.partitions().next().await.unwrap().unwrap();
    let listed = listed(&world).await;
    assert_eq!(
        judge("2026-03-10").judge_lists(&partition, &GatewayLists::of_payments(listed, DateTime::UNIX_EPOCH)),
        [],
        "settled by a later run"
    );
    let claimed = broken(&world, "2026-03-09").await;
    assert!(claimed.iter().any(|(of, _)| *of == Invariant::DatesNear), "claimed tomorrow: {claimed:?}");
    world.customer(&subscription, |s| Subscription { next_payment_on: None, ..s.clone() }).await;
    let lost = broken(&world, "2026-03-10").await;
    assert_eq!(lost, [(Invariant::Indexed, "a payment is open, and no run will find it".to_owned())]);
    world.customer(&subscription, cancelled).await;
}

/// A machine whose clock is set wrong.
#[derive(Debug)]
struct MachinesClock(SimulatedClock);

impl Clock for MachinesClock {
    fn now(&self) -> DateTime<Utc> {
        self.0.now()
    }

    fn ulid(&self) -> Ulid {
        self.0.ulid()
    }

    fn secret(&self) -> [u8; 32] {
        self.0.secret()
    }

    fn is_machines_own(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_is_not_begun_by_a_machine_whose_clock_is_minutes_wrong() {
    let engine = Engine::memory();
    let served = engine.serve("127.0.0.1:0".parse().unwrap()).unwrap();
    let sdk = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
        .region(aws_sdk_dynamodb::config::Region::new("local"))
        .credentials_provider(aws_sdk_dynamodb::config::Credentials::new("local", "local", None, None, "local"))
        .endpoint_url(served.url())
        .build();
    let world = World::new().await;
    let table = Table::new(aws_sdk_dynamodb::Client::from_conf(sdk), "dueday", TimeDelta::days(190));
    table.create_if_absent().await.unwrap();
    for (minutes, is_refused) in [(0, false), (1, false), (4, true), (-4, true), (525_600, true)] {
        let ours = Utc::now() + TimeDelta::minutes(minutes);
        let clock = Arc::new(MachinesClock(SimulatedClock::new(ours, 1)));
        let mut deployment = world.system.deployment.clone();
        (deployment.table, deployment.clock) = (table.clone(), clock);
        let (payments, request) = (deployment.payments().await.unwrap(), BatchRequest::on(ours.date_naive()));
        match payments.run(&request, ours + TimeDelta::hours(1)).await {
            Ok(_) => assert!(!is_refused, "{minutes} minutes"),
            Err(error) => {
                let said = error.to_string();
                assert!(is_refused && said.starts_with("this machine's clock says "), "{minutes} minutes: {said}");
            }
        }
    }
}
