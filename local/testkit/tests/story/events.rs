//! What is told of a change, and what is not; and that what is told is as its schema says.

use std::collections::BTreeSet;
use std::path::PathBuf;

use billing::CloudEvent;
use billing::{
    Account, Attempt, AttemptEnd, AttemptRecord, Dispute, DisputeStatus, EventType, Image, MailStatus, Money,
    NOT_ASKED, Period, Receipt, Refund, RefundStatus, ReminderClaim, Status, Subscription, Terms, Token, WaivedPeriod,
    WaivedReason, events,
};
use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;
use strum::IntoEnumIterator as _;
use testkit::sample;
use ulid::Ulid;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn at() -> DateTime<Utc> {
    "2028-01-31T06:00:00.123Z".parse().unwrap()
}

fn period(text: &str) -> Period {
    text.parse().unwrap()
}

/// Due on 31 January 2028.
fn active() -> Subscription {
    let begun = sample::subscription(31, date("2028-01-02"));
    Subscription { email: Some("desk@acme.example.com".parse().unwrap()), ..begun }
}

fn with(set: impl FnOnce(&mut Subscription)) -> Subscription {
    let mut subscription = active();
    set(&mut subscription);
    subscription
}

fn attempt(of: &Subscription) -> Attempt {
    Attempt {
        table: Some(Ulid::from_parts(1, 1)),
        no: 1,
        due_on: of.due_on,
        amount: of.price,
        payment_method: of.payment_method.clone(),
        claimed_at: at(),
        leased_until: at(),
        held_by: Token(Ulid::from_parts(2, 2)),
    }
}

fn receipt() -> Receipt {
    let Subscription { account, id, sku, product_name, email, due_on, price, .. } = active();
    let payment = "pay_4711".parse().unwrap();
    let refunded = Money::new(0, price.currency());
    Receipt {
        account,
        subscription: id,
        sku,
        product_name,
        email,
        due_on,
        amount: price,
        payment,
        customer: None,
        card: None,
        processed_at: at(),
        refunded,
        reversal: None,
    }
}

fn refund(status: RefundStatus) -> Image {
    let paid = receipt();
    Image::Refund(Refund {
        id: Ulid::from_parts(3, 3),
        account: paid.account.clone(),
        receipt: paid.id(),
        payment: paid.payment.clone(),
        amount: paid.amount,
        requested: None,
        status,
        gateway_refund: None,
        code: None,
        created_at: at(),
        leased_until: at(),
        settled_at: Some(at()),
        expires: 0,
        version: 1,
    })
}

/// A refund that the gateway refused before it began.
fn not_asked() -> Image {
    match refund(RefundStatus::Failed) {
        Image::Refund(refund) => Image::Refund(Refund { code: Some(NOT_ASKED.to_owned()), ..refund }),
        other => other,
    }
}

fn dispute(status: DisputeStatus) -> Image {
    let paid = receipt();
    Image::Dispute(Dispute {
        id: "dp_4711".parse().unwrap(),
        account: paid.account.clone(),
        receipt: paid.id(),
        payment: paid.payment.clone(),
        payment_method: "pm_1".parse().unwrap(),
        amount: paid.amount,
        reason: "fraudulent".to_owned(),
        status,
        opened_at: at(),
        closed_at: Some(at()),
        version: 1,
    })
}

fn record(outcome: AttemptEnd) -> AttemptRecord {
    let Subscription { account, id, due_on, price, .. } = active();
    let code = "insufficient_funds".to_owned();
    AttemptRecord {
        account,
        subscription: id,
        due_on,
        attempt_no: 3,
        amount: price,
        customer: None,
        outcome,
        code,
        hard: false,
        processed_at: at(),
    }
}

fn waived() -> WaivedPeriod {
    let Subscription { account, id, due_on, .. } = active();
    WaivedPeriod { account, subscription: id, due_on, reason: WaivedReason::Paused, waived_at: at() }
}

fn subscription(of: Subscription) -> Image {
    Image::Subscription(Box::new(of))
}

