//! Tests of the notices about changes of a subscription: each notice describes the change, and is sent only if its
//! content is still true.

use std::collections::BTreeSet;

use billing::{Label, LeadDays, OnResume, PaymentMethod, Subscription, SubscriptionChanges};
use clock::Clock as _;
use mail::{MailKind, Merchant};
use notices::{CustomerNotifier, NoticeOutcome};
use testkit::sample_subscription;

use crate::notices::World;

/// The card of the subscription in most tests.
const CARD: &str = "pm_card_visa";

/// Changes the subscription, and sends the notices of the resulting events. Returns the kinds and the texts of the new
/// mails.
async fn mails_after(world: &mut World, change: impl Fn(&Subscription) -> Subscription) -> Vec<(String, String)> {
    let before = world.mails().len();
    world.change_subscription(change).await;
    let events = world.publish_new_events().await;
    world.notify(&events).await;
    world.mails().split_off(before)
}

/// Asserts that `mails` is one mail of the kind `kind`, and that its text contains each of `parts`.
fn assert_mail(mails: &[(String, String)], kind: &str, parts: &[&str]) {
    let [(sent, text)] = mails else { panic!("one mail of the kind {kind}, not {mails:?}") };
    assert_eq!(sent, kind, "{text}");
    for part in parts {
        assert!(text.contains(part), "{kind} must contain {part:?}: {text}");
    }
}

#[tokio::test]
async fn each_change_of_a_subscription_sends_one_mail_that_says_what_happens_next() {
    let mut world = World::new(CARD).await;
    let (clock, lead) = (world.system.clock.clone(), LeadDays::default());
    let today = "2026-03-08".parse().unwrap();
    clock.set("2026-03-08T12:00:00Z".parse().unwrap());

    let dearer = SubscriptionChanges { amount: Some(1_499), ..SubscriptionChanges::default() };
    let mails = mails_after(&mut world, |stored| stored.apply_changes(&dearer, lead, today).unwrap()).await;
    let parts =
        ["Monthly amount: €14.99", "Previous amount: €12.99", "Next payment: €14.99 on Tuesday, March 10, 2026"];
    assert_mail(&mails, "terms-changed", &parts);

    let renamed = SubscriptionChanges {
        product_name: Some(Label::try_from("Gold II".to_owned()).unwrap()),
        ..SubscriptionChanges::default()
    };
    let mails = mails_after(&mut world, |stored| stored.apply_changes(&renamed, lead, today).unwrap()).await;
    assert_eq!(mails, [], "another name of the product is not worth a mail");

    let method = PaymentMethod { payment_method: "pm_card_amex".parse().unwrap(), ..world.gold.payment_method.clone() };
    let other_card = SubscriptionChanges { payment_method: Some(method), ..SubscriptionChanges::default() };
    let mails = mails_after(&mut world, |stored| stored.apply_changes(&other_card, lead, today).unwrap()).await;
    assert_mail(&mails, "card-saved", &["Gold II", "We will use your new payment method"]);

    let mails = mails_after(&mut world, |stored| stored.pause(today).unwrap()).await;
    assert_mail(&mails, "paused", &["We will not charge you while your subscription is paused."]);
    let mails = mails_after(&mut world, |stored| {
        stored.resume(OnResume::Charge, lead, today, clock_now()).unwrap().subscription
    })
    .await;
    assert_mail(&mails, "resumed", &["Next payment: €14.99 on Tuesday, March 10, 2026"]);

    let mails = mails_after(&mut world, |stored| stored.cancel_at_period_end(today).unwrap()).await;
    assert_mail(&mails, "cancellation-planned", &["will end on March 10", "End date: Tuesday, March 10, 2026"]);
    let mails = mails_after(&mut world, |stored| stored.uncancel(lead, today).unwrap()).await;
    assert_mail(
        &mails,
        "cancellation-undone",
        &["no longer set to end", "Next payment: €14.99 on Tuesday, March 10, 2026"],
    );

    let mails = mails_after(&mut world, |stored| stored.cancel(today, clock_now()).subscription).await;
    // Do not compare the date in the mail: it is the time of the change stream, which is the real time and not the
    // simulated time.
    assert_mail(&mails, "ended", &["Your subscription ended on ", "End date: "]);
}

/// Returns the time at which the tests change a subscription: noon in UTC on 8 March 2026.
fn clock_now() -> chrono::DateTime<chrono::Utc> {
    "2026-03-08T12:00:00Z".parse().unwrap()
}

#[tokio::test]
async fn new_customer_gets_a_confirmation_and_an_imported_customer_does_not() {
    let mut world = World::new(CARD).await;
    let table = world.system.deployment.table.clone();
    let new = sample_subscription(20, "2026-03-09".parse().unwrap());
    let imported = Subscription {
        external_id: Some("4711".parse().unwrap()),
        ..sample_subscription(21, "2026-03-09".parse().unwrap())
    };
    table.create_subscription(&new, None).await.unwrap();
    table.create_subscription(&imported, None).await.unwrap();
    let events = world.publish_new_events().await;
    assert_eq!(world.notify(&events).await, [NoticeOutcome::Sent]);
    let parts =
        ["After the payments below, we will charge you every month.", "Next payment: €12.99 on Friday, March 20, 2026"];
    assert_mail(&world.mails(), "signed-up", &parts);
}

