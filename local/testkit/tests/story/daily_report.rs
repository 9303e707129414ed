//! Tests of the report of the payments of each day, compared with the sandbox gateway's ledger.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use audit::{ReportSource, ReportedDay, SalesReport, UnsettledNow, build_sales_report, first_reportable_day};
use billing::{ClaimToken, Currency, PaymentStatus, PolicySetting, Subscription};
use chrono::{DateTime, FixedOffset, NaiveDate, TimeDelta, Utc};
use clock::Clock as _;
use days::DayState;
use emulator::Fault;
use sandbox::LedgerEntry;
use store::Claim;
use ulid::Ulid;

use crate::world::{World, billing_time, card, date, key, numbered_subscription};

/// The payments of a day, grouped by product. Each tuple contains the currency, the SKU, the number of payments, and
/// the sum of the payments in minor units.
type Rows = Vec<(String, String, u64, i64)>;

/// The currency and the SKU, by which the payments of a day are grouped.
type Product = (String, String);

/// Returns the rows of the successful payments in the sandbox's ledger by day, in a time zone that is `hours` ahead of
/// UTC.
fn ledger_by_day(world: &World, hours: i32) -> BTreeMap<NaiveDate, Rows> {
    let zone = FixedOffset::east_opt(hours * 3_600).unwrap();
    let mut days: BTreeMap<NaiveDate, BTreeMap<Product, (u64, i64)>> = BTreeMap::new();
    for entry in world.sandbox.entries() {
        let LedgerEntry::Payment(payment) = entry else { continue };
        if payment.status == PaymentStatus::Succeeded {
            let at: DateTime<Utc> = payment.created_at;
            let product = (payment.request.amount.currency().to_string(), payment.request.sku.to_string());
            let day = days.entry(at.with_timezone(&zone).date_naive()).or_default();
            let (payments, sum) = day.entry(product).or_default();
            (*payments, *sum) = (*payments + 1, *sum + payment.request.amount.minor());
        }
    }
    let rows =
        |day: BTreeMap<_, _>| day.into_iter().map(|((currency, sku), (n, sum))| (currency, sku, n, sum)).collect();
    days.into_iter().map(|(date, day)| (date, rows(day))).collect()
}

/// Returns the report of `days`, computed at the current time of the world's clock.
async fn create_report(world: &World, days: RangeInclusive<NaiveDate>) -> SalesReport {
    let settings = &world.table.get_settings().await.unwrap().unwrap();
    let source = ReportSource { table: &world.table, settings, now: world.clock.now() };
    build_sales_report(source, days).await.unwrap()
}

/// Returns the SKU of the product that `account` buys in these tests.
fn sku_of_account(account: &str) -> String {
    if account.ends_with(['1', '3']) { "silver" } else { "gold" }.to_owned()
}

/// Returns the rows of a day of the report.
fn reported_rows(day: &ReportedDay) -> Rows {
    let row = |sales: &audit::ProductSales| {
        (sales.sum.currency().to_string(), sales.sku.to_string(), sales.payments, sales.sum.minor())
    };
    day.taken.iter().map(row).collect()
}

/// Creates a world and runs its payment batch on each day of January and February, `hour` hours after the billing time.
/// There are two products in two currencies, and one card is always declined.
async fn world_after_two_months(hour: i64) -> World {
    let world = World::new().await;
    for n in 0..8 {
        let new = numbered_subscription(n, i64::from(n) + 5, "2026-01-01");
        let yen = "JPY".parse::<Currency>().unwrap().price(1_500).unwrap();
        let price = if n % 2 == 0 { new.price } else { yen };
        let sku = sku_of_account(&new.account.to_string()).parse().unwrap();
        let payment_method =
            if n == 4 { card("pm_card_chargeDeclinedInsufficientFunds") } else { new.payment_method.clone() };
        world.store(&Subscription { price, sku, payment_method, ..new }).await;
    }
    for day in date("2026-01-01").iter_days().take_while(|day| *day <= date("2026-02-28")) {
        let day = day.to_string();
        world.run_reminders(&day).await;
        world.run_payments_at(&day, billing_time(&day) + TimeDelta::hours(hour)).await;
    }
    world
}

