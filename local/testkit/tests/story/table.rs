//! Tests of the table's access patterns and expressions with the real AWS SDK and the embedded engine, and of the
//! capacity units that they consume.

use std::collections::BTreeMap;

use billing::{AccountId, ClaimToken, Subscription, SubscriptionId, SubscriptionStatus};
use chrono::TimeDelta;
use emulator::{EngineConnection, Fault};
use store::{
    Batch, Claim, ClaimOutcome, CreateOutcome, DueIndexPosition, IdempotencyKeyReuse, IdempotentRequest, Lane, Paging,
    PaymentCounts, PutAccountOutcome, RunEnd, RunRecord, RunSums, StoredResponse, UpdateOutcome,
};
use ulid::Ulid;

use crate::world::{World, billing_time, cancel, date, key, new_subscription, subscription_of_acme};

/// The id of the table in the claims of these tests. Its value does not matter.
const TABLE_ID: Ulid = Ulid(7);

/// Returns a claim with the token number `token` that is made at the billing time of `day`.
fn claim(token: u128, day: &str) -> Claim {
    let now = billing_time(day);
    Claim { token: ClaimToken(Ulid::from_parts(5, token)), now, leased_until: now + TimeDelta::minutes(20) }
}

/// Returns the claimed subscription. Panics if the claim was refused.
fn expect_claimed(outcome: ClaimOutcome) -> Subscription {
    match outcome {
        ClaimOutcome::Claimed(claimed) => *claimed,
        ClaimOutcome::Refused(stored) => panic!("the claim was refused; the stored item is {stored:?}"),
    }
}

/// Returns the stored subscription for which the claim was refused. Panics if the claim succeeded.
fn expect_refused(outcome: ClaimOutcome) -> Subscription {
    match outcome {
        ClaimOutcome::Refused(Some(stored)) => *stored,
        other => panic!("{other:?}"),
    }
}

/// Returns the capacity units of the table, GSI-1 (the reminder index) and GSI-2 (the payment index).
fn capacity_units(used: &BTreeMap<String, f64>) -> [f64; 3] {
    ["table", "GSI-1", "GSI-2"].map(|name| used.get(name).copied().unwrap_or(0.0))
}

#[tokio::test]
async fn writes_of_one_month_consume_the_expected_capacity_units() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    let key = key(&subscription);
    let table = world.system.with_connection(world.connection.clone()).table;
    world.store(&subscription).await;
    world.connection.take_capacity_units();

    let reminded =
        expect_claimed(table.claim_reminder(&key, date("2026-03-24"), claim(1, "2026-03-24")).await.unwrap());
    assert_eq!(
        capacity_units(&world.connection.take_capacity_units()),
        [1.0, 0.0, 0.0],
        "the claim of a reminder writes to no index"
    );
    let marked = Subscription { next_reminder_on: None, reminder_claim: None, ..reminded.clone() };
    assert!(matches!(table.update_subscription(&reminded, &marked).await.unwrap(), UpdateOutcome::Applied(_)));
    assert_eq!(
        capacity_units(&world.connection.take_capacity_units()),
        [1.0, 1.0, 0.0],
        "the mark that the reminder was sent removes the row from the reminder index"
    );
    expect_claimed(table.claim_payment(&key, date("2026-03-31"), TABLE_ID, claim(2, "2026-03-31")).await.unwrap());
    assert_eq!(
        capacity_units(&world.connection.take_capacity_units()),
        [1.0, 0.0, 0.0],
        "the claim of a payment writes to no index"
    );

    world.connection.take_capacity_units();
    let before = world.load(&subscription).await;
    assert_eq!(before.version, 4, "each write increases the version by one");
    let report = world.run_payments_at("2026-03-31", billing_time("2026-03-31") + TimeDelta::minutes(21)).await;
    assert_eq!(report.counts.paid, 1, "the attempt is taken over, looked up and charged");
    // Capacity units of the table: 1 for the rejected claim of the lane that charges due payments, or for the read of
    // the lane that looks up open attempts; 1 for the take-over; 2 + 2 for the two items of the settlement's
    // transaction; 1 for the daily total. Capacity units of the reminder index: 1 for the new row. Capacity units of
    // the payment index: 2 to move the row.
    assert_eq!(capacity_units(&world.connection.take_capacity_units()), [7.0, 1.0, 2.0]);
}

