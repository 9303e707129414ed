//! Every access pattern and every expression, on the real SDK and the real engine, with what each costs.

use std::collections::BTreeMap;

use billing::{AccountId, Status, Subscription, SubscriptionId, Token};
use chrono::TimeDelta;
use emulator::{Fault, Wire};
use store::{
    Batch, Claim, Claimed, Created, IdempotentRequest, KeptAnswer, Lane, Paging, PaymentCounts, Position, PutAccount,
    Replayed, RunEnd, RunRecord, RunSums, Updated,
};
use ulid::Ulid;

use crate::world::{World, cancelled, date, key, morning, new_subscription, of_acme};

/// The table's own id, as far as these tests care.
const TABLE: Ulid = Ulid(7);

fn claim(token: u128, day: &str) -> Claim {
    let now = morning(day);
    Claim { token: Token(Ulid::from_parts(5, token)), now, leased_until: now + TimeDelta::minutes(20) }
}

fn held(claimed: Claimed) -> Subscription {
    match claimed {
        Claimed::Held(held) => *held,
        Claimed::Refused(stored) => panic!("refused by {stored:?}"),
    }
}

fn refused(claimed: Claimed) -> Subscription {
    match claimed {
        Claimed::Refused(Some(stored)) => *stored,
        other => panic!("{other:?}"),
    }
}

/// Capacity units as table, GSI-1, GSI-2.
fn units(used: &BTreeMap<String, f64>) -> [f64; 3] {
    ["table", "GSI-1", "GSI-2"].map(|name| used.get(name).copied().unwrap_or(0.0))
}

#[tokio::test]
async fn writes_of_one_month_cost_these_units() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    let of = key(&subscription);
    let table = world.system.over(world.wire.clone()).table;
    world.has(&subscription).await;
    world.wire.take_units();

    let reminded = held(table.claim_reminder(&of, date("2026-03-24"), claim(1, "2026-03-24")).await.unwrap());
    assert_eq!(units(&world.wire.take_units()), [1.0, 0.0, 0.0], "a reminder's claim writes no index");
    let marked = Subscription { next_reminder_on: None, reminder_claim: None, ..reminded.clone() };
    assert!(matches!(table.update_subscription(&reminded, &marked).await.unwrap(), Updated::Applied(_)));
    assert_eq!(units(&world.wire.take_units()), [1.0, 1.0, 0.0], "marking leaves the reminder index");
    held(table.claim_payment(&of, date("2026-03-31"), TABLE, claim(2, "2026-03-31")).await.unwrap());
    assert_eq!(units(&world.wire.take_units()), [1.0, 0.0, 0.0], "a payment's claim writes no index");

    world.wire.take_units();
    let before = world.stored(&subscription).await;
    assert_eq!(before.version, 4, "every write raised it by one");
    let report = world.charge_at("2026-03-31", morning("2026-03-31") + TimeDelta::minutes(21)).await;
    assert_eq!(report.counts.paid, 1, "taken over, looked up, charged");
    // The first lane's claim, which is refused, or the second's read: 1. The take-over 1, the settlement 2 + 2, into the
    // reminder index, and along the payment index. The total of the day 1.
    assert_eq!(units(&world.wire.take_units()), [7.0, 1.0, 2.0]);
}

#[tokio::test]
async fn create_costs_one_write_in_the_table_and_one_in_each_index() {
    let world = World::new().await;
    let table = world.system.over(world.wire.clone()).table;
    world.has(&of_acme(1, "2026-02-28")).await;
    let second = of_acme(2, "2026-02-28");
    world.wire.take_units();
    assert_eq!(table.create_subscription(&second, None).await.unwrap(), Created::Created);
    // In a transaction twice the units, and the account's check.
    assert_eq!(units(&world.wire.take_units()), [4.0, 1.0, 1.0]);
}

#[tokio::test]
async fn claim_freezes_the_item_and_is_refused_while_any_attempt_is_open() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    let (of, due_on) = (key(&subscription), date("2026-03-31"));
    world.has(&subscription).await;
    let claimed = held(world.table.claim_payment(&of, due_on, TABLE, claim(1, "2026-03-31")).await.unwrap());
    let attempt = claimed.attempt.clone().unwrap();
    assert_eq!((attempt.no, attempt.due_on, attempt.amount), (1, due_on, subscription.price));
    assert_eq!(
        (attempt.payment_method.clone(), attempt.held_by),
        (subscription.payment_method.clone(), claim(1, "2026-03-31").token)
    );
    assert_eq!((claimed.attempt_seq, claimed.version), (1, 2));

    let stored = refused(world.table.claim_payment(&of, due_on, TABLE, claim(2, "2026-04-30")).await.unwrap());
    assert_eq!(stored, claimed, "of any age, and the refusal shows the item");
    let lapsed = claim(3, "2026-04-01");
    let mine = held(world.table.take_over(&of, &attempt, lapsed).await.unwrap());
    let taken = mine.attempt.clone().unwrap();
    assert_eq!((taken.held_by, taken.claimed_at), (lapsed.token, attempt.claimed_at), "AttemptAt is never rewritten");
    assert_eq!(refused(world.table.take_over(&of, &attempt, claim(4, "2026-04-01")).await.unwrap()), mine);
}

