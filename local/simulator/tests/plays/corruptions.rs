//! Corrupts each attribute of each kind of item of a simulated table, and audits the table. The audit must find the
//! corruption, or the list [`HARMLESS`] must say why it does not.

use std::collections::{BTreeMap, BTreeSet};

use audit::InvariantChecker;
use billing::{
    Dispute, DisputeStatus, Finding, FindingReason, LeadDays, Receipt, Refund, RefundStatus, RequestedAmount,
    ResolvedFinding,
};
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use dynamo::Entity as _;
use serde_json::{Value, json};
use simulator::{FaultConfig, GatewayKind, audit_items, population, simulate_with_faults};
use store::AccountPartition;
use testkit::config;
use ulid::Ulid;

/// The items of each kind that are corrupted in the same way. A corruption counts as found only if it is found in all.
const SAMPLES: usize = 3;

/// The attributes whose corruption the audit does not find in every item, each with the kind of item and the reason.
const HARMLESS: [(&str, &str, &str); 61] = [
    ("SUB", "PaymentDay", "in a short month, several payment days give the same due date"),
    ("SUB", "ReminderLease", "a reminder that is claimed twice is sent twice"),
    ("DSP", "Amount", "`dueday audit --gateway-list` finds it"),
    ("DSP", "CreatedDate", "it only decides which months a won dispute waives"),
    ("DSP", "PaymentMethod", "nothing else in the table determines it"),
    ("DSP", "ProcessedDate", "it only decides when collection stops after a lost dispute"),
    ("DSP", "Reason", "it is only shown"),
    ("DSP", "Version", "a version only counts writes"),
    ("FND", "Amount", "it is only shown"),
    ("FND", "Blocks", "a resolved finding blocks nothing"),
    ("FND", "CreatedDate", "it is only shown"),
    ("FND", "ProcessedDate", "it is only shown"),
    ("FND", "Resolution", "it is only shown"),
    ("FND", "SKU", "it is only shown"),
    ("FND", "Version", "a version only counts writes"),
    ("REC", "RefundedDate", "it is only shown"),
    ("RFD", "CreatedDate", "it is only shown"),
    ("RFD", "GatewayRefundId", "`dueday audit --gateway-list` finds it"),
    ("RFD", "Lease", "a settled refund is not leased again"),
    ("RFD", "ProcessedDate", "it is only shown"),
    ("RFD", "RequestedAmount", "it only recognizes a repeated request"),
    ("RFD", "TTL", "the refund expires a second earlier or later"),
    ("RFD", "Version", "a version only counts writes"),
    ("ACC", "CreatedDate", "it is only shown"),
    ("ACC", "Email", "nothing else in the table determines it"),
    ("ACC", "Name", "nothing else in the table determines it"),
    ("ACC", "Version", "a version only counts writes"),
    ("ATT", "Code", "it is only shown"),
    ("ATT", "Counted", "it only explains the date of the next try"),
    ("ATT", "GatewayCustomerId", "it only names a customer whose payments a look-up lists"),
    ("ATT", "Hard", "it is only shown"),
    ("ATT", "PaymentAmount", "it is only shown"),
    ("ATT", "TTL", "the record expires a second earlier or later"),
    ("REC", "Card", "it is only shown"),
    ("REC", "GatewayCustomerId", "`dueday audit --gateway-list` finds it"),
    ("REC", "GatewayPaymentId", "`dueday audit --gateway-list` finds it"),
    ("REC", "ProcessedAmount", "`dueday audit --gateway-list` finds it"),
    ("REC", "ProductName", "it is only shown"),
    ("REC", "TTL", "the record expires a second earlier or later"),
    ("WAV", "ProcessedDate", "it is only shown"),
    ("WAV", "TTL", "the record expires a second earlier or later"),
    (
        "SUB",
        "AttemptSeq",
        "a number that is too high is not used again; a number that is too low after records have expired finds the earlier payment at the gateway",
    ),
    ("SUB", "AttemptAt", "an earlier time only makes the look-up list more payments"),
    ("SUB", "AttemptLease", "a take-over that is too early repeats the same idempotency key"),
    ("SUB", "CreatedDate", "it is only shown"),
    ("SUB", "FailedAttempts", "the retry schedule begins at another gap"),
    ("SUB", "FirstDeclinedDate", "it only limits the time of the retries"),
    ("SUB", "FirstDueDate", "it only limits the months that are audited"),
    ("SUB", "LastReminderDate", "it is only shown"),
    ("SUB", "NextReminderDate", "the reminder is sent earlier"),
    ("SUB", "NextPaymentDate", "the retry or the take-over is on another day"),
    ("SUB", "PaymentAmount", "nothing else in the table determines it"),
    ("SUB", "PaymentDetailsDate", "it only orders two changes of the payment method"),
    ("SUB", "ProductName", "nothing else in the table determines it"),
    ("SUB", "RejectedCustomer", "it only names a customer whose payments a look-up lists"),
    ("SUB", "Rejections", "the next rejection counts as a decline earlier or later"),
    ("SUB", "RemindedFor", "a reminder is sent again, or was not needed"),
    ("SUB", "Shard", "a run processes every shard"),
    ("SUB", "UnpaidSince", "only its presence has an effect"),
    ("SUB", "Version", "a version only counts writes"),
    ("SUB", "WaitingTerms", "nothing else in the table determines it"),
];