#[tokio::test]
async fn creating_a_subscription_consumes_six_units_of_the_table_and_one_of_each_index() {
    let world = World::new().await;
    let table = world.system.with_connection(world.connection.clone()).table;
    world.store(&subscription_of_acme(1, "2026-02-28")).await;
    let second = subscription_of_acme(2, "2026-02-28");
    world.connection.take_capacity_units();
    assert_eq!(table.create_subscription(&second, None).await.unwrap(), CreateOutcome::Created);
    // A transaction consumes twice as many capacity units as single writes: 2 for the new item, 2 for the check of
    // the account, and 2 for the item that finds the subscription by its code.
    assert_eq!(capacity_units(&world.connection.take_capacity_units()), [6.0, 1.0, 1.0]);
}

#[tokio::test]
async fn claim_stores_an_attempt_and_is_refused_while_an_attempt_is_open() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    let (key, due_on) = (key(&subscription), date("2026-03-31"));
    world.store(&subscription).await;
    let claimed =
        expect_claimed(world.table.claim_payment(&key, due_on, TABLE_ID, claim(1, "2026-03-31")).await.unwrap());
    let attempt = claimed.attempt.clone().unwrap();
    assert_eq!((attempt.no, attempt.due_on, attempt.amount), (1, due_on, subscription.price));
    assert_eq!(
        (attempt.payment_method.clone(), attempt.claim_token),
        (subscription.payment_method.clone(), claim(1, "2026-03-31").token)
    );
    assert_eq!((claimed.attempt_seq, claimed.version), (1, 2));

    let stored =
        expect_refused(world.table.claim_payment(&key, due_on, TABLE_ID, claim(2, "2026-04-30")).await.unwrap());
    assert_eq!(stored, claimed, "an attempt of any age refuses the claim, and the outcome contains the stored item");
    let after_expiry = claim(3, "2026-04-01");
    let taken_over = expect_claimed(world.table.take_over_attempt(&key, &attempt, after_expiry).await.unwrap());
    let new_attempt = taken_over.attempt.clone().unwrap();
    assert_eq!(
        (new_attempt.claim_token, new_attempt.claimed_at),
        (after_expiry.token, attempt.claimed_at),
        "a take-over does not change the time of the claim"
    );
    let second = world.table.take_over_attempt(&key, &attempt, claim(4, "2026-04-01")).await.unwrap();
    assert_eq!(expect_refused(second), taken_over);
}

#[tokio::test]
async fn claim_is_refused_if_the_subscription_is_stopped_or_not_due() {
    let world = World::new().await;
    for (day, status) in
        [(1, SubscriptionStatus::Paused), (2, SubscriptionStatus::Cancelled), (3, SubscriptionStatus::Unpaid)]
    {
        let subscription = new_subscription(day, "2026-02-28");
        world.store(&subscription).await;
        world.change_subscription(&subscription, |s| Subscription { status, ..s.clone() }).await;
        let stored = expect_refused(
            world
                .table
                .claim_payment(&key(&subscription), subscription.due_on, TABLE_ID, claim(1, "2026-03-31"))
                .await
                .unwrap(),
        );
        assert_eq!((stored.status, stored.attempt), (status, None));
    }
    let active = new_subscription(4, "2026-02-28");
    world.store(&active).await;
    assert_eq!(
        expect_refused(
            world
                .table
                .claim_payment(&key(&active), date("2026-04-04"), TABLE_ID, claim(1, "2026-04-04"))
                .await
                .unwrap()
        ),
        active
    );
    let absent = key(&new_subscription(5, "2026-02-28"));
    assert_eq!(
        world.table.claim_payment(&absent, date("2026-03-05"), TABLE_ID, claim(1, "2026-03-05")).await.unwrap(),
        ClaimOutcome::Refused(None)
    );
}

