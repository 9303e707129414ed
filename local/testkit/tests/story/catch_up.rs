//! After an outage of ours: each month that was missed, or the latest alone.

use billing::{CatchUp, Period, Status, Subscription};
use chrono::TimeDelta;

use crate::lifecycle::claimed;
use crate::world::{World, counts, date, morning, new_subscription};

async fn world(catch_up: &str) -> World {
    World::with(&[("DUEDAY_CATCH_UP", catch_up)]).await
}

async fn waived(world: &World) -> Vec<String> {
    let all = world.table.scan().await.unwrap();
    let mut waived: Vec<String> = all
        .iter()
        .filter_map(|item| item["SK"].as_s().ok()?.strip_prefix("WAV#").map(|sk| sk[..10].to_owned()))
        .collect();
    waived.sort();
    waived
}

#[test]
fn skip_leaves_the_latest_month_owed_and_waives_the_older_ones() {
    let active = new_subscription(31, "2026-01-15");
    for (today, left, waived) in [
        ("2026-01-31", None, vec![]),
        ("2026-02-27", None, vec![]),
        ("2026-02-28", Some("2026-02-28"), vec!["2026-01-31"]),
        ("2026-04-29", Some("2026-03-31"), vec!["2026-01-31", "2026-02-28"]),
        ("2026-04-30", Some("2026-04-30"), vec!["2026-01-31", "2026-02-28", "2026-03-31"]),
    ] {
        let skip = CatchUp::Latest.skip(&active, date(today), morning(today));
        assert_eq!(skip.as_ref().map(|skip| skip.subscription.due_on), left.map(date), "{today}");
        let dates = skip.map_or(vec![], |skip| skip.waived.iter().map(|f| f.due_on.to_string()).collect());
        assert_eq!(dates, waived, "{today}");
        assert_eq!(CatchUp::Each.skip(&active, date(today), morning(today)), None);
    }
    let (today, now) = (date("2026-04-30"), morning("2026-04-30"));
    let ending = Subscription { cancel_from: Some("2026-03".parse::<Period>().unwrap()), ..active.clone() };
    let skip = CatchUp::Latest.skip(&ending, today, now).unwrap();
    assert_eq!(skip.subscription.due_on, date("2026-02-28"), "the month it ends in is not owed");
    for (story, tried) in [
        ("a payment is being made", claimed(&active)),
        ("it was declined, not missed", Subscription { status: Status::PastDue, ..active.clone() }),
        ("it is paused", Subscription { status: Status::Paused, ..active }),
    ] {
        assert_eq!(CatchUp::Latest.skip(&tried, today, now), None, "{story}");
    }
}

#[tokio::test]
async fn catch_up_each_charges_one_month_a_day_oldest_first() {
    let world = world("each").await;
    world.has(&new_subscription(31, "2026-01-15")).await;
    for (day, expected) in
        [("2026-04-02", 1), ("2026-04-03", 1), ("2026-04-04", 1), ("2026-04-05", 0), ("2026-04-30", 1)]
    {
        let report = world.charge(day).await;
        assert_eq!(report.counts.paid, expected, "{day}");
        let again = world.charge_at(day, morning(day) + TimeDelta::hours(2)).await;
        assert_eq!(counts(&again), [], "one a day: {day}");
    }
    assert_eq!(world.charged(), ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]);
    assert_eq!(waived(&world).await, Vec::<String>::new());
}

#[tokio::test]
async fn catch_up_latest_charges_the_latest_month_and_waives_the_others() {
    let world = world("latest").await;
    let subscription = new_subscription(31, "2026-01-15");
    world.has(&subscription).await;
    for (day, expected) in [("2026-04-02", 1), ("2026-04-03", 0), ("2026-04-30", 1)] {
        assert_eq!(world.charge(day).await.counts.paid, expected, "{day}");
    }
    assert_eq!(world.charged(), ["2026-03-31", "2026-04-30"]);
    assert_eq!(waived(&world).await, ["2026-01-31", "2026-02-28"]);
    assert_eq!(world.receipts(&subscription).await, ["2026-03-31", "2026-04-30"]);
}