type Types = &'static [&'static str];
type Change = (&'static str, Option<Image>, Option<Image>, Types);

/// Changes, and the types of the events that tell of them.
fn changes() -> Vec<Change> {
    let account = sample::account();
    let renamed = Account { name: "Acme, now Ltd".parse().unwrap(), version: 2, ..account.clone() };
    let bounced = Account { mail_status: MailStatus::Bounced, version: 2, ..account.clone() };
    let of = |old: Subscription, new: Subscription| {
        let version = old.version + 1;
        (Some(subscription(old)), Some(subscription(Subscription { version, ..new })))
    };
    let changed = |name, set: fn(&mut Subscription), told: Types| {
        let (old, new) = of(active(), with(set));
        (name, old, new, told)
    };
    let went = |name, from: fn(&mut Subscription), to: fn(&mut Subscription), told: Types| {
        let (old, new) = of(with(from), with(to));
        (name, old, new, told)
    };
    let waiting: fn(&mut Subscription) = |s| {
        let price = s.price.currency().price(1_599).unwrap();
        s.waiting_terms = vec![Terms { from: period("2028-02"), payment_day: s.payment_day, price }];
    };
    vec![
        ("an account is created", None, Some(Image::Account(account.clone())), &["account.created"]),
        ("it is renamed", Some(Image::Account(account.clone())), Some(Image::Account(renamed)), &["account.changed"]),
        ("a mail bounced", Some(Image::Account(account.clone())), Some(Image::Account(bounced)), &["account.changed"]),
        ("it is erased", Some(Image::Account(account)), None, &["account.erased"]),
        ("a refund is asked for", None, Some(refund(RefundStatus::Pending)), &[]),
        ("it was refused before it began", Some(refund(RefundStatus::Pending)), Some(not_asked()), &[]),
        ("it is asked for again", Some(not_asked()), Some(refund(RefundStatus::Pending)), &[]),
        (
            "it succeeds",
            Some(refund(RefundStatus::Pending)),
            Some(refund(RefundStatus::Succeeded)),
            &["payment.refunded"],
        ),
        (
            "it fails",
            Some(refund(RefundStatus::Pending)),
            Some(refund(RefundStatus::Failed)),
            &["payment.refund_failed"],
        ),
        (
            "it comes back from the bank",
            Some(refund(RefundStatus::Succeeded)),
            Some(refund(RefundStatus::Failed)),
            &["payment.refund_failed"],
        ),
        ("a payment is disputed", None, Some(dispute(DisputeStatus::Open)), &["payment.disputed"]),
        (
            "the dispute is won",
            Some(dispute(DisputeStatus::Open)),
            Some(dispute(DisputeStatus::Won)),
            &["payment.dispute_closed"],
        ),
        (
            "it is heard of when it is lost",
            None,
            Some(dispute(DisputeStatus::Lost)),
            &["payment.disputed", "payment.dispute_closed", "payment.reversed"],
        ),
        ("the bank asks about a payment", None, Some(dispute(DisputeStatus::Inquiry)), &["payment.disputed"]),
        (
            "the inquiry becomes a dispute",
            Some(dispute(DisputeStatus::Inquiry)),
            Some(dispute(DisputeStatus::Open)),
            &["payment.disputed"],
        ),
        (
            "the inquiry is closed",
            Some(dispute(DisputeStatus::Inquiry)),
            Some(dispute(DisputeStatus::Won)),
            &["payment.dispute_closed"],
        ),
        ("a debit fails after it succeeded", None, Some(dispute(DisputeStatus::Returned)), &["payment.reversed"]),
        ("it is lost still", Some(dispute(DisputeStatus::Lost)), Some(dispute(DisputeStatus::Lost)), &[]),
        ("it has succeeded before", Some(refund(RefundStatus::Succeeded)), Some(refund(RefundStatus::Succeeded)), &[]),
        ("a subscription is created", None, Some(subscription(active())), &["subscription.created"]),
        changed("another address", |s| s.email = None, &["subscription.changed"]),
        changed(
            "another card",
            |s| s.payment_method.payment_method = "pm_2".parse().unwrap(),
            &["subscription.changed"],
        ),
        changed(
            "another price from now on",
            |s| s.price = s.price.currency().price(1_599).unwrap(),
            &["subscription.changed"],
        ),
        changed("another price from next month on", waiting, &["subscription.changed"]),
        changed("another day", |s| s.due_on = date("2028-01-20"), &["subscription.changed"]),
        changed("reminded", |s| s.reminded_for = Some(s.due_on), &["subscription.reminded"]),
        changed("paused", |s| s.status = Status::Paused, &["subscription.paused"]),
        changed("to end", |s| s.cancel_from = Some(period("2028-03")), &["subscription.ending"]),
        went("not to end", |s| s.cancel_from = Some(period("2028-03")), |_| {}, &["subscription.ending"]),
        went("resumed", |s| s.status = Status::Paused, |_| {}, &["subscription.resumed"]),
        changed("declined", |s| (s.status, s.failed_attempts) = (Status::PastDue, 1), &["subscription.past_due"]),
        went(
            "declined again",
            |s| (s.status, s.failed_attempts) = (Status::PastDue, 1),
            |s| (s.status, s.failed_attempts) = (Status::PastDue, 2),
            &["subscription.past_due"],
        ),
        went(
            "given up",
            |s| (s.status, s.failed_attempts) = (Status::PastDue, 4),
            |s| (s.status, s.failed_attempts) = (Status::Unpaid, 5),
            &["subscription.unpaid"],
        ),
        went(
            "a new card for what is unpaid",
            |s| s.status = Status::Unpaid,
            |s| {
                s.status = Status::PastDue;
                s.payment_method.payment_method = "pm_2".parse().unwrap();
            },
            &["subscription.changed", "subscription.revived"],
        ),
        went("paid at last", |s| s.status = Status::PastDue, |_| {}, &["subscription.revived"]),
        changed(
            "cancelled",
            |s| (s.status, s.cancel_from) = (Status::Cancelled, Some(period("2028-01"))),
            &["subscription.cancelled"],
        ),
        ("a receipt", None, Some(Image::Receipt(receipt())), &["payment.succeeded"]),
        ("its expiry", Some(Image::Receipt(receipt())), None, &["receipt.expired"]),
        ("a decline", None, Some(Image::Attempt(record(AttemptEnd::Declined))), &["payment.declined"]),
        ("a rejection", None, Some(Image::Attempt(record(AttemptEnd::Rejected))), &["payment.rejected"]),
        ("a month waived", None, Some(Image::Waived(waived())), &["period.waived"]),
    ]
}

/// Changes that nobody needs to hear of.
fn no_news() -> Vec<Change> {
    let of = |name, old: fn(&mut Subscription), new: fn(&mut Subscription)| {
        let new = Subscription { version: 2, ..with(new) };
        (name, Some(subscription(with(old))), Some(subscription(new)), &[][..])
    };
    vec![
        of("a version", |_| {}, |_| {}),
        of("a claim", |_| {}, |s| s.attempt = Some(attempt(s))),
        of(
            "a take-over",
            |s| s.attempt = Some(attempt(s)),
            |s| s.attempt = Some(Attempt { held_by: Token(Ulid::from_parts(3, 3)), ..attempt(s) }),
        ),
        of(
            "the claim of a reminder",
            |_| {},
            |s| s.reminder_claim = Some(ReminderClaim { held_by: Token(Ulid::from_parts(2, 2)), leased_until: at() }),
        ),
        of(
            "the month that is due next, and the terms that waited for it",
            |s| {
                let price = s.price.currency().price(1_599).unwrap();
                s.waiting_terms = vec![Terms { from: period("2028-02"), payment_day: s.payment_day, price }];
            },
            |s| {
                (s.due_on, s.next_payment_on) = (date("2028-02-29"), Some(date("2028-02-29")));
                (s.price, s.last_payment_at) = (s.price.currency().price(1_599).unwrap(), Some(at()));
            },
        ),
        of("another shard", |_| {}, |s| s.shard = 7),
        ("a dropped attempt", None, Some(Image::Attempt(record(AttemptEnd::Dropped))), &[]),
        ("the expiry of a record", Some(Image::Attempt(record(AttemptEnd::Declined))), None, &[]),
        ("the expiry of a waived month", Some(Image::Waived(waived())), None, &[]),
    ]
}

fn told((_, old, new, _): &Change) -> Vec<CloudEvent> {
    let made = events(old.as_ref(), new.as_ref(), at()).into_iter();
    made.map(|event| CloudEvent::new(event, "urn:example:table")).collect()
}

fn json(event: &CloudEvent) -> Value {
    serde_json::to_value(event).unwrap()
}

#[test]
fn events_tell_what_is_news_and_nothing_else() {
    for change in changes().into_iter().chain(no_news()) {
        let types: Vec<String> = told(&change).iter().map(|event| event.body.event_type().to_string()).collect();
        assert_eq!(types, change.3, "{}", change.0);
    }
}

#[test]
fn events_are_as_their_schemas_say_and_each_type_has_one() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/events");
    let mut made = BTreeSet::new();
    for event in changes().iter().flat_map(told) {
        let name = event.body.event_type().to_string();
        let schema = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
        let wrong: Vec<String> = validator.iter_errors(&json(&event)).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}\n{:#}", json(&event));
        made.insert(format!("{name}.json"));
    }
    let types: BTreeSet<String> = EventType::iter().map(|event_type| format!("{event_type}.json")).collect();
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(made, types, "every type is made by a change above");
    // Which the domain does not make: `functions/events` does, of what it cannot read.
    let others = BTreeSet::from(["record.unreadable.json".to_owned()]);
    assert_eq!(files.collect::<BTreeSet<_>>(), &types | &others);
}

#[test]
fn event_made_again_is_equal_and_can_be_read_back() {
    let all: Vec<CloudEvent> = changes().iter().flat_map(told).collect();
    assert_eq!(all, changes().iter().flat_map(told).collect::<Vec<_>>());
    let again: Vec<CloudEvent> = all.iter().map(|event| serde_json::from_value(json(event)).unwrap()).collect();
    assert_eq!(again, all, "read back");
}

#[test]
fn events_carry_no_address_no_name_and_no_token() {
    let text: String = changes().iter().flat_map(told).map(|event| json(&event).to_string()).collect();
    let account = sample::account();
    let method = active().payment_method;
    for secret in ["@", account.name.as_str(), method.customer.as_str(), method.payment_method.as_str(), "pm_2"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[test]
fn payment_as_it_is_sent() {
    let made = events(None, Some(&Image::Receipt(receipt())), at()).remove(0);
    insta::assert_snapshot!(format!("{:#}", json(&CloudEvent::new(made, "urn:example:table"))));
}