#[tokio::test]
async fn claim_is_refused_when_stopped_or_not_due() {
    let world = World::new().await;
    for (day, status) in [(1, Status::Paused), (2, Status::Cancelled), (3, Status::Unpaid)] {
        let subscription = new_subscription(day, "2026-02-28");
        world.has(&subscription).await;
        world.customer(&subscription, |s| Subscription { status, ..s.clone() }).await;
        let stored = refused(
            world
                .table
                .claim_payment(&key(&subscription), subscription.due_on, TABLE, claim(1, "2026-03-31"))
                .await
                .unwrap(),
        );
        assert_eq!((stored.status, stored.attempt), (status, None));
    }
    let active = new_subscription(4, "2026-02-28");
    world.has(&active).await;
    assert_eq!(
        refused(
            world.table.claim_payment(&key(&active), date("2026-04-04"), TABLE, claim(1, "2026-04-04")).await.unwrap()
        ),
        active
    );
    let absent = key(&new_subscription(5, "2026-02-28"));
    assert_eq!(
        world.table.claim_payment(&absent, date("2026-03-05"), TABLE, claim(1, "2026-03-05")).await.unwrap(),
        Claimed::Refused(None)
    );
}

#[tokio::test]
async fn update_computed_from_an_old_item_is_refused_and_shows_the_new_one() {
    let world = World::new().await;
    let old = new_subscription(31, "2026-02-28");
    world.has(&old).await;
    let dearer = Subscription { price: old.price.currency().price(1599).unwrap(), ..old.clone() };
    let Updated::Applied(written) = world.table.update_subscription(&old, &dearer).await.unwrap() else { panic!() };
    assert_eq!((written.version, written.price.minor()), (2, 1599));
    assert_eq!(
        world.table.update_subscription(&old, &cancelled(&old).subscription).await.unwrap(),
        Updated::Conflict(Some(written.clone()))
    );
    assert_eq!(world.table.update_subscription(&written, &written).await.unwrap(), Updated::Applied(written.clone()));
    assert_eq!(world.stored(&old).await, written, "what is the same is not written");
}

