//! Tests of the erasure of accounts: if an erasure is interrupted at any call, the next erasure completes it. Then no
//! personal data of the account is left, and the records of its payments are unchanged.

use std::sync::Arc;

use audit::Invariant;
use aws_sdk_dynamodb::types::AttributeValue;
use billing::{
    Account, AccountChanges, ActionKind, Actor, ActorName, Delivery, DeliveryKey, DeliveryResponse, Dispute,
    DisputeStatus, Erasure, Finding, FindingReason, NewAction, PaymentMethodSetup, ResolvedFinding, Subscription,
    SubscriptionStatus, events_between_images,
};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock as _;
use emulator::{EngineConnection, FaultInjector};
use erasing::{Eraser, ErasureRequestError, ErasureState, request_erasure};
use orders::{Customer, ShippingAddress};
use orders_table::{BucketCount, OrdersTable};
use store::{
    CardLink, ChangeRecords, CreateOutcome, IdempotentRequest, Item, LimitedOperation, Paging, PutAccountOutcome,
    StoredAccount, StoredResponse, read_stream_image,
};
use testkit::{FAULTS_AT_EACH_CALL, fault_at_call, sample_account, sample_subscription};
use ulid::Ulid;

use crate::table_audit::violations;
use crate::world::{World, billing_time, cancel, card, date};

/// The name of the orders table.
const ORDERS: &str = "orders";
/// The day on which the accounts are erased.
const LAST_DAY: &str = "2026-04-12";

/// Texts of the test accounts' personal data. After an erasure, no item may contain them.
const PERSONAL: [&str; 14] = [
    "canary@example.com",
    "canary-plan@example.com",
    "Canary Name",
    "cus_canary",
    "pm_canary",
    "\"4242\"",
    "https://pages.example.com/canary",
    "canary response",
    "auth0|canary",
    "canary reason",
    "canary decision",
    "Canary Street",
    "Canary Yard",
    "+44 113 496 0777",
];

/// The time at which the accounts are erased.
pub fn erasure_time() -> DateTime<Utc> {
    billing_time(LAST_DAY)
}

/// Returns an operator's action that requests an erasure.
pub fn erasure_action() -> NewAction {
    NewAction { at: erasure_time(), actor: Actor::Operator(None), kind: ActionKind::EraseAccount, reason: None }
}

/// Returns a client of the orders table of `world`. The client sends its requests through `connection`.
fn orders_table(world: &World, connection: EngineConnection) -> OrdersTable {
    OrdersTable::new(world.system.with_connection(Arc::new(connection)).table.client().clone(), ORDERS)
}

