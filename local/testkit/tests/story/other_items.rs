//! Tests of the audit of the items outside of accounts: each attribute of each kind of item is corrupted, and the audit
//! finds the corruption, or the list [`MISSED`] contains the reason why it does not.

use std::collections::BTreeSet;

use audit::{AuditRecorder, BrokenInvariant, Invariant, check_other_items};
use aws_sdk_dynamodb::types::AttributeValue;
use billing::{
    AcceptedDifference, ActionKind, AuditRecord, ClaimToken, DayReconciliation, DeliveryKey, DifferenceKind, Finding,
    FindingReason, Money, NewAction, Refund, RefundStatus, RequestedAmount, StoredSecret, WebhookEndpoint,
};
use chrono::TimeDelta;
use erasing::request_erasure;
use store::{
    Batch, CardLink, Claim, DailyRefundLimit, Item, Paging, WaitingDelivery, check_other_item, key_of_heartbeat,
};
use ulid::Ulid;

use crate::erasure::{erasure_action, erasure_time, world_with_two_accounts};
use crate::item_corruptions::{AuditedCorruptions, Missed, corruptions, text};
use crate::world::{World, date, new_subscription};

/// The attributes whose corruption the audit may miss.
const MISSED: [Missed; 74] = [
    ("ACTIONS ACTION", "After", "it only matters to a reader of the action log"),
    ("ACTIONS ACTION", "Item", "it only matters to a reader of the action log"),
    ("ACTIONS ACTION", "ProcessedDate", "it only matters to a reader of the action log"),
    ("ACTIONS ACTION", "TTL", "the entry expires a second later"),
    ("AUDIT VIOLATION", "Invariant", "it is only shown"),
    ("AUDIT VIOLATION", "ItemKey", "it is only shown"),
    ("AUDIT VIOLATION", "Problem", "it is only shown"),
    ("AUDITS AUDIT", "Accounts", "it is only shown"),
    ("AUDITS AUDIT", "EndedDate", "without it, the audit is continued"),
    ("AUDITS AUDIT", "Scheduled", "another process continues the audit"),
    ("AUDITS AUDIT", "Subscriptions", "it is only shown"),
    ("AUDITS AUDIT", "Version", "a version only counts writes"),
    ("AUDITS AUDIT", "WithGatewayLists", "it is only shown"),
    ("CARDLINK CARDLINK", "Account", "the owner is looked up: see the test below"),
    ("CARDLINK CARDLINK", "DueDate", "the page shows whether the payment is owed"),
    ("CARDLINK CARDLINK", "TTL", "the link expires a second later"),
    ("CTL CTL", "Charging", "only the merchant knows whether charging is on, and `dueday status` shows it"),
    ("CTL CTL", "CreatedAt", "only a write of the heartbeat matters, not its content"),
    (
        "CTL CTL",
        "DynamodbId",
        "a table without it gets it in the next run, and a table with another one is not charged",
    ),
    ("CTL CTL", "Execution", "the lease ends at its time"),
    ("CTL CTL", "Gateway", "a table without it gets it in the next run"),
    ("CTL CTL", "LatestRunAt", "it only limits how far a clock may be behind"),
    ("CTL CTL", "LeasedUntil", "a lease that ends too late is a violation of its own"),
    ("CTL CTL", "PaymentLimits", "absent limits have their defaults, which `dueday status` shows"),
    ("CTL CTL", "Policy", "a table without a policy is refused"),
    ("CTL CTL", "Shards", "the number of shards only grows"),
    ("ERASURES ERASURE", "ErasureDate", "it only decides when the erasure is overdue"),
    ("ERASURES ERASURE", "Version", "a version only counts writes"),
    ("FINDINGS FND", "Amount", "it is only shown"),
    ("FINDINGS FND", "Blocks", "the finding in the account decides, and its subscription counts it"),
    ("FINDINGS FND", "CreatedDate", "it is only shown"),
    ("FINDINGS FND", "SKU", "it is only shown"),
    ("FINDINGS FND", "Version", "a version only counts writes"),
    ("IDEM IDEM", "Answer", "the stored response is returned"),
    ("IDEM IDEM", "AnswerVersion", "the stored response is returned"),
    ("IDEM IDEM", "RequestHash", "another request with the key is refused"),
    ("IDEM IDEM", "TTL", "the record expires a second later"),
    ("LIMIT LIMIT", "Uses", "one use more or less is allowed"),
    ("NOTICE NOTICE", "NoticeBy", "the lease ends at its time"),
    ("NOTICE NOTICE", "NoticeLease", "a sent notice is not sent again"),
    ("NOTICE NOTICE", "SentDate", "without it, the notice is sent again"),
    ("NOTICE NOTICE", "TTL", "the item expires a second later"),
    ("RECONCILED ACCEPTED", "Reason", "it is only shown"),
    ("RECONCILED DAY", "Version", "a version only counts writes"),
    ("REFUNDED REFUNDED", "Refunded", "support may refund more or less on this day"),
    ("RUN CHARGED", "Charges", "the receipts count"),
    ("RUN CHARGED", "SumEUR", "the receipts count"),
    ("RUN CHARGED", "TTL", "the total expires a second later"),
    ("RUN SHARD", "Deadline", "a run without a time limit counts as running for 12 hours"),
    ("RUN SHARD", "Declined", "it is only shown"),
    ("RUN SHARD", "EndedAt", "it only orders the runs of a day"),
    ("RUN SHARD", "FromPosition", "nothing else determines where a run began; what it left is late"),
    ("RUN SHARD", "NextPosition", "nothing else determines where a run ended; what it left is late"),
    ("RUN SHARD", "Paid", "it is only shown"),
    ("RUN SHARD", "Shards", "additional shards of the records count too"),
    ("RUN SHARD", "StartedAt", "it only orders the runs of a day"),
    ("RUN SHARD", "TTL", "the record expires a second later"),
    ("SETUP SETUP", "Account", "the owner is looked up: see the test below"),
    ("SETUP SETUP", "CreatedDate", "it is only shown"),
    ("SETUP SETUP", "Page", "only the gateway knows its pages"),
    ("SETUP SETUP", "PaymentDetails", "the gateway knows the entered payment method"),
    ("SETUP SETUP", "Url", "only the gateway knows its pages"),
    ("SETUP SETUP", "Version", "a version only counts writes"),
    ("INBOUND INBOUND", "TTL", "the item expires a second later"),
    ("WEBHOOK EVENT", "Attempts", "it only decides when the delivery fails"),
    ("WEBHOOK EVENT", "Body", "only the stored events contain the event"),
    ("WEBHOOK EVENT", "EventType", "only the stored events contain the event"),
    ("WEBHOOK EVENT", "LastAnswer", "it is only shown"),
    ("WEBHOOK EVENT", "NextTry", "the delivery is tried at another time"),
    ("WEBHOOK EVENT", "Version", "a version only counts writes"),
    ("WEBHOOKS ENDPOINT", "CreatedDate", "it is only shown"),
    ("WEBHOOKS ENDPOINT", "Secret", "the check of the endpoints decrypts it"),
    ("WEBHOOKS ENDPOINT", "Url", "only the merchant knows the URL"),
    ("WEBHOOKS ENDPOINT", "Version", "a version only counts writes"),
];