#[tokio::test]
async fn due_lists_come_in_pages_oldest_first_and_only_up_to_the_date() {
    let world = World::new().await;
    for day in (1..=9).rev() {
        world.has(&of_acme(day, "2026-02-28")).await;
    }
    let mut after: Option<Position> = None;
    let mut seen = Vec::new();
    loop {
        let page = world.table.get_due_payments_by_date(0, date("2026-03-07"), after.as_ref(), 3).await.unwrap();
        assert!(page.rows.len() <= 3);
        for row in page.rows {
            let due = row.due.unwrap();
            assert_eq!((due.on, due.amount.minor(), due.product_name.as_str()), (due.due_on, 1299, "Gold plan"));
            seen.push(due.on.to_string());
            after = Some(row.position);
        }
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(seen, (1..=7).map(|day| format!("2026-03-{day:02}")).collect::<Vec<_>>());
    let reminders = world.table.get_due_reminders_by_date(0, date("2026-02-24"), None, 100).await.unwrap();
    assert_eq!(reminders.rows.len(), 3, "of the 1st, 2nd and 3rd");
    assert!(world.table.get_due_payments_by_date(1, date("2026-03-07"), None, 3).await.unwrap().rows.is_empty());
}

/// The names of an item's attributes, in order.
async fn attributes(world: &World, prefix: &str) -> String {
    let items = world.table.scan().await.unwrap();
    let item = items.iter().find(|item| item["SK"].as_s().unwrap().starts_with(prefix)).unwrap();
    let mut names: Vec<&str> = item.keys().map(String::as_str).collect();
    names.sort_unstable();
    names.join(" ")
}

#[tokio::test]
async fn stored_items_have_the_attributes_of_the_design_and_no_empty_ones() {
    let world = World::new().await;
    let (gold, declining) = (new_subscription(5, "2026-03-01"), new_subscription(6, "2026-03-01"));
    world.has(&gold).await;
    assert_eq!(attributes(&world, "ACC#").await, "CreatedDate Email Locale MailStatus Name PK SK Version");
    let fresh = "AttemptSeq CreatedDate Currency DueDate FailedAttempts FirstDueDate NextPaymentDate NextReminderDate PK \
                 PaymentAmount PaymentDay PaymentDetails ProductName SK SKU Shard Status Version";
    assert_eq!(attributes(&world, "SUB#").await, fresh);
    let claimed =
        held(world.table.claim_payment(&key(&gold), gold.due_on, TABLE, claim(1, "2026-03-05")).await.unwrap());
    let open = "AttemptAmount AttemptAt AttemptBy AttemptCurrency AttemptDue AttemptLease AttemptNo AttemptPayment AttemptSeq AttemptTable";
    assert_eq!(attributes(&world, "SUB#").await, fresh.replace("AttemptSeq", open));
    assert!(claimed.attempt.is_some());
    world.charge("2026-03-06").await;
    let paid = fresh.replace("FirstDueDate", "FirstDueDate LastPaymentDate");
    assert_eq!(attributes(&world, "SUB#").await, paid, "nothing of the attempt is left but its number");
    let receipt = "Card Currency DueDate GatewayCustomerId GatewayPaymentId PK ProcessedAmount ProcessedDate ProductName SK SKU TTL";
    assert_eq!(attributes(&world, "REC#").await, receipt);
    let declining = Subscription { payment_method: crate::world::card("pm_card_visa_chargeDeclined"), ..declining };
    world.has(&declining).await;
    world.charge("2026-03-07").await;
    let record = "AttemptNo Code Currency DueDate GatewayCustomerId Hard Outcome PK PaymentAmount ProcessedDate SK TTL";
    assert_eq!(attributes(&world, "ATT#").await, record);
    let run = "Batch Counts Date Deadline EndedAt NextPosition PK RunId SK ShardNo Shards StartedAt TTL";
    assert_eq!(attributes(&world, "SHARD#").await, run);
    assert_eq!(attributes(&world, "CTL#").await, "Charging Format Gateway LatestRunAt PK SK Shards TableId");
}

#[tokio::test]
async fn put_account_creates_updates_and_leaves_what_is_equal() {
    let world = World::new().await;
    let subscription = new_subscription(1, "2026-02-28");
    assert_eq!(world.table.create_subscription(&subscription, None).await.unwrap(), Created::NoAccount);
    world.has(&subscription).await;
    assert_eq!(world.table.create_subscription(&subscription, None).await.unwrap(), Created::Exists);
    let account = world.table.get_account(&subscription.account).await.unwrap().unwrap();
    assert_eq!(world.table.put_account(&account).await.unwrap(), PutAccount::Updated(account.clone()));
    let moved = billing::Account { email: "new@acme.example.com".parse().unwrap(), ..account.clone() };
    let PutAccount::Updated(stored) = world.table.put_account(&moved).await.unwrap() else { panic!() };
    assert_eq!((stored.email, stored.version), (moved.email, account.version + 1));
    let nobody: AccountId = "nobody".parse().unwrap();
    assert_eq!(world.table.get_account(&nobody).await.unwrap(), None);
    assert_eq!(world.table.get_subscriptions_by_account(&nobody, &Paging::all()).await.unwrap().items, []);
}

#[tokio::test]
async fn create_under_an_idempotency_key_is_carried_out_once() {
    let world = World::new().await;
    let first = new_subscription(1, "2026-02-28");
    world.has(&first).await;
    let kept = |json: &str| KeptAnswer { json: json.to_owned(), version: 1 };
    let request = |hash: &str, answer: &str| IdempotentRequest {
        made_at: morning("2026-03-01"),
        key_hash: "k".to_owned(),
        request_hash: hash.to_owned(),
        answer: kept(answer),
        expires_at: morning("2026-03-02"),
    };
    let other = |n: u128| Subscription { id: SubscriptionId::new(Ulid::from_parts(2, n)), ..first.clone() };
    let create = async |n: u128, request: IdempotentRequest| {
        world.table.create_subscription(&other(n), Some(&request)).await.unwrap()
    };
    assert_eq!(create(1, request("a", "one")).await, Created::Created);
    assert_eq!(create(2, request("a", "two")).await, Created::Replayed(Replayed::Answered(kept("one"))));
    assert_eq!(create(3, request("b", "three")).await, Created::Replayed(Replayed::KeyReused));
    let asked = world.table.get_answer(&request("a", "")).await.unwrap();
    assert_eq!(asked, Some(Replayed::Answered(kept("one"))));
    assert_eq!(world.table.get_subscriptions_by_account(&first.account, &Paging::all()).await.unwrap().items.len(), 2);
    let later = IdempotentRequest { made_at: morning("2026-03-02"), ..request("b", "four") };
    assert_eq!(world.table.get_answer(&later).await.unwrap(), None, "expired, though not deleted yet");
    assert_eq!(create(4, later).await, Created::Created);
}

#[tokio::test]
async fn receipts_are_listed_newest_first_without_expired_ones() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2025-12-31");
    world.has(&subscription).await;
    let days = [
        "2026-01-31",
        "2026-02-28",
        "2026-03-31",
        "2026-04-30",
        "2026-05-31",
        "2026-06-30",
        "2026-07-31",
        "2026-08-31",
    ];
    for day in days {
        assert_eq!(world.charge(day).await.counts.paid, 1);
    }
    let listed = world
        .table
        .get_receipts_by_account(&subscription.account, &Paging::all(), morning("2026-08-31"))
        .await
        .unwrap()
        .items;
    let listed: Vec<String> = listed.iter().map(|receipt| receipt.due_on.to_string()).collect();
    assert_eq!(
        listed,
        ["2026-08-31", "2026-07-31", "2026-06-30", "2026-05-31", "2026-04-30", "2026-03-31", "2026-02-28"]
    );
}

