//! Tests of the state of the system, which an operator reads each morning.

use billing::DayReconciliation;
use chrono::TimeDelta;
use chrono_tz::Tz;
use days::{DayState, SystemStatus};

use crate::world::{World, billing_time, date, new_subscription};

/// Reads the state one hour after the runs of `day`.
async fn status_on(world: &World, day: &str) -> SystemStatus {
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let now = billing_time(day) + TimeDelta::hours(1);
    SystemStatus::read(&world.table, &settings, Tz::UTC, now).await.unwrap()
}

fn states(status: &SystemStatus) -> Vec<(String, DayState)> {
    status.days.iter().map(|day| (format!("{} {}", day.date, day.batch), day.state)).collect()
}

#[tokio::test]
async fn status_shows_yesterday_and_today_and_what_needs_a_person() {
    let world = World::new().await;
    let created = status_on(&world, "2026-01-01").await;
    assert_eq!(created.days.len(), 2, "the table did not exist yesterday");
    assert_eq!(created.problems, [""; 0], "the runs of today may still come");

    world.store(&new_subscription(10, "2026-03-01")).await;
    world.store(&new_subscription(11, "2026-03-01")).await;
    for day in ["2026-03-09", "2026-03-10"] {
        world.run_reminders(day).await;
        world.run_payments(day).await;
    }
    let done = status_on(&world, "2026-03-10").await;
    assert!(states(&done).iter().all(|(_, state)| *state == DayState::Done), "{done:?}");
    assert!(done.days.iter().all(|day| (day.complete_shards, day.shards) == (4, 4)), "{done:?}");
    assert_eq!((done.charged_today.payments, done.charged_today.sums.to_string().as_str()), (1, "12.99 EUR"));
    assert_eq!((done.oldest_due_on, done.problems), (None, Vec::new()));

    let morning = status_on(&world, "2026-03-11").await;
    assert_eq!(morning.oldest_due_on.unwrap().to_string(), "2026-03-11");
    assert_eq!(morning.problems, [""; 0], "the payment of today is not late");

    // No run happens on March 11, and charging is switched off.
    world.table.set_charging(false, None).await.unwrap();
    let missed = status_on(&world, "2026-03-12").await;
    assert_eq!(
        missed.problems,
        [
            "charging is switched off, so runs charge nothing",
            "the reminders of 2026-03-11 are not done: 0 of 4 shards are complete",
            "the payments of 2026-03-11 are not done: 0 of 4 shards are complete",
            "a payment has been due since 2026-03-11",
        ]
    );
}

#[tokio::test]
async fn status_names_the_latest_compared_day_if_it_is_old() {
    let world = World::new().await;
    let started_at = billing_time("2026-03-08");
    let compared = DayReconciliation::new(date("2026-03-07"), started_at);
    assert!(world.table.create_reconciliation(&compared).await.unwrap());
    let is_old = "the latest day that was compared with the gateway is 2026-03-07".to_owned();
    assert!(!status_on(&world, "2026-03-10").await.problems.contains(&is_old));
    assert!(status_on(&world, "2026-03-11").await.problems.contains(&is_old));
}