#[tokio::test]
async fn notices_that_are_switched_off_are_not_sent() {
    let mut world = World::new(CARD).await;
    let unsent_mails: BTreeSet<MailKind> = [MailKind::Ended, MailKind::Failed].into();
    let config = &world.system.deployment.config;
    let merchant = Merchant { unsent_mails, ..config.merchant.clone() };
    let mailer = world.system.deployment.mailer.clone();
    world.notices =
        CustomerNotifier::new(world.system.deployment.table.clone(), mailer, merchant, world.system.clock.clone());
    let mails =
        mails_after(&mut world, |stored| stored.cancel("2026-03-10".parse().unwrap(), clock_now()).subscription).await;
    assert_eq!(mails, []);
}

#[tokio::test]
async fn mail_about_an_owed_payment_leads_to_a_page_for_a_card() {
    let mut world = World::new("pm_card_visa_chargeDeclinedInsufficientFunds").await;
    let notices = std::mem::replace(&mut world.notices, World::notices(&world.system, &world.system.deployment));
    world.notices = notices.with_card_links(Some("https://api.example.com/".to_owned()));
    let events = world.run_payments("2026-03-10T12:00:00Z").await;
    world.notify(&events).await;
    let mails = world.mails();
    assert_mail(&mails, "failed", &["Add another card:\nhttps://api.example.com/card-links/"]);
    let (_, id) = mails[0].1.split_once("/card-links/").unwrap();
    let (id, now) = (id[..26].parse().unwrap(), world.system.clock.now());
    let link = world.system.deployment.table.get_card_link(id, now).await.unwrap().unwrap().link;
    assert_eq!((link.subscription, link.due_on), (world.gold.id, world.gold.due_on));
}

#[tokio::test]
async fn subscription_that_ends_for_want_of_a_payment_says_so() {
    let mut world = World::new(CARD).await;
    let ended = |stored: &Subscription| Subscription {
        status: billing::SubscriptionStatus::Cancelled,
        failed_attempts: stored.failed_attempts + 1,
        next_payment_on: None,
        next_reminder_on: None,
        ..stored.clone()
    };
    let mails = mails_after(&mut world, ended).await;
    assert_mail(
        &mails,
        "ended-unpaid",
        &["We could not collect the payment of €12.99, so your subscription ended on "],
    );
}

#[tokio::test]
async fn new_card_of_an_unpaid_subscription_is_confirmed() {
    let mut world = World::new(CARD).await;
    let unpaid = |stored: &Subscription| Subscription {
        status: billing::SubscriptionStatus::Unpaid,
        next_payment_on: None,
        next_reminder_on: None,
        ..stored.clone()
    };
    assert_mail(&mails_after(&mut world, unpaid).await, "unpaid", &[]);
    let method = PaymentMethod { payment_method: "pm_card_amex".parse().unwrap(), ..world.gold.payment_method.clone() };
    let entered = SubscriptionChanges { payment_method: Some(method), ..SubscriptionChanges::default() };
    let change = |stored: &Subscription| {
        stored.apply_changes(&entered, LeadDays::default(), "2026-03-20".parse().unwrap()).unwrap()
    };
    // The event of this change is `subscription.revived`, with the payment method in its list of changed fields.
    assert_mail(&mails_after(&mut world, change).await, "card-saved", &[]);
}

#[tokio::test]
async fn rejected_payment_is_mailed_only_when_it_counts_as_a_decline() {
    let mut world = World::new("pm_unknown").await;
    for (day, kinds) in [(10, &[][..]), (11, &[]), (12, &["failed"])] {
        let events = world.run_payments(&format!("2026-03-{day}T12:00:00Z")).await;
        assert!(events.iter().any(|event| event.contains("payment.rejected")), "{day}: {events:?}");
        world.notify(&events).await;
        assert_eq!(world.mail_kinds(), kinds, "{day}");
    }
}

#[tokio::test]
async fn new_card_for_several_subscriptions_sends_one_mail() {
    let mut world = World::new(CARD).await;
    let table = world.system.deployment.table.clone();
    let other = sample_subscription(20, "2026-03-01".parse().unwrap());
    table.create_subscription(&other, None).await.unwrap();
    let created = world.publish_new_events().await;
    world.notify(&created).await;
    let method = PaymentMethod { payment_method: "pm_card_amex".parse().unwrap(), ..world.gold.payment_method.clone() };
    let entered = SubscriptionChanges {
        payment_method: Some(method),
        payment_method_at: Some(clock_now()),
        ..SubscriptionChanges::default()
    };
    let change = |stored: &Subscription| {
        stored.apply_changes(&entered, LeadDays::default(), "2026-03-08".parse().unwrap()).unwrap()
    };
    table.rewrite_subscription(other, |stored| Ok::<_, ()>(change(stored))).await.unwrap();
    let mails = mails_after(&mut world, change).await;
    // The first event is that of the other subscription. Its mail also says what the first subscription is charged.
    let of_first = "Gold plan: Next payment: €12.99, charged by Wednesday, March 11, 2026";
    assert_mail(&mails, "card-saved", &["Next payment: €12.99 on Friday, March 20, 2026", of_first]);
}
