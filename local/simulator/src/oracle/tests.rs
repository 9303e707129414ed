//! The oracle sees what is wrong, and that alone.

use super::*;
use crate::customers::ActKind;
use crate::stored::StoredStatus;
use shared::billing::PaymentMethod;
use shared::billing::PaymentStatus;
use shared::gateway::ChargeRequest;

fn who() -> Who {
    ("acme".to_owned(), "01JZXCVBNM0123456789ABCDEF".to_owned())
}

fn morning(day: &str) -> DateTime<Utc> {
    format!("{day}T06:00:00Z").parse().unwrap()
}

fn charge(due: &str, on: &str, no: u32, minor: i64) -> Entry {
    let (account, subscription) = who();
    let card = PaymentMethod { customer: "cus_1".parse().unwrap(), payment_method: "pm_card_visa".parse().unwrap() };
    Entry::Payment(PaymentMade {
        id: format!("pay_{no}").parse().unwrap(),
        request: ChargeRequest {
            table: None,
            idempotency_key: no.to_string(),
            account: account.parse().unwrap(),
            subscription: subscription.parse().unwrap(),
            sku: "gold".parse().unwrap(),
            due_on: due.parse().unwrap(),
            attempt_no: no,
            amount: shared::billing::Money::new(minor, "EUR".parse().unwrap()),
            payment_method: card,
        },
        status: PaymentStatus::Succeeded,
        created_at: morning(on),
    })
}

fn receipt(due: &str, on: &str, no: u32) -> StoredReceipt {
    StoredReceipt {
        who: who(),
        due: due.parse().unwrap(),
        payment: format!("pay_{no}"),
        amount: 1299,
        currency: "EUR".to_owned(),
        at: morning(on),
    }
}

fn act(on: &str, kind: ActKind) -> CustomerAct {
    CustomerAct { at: morning(on) - chrono::TimeDelta::hours(1), who: who(), kind, is_paying: false }
}

/// What is wrong with a subscription of 12.99 on the 31st, first due in January 2028 and now on 30 April.
fn wrong(acts: &[CustomerAct], charges: &[(&str, &str, i64)], receipts: &[(&str, &str)]) -> Vec<String> {
    let ledger: Vec<Entry> = (1..).zip(charges).map(|(no, (due, on, minor))| charge(due, on, no, *minor)).collect();
    let receipts = (1..).zip(receipts).map(|(no, (due, on))| receipt(due, on, no)).collect();
    let stored = StoredSubscription {
        who: who(),
        status: StoredStatus::Active,
        payment_day: 31,
        first_due: "2028-01-31".parse().unwrap(),
        due: "2028-04-30".parse().unwrap(),
        next_payment: None,
        next_reminder: None,
        has_attempt: false,
    };
    let begun = Begun { who: who(), day: 31, due: stored.first_due, price: 1299, card: "pm_card_visa".to_owned() };
    let books = Books { receipts, subscriptions: vec![stored], ..Books::default() };
    let evidence = Evidence {
        begun: &[begun],
        acts,
        ledger: &ledger,
        books: &books,
        policy: &Policy::default(),
        zone: Tz::UTC,
        calm_from: "2028-01-01".parse().unwrap(),
        as_of: "2028-04-01".parse().unwrap(),
    };
    check(&evidence).examples.into_iter().map(|text| text.split_once(": ").unwrap().1.to_owned()).collect()
}

const CHARGES: [(&str, &str, i64); 3] =
    [("2028-01-31", "2028-01-31", 1299), ("2028-02-29", "2028-02-29", 1299), ("2028-03-31", "2028-03-31", 1299)];
const RECEIPTS: [(&str, &str); 3] =
    [("2028-01-31", "2028-01-31"), ("2028-02-29", "2028-02-29"), ("2028-03-31", "2028-03-31")];

#[test]
fn check_accepts_three_months_of_payment_day_31() {
    assert_eq!(wrong(&[], &CHARGES, &RECEIPTS), [""; 0]);
}

#[test]
fn check_sees_a_charge_that_was_not_owed() {
    let with = |index: usize, charge| {
        let mut charges = CHARGES;
        charges[index] = charge;
        wrong(&[], &charges, &RECEIPTS)
    };
    let said = |said: &str| vec![said.to_owned()];
    assert_eq!(with(1, ("2028-02-28", "2028-02-29", 1299)), said("charged for 2028-02-28, and due was 2028-02-29"));
    assert_eq!(
        with(1, ("2028-02-29", "2028-02-28", 1299)),
        said("charged for 2028-02-29 on 2028-02-28, and not before 2028-02-29 was allowed")
    );
    assert_eq!(
        with(1, ("2028-02-29", "2028-02-29", 1300)),
        said("charged 13.00 EUR on 2028-02-29, and agreed were [1299]")
    );
    assert_eq!(
        wrong(&[], &[CHARGES[0], CHARGES[1], CHARGES[2], ("2028-03-31", "2028-04-01", 1299)], &RECEIPTS)[0],
        "charged for 2028-03-31, and due was 2028-04-30",
        "a second time"
    );
}

#[test]
fn check_sees_a_month_that_was_lost() {
    let lost = wrong(&[], &CHARGES[..2], &RECEIPTS[..2]);
    assert!(lost.contains(&"2028-03-31 is owed, and was not charged by 2028-04-01".to_owned()), "{lost:?}");
    let passed_over = wrong(&[], &[CHARGES[0], CHARGES[2]], &[RECEIPTS[0], RECEIPTS[2]]);
    assert!(passed_over[0].contains("charged for 2028-03-31, and due was 2028-02-29"), "{passed_over:?}");
}

#[test]
fn check_sees_a_charge_that_is_late_without_trouble() {
    let (mut charges, mut receipts) = (CHARGES, RECEIPTS);
    (charges[2].1, receipts[2].1) = ("2028-04-01", "2028-04-01");
    let late = wrong(&[], &charges, &receipts);
    assert_eq!(late, ["charged for 2028-03-31 on 2028-04-01, and could have been on 2028-03-31"]);
}

#[test]
fn check_follows_what_a_customer_did() {
    let paused = wrong(&[act("2028-03-15", ActKind::Paused)], &CHARGES, &RECEIPTS);
    assert!(paused.contains(&"charged on 2028-03-31, being Paused".to_owned()), "{paused:?}");
    let ending = wrong(&[act("2028-03-15", ActKind::Ending)], &CHARGES, &RECEIPTS);
    assert!(ending.contains(&"charged for 2028-03-31, which was to be its end".to_owned()), "{ending:?}");
    let moved = wrong(&[act("2028-03-15", ActKind::Day(20))], &CHARGES, &RECEIPTS);
    assert!(moved[0].contains("charged for 2028-03-31, and due was 2028-03-20"), "{moved:?}");
    let dearer = wrong(&[act("2028-01-15", ActKind::Price(1599))], &CHARGES[..], &RECEIPTS);
    for day in ["2028-01-31", "2028-02-29", "2028-03-31"] {
        assert!(dearer.contains(&format!("charged 12.99 EUR on {day}, and agreed were [1599]")), "{dearer:?}");
    }
}