/// Stores an account with one item of each kind that belongs to an account, after two paid months, a decline and the
/// cancellation of its subscription. `n` determines the id of the subscription. The personal texts are listed in
/// [`PERSONAL`].
async fn store_account(world: &World, orders: &OrdersTable, id: &str, n: u32) -> Subscription {
    let account = Account {
        id: id.parse().unwrap(),
        email: "canary@example.com".parse().unwrap(),
        name: "Canary Name".parse().unwrap(),
        ..sample_account()
    };
    world.table.put_account(&account).await.unwrap();
    let method = |name: &str| billing::PaymentMethod { customer: "cus_canary".parse().unwrap(), ..card(name) };
    let subscription = Subscription {
        account: account.id.clone(),
        id: billing::SubscriptionId::new(Ulid::from_parts(3, n.into())),
        email: Some("canary-plan@example.com".parse().unwrap()),
        payment_method: method("pm_card_visa"),
        ..sample_subscription(10, date("2026-02-01"))
    };
    let request = IdempotentRequest {
        made_at: erasure_time(),
        key_hash: format!("hash-{id}"),
        request_hash: String::new(),
        response: StoredResponse { json: format!(r#"{{"account": "{id}", "x": "canary response"}}"#), version: 1 },
        expires_at: erasure_time() + TimeDelta::hours(48),
    };
    let created = world.table.create_subscription(&subscription, Some(&request)).await.unwrap();
    assert_eq!(created, CreateOutcome::Created);
    for day in ["2026-02-10", "2026-03-10"] {
        world.run_payments(day).await;
    }
    let declined = method("pm_card_visa_chargeDeclined");
    world.change_subscription(&subscription, |s| Subscription { payment_method: declined.clone(), ..s.clone() }).await;
    world.run_payments("2026-04-10").await;
    world.change_subscription(&subscription, cancel).await;
    world.clock.set(erasure_time());
    store_records(world, &account, &subscription).await;
    let address = ShippingAddress {
        name: "Canary Name".parse().unwrap(),
        street: "Canary Street".parse().unwrap(),
        line2: Some("Canary Yard".parse().unwrap()),
        postal_code: "LS1".parse().unwrap(),
        city: "Leeds".parse().unwrap(),
        state: None,
        country: "gb".parse().unwrap(),
        region: "eu".parse().unwrap(),
        phone: Some("+44 113 496 0777".parse().unwrap()),
    };
    let customer = Customer { address: Some(address), ..Customer::new(account.id.clone(), None, erasure_time()) };
    orders.create_customer(&customer).await.unwrap();
    subscription
}

/// Stores a dispute that was won, a resolved finding, an action of the account, a setup, a card link, a limit and two
/// deliveries.
async fn store_records(world: &World, account: &Account, subscription: &Subscription) {
    let table = &world.table;
    let receipts = table.get_receipts_by_account(&account.id, &Paging::all(), erasure_time()).await.unwrap().items;
    let dispute = Dispute {
        id: format!("dp_{}", account.id).parse().unwrap(),
        account: account.id.clone(),
        receipt: receipts[0].id(),
        payment: receipts[0].payment.clone(),
        payment_method: "pm_canary".parse().unwrap(),
        amount: receipts[0].amount,
        reason: "fraudulent".to_owned(),
        status: DisputeStatus::Won,
        opened_at: erasure_time(),
        closed_at: Some(erasure_time()),
        version: 1,
    };
    table.write_dispute(&dispute, None).await.unwrap();
    let open = Finding {
        account: account.id.clone(),
        subscription: subscription.id,
        sku: subscription.sku.clone(),
        due_on: date("2026-03-10"),
        payment: format!("pay_{}", account.id).parse().unwrap(),
        amount: subscription.price,
        reason: FindingReason::PaidTwice,
        blocks: false,
        found_at: erasure_time(),
        resolved: None,
        version: 1,
    };
    table.put_finding(world.load(subscription).await, |_| open.clone()).await.unwrap();
    let resolution = ResolvedFinding { at: erasure_time(), reason: "canary decision".to_owned() };
    let resolved = Finding { resolved: Some(resolution), version: 2, ..open.clone() };
    let stored = world.load(subscription).await;
    table.resolve_finding(stored, &open, &resolved, None, |s| Ok::<_, ()>(s.clone().into())).await.unwrap();
    let action = NewAction {
        actor: Actor::Account(ActorName::new("auth0|canary")),
        kind: ActionKind::PutAccount,
        reason: Some("canary reason".parse().unwrap()),
        ..erasure_action()
    };
    let changes = AccountChanges { locale: Some("de".parse().unwrap()), ..AccountChanges::default() };
    table.change_account(&account.id, &changes, Some(&action)).await.unwrap();
    let setup = PaymentMethodSetup {
        id: Ulid::from_parts(4, account.id.as_str().len() as u128),
        account: account.id.clone(),
        page: "cs_1".parse().unwrap(),
        url: "https://pages.example.com/canary".to_owned(),
        subscriptions: None,
        created_at: erasure_time(),
        expires_at: erasure_time() + TimeDelta::days(1),
        payment_method: Some(billing::PaymentMethod {
            customer: "cus_canary".parse().unwrap(),
            payment_method: "pm_canary".parse().unwrap(),
        }),
        version: 1,
    };
    let creation = NewAction { kind: ActionKind::CreateSetup, ..erasure_action() };
    table.create_setup(&setup, ChangeRecords { request: None, action: Some(&creation) }).await.unwrap();
    let link = CardLink { account: account.id.clone(), subscription: subscription.id, due_on: date("2026-04-10") };
    table.put_card_link(setup.id, &link, erasure_time()).await.unwrap();
    table.count_use(&LimitedOperation::SetupsOf(account.id.clone()), erasure_time()).await.unwrap();
    let body = format!(r#"{{"subject": "{}"}}"#, account.id);
    for (event, is_delivered) in [("delivered", true), ("pending", false)] {
        let key = DeliveryKey { endpoint: Ulid::nil(), event: format!("{}-{event}", account.id) };
        let delivery = Delivery::new(key, "payment.succeeded".to_owned(), body.clone(), erasure_time());
        let delivery = match is_delivered {
            true => delivery.after_attempt(&DeliveryResponse::Accepted(200), erasure_time()),
            false => delivery,
        };
        assert!(table.create_delivery(&delivery).await.unwrap());
    }
}

/// Creates a world with the accounts `acme` and `rival-1`, which have the same items.
pub async fn world_with_two_accounts() -> (World, OrdersTable) {
    let world = World::with_one_shard().await;
    let orders = orders_table(&world, EngineConnection::default());
    orders.create_if_absent().await.unwrap();
    orders.get_or_store_buckets(BucketCount::default()).await.unwrap();
    for (n, id) in [(1, "acme"), (2, "rival-1")] {
        world.set_clock_back(billing_time("2026-02-01")).await;
        store_account(&world, &orders, id, n).await;
    }
    (world, orders)
}

/// Returns the attributes of `item` as text, sorted by name.
fn item_text(item: &Item) -> String {
    let text_of_value = |value: &AttributeValue| match value {
        AttributeValue::M(map) => format!("{{{}}}", item_text(map)),
        other => format!("{other:?}"),
    };
    let mut attributes: Vec<String> =
        item.iter().map(|(name, value)| format!("{name}={}", text_of_value(value))).collect();
    attributes.sort();
    attributes.join(" ")
}

/// Returns all items of both tables as texts, sorted, without the items for which `is_left_out` is true.
async fn item_texts(world: &World, orders: &OrdersTable, is_left_out: impl Fn(&str) -> bool) -> Vec<String> {
    let scanned = orders.client().scan().table_name(ORDERS).send().await.unwrap().items.unwrap_or_default();
    let all = world.table.scan().await.unwrap();
    let mut all: Vec<String> = all.iter().chain(&scanned).map(item_text).filter(|item| !is_left_out(item)).collect();
    all.sort();
    all
}

/// Returns the items that belong to `acme`, or to no account.
async fn items_without_rival(world: &World, orders: &OrdersTable) -> Vec<String> {
    let setup_of_rival = Ulid::from_parts(4, "rival-1".len() as u128).to_string();
    item_texts(world, orders, |item| item.contains("rival-1") || item.contains(&setup_of_rival)).await
}

/// Returns the items that belong to `rival-1`.
async fn items_of_rival(world: &World, orders: &OrdersTable) -> Vec<String> {
    item_texts(world, orders, |item| !item.contains("rival-1")).await
}

/// Requests the erasure of `acme`, and erases the account. Returns the number of erased accounts.
async fn erase(world: &World, orders: OrdersTable, table: store::Table) -> Result<u64, ErasureRequestError> {
    request_erasure(&table, &"acme".parse().unwrap(), &erasure_action(), erasure_time()).await?;
    Ok(Eraser::new(table, Some(orders), world.clock.clone()).continue_all_erasures(None).await?.erased)
}

/// Asserts that the account `acme` is erased, that none of its personal data is left, and that its receipts still have
/// the payment ids and amounts in `expected_receipts`.
async fn assert_account_erased_and_receipts_kept(
    world: &World,
    orders: &OrdersTable,
    expected_receipts: &[(String, i64)],
    case: &str,
) {
    let left = items_without_rival(world, orders).await;
    for personal in PERSONAL {
        let found: Vec<&String> = left.iter().filter(|item| item.contains(personal)).collect();
        assert!(found.is_empty(), "{case}: {personal} is left in {found:#?}");
    }
    let account = "acme".parse().unwrap();
    let stored = world.table.get_stored_account(&account).await.unwrap();
    assert!(matches!(stored, Some(StoredAccount::Erased(_))), "{case}: {stored:?}");
    assert_eq!(world.table.get_erasure(&account).await.unwrap(), None, "{case}");
    assert_eq!(receipts_of(world).await, expected_receipts, "{case}: the receipts are kept with their amounts");
    let found = violations(world, LAST_DAY).await;
    let expected: [(Invariant, String); 0] = [];
    assert_eq!(found, expected, "{case}");
}

/// Returns the payment id and the amount of each receipt of `acme`.
async fn receipts_of(world: &World) -> Vec<(String, i64)> {
    let receipts =
        world.table.get_receipts_by_account(&"acme".parse().unwrap(), &Paging::all(), erasure_time()).await.unwrap();
    receipts.items.into_iter().map(|receipt| (receipt.payment.to_string(), receipt.amount.minor())).collect()
}

#[tokio::test]
async fn erasure_that_is_interrupted_at_any_call_leaves_no_personal_data_and_keeps_the_payments() {
    let (prepared, orders) = world_with_two_accounts().await;
    let (receipts, rival) = (receipts_of(&prepared).await, items_of_rival(&prepared, &orders).await);
    assert_eq!(receipts.len(), 2);
    let before = items_without_rival(&prepared, &orders).await;
    for personal in PERSONAL {
        assert!(before.iter().any(|item| item.contains(personal)), "{personal} is not stored: {before:#?}");
    }
    for fault in FAULTS_AT_EACH_CALL {
        let mut at = 1;
        loop {
            let case = format!("{fault:?} at call {at}");
            let world = prepared.copy().await;
            let orders = orders_table(&world, EngineConnection::default());
            let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(at, fault))));
            let deployment = world
                .system
                .with_connection(Arc::new(EngineConnection::with_injector(injector.clone()).without_retries()));
            let faulty_orders = OrdersTable::new(deployment.table.client().clone(), ORDERS);
            let first = injector.run(erase(&world, faulty_orders, deployment.table.clone())).await;
            let calls = injector.call_count();
            if calls >= at {
                assert!(!fault.is_crash() || first.is_none(), "{case}: the crash had no effect");
            }
            erase(&world, orders.clone(), world.table.clone()).await.unwrap();
            assert_account_erased_and_receipts_kept(&world, &orders, &receipts, &case).await;
            assert_eq!(items_of_rival(&world, &orders).await, rival, "{case}: another account has changed");
            if calls < at {
                assert!(at > 20, "only {at} calls");
                break;
            }
            at += 1;
        }
    }
}