/// The kinds of items outside of accounts.
const KINDS: [&str; 22] = [
    "ACTIONS ACTION",
    "AUDIT VIOLATION",
    "AUDITS AUDIT",
    "CARDLINK CARDLINK",
    "CODE CODE",
    "CTL CTL",
    "ERASURES ERASURE",
    "FINDINGS FND",
    "IDEM IDEM",
    "INBOUND INBOUND",
    "LIMIT LIMIT",
    "NOTICE NOTICE",
    "RECONCILED ACCEPTED",
    "RECONCILED DAY",
    "RECONCILED SEEN",
    "REFUNDED REFUNDED",
    "RUN CHARGED",
    "RUN SHARD",
    "SETUP SETUP",
    "WEBHOOK EVENT",
    "WEBHOOK WAITING",
    "WEBHOOKS ENDPOINT",
];

/// Returns the kind of `item`: the first parts of its keys. Processed inbound events have an old prefix.
fn kind_of(item: &Item) -> String {
    let first = |name| match text(item, name).split_once('#') {
        _ if text(item, name).starts_with("TOLD#") => "INBOUND",
        Some((first, _)) => first,
        None => text(item, name),
    };
    format!("{} {}", first("PK"), first("SK"))
}

/// Stores one item of each kind that the accounts of [`world_with_two_accounts`] do not need.
async fn store_other_items(world: &World) {
    let (table, now) = (&world.table, erasure_time());
    let claim = Claim { token: ClaimToken(Ulid::from_parts(9, 9)), now, leased_until: now + TimeDelta::minutes(5) };
    table.claim_notice("event-1", claim).await.unwrap();
    table.finish_notice("event-1", claim.token, now).await.unwrap();
    table.mark_inbound_event_processed("stripe:evt_1", now).await.unwrap();
    table.acquire_execution_lease(Batch::Payments, "x-1", now, now + TimeDelta::hours(1), Some(4)).await.unwrap();
    let mut recorder = AuditRecorder::begin(table, AuditRecord::new(Ulid::from_parts(7, 7), false, now)).await.unwrap();
    let (key, what) = ("ACC#acme".to_owned(), "it cannot be read".to_owned());
    recorder.add_at_end(vec![BrokenInvariant { invariant: Invariant::Readable, key, what }]);
    recorder.end(now).await.unwrap();
    let day = DayReconciliation::new(date("2026-04-11"), now);
    table.create_reconciliation(&day).await.unwrap();
    table.put_seen_payments(&day, &[1, 2]).await.unwrap();
    let accepted = AcceptedDifference {
        on: day.on,
        kind: DifferenceKind::PaidTwice,
        id: "pi_1".to_owned(),
        reason: "refunded".parse().unwrap(),
        at: now,
    };
    let action = |kind| NewAction { kind, ..erasure_action() };
    table.accept_difference(&accepted, &action(ActionKind::AcceptDifference)).await.unwrap();
    let (url, secret) = ("https://example.com/hook".parse().unwrap(), StoredSecret::Encrypted("v1.1.x".to_owned()));
    let endpoint = WebhookEndpoint::new(Ulid::from_parts(8, 8), url, secret, now);
    table.create_webhook_endpoint(&endpoint, None).await.unwrap();
    let delivery = DeliveryKey { endpoint: endpoint.id, event: "event-1".to_owned() };
    table
        .add_waiting_delivery(&WaitingDelivery {
            delivery,
            next_try_at: now + TimeDelta::hours(1),
            id: Ulid::from_parts(8, 9),
        })
        .await
        .unwrap();
    let refunded = DailyRefundLimit { on: now.date_naive(), most: Money::new(500, "EUR".parse().unwrap()) };
    let receipts = table.get_receipts_by_account(&"acme".parse().unwrap(), &Paging::all(), now).await.unwrap();
    let receipt = receipts.items.into_iter().find(|receipt| receipt.refunded.minor() == 0).unwrap();
    let refund = Refund {
        id: Ulid::from_parts(8, 10),
        account: receipt.account.clone(),
        receipt: receipt.id(),
        payment: receipt.payment.clone(),
        amount: refunded.most,
        requested: Some(RequestedAmount::Exact),
        status: RefundStatus::Pending,
        gateway_refund: None,
        code: None,
        created_at: now,
        leased_until: now,
        settled_at: None,
        expires: table.refund_expiry(&receipt, now),
        version: 1,
    };
    assert!(table.reserve_refund(&refund, &receipt, None, Some(&refunded)).await.unwrap());
    let subscription = new_subscription(20, "2026-04-01");
    world.store(&subscription).await;
    let finding = Finding {
        account: subscription.account.clone(),
        subscription: subscription.id,
        sku: subscription.sku.clone(),
        due_on: date("2026-04-20"),
        payment: "pay_1".parse().unwrap(),
        amount: subscription.price,
        reason: FindingReason::PaidTwice,
        blocks: false,
        found_at: now,
        resolved: None,
        version: 1,
    };
    table.put_finding(world.load(&subscription).await, |_| finding.clone()).await.unwrap();
    request_erasure(table, &"rival-1".parse().unwrap(), &erasure_action(), now).await.unwrap();
    let mut heartbeat = key_of_heartbeat().attributes();
    heartbeat.insert("CreatedAt".to_owned(), AttributeValue::S(now.to_rfc3339()));
    table.client().put_item().table_name(table.name()).set_item(Some(heartbeat)).send().await.unwrap();
}

