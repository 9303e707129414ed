//! Checks that the access patterns of the orders table return the same results as a naive reader, which scans all
//! items. The table contains three years of orders of a sample company, and the lists are read with several page sizes.
//! The environment variable `DUEDAY_COMPANY_CUSTOMERS=10000` makes the company larger.

mod details;
mod listed_order;
mod order_lists;
mod people;

use std::collections::{BTreeMap, BTreeSet};

use billing::Money;
use chrono::{Days, NaiveDate, SubsecRound as _};
use dynamo::{Page, TableError};
use orders::{DateRange, OrderStatus, PaidPeriod, RefundEvent};
use orders_desk::OrderDesk;
use orders_table::OrdersTable;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use simulator::{Company, CompanySize};
use store::Paging;
use strum::IntoEnumIterator as _;

use crate::order_desk::naive_reader::{NaiveReader, ScannedOrder};
use crate::order_desk::world::{World, fill_all, test_time};

/// The seed of the random company, of its history, and of the parameters of the access patterns.
const SEED: u64 = 7;
/// The page sizes with which the test reads each list. A page size is the maximum number of items on a list page, or
/// `None` for all items on one list page.
const PAGE_SIZES: [Option<usize>; 4] = [Some(1), Some(7), Some(100), None];
/// The maximum number of list pages of one list. Page sizes that would lead to more list pages are left out, to save
/// time.
const MAX_PAGES: usize = 60;
/// The number of comparisons of each access pattern, each with other random parameters.
const COMPARISONS: usize = 12;

/// Returns the size of the sample company: three years, and 400 customers or the number in the environment variable
/// `DUEDAY_COMPANY_CUSTOMERS`.
fn company_size() -> CompanySize {
    let customers = std::env::var("DUEDAY_COMPANY_CUSTOMERS").map_or(400, |count| count.parse().unwrap());
    CompanySize { customers, months: 36, ..CompanySize::default_size() }
}

/// Creates the history of the company in the table:
///
/// - places an order for each payment;
/// - advances some orders to later statuses, and records refunds of some payments;
/// - assigns some customers to another representative, and changes the jobs of some employees;
/// - processes the fill tasks.
async fn make_history(world: &World, rng: &mut ChaCha8Rng) {
    use OrderStatus::{Cancelled, Delivered, Open, Picked, Returned, Shipped};
    let desk = world.desk_without_faults();
    for (n, paid) in world.company.paid.iter().enumerate() {
        // The event of a refund can arrive before the event of its payment.
        if n % 20 == 0 {
            record_refund(&desk, paid, paid.amount.minor(), false).await;
        }
        desk.place_order(paid).await.unwrap();
        let steps: &[OrderStatus] = match rng.random_range(0..8) {
            0 => &[Picked],
            1 => &[Picked, Shipped],
            2 => &[Picked, Shipped, Delivered],
            3 => &[Picked, Shipped, Returned],
            4 => &[Cancelled],
            _ => &[],
        };
        let order = desk.table.get_order(paid.order).await.unwrap();
        if order.is_some_and(|(order, _)| order.status == Open) {
            for step in steps {
                desk.advance_order(paid.order, *step).await.unwrap();
            }
        }
        match n % 20 {
            1 | 2 => record_refund(&desk, paid, paid.amount.minor(), false).await,
            3 | 4 => record_refund(&desk, paid, paid.amount.minor() / 3, false).await,
            5 => {
                record_refund(&desk, paid, paid.amount.minor() / 3, false).await;
                record_refund(&desk, paid, paid.amount.minor() / 3, true).await;
            }
            _ => {}
        }
    }
    change_representatives_and_jobs(world, &desk, rng).await;
    fill_all(&desk).await;
}

/// Records a refund of `minor` minor units of the payment `paid`. If `has_failed` is true, records that this refund
/// failed.
async fn record_refund(desk: &OrderDesk, paid: &PaidPeriod, minor: i64, has_failed: bool) {
    let (amount, refund) = (Money::new(minor, paid.amount.currency()), format!("refund of {minor}"));
    let news = RefundEvent { order: paid.order, account: paid.account.clone(), refund, amount, has_failed };
    desk.record_refund(&news).await.unwrap();
}

/// Assigns 20 random customers to another representative, and changes the jobs of three employees.
async fn change_representatives_and_jobs(world: &World, desk: &OrderDesk, rng: &mut ChaCha8Rng) {
    let ordering: Vec<&PaidPeriod> = world.company.paid.iter().collect();
    for _ in 0..20 {
        let customer = &ordering.choose(rng).unwrap().account;
        let representative = format!("e-{}", 10 * rng.random_range(0..20)).parse().unwrap();
        if desk.table.get_customer(customer).await.unwrap().is_some() {
            desk.hand_over_customer(customer, &representative).await.unwrap();
        }
    }
    for n in [21, 22, 23] {
        let employee = desk.table.get_employee(&format!("e-{n}").parse().unwrap()).await.unwrap().unwrap();
        let assignment = employee.assignment.clone().unwrap();
        let title = "Chief Picker".parse().unwrap();
        let promoted = (n != 23).then_some(orders::Assignment { job_title: title, ..assignment });
        desk.table.reassign_employee(&employee, promoted.as_ref(), test_time().date_naive()).await.unwrap();
    }
}

/// Returns the page sizes with which the test reads a list of `count` items.
fn page_sizes(count: usize) -> impl Iterator<Item = Option<usize>> {
    PAGE_SIZES.into_iter().filter(move |limit| limit.is_none_or(|limit| count <= limit * MAX_PAGES))
}