#[tokio::test]
async fn erased_account_is_published_and_its_id_cannot_be_used_again() {
    let (world, orders) = world_with_two_accounts().await;
    let account: billing::AccountId = "acme".parse().unwrap();
    let image = async |world: &World| {
        let all = world.table.scan().await.unwrap();
        let item = all.into_iter().find(|item| {
            let is =
                |name: &str| item.get(name).and_then(|value| value.as_s().ok()).is_some_and(|key| key == "ACC#acme");
            is("PK") && is("SK")
        });
        read_stream_image(&item.unwrap()).unwrap()
    };
    let before = image(&world).await;
    let subscription = Subscription { account: account.clone(), ..sample_subscription(11, date("2026-04-01")) };
    let requested = request_erasure(&world.table, &account, &erasure_action(), erasure_time()).await.unwrap();
    assert!(matches!(requested, ErasureState::InProgress(_)));
    let create = || world.table.create_subscription(&subscription, None);
    let same = Account { id: account.clone(), ..sample_account() };
    let put = || world.table.put_account(&same);
    assert_eq!(create().await.unwrap(), CreateOutcome::AccountErased { is_complete: false });
    assert_eq!(put().await.unwrap(), PutAccountOutcome::BeingErased);

    assert_eq!(erase(&world, orders, world.table.clone()).await.unwrap(), 1);
    let published = events_between_images(before.as_ref(), image(&world).await.as_ref(), erasure_time());
    let types: Vec<String> = published.iter().map(|event| event.data.event_type().to_string()).collect();
    assert_eq!(types, ["account.erased"]);
    assert_eq!(create().await.unwrap(), CreateOutcome::AccountErased { is_complete: true });
    assert_eq!(put().await.unwrap(), PutAccountOutcome::Erased);
    assert_eq!(world.table.get_account(&account).await.unwrap(), None);
    let again = request_erasure(&world.table, &account, &erasure_action(), world.clock.now()).await.unwrap();
    let ErasureState::Ended(erased) = again else { panic!("{again:?}") };
    assert!(erased.counts.removed >= 5 && erased.counts.pseudonymised >= 5, "{erased:?}");
}

