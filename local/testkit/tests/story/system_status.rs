//! Tests of the state of the system, which an operator reads each morning.

use billing::{AuditRecord, DayReconciliation, DifferenceKind};
use chrono::TimeDelta;
use days::{DayState, SystemStatus};
use ulid::Ulid;

use crate::world::{World, billing_time, date, new_subscription};

/// Reads the state of the system one hour after the billing time of `day`.
async fn status_on(world: &World, day: &str) -> SystemStatus {
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let now = billing_time(day) + TimeDelta::hours(1);
    SystemStatus::read(&world.table, &settings, now).await.unwrap()
}

/// Returns the state of each day and batch in `status`, with a text such as `2026-03-10 payments`.
fn states(status: &SystemStatus) -> Vec<(String, DayState)> {
    status.days.iter().map(|day| (format!("{} {}", day.date, day.batch), day.state)).collect()
}

#[tokio::test]
async fn status_shows_yesterday_and_today_and_the_problems_that_need_a_person() {
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
            "payments are due and not settled; the oldest has been due since 2026-03-11",
        ]
    );
}

#[tokio::test]
async fn status_names_the_latest_compared_day_if_it_is_old() {
    let world = World::new().await;
    let started_at = billing_time("2026-03-08");
    let compared = DayReconciliation::new(date("2026-03-07"), started_at);
    assert!(world.table.create_reconciliation(&compared).await.unwrap());
    let is_old = "no day after 2026-03-07 was compared with the gateway".to_owned();
    assert!(!status_on(&world, "2026-03-10").await.problems.contains(&is_old));
    assert!(status_on(&world, "2026-03-11").await.problems.contains(&is_old));
}

#[tokio::test]
async fn differences_of_the_last_months_and_violations_of_the_audit_that_ended_stay_problems() {
    let world = World::new().await;
    // Each day since January was compared, and only the first day has differences.
    for day in date("2026-01-05").iter_days().take_while(|day| *day <= date("2026-03-07")) {
        let differences = if day == date("2026-01-05") { 2 } else { 0 };
        let new = DayReconciliation::new(day, billing_time("2026-03-08"));
        assert!(world.table.create_reconciliation(&new).await.unwrap());
        let differences = [(DifferenceKind::ReceiptWithoutPayment, differences)].into_iter().filter(|(_, n)| *n > 0);
        let next = DayReconciliation { differences: differences.collect(), ..new.clone() };
        world.table.update_reconciliation(&new, next).await.unwrap();
    }
    let differences = "differences between the table and the gateway on 2026-01-05: 2".to_owned();
    assert!(status_on(&world, "2026-03-08").await.problems.contains(&differences));

    // The audit of the next night has begun, and has found nothing so far.
    let audit = |ms, day| AuditRecord::new(Ulid::from_parts(ms, 0), false, billing_time(day));
    let violations = [("paid".to_owned(), 3)].into();
    let ended = AuditRecord { violations, ended_at: Some(billing_time("2026-03-07")), ..audit(1, "2026-03-07") };
    for audit in [&ended, &audit(2, "2026-03-08")] {
        world.table.create_audit(audit).await.unwrap();
    }
    let violations = format!("violations that the audit {} found: 3", ended.id);
    assert!(status_on(&world, "2026-03-08").await.problems.contains(&violations));
}
