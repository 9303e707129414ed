//! What was taken on each day, held against the gateway's own ledger.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use audit::{Reading, Report, ReportedDay, UnsettledNow, report, reported_from};
use billing::{Currency, PaymentStatus, Subscription, Token};
use chrono::{DateTime, FixedOffset, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use clock::Clock as _;
use days::DayState;
use emulator::Fault;
use gateways::Entry;
use store::Claim;
use ulid::Ulid;

use crate::world::{SHARDS, World, another, card, date, key, morning};

/// Currency, product, number and sum of a day.
type Rows = Vec<(String, String, u64, i64)>;

/// Currency and product.
type Product = (String, String);

/// What the gateway has taken, by days that begin so many hours before those of UTC.
fn ledger(world: &World, hours: i32) -> BTreeMap<NaiveDate, Rows> {
    let zone = FixedOffset::east_opt(hours * 3_600).unwrap();
    let mut taken: BTreeMap<NaiveDate, BTreeMap<Product, (u64, i64)>> = BTreeMap::new();
    for entry in world.sandbox.entries() {
        let Entry::Payment(made) = entry else { continue };
        if made.status == PaymentStatus::Succeeded {
            let at: DateTime<Utc> = made.created_at;
            let product = (made.request.amount.currency().to_string(), made.request.sku.to_string());
            let day = taken.entry(at.with_timezone(&zone).date_naive()).or_default();
            let (payments, sum) = day.entry(product).or_default();
            (*payments, *sum) = (*payments + 1, *sum + made.request.amount.minor());
        }
    }
    let rows =
        |day: BTreeMap<_, _>| day.into_iter().map(|((currency, sku), (n, sum))| (currency, sku, n, sum)).collect();
    taken.into_iter().map(|(date, day)| (date, rows(day))).collect()
}

/// What is reported of `days` now.
async fn reported(world: &World, zone: Tz, days: RangeInclusive<NaiveDate>) -> Report {
    let reading = Reading { table: &world.table, shards: SHARDS, zone, now: world.clock.now() };
    report(reading, days).await.unwrap()
}

fn sku(account: &str) -> String {
    if account.ends_with(['1', '3']) { "silver" } else { "gold" }.to_owned()
}

fn rows(day: &ReportedDay) -> Rows {
    let row = |taken: &audit::Taken| {
        (taken.sum.currency().to_string(), taken.sku.to_string(), taken.payments, taken.sum.minor())
    };
    day.taken.iter().map(row).collect()
}

/// Two products in two currencies, over January and February; some have no money.
async fn winter(hour: i64) -> World {
    let world = World::new().await;
    for n in 0..8 {
        let new = another(n, i64::from(n) + 5, "2026-01-01");
        let yen = "JPY".parse::<Currency>().unwrap().price(1_500).unwrap();
        let price = if n % 2 == 0 { new.price } else { yen };
        let sku = sku(&new.account.to_string()).parse().unwrap();
        let payment_method =
            if n == 4 { card("pm_card_chargeDeclinedInsufficientFunds") } else { new.payment_method.clone() };
        world.has(&Subscription { price, sku, payment_method, ..new }).await;
    }
    for day in date("2026-01-01").iter_days().take_while(|day| *day <= date("2026-02-28")) {
        let day = day.to_string();
        world.charge_at(&day, morning(&day) + TimeDelta::hours(hour)).await;
    }
    world
}

#[tokio::test]
async fn report_is_what_the_gateway_has_taken_on_each_day() {
    let world = winter(0).await;
    let found = reported(&world, Tz::UTC, date("2026-01-01")..=date("2026-02-28")).await;
    assert!(found.unreadable.is_empty() && found.days.iter().all(|day| day.complete));
    assert_eq!(found.days.len(), 59);
    let taken: BTreeMap<_, _> =
        found.days.iter().filter(|day| !day.taken.is_empty()).map(|day| (day.date, rows(day))).collect();
    assert_eq!(taken, ledger(&world, 0));
    assert_eq!(taken.len(), 14);

    let of_a_week = reported(&world, Tz::UTC, date("2026-01-05")..=date("2026-01-11")).await;
    assert_eq!(of_a_week.days, found.days[4..11], "no day before, no day after");
}

#[tokio::test]
async fn day_of_a_payment_is_that_of_the_billing_zone() {
    let world = winter(15).await;
    let zone: Tz = "Asia/Tokyo".parse().unwrap();
    let found = reported(&world, zone, date("2026-01-01")..=date("2026-03-01")).await;
    let taken: BTreeMap<_, _> =
        found.days.iter().filter(|day| !day.taken.is_empty()).map(|day| (day.date, rows(day))).collect();
    assert_eq!(taken, ledger(&world, 9), "21:00 UTC is six in the morning of the next day there");
}

#[tokio::test]
async fn day_that_was_cut_short_or_left_rows_is_not_complete() {
    let world = World::new().await;
    world.has(&another(1, 10, "2026-01-01")).await;
    world.has(&another(2, 10, "2026-01-01")).await;
    world.next_charge(Fault::LostAfter);
    world.charge("2026-01-10").await;
    let days = date("2026-01-09")..=date("2026-01-10");
    let found = reported(&world, Tz::UTC, days.clone()).await;
    assert_eq!(
        found.days.iter().map(|day| day.complete).collect::<Vec<_>>(),
        [false, false],
        "no run, and one in doubt"
    );
    assert_eq!(found.days[1].taken[0].payments, 1);

    world.charge_at("2026-01-10", morning("2026-01-10") + TimeDelta::hours(2)).await;
    let found = reported(&world, Tz::UTC, days).await;
    assert_eq!((found.days[1].complete, found.days[1].taken[0].payments), (true, 2));
}

#[test]
fn reported_from_is_the_first_day_that_is_there_whole() {
    let kept = TimeDelta::days(190);
    for (zone, now, first) in [
        ("UTC", "2027-01-31T06:00:00Z", "2026-07-26"),
        ("UTC", "2027-01-31T00:00:00Z", "2026-07-26"),
        ("Asia/Tokyo", "2027-01-31T16:00:00Z", "2026-07-27"),
    ] {
        assert_eq!(reported_from(kept, zone.parse().unwrap(), now.parse().unwrap()), date(first), "{zone} {now}");
    }
}

#[tokio::test]
async fn report_of_today_counts_what_is_due_or_open_now() {
    let world = World::new().await;
    world.has(&another(1, 10, "2026-01-01")).await;
    world.charge("2026-01-10").await;
    for n in 2..6 {
        world.has(&another(n, 10, "2026-01-01")).await;
    }
    world.has(&another(6, 11, "2026-01-01")).await;
    world
        .customer(&another(5, 10, "2026-01-01"), |s| Subscription {
            disputed_at: Some(morning("2026-01-09")),
            ..s.clone()
        })
        .await;
    let claim = Claim { token: Token(Ulid(9)), now: world.clock.now(), leased_until: world.clock.now() };
    let of = key(&another(2, 10, "2026-01-01"));
    world.table.claim_payment(&of, date("2026-01-10"), Ulid(7), claim).await.unwrap();
    let found = reported(&world, Tz::UTC, date("2026-01-09")..=date("2026-01-10")).await;
    let now: Vec<_> = found.days.iter().map(|day| day.now).collect();
    assert_eq!(now, [None, Some(UnsettledNow { due: 2, open: 1 })]);
    assert_eq!(found.days[1].state, DayState::Done, "of the run that there was");
}