#[tokio::test]
async fn finding_about_an_erased_subscription_is_not_stored() {
    let (world, orders) = world_with_two_accounts().await;
    let account: billing::AccountId = "acme".parse().unwrap();
    let stored = world.table.get_subscriptions_by_account(&account, &Paging::all()).await.unwrap().items.remove(0);
    request_erasure(&world.table, &account, &erasure_action(), erasure_time()).await.unwrap();
    assert_eq!(erase(&world, orders, world.table.clone()).await.unwrap(), 1);
    let finding = |stored: &Subscription| Finding {
        account: account.clone(),
        subscription: stored.id,
        sku: stored.sku.clone(),
        due_on: date("2026-03-10"),
        payment: "pay_late".parse().unwrap(),
        amount: stored.price,
        reason: FindingReason::NoAttempt,
        blocks: true,
        found_at: erasure_time(),
        resolved: None,
        version: 1,
    };
    assert_eq!(world.table.put_finding(stored, finding).await.unwrap(), None);
    let open = world.table.get_open_findings().await.unwrap();
    assert!(open.iter().all(|open| open.payment.as_str() != "pay_late"), "{open:?}");
}

#[tokio::test]
async fn erasure_is_refused_for_an_active_subscription_and_waits_for_a_later_dispute() {
    let world = World::new().await;
    let subscription = sample_subscription(10, date("2026-02-01"));
    world.store(&subscription).await;
    let account = &subscription.account;
    let refused =
        request_erasure(&world.table, account, &erasure_action(), erasure_time()).await.unwrap_err().to_string();
    let id = subscription.id;
    assert_eq!(refused, format!("the account cannot be erased: the subscription {id} is active, not cancelled"));
    world.change_subscription(&subscription, cancel).await;
    assert_eq!(world.load(&subscription).await.status, SubscriptionStatus::Cancelled);
    request_erasure(&world.table, account, &erasure_action(), erasure_time()).await.unwrap();
    // The gateway reports a dispute of an old payment after the request.
    let receipt = billing::ReceiptId { due_on: date("2026-01-10"), subscription: id, sku: subscription.sku.clone() };
    let open = Dispute {
        id: "dp_1".parse().unwrap(),
        account: account.clone(),
        receipt,
        payment: "pay_1".parse().unwrap(),
        payment_method: "pm_1".parse().unwrap(),
        amount: subscription.price,
        reason: "fraudulent".to_owned(),
        status: DisputeStatus::Open,
        opened_at: erasure_time(),
        closed_at: None,
        version: 1,
    };
    world.table.write_dispute(&open, None).await.unwrap();
    let eraser = Eraser::new(world.table.clone(), None, world.clock.clone());
    let requested_at = world.table.get_erasure(account).await.unwrap().unwrap().requested_at;
    for (waited, is_overdue) in
        [(TimeDelta::zero(), false), (Erasure::MAX_WAIT - TimeDelta::seconds(1), false), (Erasure::MAX_WAIT, true)]
    {
        world.clock.set(requested_at + waited);
        let report = eraser.continue_all_erasures(None).await.unwrap();
        assert_eq!(report.waiting[account], "the dispute dp_1 is open");
        assert_eq!(report.overdue.contains(account), is_overdue, "{waited}");
    }
    assert!(world.table.get_subscription(account, id).await.unwrap().is_some(), "nothing is removed while it waits");
    let won = Dispute { status: DisputeStatus::Won, closed_at: Some(erasure_time()), ..open.clone() };
    world.table.write_dispute(&won, Some(&open)).await.unwrap();
    let report = eraser.continue_all_erasures(None).await.unwrap();
    assert_eq!((report.erased, report.waiting.len(), report.failed), (1, 0, 0));
}