/// A change of an item: its name, and the item after the change.
type Corruption = (String, Value);

/// Returns the kind of an item of an account; for a subscription with its status.
fn kind(item: &Value) -> Option<String> {
    let sk = item["SK"]["S"].as_str()?;
    let prefix = sk.split('#').next()?;
    item["PK"]["S"].as_str()?.strip_prefix("ACC#")?;
    Some(match (prefix, item["Status"]["S"].as_str()) {
        ("SUB", Some(_)) if item.get("AttemptNo").is_some() => "SUB with open attempt".to_owned(),
        ("SUB", Some(status)) => format!("SUB {status}"),
        _ => prefix.to_owned(),
    })
}

/// Returns the corruptions of the attribute `name` of `item`.
fn corruptions(item: &Value, name: &str) -> Vec<Corruption> {
    let mut all = Vec::new();
    let mut add = |what: &str, value: Option<Value>| {
        let mut corrupted = item.clone();
        match value {
            Some(value) => corrupted[name] = value,
            None => drop(corrupted.as_object_mut().unwrap().remove(name)),
        }
        all.push((format!("{name} {what}"), corrupted));
    };
    add("removed", None);
    let (descriptor, value) = item[name].as_object().unwrap().iter().next().unwrap();
    match (descriptor.as_str(), value.as_str()) {
        ("N", Some(number)) => {
            let number: i64 = number.parse().unwrap();
            add("increased", Some(json!({"N": (number + 1).to_string()})));
            add("decreased", Some(json!({"N": (number - 1).to_string()})));
        }
        ("S", Some(text)) => {
            if let Ok(date) = text.parse::<NaiveDate>() {
                for days in [1, 40] {
                    add(&format!("{days} days later"), Some(json!({"S": date.checked_add_days(Days::new(days))})));
                    add(&format!("{days} days earlier"), Some(json!({"S": date.checked_sub_days(Days::new(days))})));
                }
            } else if let Ok(at) = text.parse::<DateTime<Utc>>() {
                let shift =
                    |days| json!({"S": (at + TimeDelta::days(days)).format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()});
                add("400 days later", Some(shift(400)));
                add("400 days earlier", Some(shift(-400)));
            } else {
                add("with another text", Some(json!({"S": format!("{text}-x")})));
            }
            add("of another type", Some(json!({"N": "1"})));
        }
        ("BOOL", _) => add("inverted", Some(json!({"BOOL": value != &json!(true)}))),
        ("M", _) => add("without content", Some(json!({"M": {}}))),
        ("L", _) => add("with a wrong element", Some(json!({"L": [{"M": {}}]}))),
        _ => {}
    }
    all
}

/// Returns a refund, a won dispute and a resolved finding of the payment in the item `receipt`, and the receipt with the
/// refunded amount. Simulated customers do not ask for refunds.
fn items_after_refund(receipt: &Value) -> [Value; 4] {
    let key = receipt["PK"]["S"].as_str().unwrap().to_owned();
    let item: serde_dynamo::Item = serde_json::from_value(receipt.clone()).unwrap();
    let paid = AccountPartition::from_items(key, [item.into()]).receipts.remove(0);
    let Receipt { account, subscription, sku, due_on, amount, payment, processed_at: at, .. } = paid.clone();
    let refund = Refund {
        id: Ulid::from_parts(1, 1),
        account: account.clone(),
        receipt: paid.id(),
        payment: payment.clone(),
        amount,
        requested: Some(RequestedAmount::Exact),
        status: RefundStatus::Succeeded,
        gateway_refund: Some("re_1".parse().unwrap()),
        code: None,
        created_at: at,
        leased_until: at,
        settled_at: Some(at),
        expires: receipt["TTL"]["N"].as_str().unwrap().parse().unwrap(),
        version: 2,
    };
    let dispute = Dispute {
        id: "dp_1".parse().unwrap(),
        account: account.clone(),
        receipt: paid.id(),
        payment: payment.clone(),
        payment_method: "pm_disputed".parse().unwrap(),
        amount,
        reason: "fraudulent".to_owned(),
        status: DisputeStatus::Won,
        opened_at: at,
        closed_at: Some(at),
        version: 2,
    };
    let resolved = Some(ResolvedFinding { at, reason: "refunded".to_owned() });
    let (reason, payment) = (FindingReason::PaidTwice, "pay_again".parse().unwrap());
    let finding = Finding {
        account,
        subscription,
        sku,
        due_on,
        payment,
        amount,
        reason,
        blocks: false,
        found_at: at,
        resolved,
        version: 2,
    };
    let mut refunded = receipt.clone();
    refunded["RefundedAmount"] = json!({"N": amount.minor().to_string()});
    refunded["RefundedDate"] = refunded["ProcessedDate"].clone();
    let to_json = |item| serde_json::to_value(serde_dynamo::Item::from(item)).unwrap();
    [to_json(refund.to_item()), to_json(dispute.to_item()), to_json(finding.to_item()), refunded]
}

