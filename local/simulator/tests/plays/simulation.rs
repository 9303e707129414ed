//! Months in a private table: every charge on its date, and a checker that sees what is wrong.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use billing::PaymentStatus;
use gateways::Entry;
use simulator::{Books, Finding, Invariant, Simulation, StoredStatus, check, population, simulate};
use testkit::config;

/// The due date of each payment day of each month, made independently of the calendar's code.
fn due_dates() -> HashMap<(String, u32), String> {
    let table = include_str!("../../../testkit/tests/story/data/due_dates.csv");
    let mut dates = HashMap::new();
    for line in table.lines().skip(1) {
        let (month, cells) = line.split_once(',').unwrap();
        for (day, date) in (1..).zip(cells.split(',')) {
            dates.insert((month.to_owned(), day), date.to_owned());
        }
    }
    dates
}

fn months(from: &str, count: usize) -> Vec<String> {
    let (mut year, mut month): (i32, u32) = (from[..4].parse().unwrap(), from[5..7].parse().unwrap());
    let mut months = Vec::new();
    for _ in 0..count {
        months.push(format!("{year}-{month:02}"));
        (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    }
    months
}

async fn simulated(subscriptions: u32, from: &str, months: u32) -> Simulation {
    let config = config(&[("DUEDAY_SHARDS", "2")]).unwrap();
    simulate(config, population(subscriptions), (from.parse().unwrap(), months), |_| {}).await.unwrap()
}

#[tokio::test]
async fn simulate_charges_a_thousand_subscriptions_on_exactly_their_dates_for_25_months() {
    let simulated = simulated(1000, "2026-02-01", 25).await;
    assert!(simulated.holds(), "{:#?}", simulated.findings);
    assert_eq!(simulated.to.to_string(), "2028-02-29");
    assert_eq!((simulated.charges, simulated.receipts), (25_000, 25_000));

    let dates = due_dates();
    let mut charged: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in &simulated.ledger {
        let Entry::Payment(made) = entry else { continue };
        assert_eq!(made.status, PaymentStatus::Succeeded);
        assert_eq!(made.created_at.date_naive(), made.request.due_on, "on the day itself");
        charged.entry(made.request.subscription.to_string()).or_default().push(made.request.due_on.to_string());
    }
    let mut receipted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut days = Vec::new();
    for item in simulated.table.scan().await.unwrap() {
        let sk = item["SK"].as_s().unwrap();
        let parts: Vec<&str> = sk.split('#').collect();
        match parts[0] {
            "REC" => receipted.entry(parts[5].to_owned()).or_default().push(parts[1].to_owned()),
            "SUB" => days.push((parts[1].to_owned(), item["PaymentDay"].as_n().unwrap().parse::<u32>().unwrap())),
            _ => {}
        }
    }
    assert_eq!(days.len(), 1000);
    let months = months("2026-02", 25);
    for (subscription, day) in days {
        let expected: Vec<String> = months.iter().map(|month| dates[&(month.clone(), day)].clone()).collect();
        assert_eq!(charged[&subscription], expected, "charges of payment day {day}");
        let mut receipts = receipted.remove(&subscription).unwrap();
        receipts.sort();
        assert_eq!(receipts, expected, "receipts of payment day {day}");
    }
}

/// The invariants that do not hold.
fn broken(findings: &[Finding]) -> Vec<Invariant> {
    findings.iter().filter(|finding| !finding.holds()).map(|finding| finding.invariant).collect()
}

/// The receipt of `due` in the table.
async fn receipt(simulated: &Simulation, due: &str) -> HashMap<String, AttributeValue> {
    let is_it = |item: &HashMap<String, AttributeValue>| item["SK"].as_s().unwrap().starts_with(&format!("REC#{due}#"));
    simulated.table.scan().await.unwrap().into_iter().find(is_it).unwrap()
}

async fn delete(simulated: &Simulation, item: &HashMap<String, AttributeValue>) {
    let delete = simulated.table.client().delete_item().table_name(simulated.table.name());
    delete.key("PK", item["PK"].clone()).key("SK", item["SK"].clone()).send().await.unwrap();
}

async fn findings(simulated: &Simulation, ledger: &[Entry]) -> Vec<Invariant> {
    broken(&check(&Books::read(&simulated.table, ledger).await.unwrap(), simulated.to))
}

#[tokio::test]
async fn check_sees_each_corruption_and_nothing_else() {
    let simulated = simulated(3, "2026-01-01", 4).await;
    assert_eq!(findings(&simulated, &simulated.ledger).await, []);
    assert_eq!(simulated.charges, 12);

    let mut twice = simulated.ledger.clone();
    let Some(Entry::Payment(made)) = twice.first().cloned() else { panic!() };
    let mut again = made.clone();
    again.id = "pay_again".parse().unwrap();
    again.request.attempt_no += 1;
    again.request.idempotency_key = "another".to_owned();
    twice.push(Entry::Payment(again));
    assert_eq!(findings(&simulated, &twice).await, [Invariant::ChargedOnce]);

    let mut lost = receipt(&simulated, "2026-02-01").await;
    let put = async |item: HashMap<String, AttributeValue>| {
        simulated
            .table
            .client()
            .put_item()
            .table_name(simulated.table.name())
            .set_item(Some(item))
            .send()
            .await
            .unwrap();
    };
    delete(&simulated, &lost).await;
    assert_eq!(findings(&simulated, &simulated.ledger).await, [Invariant::ReceiptedAndAdvanced]);
    put(lost.clone()).await;

    let right = lost.insert("ProcessedAmount".to_owned(), AttributeValue::N("1".to_owned())).unwrap();
    put(lost.clone()).await;
    assert_eq!(findings(&simulated, &simulated.ledger).await, [Invariant::ReceiptStatesCharge]);
    lost.insert("ProcessedAmount".to_owned(), right);

    // A month passed over: neither charged nor receipted, and the subscription is beyond it.
    delete(&simulated, &lost).await;
    let payment = lost["GatewayPaymentId"].as_s().unwrap().clone();
    let skipped: Vec<Entry> = simulated
        .ledger
        .iter()
        .filter(|entry| !matches!(entry, Entry::Payment(made) if made.id.as_str() == payment))
        .cloned()
        .collect();
    assert_eq!(skipped.len(), 11);
    assert_eq!(findings(&simulated, &skipped).await, [Invariant::NothingSkipped]);
}

#[tokio::test]
async fn check_sees_a_wrong_date_a_stopped_subscription_and_an_open_run() {
    let simulated = simulated(3, "2026-01-01", 2).await;
    let whole = Books::read(&simulated.table, &simulated.ledger).await.unwrap();
    let broken_in = |corrupt: &dyn Fn(&mut Books)| {
        let mut books = whole.clone();
        corrupt(&mut books);
        broken(&check(&books, simulated.to))
    };
    assert_eq!(broken_in(&|books| books.subscriptions[0].payment_day += 1), [Invariant::NothingSkipped]);
    assert_eq!(
        broken_in(&|books| books.subscriptions[0].first_due -= chrono::TimeDelta::days(31)),
        [Invariant::NothingSkipped]
    );
    assert_eq!(
        broken_in(&|books| books.subscriptions[0].status = StoredStatus::Paused),
        [Invariant::StoppedIsInNoIndex]
    );
    assert_eq!(broken_in(&|books| books.runs[0].is_closed = false), [Invariant::RunsEnded]);
    assert_eq!(broken_in(&|books| books.runs[0].due += 1), [Invariant::RunsAddUp]);
    assert_eq!(broken_in(&|books| books.subscriptions[0].next_payment = None), [Invariant::NothingStuck]);
    assert_eq!(broken_in(&|books| books.unreadable.push("ACC#x SUB#y".to_owned())), [Invariant::NothingStuck]);
}
