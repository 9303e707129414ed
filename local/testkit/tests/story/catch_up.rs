//! Tests of catching up after an outage of the payment batch: the batch charges either all missed months, or only the
//! latest.

use billing::{CatchUp, Period, Subscription, SubscriptionStatus};
use chrono::TimeDelta;

use crate::lifecycle::with_open_attempt;
use crate::world::{World, billing_time, date, new_subscription, nonzero_counts};

/// Creates a world with this value of the setting `DUEDAY_CATCH_UP`: `each` or `latest`.
async fn world_with_catch_up(catch_up: &str) -> World {
    World::with_settings(&[("DUEDAY_CATCH_UP", catch_up)]).await
}

/// Returns the due dates of all waived months in the table, the oldest first.
async fn waived_due_dates(world: &World) -> Vec<String> {
    let all = world.table.scan().await.unwrap();
    let mut waived: Vec<String> = all
        .iter()
        .filter_map(|item| item["SK"].as_s().ok()?.strip_prefix("WAV#").map(|sk| sk[..10].to_owned()))
        .collect();
    waived.sort();
    waived
}

#[test]
fn skip_waives_all_missed_months_but_the_latest() {
    let active = new_subscription(31, "2026-01-15");
    for (today, new_due_date, waived) in [
        ("2026-01-31", None, vec![]),
        ("2026-02-27", None, vec![]),
        ("2026-02-28", Some("2026-02-28"), vec!["2026-01-31"]),
        ("2026-04-29", Some("2026-03-31"), vec!["2026-01-31", "2026-02-28"]),
        ("2026-04-30", Some("2026-04-30"), vec!["2026-01-31", "2026-02-28", "2026-03-31"]),
    ] {
        let skip = CatchUp::Latest.waive_months_of_outage(&active, date(today), billing_time(today));
        assert_eq!(skip.as_ref().map(|skip| skip.subscription.due_on), new_due_date.map(date), "{today}");
        let dates = skip.map_or(vec![], |skip| skip.waived.iter().map(|f| f.due_on.to_string()).collect());
        assert_eq!(dates, waived, "{today}");
        assert_eq!(CatchUp::Each.waive_months_of_outage(&active, date(today), billing_time(today)), None);
    }
    let (today, now) = (date("2026-04-30"), billing_time("2026-04-30"));
    let ending = Subscription { cancel_from: Some("2026-03".parse::<Period>().unwrap()), ..active.clone() };
    let skip = CatchUp::Latest.waive_months_of_outage(&ending, today, now).unwrap();
    assert_eq!(skip.subscription.due_on, date("2026-02-28"), "the month in which the subscription ends is not owed");
    for (case, subscription) in [
        ("a payment attempt is open", with_open_attempt(&active)),
        (
            "the payment was declined, not missed",
            Subscription { status: SubscriptionStatus::PastDue, ..active.clone() },
        ),
        ("the subscription is paused", Subscription { status: SubscriptionStatus::Paused, ..active }),
    ] {
        assert_eq!(CatchUp::Latest.waive_months_of_outage(&subscription, today, now), None, "{case}");
    }
}

#[tokio::test]
async fn catch_up_each_charges_one_missed_month_per_day_oldest_first() {
    let world = world_with_catch_up("each").await;
    world.store(&new_subscription(31, "2026-01-15")).await;
    for (day, expected) in
        [("2026-04-02", 1), ("2026-04-03", 1), ("2026-04-04", 1), ("2026-04-05", 0), ("2026-04-30", 1)]
    {
        let report = world.run_payments(day).await;
        assert_eq!(report.counts.paid, expected, "{day}");
        let again = world.run_payments_at(day, billing_time(day) + TimeDelta::hours(2)).await;
        assert_eq!(nonzero_counts(&again), [], "at most one charge per day: {day}");
    }
    assert_eq!(world.charged_due_dates(), ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]);
    assert_eq!(waived_due_dates(&world).await, Vec::<String>::new());
}

#[tokio::test]
async fn catch_up_latest_charges_the_latest_month_and_waives_the_others() {
    let world = world_with_catch_up("latest").await;
    let subscription = new_subscription(31, "2026-01-15");
    world.store(&subscription).await;
    for (day, expected) in [("2026-04-02", 1), ("2026-04-03", 0), ("2026-04-30", 1)] {
        assert_eq!(world.run_payments(day).await.counts.paid, expected, "{day}");
    }
    assert_eq!(world.charged_due_dates(), ["2026-03-31", "2026-04-30"]);
    assert_eq!(waived_due_dates(&world).await, ["2026-01-31", "2026-02-28"]);
    assert_eq!(world.receipt_due_dates(&subscription).await, ["2026-03-31", "2026-04-30"]);
}
