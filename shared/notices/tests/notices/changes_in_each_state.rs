//! Snapshots of the mails about each change of a subscription, in each state of the subscription and in each language.

use std::fmt::Write as _;

use billing::{
    Account, Attempt, ChangeRefusal, ClaimToken, LeadDays, OnResume, PaymentMethod, Settlement, Subscription,
    SubscriptionChanges, SubscriptionStatus,
};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use testkit::sample_subscription;
use ulid::Ulid;

use crate::notices::World;

/// The time of the changes.
const NOW: &str = "2026-04-02T12:00:00Z";

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn today() -> NaiveDate {
    date("2026-04-02")
}

fn now() -> DateTime<Utc> {
    NOW.parse().unwrap()
}

/// Returns a subscription whose payment of 31 March is owed, because no run has charged it yet.
fn owed() -> Subscription {
    sample_subscription(31, date("2026-03-01"))
}

/// Returns each state of a subscription, with its name.
fn states() -> Vec<(&'static str, Subscription)> {
    let paid_on = Some("2026-03-31T06:00:00Z".parse().unwrap());
    let active = Subscription {
        due_on: date("2026-04-30"),
        next_payment_on: Some(date("2026-04-30")),
        next_reminder_on: Some(date("2026-04-23")),
        last_payment_at: paid_on,
        ..owed()
    };
    let past_due = Subscription {
        status: SubscriptionStatus::PastDue,
        failed_attempts: 1,
        first_declined_on: Some(date("2026-03-31")),
        next_payment_on: Some(date("2026-04-04")),
        next_reminder_on: None,
        ..owed()
    };
    let attempt = Attempt {
        table: None,
        no: 1,
        due_on: date("2026-03-31"),
        amount: owed().price,
        payment_method: owed().payment_method,
        claimed_at: now() - TimeDelta::days(2),
        leased_until: now() - TimeDelta::days(1),
        claim_token: ClaimToken(Ulid::from_parts(1, 1)),
    };
    let unpaid = Subscription {
        status: SubscriptionStatus::Unpaid,
        unpaid_since: Some(date("2026-04-01")),
        next_payment_on: None,
        failed_attempts: 4,
        ..past_due.clone()
    };
    let processing = Subscription { attempt: Some(attempt), attempt_seq: 1, next_reminder_on: None, ..owed() };
    vec![
        ("active", active.clone()),
        ("owed", owed()),
        ("past due", past_due),
        ("unpaid", unpaid),
        ("paused", active.pause(today()).unwrap()),
        ("ending", active.cancel_at_period_end(today()).unwrap()),
        ("processing", processing),
        ("disputed", Subscription { disputed_at: Some(now()), ..owed() }),
    ]
}

/// A change of a subscription.
type Change = fn(&Subscription) -> Result<Settlement, ChangeRefusal>;

fn apply(stored: &Subscription, changes: SubscriptionChanges) -> Result<Settlement, ChangeRefusal> {
    stored.apply_changes(&changes, LeadDays::default(), today()).map(Into::into)
}

/// Returns each change of a subscription, with its name.
fn changes() -> [(&'static str, Change); 8] {
    [
        ("new price", |s| apply(s, SubscriptionChanges { amount: Some(1_499), ..SubscriptionChanges::default() })),
        ("new payment day", |s| {
            apply(s, SubscriptionChanges { payment_day: 5.try_into().ok(), ..SubscriptionChanges::default() })
        }),
        ("new card", |s| {
            let payment_method = "pm_card_amex".parse().unwrap();
            let method = PaymentMethod { payment_method, ..s.payment_method.clone() };
            apply(s, SubscriptionChanges { payment_method: Some(method), ..SubscriptionChanges::default() })
        }),
        ("pause", |s| s.pause(today()).map(Into::into)),
        ("resume", |s| s.resume(OnResume::Charge, LeadDays::default(), today(), now())),
        ("cancel at the end of the period", |s| s.cancel_at_period_end(today()).map(Into::into)),
        ("undo the cancellation", |s| s.uncancel(LeadDays::default(), today()).map(Into::into)),
        ("cancel now", |s| Ok(s.cancel(today(), now()))),
    ]
}

/// Returns the mails about `change` of the subscription `state` in the language of `locale`: the kind of each mail, and
/// its text without the greeting and the data of the merchant.
async fn mails_about(state: &Subscription, change: Change, locale: &str) -> String {
    let mut world = World::with_subscription(state.clone(), &[("DUEDAY_SHARDS", "1")]).await;
    world.system.clock.set(now());
    let table = world.system.deployment.table.clone();
    let stored = table.get_account(&state.account).await.unwrap().unwrap();
    table.put_account(&Account { locale: locale.parse().unwrap(), ..stored }).await.unwrap();
    world.publish_new_events().await;
    if let Err(refused) = table.write_settlement(state.clone(), change).await {
        return format!("refused: {:?}\n", refused.into_reason().unwrap());
    }
    // The change stream contains the real time.
    let at_now = |event: String| {
        let mut event: serde_json::Value = serde_json::from_str(&event).unwrap();
        event["time"] = NOW.into();
        event.to_string()
    };
    let events: Vec<String> = world.publish_new_events().await.into_iter().map(at_now).collect();
    world.notify(&events).await;
    let mut text = String::new();
    for (kind, mail) in world.mails() {
        let paragraphs: Vec<&str> = mail.trim().split("\n\n").collect();
        writeln!(text, "[{kind}]\n{}", paragraphs[2..paragraphs.len() - 1].join("\n")).unwrap();
    }
    if text.is_empty() { "no mail\n".to_owned() } else { text }
}

#[tokio::test]
async fn mails_about_each_change_say_what_happens_next_in_each_state() {
    for locale in ["en", "de", "es", "fr", "ko", "zh", "zh-Hant"] {
        let mut mails = String::new();
        for (state_name, state) in states() {
            for (change_name, change) in changes() {
                let text = Box::pin(mails_about(&state, change, locale)).await;
                writeln!(mails, "== {state_name}, {change_name}\n{text}").unwrap();
            }
        }
        insta::assert_snapshot!(format!("changes_{locale}"), mails);
    }
}