/// Reads all list pages of a list with the page size `limit`, and returns their items. Checks that each list page
/// except the last one is full.
async fn all_pages<T>(limit: Option<usize>, read: impl AsyncFn(Paging) -> Result<Page<T>, TableError>) -> Vec<T> {
    let (mut items, mut after) = (Vec::new(), None);
    loop {
        let page = read(Paging { after, limit }).await.unwrap();
        assert!(page.unreadable.is_empty(), "{:?}", page.unreadable);
        assert!(page.next.is_none() || Some(page.items.len()) == limit, "a page of {} items", page.items.len());
        items.extend(page.items);
        assert!(items.len() < 1_000_000, "the list has no end");
        match page.next {
            None => return items,
            next => after = next,
        }
    }
}

/// Formats a time like the table does, with milliseconds.
fn time_text(at: chrono::DateTime<chrono::Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Asserts that each stored order has the customer, the amount and the time of its payment, and the products of the
/// SKU.
fn assert_orders_match_payments(naive: &NaiveReader, company: &Company) {
    let mut paid = 0;
    for period in &company.paid {
        let (_, lines) = company.skus.iter().find(|(sku, _)| *sku == period.sku).unwrap();
        let Some(order) = naive.orders.get(&period.order.to_string()) else {
            assert!(lines.is_empty(), "{}: no order", period.order);
            continue;
        };
        let products = lines.iter().map(|line| (line.product.to_string(), i64::from(line.quantity))).collect();
        let found = (&*order.customer, order.amount, &*order.currency, &order.paid_at, &order.products);
        let (customer, currency) = (period.account.to_string(), period.amount.currency().to_string());
        let expected = (&*customer, period.amount.minor(), &*currency, &time_text(period.paid_at), &products);
        assert_eq!(found, expected, "{}", period.order);
        paid += 1;
    }
    assert_eq!(paid, naive.orders.len());
}

/// Compares the results of the access patterns with those of the naive reader, for random parameters.
struct RandomComparisons<'a> {
    world: &'a World,
    table: &'a OrdersTable,
    naive: NaiveReader,
    rng: ChaCha8Rng,
    /// The number of comparisons whose result was not empty, by access pattern.
    compared: BTreeMap<&'static str, usize>,
    /// The number of lists of orders that were also read with the page size 1.
    lists_by_one: usize,
}

impl RandomComparisons<'_> {
    /// Counts a comparison of the access pattern `pattern`, if its result was not empty.
    fn count_comparison(&mut self, pattern: &'static str, is_empty: bool) {
        *self.compared.entry(pattern).or_default() += usize::from(!is_empty);
    }

    /// Returns a random date range between 2025 and 2028.
    fn random_days(&mut self) -> DateRange {
        let first = NaiveDate::from_ymd_opt(2025, 1, 1).unwrap() + Days::new(self.rng.random_range(0..1_000));
        let length =
            if self.rng.random_bool(0.5) { self.rng.random_range(0..10) } else { self.rng.random_range(0..400) };
        (first, first + Days::new(length))
    }

    /// Returns random order statuses, at least one.
    fn random_statuses(&mut self) -> Vec<OrderStatus> {
        let all: Vec<OrderStatus> = OrderStatus::iter().collect();
        let count = self.rng.random_range(1..=all.len());
        all.choose_multiple(&mut self.rng, count).copied().collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn access_patterns_return_the_same_as_a_naive_reader_of_all_items() {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut company = Company::new(company_size(), SEED);
    // Removes the fractions of a second from the times of the payments. So some orders have equal times, and some list
    // pages end between such orders.
    company.paid.iter_mut().for_each(|paid| paid.paid_at = paid.paid_at.trunc_subsecs(0));
    let world = World::new(company, 60).await;
    make_history(&world, &mut rng).await;
    world.assert_consistent(&world.company.paid, "after three years").await;
    let (naive, _) = NaiveReader::read(&world.engine).await;
    assert_orders_match_payments(&naive, &world.company);
    let statuses: BTreeSet<&str> = naive.orders.values().map(|order| order.status.as_str()).collect();
    assert_eq!(statuses.len(), OrderStatus::iter().count(), "each status must occur: {statuses:?}");
    // Each kind of refunded order must occur: partly refunded, fully refunded without a cancellation (after the
    // shipment), and fully refunded with a cancellation (before the shipment).
    for (is_in_full, is_cancelled) in [(false, false), (true, false), (true, true)] {
        let is_such = |order: &&ScannedOrder| {
            (order.refunds == order.amount, order.status == "CANCELLED") == (is_in_full, is_cancelled)
        };
        let refunded = naive.orders.values().filter(|order| order.refunds > 0);
        assert!(refunded.filter(is_such).count() > 5, "in full: {is_in_full}, cancelled: {is_cancelled}");
    }
    let desk = world.desk_without_faults();
    let mut comparisons =
        RandomComparisons { world: &world, table: &desk.table, naive, rng, compared: BTreeMap::new(), lists_by_one: 0 };
    for _ in 0..COMPARISONS {
        comparisons.compare_orders().await;
        comparisons.compare_people().await;
        comparisons.compare_details().await;
    }
    assert!(desk.table.employee_details(&"unknown".parse().unwrap()).await.unwrap().is_none());
    for (pattern, compared) in &comparisons.compared {
        assert!(*compared > 0, "each answer about {pattern} was empty");
    }
    assert_eq!(comparisons.compared.len(), 16);
    assert!(comparisons.lists_by_one > 0);
}