/// Returns one item of each kind outside of accounts, and further ones.
async fn other_items() -> Vec<Item> {
    let (world, _) = world_with_two_accounts().await;
    store_other_items(&world).await;
    let items = world.table.scan().await.unwrap();
    items.into_iter().filter(|item| !text(item, "PK").starts_with("ACC#")).collect()
}

#[tokio::test]
async fn audit_finds_each_corrupted_attribute_outside_of_accounts_or_the_reason_is_listed() {
    let (items, now) = (other_items().await, erasure_time());
    let kinds: BTreeSet<String> = items.iter().map(kind_of).collect();
    assert_eq!(kinds.iter().collect::<Vec<_>>(), KINDS.iter().collect::<Vec<_>>());
    for item in &items {
        assert_eq!(check_other_item(item, now), [], "{item:?}");
    }
    let mut audited = AuditedCorruptions::default();
    for item in &items {
        for name in item.keys().filter(|name| !["PK", "SK"].contains(&name.as_str())) {
            for (corruption, corrupted) in corruptions(item, name) {
                let is_found = !check_other_item(&corrupted, now).is_empty();
                audited.add(&kind_of(item), name, corruption, is_found);
            }
        }
    }
    audited.assert_missed(&MISSED);
    assert!(audited.found > 200, "{}", audited.found);
}

