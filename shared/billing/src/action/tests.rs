use super::*;
use crate::records::payment::PaymentMethod;
use crate::settings::policy::LeadDays;
use crate::subscriptions::new_subscription::{AccountRecords, NewSubscription};
use crate::subscriptions::subscription_changes::SubscriptionChanges;

/// Returns a subscription whose product name, e-mail address and tokens must not appear in the action log.
fn sample_subscription() -> Subscription {
    let new = NewSubscription {
        account: "acme".parse().unwrap(),
        id: SubscriptionId::new(Ulid::nil()),
        external_id: None,
        sku: "gold".parse().unwrap(),
        product_name: "Gold plan of Ms Example".parse().unwrap(),
        email: Some("ms@example.com".parse().unwrap()),
        payment_day: 10.try_into().unwrap(),
        price: "EUR".parse::<crate::values::money::Currency>().unwrap().price(1299).unwrap(),
        payment_method: PaymentMethod {
            customer: "cus_1".parse().unwrap(),
            payment_method: "pm_card_visa".parse().unwrap(),
        },
        first_payment_on: None,
        allow_second: false,
    };
    new.into_subscription(
        &AccountRecords::default(),
        0,
        LeadDays::default(),
        "2027-01-05".parse().unwrap(),
        DateTime::UNIX_EPOCH,
    )
    .unwrap()
}

/// Returns an action of `kind`, by an operator.
fn new_action(kind: ActionKind) -> NewAction {
    let actor = Actor::Operator(ActorName::new("auth0|123"));
    NewAction { at: DateTime::UNIX_EPOCH, actor, kind, reason: None }
}

/// Returns `fields` as one text, for comparisons.
fn joined_fields(fields: &BTreeMap<String, String>) -> String {
    fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn logged_action_contains_the_changed_fields_and_no_personal_data() {
    let (stored, today) = (sample_subscription(), "2027-01-05".parse().unwrap());
    let method =
        PaymentMethod { customer: "cus_2".parse().unwrap(), payment_method: "pm_card_mastercard".parse().unwrap() };
    // The columns are: the change, and the changed fields before and after it.
    for (changes, before, after) in [
        (
            SubscriptionChanges { amount: Some(1499), ..SubscriptionChanges::default() },
            "price=12.99 EUR",
            "price=14.99 EUR",
        ),
        (
            SubscriptionChanges { payment_method: Some(method), ..SubscriptionChanges::default() },
            "",
            "payment_method=changed",
        ),
        (
            SubscriptionChanges { product_name: Some("Other".parse().unwrap()), ..SubscriptionChanges::default() },
            "",
            "product_name=changed",
        ),
        (SubscriptionChanges { email: Some(None), ..SubscriptionChanges::default() }, "", "email=changed"),
        (
            SubscriptionChanges { payment_day: Some(12.try_into().unwrap()), ..SubscriptionChanges::default() },
            "due_on=2027-01-10 next_payment_on=2027-01-10 payment_day=10",
            "due_on=2027-01-12 next_payment_on=2027-01-12 payment_day=12",
        ),
        (SubscriptionChanges::default(), "", ""),
    ] {
        let changed = stored.apply_changes(&changes, LeadDays::default(), today).unwrap();
        let entry = new_action(ActionKind::ChangeSubscription).on_subscription(Some(&stored), &changed);
        assert_eq!(
            (joined_fields(&entry.before).as_str(), joined_fields(&entry.after).as_str()),
            (before, after),
            "{changes:?}"
        );
        assert_eq!((entry.account, entry.subscription), (Some(stored.account.clone()), Some(stored.id)));
    }
    let created = format!("{:?}", new_action(ActionKind::CreateSubscription).on_subscription(None, &stored));
    assert!(created.contains("12.99 EUR"), "{created}");
    for secret in ["ms@example.com", "Ms Example", "cus_1", "pm_card"] {
        assert!(!created.contains(secret), "{created}");
    }
}

#[test]
fn every_action_kind_and_actor_can_be_read_again() {
    assert_eq!("subscription.pause".parse(), Ok(ActionKind::PauseSubscription));
    let name = ActorName::new("jane");
    for actor in [
        Actor::Operator(name.clone()),
        Actor::Account(None),
        Actor::Command(name.clone()),
        Actor::Customer(name),
        Actor::Anonymous,
    ] {
        let kind: ActorKind = actor.kind().to_string().parse().unwrap();
        assert_eq!(Actor::from_parts(kind, actor.name().and_then(ActorName::new)), actor);
    }
}