#[tokio::test]
async fn report_equals_the_gateways_payments_of_each_day() {
    let world = world_after_two_months(0).await;
    let found = create_report(&world, date("2026-01-01")..=date("2026-02-28")).await;
    assert!(found.unreadable.is_empty() && found.days.iter().all(|day| day.complete));
    assert_eq!(found.days.len(), 59);
    let sales_by_day: BTreeMap<_, _> =
        found.days.iter().filter(|day| !day.taken.is_empty()).map(|day| (day.date, reported_rows(day))).collect();
    assert_eq!(sales_by_day, ledger_by_day(&world, 0));
    assert_eq!(sales_by_day.len(), 14);

    let week = create_report(&world, date("2026-01-05")..=date("2026-01-11")).await;
    assert_eq!(week.days, found.days[4..11], "the report contains only the requested days");
}

#[tokio::test]
async fn payment_is_reported_on_its_day_in_the_billing_time_zone() {
    let world = world_after_two_months(15).await;
    world.set_policy(PolicySetting::TimeZone, "Asia/Tokyo").await;
    world.table.refresh_policy(world.clock.now() + TimeDelta::minutes(2)).await.unwrap();
    let found = create_report(&world, date("2026-01-01")..=date("2026-03-01")).await;
    let sales_by_day: BTreeMap<_, _> =
        found.days.iter().filter(|day| !day.taken.is_empty()).map(|day| (day.date, reported_rows(day))).collect();
    assert_eq!(sales_by_day, ledger_by_day(&world, 9), "21:00 UTC is 06:00 of the next day in Tokyo");
}

#[tokio::test]
async fn day_without_a_run_or_with_an_attempt_in_doubt_is_not_complete() {
    let world = World::new().await;
    world.store(&numbered_subscription(1, 10, "2026-01-01")).await;
    world.store(&numbered_subscription(2, 10, "2026-01-01")).await;
    world.inject_charge_fault(Fault::LostAfter);
    world.run_reminders("2026-01-10").await;
    world.run_payments("2026-01-10").await;
    let days = date("2026-01-09")..=date("2026-01-10");
    let found = create_report(&world, days.clone()).await;
    assert_eq!(
        found.days.iter().map(|day| day.complete).collect::<Vec<_>>(),
        [false, false],
        "no run on the first day, and an attempt in doubt on the second"
    );
    assert_eq!(found.days[1].taken[0].payments, 1);

    world.run_payments_at("2026-01-10", billing_time("2026-01-10") + TimeDelta::hours(2)).await;
    let found = create_report(&world, days).await;
    assert_eq!((found.days[1].complete, found.days[1].taken[0].payments), (true, 2));
}

#[test]
fn first_reportable_day_is_the_first_day_without_expired_receipts() {
    let kept = TimeDelta::days(190);
    for (zone, now, first) in [
        ("UTC", "2027-01-31T06:00:00Z", "2026-07-26"),
        ("UTC", "2027-01-31T00:00:00Z", "2026-07-26"),
        ("Asia/Tokyo", "2027-01-31T16:00:00Z", "2026-07-27"),
    ] {
        assert_eq!(
            first_reportable_day(kept, zone.parse().unwrap(), now.parse().unwrap()),
            date(first),
            "{zone} {now}"
        );
    }
}

#[tokio::test]
async fn report_of_today_contains_the_number_of_due_and_open_payments() {
    let world = World::new().await;
    world.store(&numbered_subscription(1, 10, "2026-01-01")).await;
    world.run_reminders("2026-01-10").await;
    world.run_payments("2026-01-10").await;
    for n in 2..6 {
        world.store(&numbered_subscription(n, 10, "2026-01-01")).await;
    }
    world.store(&numbered_subscription(6, 11, "2026-01-01")).await;
    world
        .change_subscription(&numbered_subscription(5, 10, "2026-01-01"), |s| Subscription {
            disputed_at: Some(billing_time("2026-01-09")),
            ..s.clone()
        })
        .await;
    let claim = Claim { token: ClaimToken(Ulid(9)), now: world.clock.now(), leased_until: world.clock.now() };
    let claimed = key(&numbered_subscription(2, 10, "2026-01-01"));
    world.table.claim_payment(&claimed, date("2026-01-10"), Ulid(7), claim).await.unwrap();
    let found = create_report(&world, date("2026-01-09")..=date("2026-01-10")).await;
    let now: Vec<_> = found.days.iter().map(|day| day.now).collect();
    assert_eq!(now, [None, Some(UnsettledNow { due: 2, open: 1 })]);
    assert_eq!(
        found.days[1].state,
        DayState::Done,
        "the state is that of the run, which was before the new subscriptions"
    );
}
