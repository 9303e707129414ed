//! Simulations without faults: every charge is made on its due date. If a test corrupts the data of a simulation, the
//! checker reports the violated invariant.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use billing::PaymentStatus;
use sandbox::LedgerEntry;
use simulator::{
    Invariant, InvariantResult, SimulationResult, StoredStatus, TableContents, check_invariants, generate_subscribers,
    simulate_without_faults,
};
use testkit::read_test_config;

/// Returns the due date of each month and payment day. The dates are in a file that the script `due_dates.py` has
/// written, so they do not depend on the code under test.
fn read_due_dates() -> HashMap<(String, u32), String> {
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

/// Returns `count` successive months, such as `2026-02`. The first month is `from`.
fn list_months(from: &str, count: usize) -> Vec<String> {
    let (mut year, mut month): (i32, u32) = (from[..4].parse().unwrap(), from[5..7].parse().unwrap());
    let mut months = Vec::new();
    for _ in 0..count {
        months.push(format!("{year}-{month:02}"));
        (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    }
    months
}

/// Simulates `subscriptions` sample subscriptions for `months` months. The first day is `from`.
async fn run_simulation(subscriptions: u32, from: &str, months: u32) -> SimulationResult {
    let config = read_test_config(&[("DUEDAY_SHARDS", "2")]).unwrap();
    simulate_without_faults(config, generate_subscribers(subscriptions), from.parse().unwrap(), months, |_| {})
        .await
        .unwrap()
}

/// Simulates one subscription for each of the 31 payment days.
#[tokio::test]
async fn simulation_charges_31_subscriptions_exactly_on_their_due_dates_for_13_months() {
    let simulated = run_simulation(31, "2027-02-01", 13).await;
    assert!(simulated.do_all_invariants_hold(), "{:#?}", simulated.findings);
    assert_eq!(simulated.to.to_string(), "2028-02-29");
    assert_eq!((simulated.charges, simulated.receipts), (403, 403));

    let dates = read_due_dates();
    let mut charged: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in &simulated.ledger {
        let LedgerEntry::Payment(payment) = entry else { continue };
        assert_eq!(payment.status, PaymentStatus::Succeeded);
        assert_eq!(payment.created_at.date_naive(), payment.request.due_on, "charged on the due date");
        charged.entry(payment.request.subscription.to_string()).or_default().push(payment.request.due_on.to_string());
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
    assert_eq!(days.len(), 31);
    let months = list_months("2027-02", 13);
    for (subscription, day) in days {
        let expected: Vec<String> = months.iter().map(|month| dates[&(month.clone(), day)].clone()).collect();
        assert_eq!(charged[&subscription], expected, "charges of payment day {day}");
        let mut receipts = receipted.remove(&subscription).unwrap();
        receipts.sort();
        assert_eq!(receipts, expected, "receipts of payment day {day}");
    }
}

/// Returns the violated invariants among `results`.
fn violated_invariants(results: &[InvariantResult]) -> Vec<Invariant> {
    results.iter().filter(|result| !result.holds()).map(|result| result.invariant).collect()
}

/// Returns a stored receipt of the due date `due`, in the table of a simulation.
async fn stored_receipt(simulated: &SimulationResult, due: &str) -> HashMap<String, AttributeValue> {
    let is_receipt =
        |item: &HashMap<String, AttributeValue>| item["SK"].as_s().unwrap().starts_with(&format!("REC#{due}#"));
    simulated.table.scan().await.unwrap().into_iter().find(is_receipt).unwrap()
}

async fn delete_item(simulated: &SimulationResult, item: &HashMap<String, AttributeValue>) {
    let delete = simulated.table.client().delete_item().table_name(simulated.table.name());
    delete.key("PK", item["PK"].clone()).key("SK", item["SK"].clone()).send().await.unwrap();
}

/// Compares the table of a simulation with `ledger`, the list of the gateway's payments. Returns the violated
/// invariants.
async fn violated_invariants_with_ledger(simulated: &SimulationResult, ledger: &[LedgerEntry]) -> Vec<Invariant> {
    violated_invariants(&check_invariants(&TableContents::read(&simulated.table, ledger).await.unwrap(), simulated.to))
}

#[tokio::test]
async fn check_reports_exactly_the_invariant_that_corrupted_data_violates() {
    let simulated = run_simulation(3, "2026-01-01", 4).await;
    assert_eq!(violated_invariants_with_ledger(&simulated, &simulated.ledger).await, []);
    assert_eq!(simulated.charges, 12);

    let mut duplicated = simulated.ledger.clone();
    let Some(LedgerEntry::Payment(payment)) = duplicated.first().cloned() else { panic!() };
    let mut second = payment.clone();
    second.id = "pay_again".parse().unwrap();
    second.request.attempt_no += 1;
    second.request.idempotency_key = "another".to_owned();
    duplicated.push(LedgerEntry::Payment(second));
    assert_eq!(violated_invariants_with_ledger(&simulated, &duplicated).await, [Invariant::ChargedOnce]);

    let mut receipt_item = stored_receipt(&simulated, "2026-02-01").await;
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
    delete_item(&simulated, &receipt_item).await;
    assert_eq!(violated_invariants_with_ledger(&simulated, &simulated.ledger).await, [Invariant::ReceiptedAndAdvanced]);
    put(receipt_item.clone()).await;

    let correct_amount = receipt_item.insert("ProcessedAmount".to_owned(), AttributeValue::N("1".to_owned())).unwrap();
    put(receipt_item.clone()).await;
    assert_eq!(violated_invariants_with_ledger(&simulated, &simulated.ledger).await, [Invariant::ReceiptStatesCharge]);
    receipt_item.insert("ProcessedAmount".to_owned(), correct_amount);

    // Removes the receipt and the charge of one month. The due date of the subscription is later than this month, so
    // the checker must report that the month was skipped.
    delete_item(&simulated, &receipt_item).await;
    let payment_id = receipt_item["GatewayPaymentId"].as_s().unwrap().clone();
    let without_payment: Vec<LedgerEntry> = simulated
        .ledger
        .iter()
        .filter(|entry| !matches!(entry, LedgerEntry::Payment(payment) if payment.id.as_str() == payment_id))
        .cloned()
        .collect();
    assert_eq!(without_payment.len(), 11);
    assert_eq!(violated_invariants_with_ledger(&simulated, &without_payment).await, [Invariant::NothingSkipped]);
}

#[tokio::test]
async fn check_reports_wrong_dates_stopped_subscriptions_and_runs_without_end() {
    let simulated = run_simulation(3, "2026-01-01", 2).await;
    let intact = TableContents::read(&simulated.table, &simulated.ledger).await.unwrap();
    let violated_after = |corrupt: &dyn Fn(&mut TableContents)| {
        let mut contents = intact.clone();
        corrupt(&mut contents);
        violated_invariants(&check_invariants(&contents, simulated.to))
    };
    assert_eq!(violated_after(&|contents| contents.subscriptions[0].payment_day += 1), [Invariant::NothingSkipped]);
    assert_eq!(
        violated_after(&|contents| contents.subscriptions[0].first_due -= chrono::TimeDelta::days(31)),
        [Invariant::NothingSkipped]
    );
    assert_eq!(
        violated_after(&|contents| contents.subscriptions[0].status = StoredStatus::Paused),
        [Invariant::StoppedIsInNoIndex]
    );
    assert_eq!(violated_after(&|contents| contents.runs[0].has_ended = false), [Invariant::RunsEnded]);
    assert_eq!(violated_after(&|contents| contents.runs[0].due += 1), [Invariant::RunsAddUp]);
    assert_eq!(violated_after(&|contents| contents.subscriptions[0].next_payment = None), [Invariant::NothingStuck]);
    assert_eq!(
        violated_after(&|contents| contents.unreadable.push("ACC#x SUB#y".to_owned())),
        [Invariant::NothingStuck]
    );
}
