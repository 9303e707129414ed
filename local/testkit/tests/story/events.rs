//! Tests of published events: which changes of items cause which events, and that each event matches its JSON schema.

use std::collections::BTreeSet;
use std::path::Path;

use billing::CloudEvent;
use billing::{
    Account, ActionKind, Actor, ActorName, Attempt, AttemptEnd, ClaimToken, DisputeStatus, EventType, ItemImage,
    LoggedAction, MailStatus, RefundStatus, ReminderClaim, Subscription, SubscriptionStatus, SubscriptionTerms,
    event_schemas, events_between_images,
};
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;
use testkit::{check_generated_file, event_schema_errors, sample_account};
use ulid::Ulid;

use crate::event_images::{
    action_image, active_subscription, attempt_record, audit_record, changed_subscription, date, dispute_image,
    event_time, open_attempt, period, receipt, reconciliation_image, refund_image, refund_rejected_by_gateway,
    subscription_image, waived_period,
};

/// The types of the expected events, such as `account.created`.
type EventTypes = &'static [&'static str];
/// The name of a change, the item before and after the change (`None`: no item), and the types of the expected events.
type Change = (&'static str, Option<ItemImage>, Option<ItemImage>, EventTypes);

/// Returns changes that cause events.
fn changes_with_events() -> Vec<Change> {
    let account = sample_account();
    let renamed = Account { name: "Acme, now Ltd".parse().unwrap(), version: 2, ..account.clone() };
    let bounced = Account { mail_status: MailStatus::Bounced, version: 2, ..account.clone() };
    let images = |old: Subscription, new: Subscription| {
        let version = old.version + 1;
        (Some(subscription_image(old)), Some(subscription_image(Subscription { version, ..new })))
    };
    let changed = |name, set: fn(&mut Subscription), types: EventTypes| {
        let (old, new) = images(active_subscription(), changed_subscription(set));
        (name, old, new, types)
    };
    let changed_from = |name, from: fn(&mut Subscription), to: fn(&mut Subscription), types: EventTypes| {
        let (old, new) = images(changed_subscription(from), changed_subscription(to));
        (name, old, new, types)
    };
    let set_pending_terms: fn(&mut Subscription) = |s| {
        let price = s.price.currency().price(1_599).unwrap();
        s.waiting_terms = vec![SubscriptionTerms { from: period("2028-02"), payment_day: s.payment_day, price }];
    };
    vec![
        ("an account is created", None, Some(ItemImage::Account(account.clone())), &["account.created"]),
        (
            "an account is renamed",
            Some(ItemImage::Account(account.clone())),
            Some(ItemImage::Account(renamed)),
            &["account.changed"],
        ),
        (
            "a mail bounced",
            Some(ItemImage::Account(account.clone())),
            Some(ItemImage::Account(bounced)),
            &["account.changed"],
        ),
        ("an account is erased", Some(ItemImage::Account(account)), None, &["account.erased"]),
        ("a refund is requested", None, Some(refund_image(RefundStatus::Pending)), &[]),
        (
            "the gateway rejects a refund before it starts",
            Some(refund_image(RefundStatus::Pending)),
            Some(refund_rejected_by_gateway()),
            &[],
        ),
        (
            "a rejected refund is requested again",
            Some(refund_rejected_by_gateway()),
            Some(refund_image(RefundStatus::Pending)),
            &[],
        ),
        (
            "a refund succeeds",
            Some(refund_image(RefundStatus::Pending)),
            Some(refund_image(RefundStatus::Succeeded)),
            &["payment.refunded"],
        ),
        (
            "a refund fails",
            Some(refund_image(RefundStatus::Pending)),
            Some(refund_image(RefundStatus::Failed)),
            &["payment.refund_failed"],
        ),
        (
            "the bank returns a refund",
            Some(refund_image(RefundStatus::Succeeded)),
            Some(refund_image(RefundStatus::Failed)),
            &["payment.refund_failed"],
        ),
        ("a payment is disputed", None, Some(dispute_image(DisputeStatus::Open)), &["payment.disputed"]),
        (
            "the dispute is won",
            Some(dispute_image(DisputeStatus::Open)),
            Some(dispute_image(DisputeStatus::Won)),
            &["payment.dispute_closed"],
        ),
        (
            "a dispute is already lost when it is first seen",
            None,
            Some(dispute_image(DisputeStatus::Lost)),
            &["payment.disputed", "payment.dispute_closed", "payment.reversed"],
        ),
        ("the bank asks about a payment", None, Some(dispute_image(DisputeStatus::Inquiry)), &["payment.disputed"]),
        (
            "the inquiry becomes a dispute",
            Some(dispute_image(DisputeStatus::Inquiry)),
            Some(dispute_image(DisputeStatus::Open)),
            &["payment.disputed"],
        ),
        (
            "the inquiry is closed",
            Some(dispute_image(DisputeStatus::Inquiry)),
            Some(dispute_image(DisputeStatus::Won)),
            &["payment.dispute_closed"],
        ),
        ("a debit fails after it succeeded", None, Some(dispute_image(DisputeStatus::Returned)), &["payment.reversed"]),
        (
            "a lost dispute does not change",
            Some(dispute_image(DisputeStatus::Lost)),
            Some(dispute_image(DisputeStatus::Lost)),
            &[],
        ),
        (
            "a succeeded refund does not change",
            Some(refund_image(RefundStatus::Succeeded)),
            Some(refund_image(RefundStatus::Succeeded)),
            &[],
        ),
        ("a subscription is created", None, Some(subscription_image(active_subscription())), &["subscription.created"]),
        changed("another mail address", |s| s.email = None, &["subscription.changed"]),
        changed(
            "another card",
            |s| s.payment_method.payment_method = "pm_2".parse().unwrap(),
            &["subscription.changed"],
        ),
        changed(
            "another price at once",
            |s| s.price = s.price.currency().price(1_599).unwrap(),
            &["subscription.changed"],
        ),
        changed("another price from the next month", set_pending_terms, &["subscription.changed"]),
        changed("another due date", |s| s.due_on = date("2028-01-20"), &["subscription.changed"]),
        changed("reminded", |s| s.reminded_for = Some(s.due_on), &["subscription.reminded"]),
        changed("paused", |s| s.status = SubscriptionStatus::Paused, &["subscription.paused"]),
        changed("scheduled to end", |s| s.cancel_from = Some(period("2028-03")), &["subscription.ending"]),
        changed_from(
            "no longer scheduled to end",
            |s| s.cancel_from = Some(period("2028-03")),
            |_| {},
            &["subscription.ending"],
        ),
        changed_from("resumed", |s| s.status = SubscriptionStatus::Paused, |_| {}, &["subscription.resumed"]),
        changed(
            "declined",
            |s| (s.status, s.failed_attempts) = (SubscriptionStatus::PastDue, 1),
            &["subscription.past_due"],
        ),
        changed_from(
            "declined again",
            |s| (s.status, s.failed_attempts) = (SubscriptionStatus::PastDue, 1),
            |s| (s.status, s.failed_attempts) = (SubscriptionStatus::PastDue, 2),
            &["subscription.past_due"],
        ),
        changed_from(
            "unpaid after the last retry",
            |s| (s.status, s.failed_attempts) = (SubscriptionStatus::PastDue, 4),
            |s| (s.status, s.failed_attempts) = (SubscriptionStatus::Unpaid, 5),
            &["subscription.unpaid"],
        ),
        changed_from(
            "a new card for an unpaid subscription",
            |s| s.status = SubscriptionStatus::Unpaid,
            |s| {
                s.status = SubscriptionStatus::PastDue;
                s.payment_method.payment_method = "pm_2".parse().unwrap();
            },
            &["subscription.revived"],
        ),
        changed_from(
            "paid, and the pending terms take effect",
            set_pending_terms,
            |s| {
                (s.due_on, s.next_payment_on) = (date("2028-02-29"), Some(date("2028-02-29")));
                (s.price, s.last_payment_at) = (s.price.currency().price(1_599).unwrap(), Some(event_time()));
            },
            &["subscription.renewed"],
        ),
        changed(
            "rejected by the gateway",
            |s| (s.rejections, s.next_payment_on) = (1, Some(date("2028-02-01"))),
            &["subscription.changed"],
        ),
        changed("disputed", |s| s.disputed_at = Some(event_time()), &["subscription.changed"]),
        changed(
            "another date of the reminder",
            |s| s.next_reminder_on = Some(date("2028-01-30")),
            &["subscription.changed"],
        ),
        changed_from(
            "a declined payment is retried at once",
            |s| {
                (s.status, s.failed_attempts) = (SubscriptionStatus::PastDue, 2);
            },
            |s| {
                (s.status, s.failed_attempts, s.next_payment_on) =
                    (SubscriptionStatus::PastDue, 0, Some(date("2028-02-01")));
            },
            &["subscription.changed"],
        ),
        changed_from(
            "paid after a decline",
            |s| s.status = SubscriptionStatus::PastDue,
            |_| {},
            &["subscription.revived"],
        ),
        changed(
            "cancelled",
            |s| (s.status, s.cancel_from) = (SubscriptionStatus::Cancelled, Some(period("2028-01"))),
            &["subscription.cancelled"],
        ),
        ("a receipt is created", None, Some(ItemImage::Receipt(receipt())), &["payment.succeeded"]),
        ("a receipt expires", Some(ItemImage::Receipt(receipt())), None, &["receipt.expired"]),
        ("a decline", None, Some(ItemImage::Attempt(attempt_record(AttemptEnd::Declined))), &["payment.declined"]),
        ("a rejection", None, Some(ItemImage::Attempt(attempt_record(AttemptEnd::Rejected))), &["payment.rejected"]),
        (
            "an audit ends",
            Some(ItemImage::Audit(audit_record(None))),
            Some(ItemImage::Audit(audit_record(Some(event_time())))),
            &["audit.completed"],
        ),
        (
            "a day is reconciled",
            Some(reconciliation_image(None)),
            Some(reconciliation_image(Some(event_time()))),
            &["day.reconciled"],
        ),
        (
            "an operator pauses a subscription",
            None,
            Some(action_image(ActionKind::PauseSubscription, &[])),
            &["action.taken"],
        ),
        (
            "an import ends",
            Some(action_image(ActionKind::ImportSubscriptions, &[])),
            Some(action_image(ActionKind::ImportSubscriptions, &[("created", "3")])),
            &["action.taken"],
        ),
        ("a month is waived", None, Some(ItemImage::Waived(waived_period())), &["period.waived"]),
    ]
}

/// Returns changes that cause no events.
fn changes_without_events() -> Vec<Change> {
    let change_without_event = |name, old: fn(&mut Subscription), new: fn(&mut Subscription)| {
        let new = Subscription { version: 2, ..changed_subscription(new) };
        (name, Some(subscription_image(changed_subscription(old))), Some(subscription_image(new)), &[][..])
    };
    vec![
        change_without_event("only the version", |_| {}, |_| {}),
        change_without_event("a claim", |_| {}, |s| s.attempt = Some(open_attempt(s))),
        change_without_event(
            "a take-over",
            |s| s.attempt = Some(open_attempt(s)),
            |s| s.attempt = Some(Attempt { claim_token: ClaimToken(Ulid::from_parts(3, 3)), ..open_attempt(s) }),
        ),
        change_without_event(
            "the claim of a reminder",
            |_| {},
            |s| {
                s.reminder_claim =
                    Some(ReminderClaim { claim_token: ClaimToken(Ulid::from_parts(2, 2)), leased_until: event_time() })
            },
        ),
        change_without_event("another shard", |_| {}, |s| s.shard = 7),
        (
            "an audit makes progress",
            Some(ItemImage::Audit(audit_record(None))),
            Some(ItemImage::Audit(audit_record(None))),
            &[],
        ),
        ("a comparison makes progress", Some(reconciliation_image(None)), Some(reconciliation_image(None)), &[]),
        (
            "a comparison begins again",
            Some(reconciliation_image(Some(event_time()))),
            Some(reconciliation_image(None)),
            &[],
        ),
        ("a comparison expires", Some(reconciliation_image(Some(event_time()))), None, &[]),
        ("an audit expires", Some(ItemImage::Audit(audit_record(Some(event_time())))), None, &[]),
        (
            "an action is written twice",
            Some(action_image(ActionKind::PauseSubscription, &[])),
            Some(action_image(ActionKind::PauseSubscription, &[])),
            &[],
        ),
        (
            "the reason of an action is removed",
            Some(action_image(ActionKind::PauseSubscription, &[])),
            Some(match action_image(ActionKind::PauseSubscription, &[]) {
                ItemImage::Action(entry) => ItemImage::Action(Box::new(LoggedAction { reason: None, ..*entry })),
                other => other,
            }),
            &[],
        ),
        ("an action expires", Some(action_image(ActionKind::PauseSubscription, &[])), None, &[]),
        ("a dropped attempt", None, Some(ItemImage::Attempt(attempt_record(AttemptEnd::Dropped))), &[]),
        ("the expiry of an attempt record", Some(ItemImage::Attempt(attempt_record(AttemptEnd::Declined))), None, &[]),
        ("the expiry of a waived month", Some(ItemImage::Waived(waived_period())), None, &[]),
    ]
}

/// Returns the published events of a change.
fn events_of_change((_, old, new, _): &Change) -> Vec<CloudEvent> {
    let events = events_between_images(old.as_ref(), new.as_ref(), event_time()).into_iter();
    events.map(|event| CloudEvent::new(event, "urn:example:table")).collect()
}

fn event_json(event: &CloudEvent) -> Value {
    serde_json::to_value(event).unwrap()
}

#[test]
fn each_change_causes_the_expected_events() {
    for change in changes_with_events().into_iter().chain(changes_without_events()) {
        let events = events_of_change(&change);
        let types: Vec<String> = events.iter().map(|event| event.body.event_type().to_string()).collect();
        assert_eq!(types, change.3, "{}", change.0);
    }
}

#[test]
fn events_of_every_type_match_their_schemas() {
    let mut checked = BTreeSet::new();
    for event in changes_with_events().iter().flat_map(events_of_change) {
        let errors = event_schema_errors(&event_json(&event));
        assert!(errors.is_empty(), "{errors:?}\n{:#}", event_json(&event));
        checked.insert(event.body.event_type());
    }
    // The file `order_events.rs` contains the changes of orders.
    let of_payments = EventType::iter().filter(|event_type| !event_type.to_string().starts_with("order."));
    assert_eq!(
        checked,
        of_payments.collect(),
        "the changes of this file cause events of every type of the payments table"
    );
}

#[test]
fn published_schemas_are_those_of_the_types() {
    let schemas = serde_json::to_string_pretty(&event_schemas()).unwrap() + "\n";
    check_generated_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.json"), &schemas);
}

#[test]
fn schema_refuses_missing_additional_and_wrong_fields() {
    let event = events_of_change(&changes_with_events()[0]).remove(0);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut json = event_json(&event);
        change(&mut json);
        event_schema_errors(&json)
    };
    assert_eq!(changed(&|_| {}), [""; 0]);
    assert_eq!(
        changed(&|json| json["data"]["version"] = json!("1")),
        ["/data/version: \"1\" is not of type \"integer\""]
    );
    let missing = changed(&|json| drop(json["data"].as_object_mut().unwrap().remove("locale")));
    assert_eq!(missing, ["/data: \"locale\" is a required property"]);
    let additional = changed(&|json| json["data"]["email"] = json!("a@example.com"));
    assert_eq!(additional, ["/data: Additional properties are not allowed ('email' was unexpected)"]);
}