#[tokio::test]
async fn update_of_an_outdated_item_is_a_conflict_with_the_stored_item() {
    let world = World::new().await;
    let old = new_subscription(31, "2026-02-28");
    world.store(&old).await;
    let raised = Subscription { price: old.price.currency().price(1599).unwrap(), ..old.clone() };
    let UpdateOutcome::Applied(written) = world.table.update_subscription(&old, &raised).await.unwrap() else {
        panic!()
    };
    assert_eq!((written.version, written.price.minor()), (2, 1599));
    assert_eq!(
        world.table.update_subscription(&old, &cancel(&old).subscription).await.unwrap(),
        UpdateOutcome::Conflict(Some(written.clone()))
    );
    assert_eq!(
        world.table.update_subscription(&written, &written).await.unwrap(),
        UpdateOutcome::Applied(written.clone())
    );
    assert_eq!(world.load(&old).await, written, "an unchanged item is not written");
}

#[tokio::test]
async fn due_payments_are_listed_in_list_pages_oldest_first_up_to_the_date() {
    let world = World::new().await;
    for day in (1..=9).rev() {
        world.store(&subscription_of_acme(day, "2026-02-28")).await;
    }
    let mut after: Option<DueIndexPosition> = None;
    let mut dates = Vec::new();
    loop {
        let page = world.table.get_due_payments_by_date(0, date("2026-03-07"), after.as_ref(), 3).await.unwrap();
        assert!(page.rows.len() <= 3);
        for row in page.rows {
            let due = row.due.unwrap();
            assert_eq!((due.on, due.amount.minor(), due.product_name.as_str()), (due.due_on, 1299, "Gold plan"));
            dates.push(due.on.to_string());
            after = Some(row.position);
        }
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(dates, (1..=7).map(|day| format!("2026-03-{day:02}")).collect::<Vec<_>>());
    let reminders = world.table.get_due_reminders_by_date(0, date("2026-02-24"), None, 100).await.unwrap();
    assert_eq!(reminders.rows.len(), 3, "the reminders for March 1, 2 and 3");
    assert!(world.table.get_due_payments_by_date(1, date("2026-03-07"), None, 3).await.unwrap().rows.is_empty());
}

/// Returns the attribute names of the first item whose sort key starts with `prefix`, in alphabetical order.
async fn attribute_names(world: &World, prefix: &str) -> String {
    let items = world.table.scan().await.unwrap();
    let item = items.iter().find(|item| item["SK"].as_s().unwrap().starts_with(prefix)).unwrap();
    let mut names: Vec<&str> = item.keys().map(String::as_str).collect();
    names.sort_unstable();
    names.join(" ")
}

#[tokio::test]
async fn stored_items_have_exactly_the_documented_attributes() {
    let world = World::new().await;
    let (gold, declining) = (new_subscription(5, "2026-03-01"), new_subscription(6, "2026-03-01"));
    world.store(&gold).await;
    assert_eq!(attribute_names(&world, "ACC#").await, "CreatedDate Email Locale MailStatus Name PK SK Version");
    let new_subscription_names = "AttemptSeq CreatedDate Currency DueDate FailedAttempts FirstDueDate NextPaymentDate NextReminderDate PK \
                 PaymentAmount PaymentDay PaymentDetails ProductName SK SKU Shard Status Version";
    assert_eq!(attribute_names(&world, "SUB#").await, new_subscription_names);
    let claimed = expect_claimed(
        world.table.claim_payment(&key(&gold), gold.due_on, TABLE_ID, claim(1, "2026-03-05")).await.unwrap(),
    );
    let attempt_names = "AttemptAmount AttemptAt AttemptBy AttemptCurrency AttemptDue AttemptLease AttemptNo AttemptPayment AttemptSeq AttemptTable";
    assert_eq!(attribute_names(&world, "SUB#").await, new_subscription_names.replace("AttemptSeq", attempt_names));
    assert!(claimed.attempt.is_some());
    world.run_payments("2026-03-06").await;
    let paid_names = new_subscription_names
        .replace("CreatedDate", "ChargeableFrom CreatedDate")
        .replace("FirstDueDate", "FirstDueDate LastPaymentDate");
    assert_eq!(attribute_names(&world, "SUB#").await, paid_names, "only the attempt's number is left");
    let receipt = "Card Currency DueDate GatewayCustomerId GatewayPaymentId PK ProcessedAmount ProcessedDate ProductName SK SKU TTL";
    assert_eq!(attribute_names(&world, "REC#").await, receipt);
    let declining = Subscription { payment_method: crate::world::card("pm_card_visa_chargeDeclined"), ..declining };
    world.store(&declining).await;
    world.run_payments("2026-03-07").await;
    let record = "AttemptNo Code Currency DueDate GatewayCustomerId Hard Outcome PK PaymentAmount ProcessedDate SK TTL";
    assert_eq!(attribute_names(&world, "ATT#").await, record);
    let run = "Batch Counts Date Deadline EndedAt NextPosition PK RunId SK ShardNo Shards StartedAt TTL";
    assert_eq!(attribute_names(&world, "SHARD#").await, run);
    assert_eq!(
        attribute_names(&world, "CTL#").await,
        "Charging DynamodbId Format Gateway LatestRunAt PK PaymentLimits Policy SK Shards TableId"
    );
}

#[tokio::test]
async fn put_account_creates_or_updates_and_does_not_write_an_equal_account() {
    let world = World::new().await;
    let subscription = new_subscription(1, "2026-02-28");
    assert_eq!(world.table.create_subscription(&subscription, None).await.unwrap(), CreateOutcome::NoAccount);
    world.store(&subscription).await;
    assert_eq!(world.table.create_subscription(&subscription, None).await.unwrap(), CreateOutcome::Exists);
    let account = world.table.get_account(&subscription.account).await.unwrap().unwrap();
    assert_eq!(world.table.put_account(&account).await.unwrap(), PutAccountOutcome::Updated(account.clone()));
    let changed = billing::Account { email: "new@acme.example.com".parse().unwrap(), ..account.clone() };
    let PutAccountOutcome::Updated(stored) = world.table.put_account(&changed).await.unwrap() else { panic!() };
    assert_eq!((stored.email, stored.version), (changed.email, account.version + 1));
    let unknown: AccountId = "unknown".parse().unwrap();
    assert_eq!(world.table.get_account(&unknown).await.unwrap(), None);
    assert_eq!(world.table.get_subscriptions_by_account(&unknown, &Paging::all()).await.unwrap().items, []);
}

#[tokio::test]
async fn create_with_an_idempotency_key_is_executed_once() {
    let world = World::new().await;
    let first = new_subscription(1, "2026-02-28");
    world.store(&first).await;
    let response = |json: &str| StoredResponse { json: json.to_owned(), version: 1 };
    let request = |hash: &str, json: &str| IdempotentRequest {
        made_at: billing_time("2026-03-01"),
        key_hash: "k".to_owned(),
        request_hash: hash.to_owned(),
        response: response(json),
        expires_at: billing_time("2026-03-02"),
    };
    let other = |n: u128| Subscription { id: SubscriptionId::new(Ulid::from_parts(2, n)), ..first.clone() };
    let create = async |n: u128, request: IdempotentRequest| {
        world.table.create_subscription(&other(n), Some(&request)).await.unwrap()
    };
    assert_eq!(create(1, request("a", "one")).await, CreateOutcome::Created);
    assert_eq!(
        create(2, request("a", "two")).await,
        CreateOutcome::Replayed(IdempotencyKeyReuse::SameRequest(response("one")))
    );
    assert_eq!(create(3, request("b", "three")).await, CreateOutcome::Replayed(IdempotencyKeyReuse::KeyReused));
    let stored = world.table.get_stored_response(&request("a", "")).await.unwrap();
    assert_eq!(stored, Some(IdempotencyKeyReuse::SameRequest(response("one"))));
    assert_eq!(world.table.get_subscriptions_by_account(&first.account, &Paging::all()).await.unwrap().items.len(), 2);
    let later = IdempotentRequest { made_at: billing_time("2026-03-02"), ..request("b", "four") };
    assert_eq!(
        world.table.get_stored_response(&later).await.unwrap(),
        None,
        "the stored response has expired, although DynamoDB has not deleted it yet"
    );
    assert_eq!(create(4, later).await, CreateOutcome::Created);
}

#[tokio::test]
async fn receipts_are_listed_newest_first_without_expired_receipts() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2025-12-31");
    world.store(&subscription).await;
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
        assert_eq!(world.run_payments(day).await.counts.paid, 1);
    }
    let listed = world
        .table
        .get_receipts_by_account(&subscription.account, &Paging::all(), billing_time("2026-08-31"))
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
async fn put_run_stores_an_open_run_and_close_run_closes_it() {
    let world = World::new().await;
    let position = DueIndexPosition {
        lane: Lane::Due,
        shard: 2,
        on: "2026-03-31".into(),
        pk: "ACC#a".into(),
        sk: "SUB#b#SKU#c".into(),
    };
    let open = RunRecord {
        batch: Batch::Payments,
        on: date("2026-03-31"),
        shard: 2,
        id: Ulid::from_parts(1, 1),
        started_at: billing_time("2026-03-31"),
        deadline: Some(billing_time("2026-03-31") + TimeDelta::minutes(15)),
        shards: Some(4),
        from: Some(position.clone()),
        end: None,
    };
    world.table.put_run_record(&open).await.unwrap();
    assert_eq!(
        world.table.get_runs_by_date(Batch::Payments, open.on, &Paging::all()).await.unwrap().items,
        vec![open.clone()]
    );
    let end = RunEnd {
        ended_at: billing_time("2026-03-31"),
        counts: PaymentCounts { due: 3, paid: 3, ..PaymentCounts::default() }.into(),
        sums: RunSums { paid: "EUR=25.98,JPY=500".parse().unwrap(), declined: "EUR=12.99".parse().unwrap() },
        next: Some(position),
        stopped: Some("the gateway refuses our requests".into()),
    };
    world.table.close_run_record(&open, end.clone()).await.unwrap();
    let closed = RunRecord { end: Some(end), ..open.clone() };
    assert_eq!(world.table.get_runs_by_date(Batch::Payments, open.on, &Paging::all()).await.unwrap().items, [closed]);
    assert_eq!(world.table.get_runs_by_date(Batch::Reminders, open.on, &Paging::all()).await.unwrap().items, []);
}