#[tokio::test]
async fn audit_finds_items_that_expire_although_they_must_not_and_items_under_the_key_of_another() {
    let (items, now) = (other_items().await, erasure_time());
    for item in &items {
        let with = |name: &str, value| {
            let mut item = item.clone();
            item.insert(name.to_owned(), value);
            check_other_item(&item, now)
        };
        let far = now + TimeDelta::days(3_660);
        let far = with("TTL", AttributeValue::N(far.timestamp().to_string()));
        assert!(
            kind_of(item) == "CTL CTL" && text(item, "PK") == "CTL#heartbeat" || !far.is_empty(),
            "TTL of {item:?}"
        );
        let copied =
            with("PK", AttributeValue::S(text(item, "PK").replace("2026-", "2025-").replace("CODE#", "CODE#X")));
        let is_determined_by_content =
            ["RUN SHARD", "CODE CODE", "RECONCILED ACCEPTED"].contains(&kind_of(item).as_str());
        assert!(!is_determined_by_content || !copied.is_empty(), "copy of {item:?}");
        let unknown = with("PK", AttributeValue::S("UNKNOWN#1".to_owned()));
        assert_eq!(unknown[0].what, "its key has an unknown prefix", "{item:?}");
    }
}

#[tokio::test]
async fn card_link_of_another_customer_and_unreadable_items_are_violations_that_stop_nothing() {
    let (world, _) = world_with_two_accounts().await;
    store_other_items(&world).await;
    let now = erasure_time();
    let violations = async || {
        let mut partitions = world.table.account_partitions().with_other_items_checked(now);
        while partitions.next().await.unwrap().is_some() {}
        check_other_items(&world.table, partitions.take_checked_items()).await.unwrap()
    };
    assert_eq!(violations().await, []);
    let acme = world.table.get_subscriptions_by_account(&"acme".parse().unwrap(), &store::Paging::all()).await.unwrap();
    let link =
        CardLink { account: "rival-1".parse().unwrap(), subscription: acme.items[0].id, due_on: date("2026-04-10") };
    world.table.put_card_link(Ulid::from_parts(5, 5), &link, now).await.unwrap();
    let unowned = CardLink { account: "unknown-1".parse().unwrap(), ..link };
    world.table.put_card_link(Ulid::from_parts(6, 6), &unowned, now).await.unwrap();
    for mut item in world.table.scan().await.unwrap() {
        if kind_of(&item) == "NOTICE NOTICE" || kind_of(&item) == "WEBHOOK EVENT" {
            item.insert("SentDate".to_owned(), AttributeValue::N("1".to_owned()));
            let put = world.table.client().put_item().table_name(world.table.name());
            put.set_item(Some(item)).send().await.unwrap();
        }
    }
    // The finding of the account is lost, and its copy in the list of open findings stays.
    for item in world.table.scan().await.unwrap() {
        if text(&item, "PK").starts_with("ACC#") && text(&item, "SK").starts_with("FND#") {
            let delete = world.table.client().delete_item().table_name(world.table.name());
            let delete = delete.key("PK", item["PK"].clone()).key("SK", item["SK"].clone());
            delete.send().await.unwrap();
        }
    }
    let found = violations().await;
    let count = |invariant, what: &str| {
        found.iter().filter(|violation| violation.invariant == invariant && violation.what.contains(what)).count()
    };
    assert_eq!(count(Invariant::Owned, "of rival-1, which does not exist"), 1, "{found:#?}");
    assert_eq!(count(Invariant::Owned, "it names the account unknown-1, which does not exist"), 1, "{found:#?}");
    assert_eq!(count(Invariant::Readable, "NOTICE#event-1"), 1, "{found:#?}");
    assert_eq!(count(Invariant::Consistent, "unexpected: SentDate"), 4, "{found:#?}");
    let lost = "it lists an open finding that the account does not have";
    assert_eq!(count(Invariant::Consistent, lost), 1, "{found:#?}");
    assert_eq!(found.len(), 8, "{found:#?}");
}