#[test]
fn events_of_the_same_change_are_equal_and_can_be_deserialized() {
    let all: Vec<CloudEvent> = changes_with_events().iter().flat_map(events_of_change).collect();
    assert_eq!(all, changes_with_events().iter().flat_map(events_of_change).collect::<Vec<_>>());
    let deserialized: Vec<CloudEvent> =
        all.iter().map(|event| serde_json::from_value(event_json(event)).unwrap()).collect();
    assert_eq!(deserialized, all);
}

#[test]
fn events_contain_no_mail_address_no_name_and_no_token() {
    let events = changes_with_events().iter().flat_map(events_of_change).collect::<Vec<_>>();
    let text: String = events.iter().map(|event| event_json(event).to_string()).collect();
    let account = sample_account();
    let method = active_subscription().payment_method;
    for text_not_allowed in
        ["@", account.name.as_str(), method.customer.as_str(), method.payment_method.as_str(), "pm_2"]
    {
        assert!(!text.contains(text_not_allowed), "the events contain {text_not_allowed}");
    }
}

#[test]
fn ids_of_events_contain_no_account_and_differ_between_accounts() {
    let account = sample_account();
    for event in changes_with_events().iter().flat_map(events_of_change) {
        assert!(!event.id.contains(account.id.as_str()), "{}", event.id);
    }
    let id_of =
        |account: Account| events_between_images(None, Some(&ItemImage::Account(account)), event_time()).remove(0).id;
    let other = Account { id: "other".parse().unwrap(), ..account.clone() };
    let recreated = Account { created_at: account.created_at + chrono::TimeDelta::seconds(1), ..account.clone() };
    let ids = BTreeSet::from([id_of(account.clone()), id_of(other), id_of(recreated)]);
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert!(ids.contains(&id_of(account)), "a repeated computation gives the same id");
}

#[test]
fn payment_succeeded_event_as_json() {
    let event = events_between_images(None, Some(&ItemImage::Receipt(receipt())), event_time()).remove(0);
    insta::assert_snapshot!(format!("{:#}", event_json(&CloudEvent::new(event, "urn:example:table"))));
}

#[test]
fn event_of_an_action_contains_the_name_and_the_reason_only_if_an_operator_acted() {
    let ItemImage::Action(entry) = action_image(ActionKind::PauseSubscription, &[]) else { panic!("no action") };
    for (actor, name, reason) in [
        (Actor::Operator(ActorName::new("desk")), json!("desk"), json!("asked by phone")),
        (Actor::Account(ActorName::new("user-7")), Value::Null, Value::Null),
    ] {
        let image = ItemImage::Action(Box::new(LoggedAction { actor, ..*entry.clone() }));
        let event = events_between_images(None, Some(&image), event_time()).remove(0);
        let data = &event_json(&CloudEvent::new(event, "urn:example:table"))["data"];
        assert_eq!((&data["actor_name"], &data["reason"]), (&name, &reason), "{data}");
    }
}