#[tokio::test]
async fn put_run_records_a_run_open_and_close_run_closes_it() {
    let world = World::new().await;
    let position =
        Position { lane: Lane::Due, shard: 2, on: "2026-03-31".into(), pk: "ACC#a".into(), sk: "SUB#b#SKU#c".into() };
    let open = RunRecord {
        batch: Batch::Payments,
        on: date("2026-03-31"),
        shard: 2,
        id: Ulid::from_parts(1, 1),
        started_at: morning("2026-03-31"),
        deadline: Some(morning("2026-03-31") + TimeDelta::minutes(15)),
        shards: Some(4),
        from: Some(position.clone()),
        end: None,
    };
    world.table.put_run(&open).await.unwrap();
    assert_eq!(
        world.table.get_runs_by_date(Batch::Payments, open.on, &Paging::all()).await.unwrap().items,
        vec![open.clone()]
    );
    let end = RunEnd {
        ended_at: morning("2026-03-31"),
        counts: PaymentCounts { due: 3, paid: 3, ..PaymentCounts::default() }.into(),
        sums: RunSums { paid: "EUR=25.98,JPY=500".parse().unwrap(), declined: "EUR=12.99".parse().unwrap() },
        next: Some(position),
        stopped: Some("the gateway refuses us".into()),
    };
    world.table.close_run(&open, end.clone()).await.unwrap();
    let closed = RunRecord { end: Some(end), ..open.clone() };
    assert_eq!(world.table.get_runs_by_date(Batch::Payments, open.on, &Paging::all()).await.unwrap().items, [closed]);
    assert_eq!(world.table.get_runs_by_date(Batch::Reminders, open.on, &Paging::all()).await.unwrap().items, []);
}

#[tokio::test]
async fn init_settings_takes_effect_once_and_shard_of_spreads_accounts_evenly() {
    let world = World::new().await;
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let other = store::Settings { shards: 9, ..settings.clone() };
    assert_eq!(world.table.init_settings(&other).await.unwrap(), settings, "the first to come decides");
    let mut shards = [0; 4];
    for n in 0..4_000 {
        let shard = settings.shard_of(&format!("account-{n}").parse().unwrap());
        shards[usize::try_from(shard).unwrap()] += 1;
    }
    assert!(shards.iter().all(|count| (900..1_100).contains(count)), "{shards:?}");
}

#[tokio::test]
async fn is_transient_tells_what_may_succeed_later_from_what_will_not() {
    let world = World::new().await;
    for (kind, is_transient) in [
        ("ProvisionedThroughputExceededException", true),
        ("ThrottlingException", true),
        ("InternalServerError", true),
        ("AccessDeniedException", false),
        ("ResourceNotFoundException", false),
        ("ValidationException", false),
    ] {
        let wire = std::sync::Arc::new(Wire::with_faults(move |_| Some(Fault::Refused(kind))).and_no_retries());
        let table = world.system.over(wire).table;
        let error = table.get_settings().await.unwrap_err();
        assert_eq!(error.is_transient(), is_transient, "{error}");
        assert_eq!(error.to_string(), format!("GetItem failed: {kind}"));
    }
    let wire = std::sync::Arc::new(Wire::with_faults(|_| Some(Fault::LostBefore)).and_no_retries());
    let table = world.system.over(wire).table;
    assert!(table.get_settings().await.unwrap_err().is_transient());
}