/// Simulates three months with faults. Returns the items of the table, and their checker.
fn simulated_items(seed: u64) -> (InvariantChecker, Vec<Value>) {
    let config = config(&[("DUEDAY_SHARDS", "4")]).unwrap();
    let (lease, from) = (config.charging.lease, "2027-12-01".parse().unwrap());
    let faults = FaultConfig { rate: 0.05, seed };
    let result =
        simulate_with_faults(config, population(60), (from, 3), (faults, GatewayKind::Stripe), |_| {}).unwrap();
    assert!(result.violations.is_empty(), "{:?}", result.violations);
    let now = result.to.and_hms_opt(23, 0, 0).unwrap().and_utc();
    let (records_kept, lead) = (TimeDelta::days(190), LeadDays::default());
    let checker = InvariantChecker { shards: 4, today: result.to, now, records_kept, retry_days: 7, lease, lead };
    let mut items = result.records.items;
    for at in 0..items.len() {
        if kind(&items[at]).as_deref() == Some("REC") && items.len() - at > SAMPLES {
            let [refund, dispute, finding, refunded] = items_after_refund(&items[at]);
            items[at] = refunded;
            items.extend([refund, dispute, finding]);
            break;
        }
    }
    (checker, items)
}

/// The invariants that a corruption violates in each sampled item, for each kind of item and each corruption.
type Found = BTreeMap<(String, String), Vec<BTreeSet<String>>>;

/// Corrupts the items of one simulated table, one attribute at a time, and adds what the audit finds to `found`.
fn corrupt_each_attribute(checker: InvariantChecker, items: &[Value], found: &mut Found) {
    assert_eq!(audit_items(checker, items.iter()), [] as [String; 0]);
    let mut partitions: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    items.iter().for_each(|item| partitions.entry(item["PK"]["S"].as_str().unwrap()).or_default().push(item));
    let settings = partitions["CTL#settings"][0];
    for item in items {
        let Some(kind) = kind(item) else { continue };
        for name in item.as_object().unwrap().keys().filter(|name| !["PK", "SK"].contains(&name.as_str())) {
            for (what, corrupted) in corruptions(item, name) {
                let samples = found.entry((kind.clone(), what)).or_default();
                if samples.len() == SAMPLES {
                    continue;
                }
                let partition = partitions[item["PK"]["S"].as_str().unwrap()].iter().copied();
                let others = partition.filter(|other| other["SK"] != item["SK"]);
                let violations = audit_items(checker, others.chain([&corrupted, settings]));
                samples.push(violations.iter().map(|text| text.split(' ').nth(1).unwrap().to_owned()).collect());
            }
        }
    }
}

#[test]
fn audit_finds_corrupted_attributes_or_they_are_listed_as_harmless() {
    let mut found = Found::new();
    // One of these simulations ends with open attempts, the other with rejected ones.
    for seed in [5, 12] {
        let (checker, items) = simulated_items(seed);
        corrupt_each_attribute(checker, &items, &mut found);
    }
    let kinds: BTreeSet<&str> = found.keys().map(|(kind, _)| kind.as_str()).collect();
    let expected = [
        "ACC",
        "ATT",
        "DSP",
        "FND",
        "REC",
        "RFD",
        "SUB active",
        "SUB cancelled",
        "SUB past_due",
        "SUB paused",
        "SUB unpaid",
        "SUB with open attempt",
        "WAV",
    ];
    assert_eq!(kinds, BTreeSet::from(expected));
    let (mut found_count, mut unlisted, mut table) = (0, Vec::new(), String::new());
    let mut unused: BTreeSet<_> = HARMLESS.iter().map(|(kind, name, _)| (*kind, *name)).collect();
    for ((kind, what), samples) in &found {
        let (prefix, name) = (kind.split(' ').next().unwrap(), what.split(' ').next().unwrap());
        let listed = HARMLESS.iter().find(|(of, attribute, _)| *of == prefix && *attribute == name);
        let is_found = samples.iter().all(|invariants| !invariants.is_empty());
        let result = match listed {
            _ if is_found => {
                found_count += 1;
                samples.iter().flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
            }
            Some((of, attribute, reason)) => {
                unused.remove(&(*of, *attribute));
                format!("not always found: {reason}")
            }
            None => {
                unlisted.push(format!("{kind}: {what} {samples:?}"));
                continue;
            }
        };
        table += &format!("{kind:22} {what:42} {result}\n");
    }
    assert!(unlisted.is_empty(), "{} corruptions are not found:\n{}", unlisted.len(), unlisted.join("\n"));
    assert!(unused.is_empty(), "these corruptions are always found: {unused:?}");
    assert!(found_count >= 60, "{found_count} of {}", found.len());
    insta::assert_snapshot!(table);
}