/// In this test, the account has more subscriptions than one Query request returns, so the check of the subscriptions
/// must send several requests.
#[tokio::test]
async fn each_subscription_of_a_large_account_is_checked_and_at_most_fifty_are_named() {
    let world = World::new().await;
    let subscription = |n: u128| Subscription {
        id: billing::SubscriptionId::new(Ulid::from_parts(5, n)),
        product_name: "€".repeat(200).parse().unwrap(),
        ..sample_subscription(10, date("2026-02-01"))
    };
    // Each subscription has more than 600 bytes, and a Query request returns at most 1 MB.
    let last = 1_800;
    for n in 0..=last {
        let active = subscription(n);
        let stored = Subscription { status: SubscriptionStatus::Cancelled, next_reminder_on: None, ..active.clone() };
        world.store(if n == last { &active } else { &stored }).await;
    }
    let account = subscription(last).account;
    let refused = async || {
        request_erasure(&world.table, &account, &erasure_action(), erasure_time()).await.unwrap_err().to_string()
    };
    let is_active = |n: u128| format!("the subscription {} is active, not cancelled", subscription(n).id);
    assert_eq!(refused().await, format!("the account cannot be erased: {}", is_active(last)));

    for n in last + 1..last + 60 {
        world.store(&subscription(n)).await;
    }
    let named: Vec<String> = (last..last + 50).map(is_active).collect();
    assert_eq!(refused().await, format!("the account cannot be erased: {}; and more", named.join("; ")));
}

#[tokio::test]
async fn erasure_stops_at_its_deadline_and_later_calls_continue() {
    let (world, orders) = world_with_two_accounts().await;
    let account = "acme".parse().unwrap();
    request_erasure(&world.table, &account, &erasure_action(), erasure_time()).await.unwrap();
    let eraser = Eraser::new(world.table.clone(), Some(orders.clone()), world.clock.clone());
    let mut calls = 0;
    while eraser.continue_all_erasures(Some(world.clock.now())).await.unwrap().erased == 0 {
        calls += 1;
        assert!(calls < 50, "the erasure makes no progress: {:?}", world.table.get_erasure(&account).await.unwrap());
    }
    assert!(matches!(world.table.get_stored_account(&account).await.unwrap(), Some(StoredAccount::Erased(_))));
}