#[tokio::test]
async fn init_settings_has_an_effect_once_and_shard_of_distributes_accounts_evenly() {
    let world = World::new().await;
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let other = store::Settings { shards: 9, ..settings.clone() };
    assert_eq!(world.table.init_settings(&other).await.unwrap(), settings, "the settings of the table stay");
    let mut shards = [0; 4];
    for n in 0..4_000 {
        let shard = settings.shard_of(&format!("account-{n}").parse().unwrap());
        shards[usize::try_from(shard).unwrap()] += 1;
    }
    assert!(shards.iter().all(|count| (900..1_100).contains(count)), "{shards:?}");
}

#[tokio::test]
async fn is_transient_is_true_only_for_errors_that_may_succeed_later() {
    let world = World::new().await;
    for (kind, is_transient) in [
        ("ProvisionedThroughputExceededException", true),
        ("ThrottlingException", true),
        ("InternalServerError", true),
        ("AccessDeniedException", false),
        ("ResourceNotFoundException", false),
        ("ValidationException", false),
    ] {
        let connection =
            std::sync::Arc::new(EngineConnection::with_faults(move |_| Some(Fault::Refused(kind))).without_retries());
        let table = world.system.with_connection(connection).table;
        let error = table.get_settings().await.unwrap_err();
        assert_eq!(error.is_transient(), is_transient, "{error}");
        assert_eq!(error.to_string(), format!("GetItem failed: {kind}: injected"));
    }
    let connection = std::sync::Arc::new(EngineConnection::with_faults(|_| Some(Fault::LostBefore)).without_retries());
    let table = world.system.with_connection(connection).table;
    assert!(table.get_settings().await.unwrap_err().is_transient());
}
