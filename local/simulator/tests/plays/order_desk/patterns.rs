//! The access patterns of the orders table return the same as a naive reader of all its items, in list pages of every
//! size, for a company with three years of orders. `DUEDAY_COMPANY_CUSTOMERS=10000` makes the company larger.

use std::collections::{BTreeMap, BTreeSet};

use billing::Money;
use chrono::{Days, NaiveDate, SubsecRound as _};
use dynamo::{Page, TableError};
use orders::{
    DateRange, Employee, EmployeeList, OrderDesk, OrderStatus, OrderToPack, OrdersTable, PaidPeriod, Quarter,
    RefundNews,
};
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use simulator::{Company, CompanySize, euro};
use store::Paging;
use strum::IntoEnumIterator as _;

use crate::order_desk::naive_reader::{NaiveOrder, NaiveReader};
use crate::order_desk::world::{World, fill_all, now};

const SEED: u64 = 7;
/// The page sizes with which the test reads each list: the largest number of items on a list page, or `None` for all
/// items on one list page.
const PAGE_SIZES: [Option<usize>; 4] = [Some(1), Some(7), Some(100), None];
/// The largest number of list pages that the test reads of one list.
const MAX_PAGES: usize = 60;
/// The number of random questions for each access pattern.
const QUESTIONS: usize = 12;

/// Returns the size of the sample company: three years, and 400 customers or the number in the environment variable
/// `DUEDAY_COMPANY_CUSTOMERS`.
fn company_size() -> CompanySize {
    let customers = std::env::var("DUEDAY_COMPANY_CUSTOMERS").map_or(400, |count| count.parse().unwrap());
    CompanySize { customers, months: 36, ..CompanySize::default_size() }
}

/// Creates the history that the test queries: places the orders of all paid months, advances some orders to later
/// statuses, hands some customers over, changes the jobs of some employees, and fills the orders for which stock
/// arrived.
async fn make_history(world: &World, rng: &mut ChaCha8Rng) {
    use OrderStatus::{Cancelled, Delivered, Open, Picked, Returned, Shipped};
    let desk = world.desk_without_faults();
    for (n, paid) in world.company.paid.iter().enumerate() {
        // The event of a refund can come before that of its payment.
        if n % 20 == 0 {
            refund(&desk, paid, paid.amount.minor(), false).await;
        }
        desk.place(paid).await.unwrap();
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
                desk.advance(paid.order, *step).await.unwrap();
            }
        }
        match n % 20 {
            1 | 2 => refund(&desk, paid, paid.amount.minor(), false).await,
            3 | 4 => refund(&desk, paid, paid.amount.minor() / 3, false).await,
            5 => {
                refund(&desk, paid, paid.amount.minor() / 3, false).await;
                refund(&desk, paid, paid.amount.minor() / 3, true).await;
            }
            _ => {}
        }
    }
    change_people(world, &desk, rng).await;
    fill_all(&desk).await;
}

/// Records the refund of a part of the payment `paid`, or that this refund failed.
async fn refund(desk: &OrderDesk, paid: &PaidPeriod, minor: i64, has_failed: bool) {
    let (amount, refund) = (Money::new(minor, paid.amount.currency()), format!("refund of {minor}"));
    let news = RefundNews { order: paid.order, account: paid.account.clone(), refund, amount, has_failed };
    desk.record_refund(&news).await.unwrap();
}

async fn change_people(world: &World, desk: &OrderDesk, rng: &mut ChaCha8Rng) {
    let ordering: Vec<&PaidPeriod> = world.company.paid.iter().collect();
    for _ in 0..20 {
        let customer = &ordering.choose(rng).unwrap().account;
        let representative = format!("e-{}", 10 * rng.random_range(0..20)).parse().unwrap();
        if desk.table.get_customer(customer).await.unwrap().is_some() {
            desk.hand_over(customer, &representative, orders::all_days()).await.unwrap();
        }
    }
    for n in [21, 22, 23] {
        let employee = desk.table.get_employee(&format!("e-{n}").parse().unwrap()).await.unwrap().unwrap();
        let assignment = employee.assignment.clone().unwrap();
        let title = "Chief Picker".parse().unwrap();
        let promoted = (n != 23).then_some(orders::Assignment { job_title: title, ..assignment });
        desk.table.reassign(&employee, promoted.as_ref(), now().date_naive()).await.unwrap();
    }
}

/// Returns the sizes of list pages for a list of `count` items.
fn page_sizes(count: usize) -> impl Iterator<Item = Option<usize>> {
    PAGE_SIZES.into_iter().filter(move |limit| limit.is_none_or(|limit| count <= limit * MAX_PAGES))
}

/// Reads all list pages. Checks that each page except the last one is full.
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

/// Checks that `found`, a list of orders with the instants of their payments, contains the same orders as `expected`, each
/// once, oldest first. Orders of the same instant have no specified sequence.
fn assert_same_orders(found: Vec<(String, String)>, expected: &[(String, String)], question: &str) {
    assert!(found.is_sorted_by_key(|(paid_at, _)| paid_at.clone()), "{question}: {found:?}");
    let mut sorted = found;
    sorted.sort();
    assert_eq!(sorted, expected, "{question}");
}

fn instant(at: chrono::DateTime<chrono::Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// The questions that a test asks, and the naive reader that knows the answers.
struct Questions<'a> {
    world: &'a World,
    table: &'a OrdersTable,
    naive: NaiveReader,
    rng: ChaCha8Rng,
    /// The number of compared answers that were not empty, by access pattern.
    compared: BTreeMap<&'static str, usize>,
    /// The number of lists of orders that were read in list pages of one order each.
    lists_by_one: usize,
}

impl Questions<'_> {
    fn count(&mut self, pattern: &'static str, is_empty: bool) {
        *self.compared.entry(pattern).or_default() += usize::from(!is_empty);
    }

    fn days(&mut self) -> DateRange {
        let first = NaiveDate::from_ymd_opt(2025, 1, 1).unwrap() + Days::new(self.rng.random_range(0..1_000));
        let length =
            if self.rng.random_bool(0.5) { self.rng.random_range(0..10) } else { self.rng.random_range(0..400) };
        (first, first + Days::new(length))
    }

    fn statuses(&mut self) -> Vec<OrderStatus> {
        let all: Vec<OrderStatus> = OrderStatus::iter().collect();
        let count = self.rng.random_range(1..=all.len());
        all.choose_multiple(&mut self.rng, count).copied().collect()
    }

    /// Access patterns 4, 5, 8 and 10, and the list of a warehouse: lists of orders.
    async fn ask_for_orders(&mut self) {
        let (statuses, days) = (self.statuses(), self.days());
        let names: BTreeSet<String> = statuses.iter().map(ToString::to_string).collect();
        let (from, to) = (days.0.to_string(), days.1.to_string());
        let is_within = |order: &super::naive_reader::NaiveOrder| {
            names.contains(&order.status) && *from <= order.paid_at[..10] && order.paid_at[..10] <= *to
        };
        let customers: Vec<String> = self.naive.customers.keys().cloned().collect();
        let customer = customers.choose(&mut self.rng).unwrap().clone();
        let representative = format!("e-{}", 10 * self.rng.random_range(0..20));
        let (product, warehouse) =
            (format!("p-{}", self.rng.random_range(0..50)), format!("wh-{}", self.rng.random_range(0..10)));
        let of_customer = self.naive.orders_where(|order| is_within(order) && order.customer == customer);
        let of_all = self.naive.orders_where(is_within);
        let of_product = self.naive.orders_where(|order| is_within(order) && order.products.contains_key(&product));
        let of_representative =
            self.naive.orders_where(|order| is_within(order) && order.representative.as_ref() == Some(&representative));
        let status = statuses[0];
        let of_warehouse = self
            .naive
            .orders_where(|order| order.status == status.to_string() && order.warehouse.as_ref() == Some(&warehouse));
        self.lists_by_one += usize::from(page_sizes(of_all.len()).next() == Some(Some(1)));
        let question = format!("{customer} {representative} {product} {warehouse} {statuses:?} {days:?}");
        let (table, buckets) = (self.table, self.world.desk.buckets());
        let account = customer.parse().unwrap();
        let (employee, product_id) = (representative.parse().unwrap(), product.parse().unwrap());
        // The refunded amounts of the listed orders.
        let mut refunds: Vec<(String, i64)> = Vec::new();
        for limit in page_sizes(of_all.len().max(of_product.len()).max(of_warehouse.len())) {
            let found = all_pages(limit, async |paging: Paging| {
                table.orders_of_customer(&account, &statuses, days, &paging).await
            });
            let found = found.await;
            refunds.extend(found.iter().map(|order| (order.id.to_string(), order.refunded.minor())));
            let found = found.into_iter().map(|order| (instant(order.placed_at), order.id.to_string())).collect();
            assert_same_orders(found, &of_customer, &question);
            let found =
                all_pages(limit, async |paging: Paging| table.orders_in(&statuses, days, buckets, &paging).await);
            let found = found.await;
            refunds.extend(found.iter().map(|order| (order.id.to_string(), order.refunded.minor())));
            let found = found.into_iter().map(|order| (instant(order.placed_at), order.id.to_string())).collect();
            assert_same_orders(found, &of_all, &question);
            let found = all_pages(limit, async |paging: Paging| {
                table.orders_of_product(&product_id, &statuses, days, &paging).await
            });
            let found =
                found.await.into_iter().map(|order| (instant(order.placed_at), order.order.to_string())).collect();
            assert_same_orders(found, &of_product, &question);
            let found = all_pages(limit, async |paging: Paging| {
                table.orders_of_representative(&employee, &statuses, days, &paging).await
            });
            let found = found.await;
            refunds.extend(found.iter().map(|order| (order.order.to_string(), order.refunded.minor())));
            let found = found.into_iter().map(|order| (instant(order.placed_at), order.order.to_string())).collect();
            assert_same_orders(found, &of_representative, &question);
            for is_newest_first in [false, true] {
                let id = warehouse.parse().unwrap();
                let mut found = all_pages(limit, async |paging: Paging| {
                    table.orders_of_warehouse(&id, status, is_newest_first, &paging).await
                })
                .await;
                if is_newest_first {
                    found.reverse();
                }
                let found =
                    found.into_iter().map(|OrderToPack { order, .. }| (instant(order.placed_at), order.id.to_string()));
                assert_same_orders(found.collect(), &of_warehouse, &question);
            }
        }
        for (id, refunded) in &refunds {
            assert_eq!(*refunded, self.naive.refunded(id), "{id}");
        }
        self.count("refunds", refunds.iter().all(|(_, refunded)| *refunded == 0));
        self.count("orders of a customer", of_customer.is_empty());
        self.count("orders in a status", of_all.is_empty());
        self.count("orders of a product", of_product.is_empty());
        self.count("orders of a representative", of_representative.is_empty());
        self.count("orders of a warehouse", of_warehouse.is_empty());
    }

    /// Access patterns 2, 6, 7, 9 and 11: lists of employees and customers.
    async fn ask_for_people(&mut self) {
        let employee =
            self.naive.employees.values().collect::<Vec<_>>().choose(&mut self.rng).copied().unwrap().clone();
        let warehouse = format!("wh-{}", self.rng.random_range(0..10));
        let representative = format!("e-{}", 10 * self.rng.random_range(0..20));
        let title = *["Picker", "account  MANAGER", "Chief picker"].choose(&mut self.rng).unwrap();
        let hired_after = NaiveDate::from_ymd_opt(2019, 6, 1).unwrap() + Days::new(self.rng.random_range(0..2_000));
        let department = *["sales", "logistics", "office"].choose(&mut self.rng).unwrap();

        let simple = |text: &str| text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        let named = self.naive.employees_where(|other| simple(&other.name) == simple(&employee.name));
        let titled = self.naive.employees_where(|other| other.title.as_deref().map(simple) == Some(simple(title)));
        let working = self.naive.employees_where(|other| other.warehouse.as_ref() == Some(&warehouse));
        let of_department = self.naive.employees_where(|other| other.department.as_deref() == Some(department));
        let today = now().date_naive().to_string();
        let hired =
            self.naive.employees_where(|other| other.hired_on > hired_after.to_string() && other.hired_on <= today);
        let customers: Vec<String> = self
            .naive
            .customers
            .iter()
            .filter(|(_, of)| of.as_ref() == Some(&representative))
            .map(|(id, _)| id.clone())
            .collect();
        let (table, name) = (self.table, employee.name.to_uppercase());
        let (warehouse_id, department_id) = (warehouse.parse().unwrap(), department.parse().unwrap());
        let representative_id = representative.parse().unwrap();
        for limit in page_sizes(hired.len().max(customers.len())) {
            let found =
                all_pages(limit, async |paging: Paging| table.employees(EmployeeList::WithName(&name), &paging).await)
                    .await;
            self.assert_current_copies(&found);
            assert_eq!(found.iter().map(|one| one.id.to_string()).collect::<Vec<_>>(), named, "{name}");
            let found =
                all_pages(limit, async |paging: Paging| table.employees(EmployeeList::WithTitle(title), &paging).await)
                    .await;
            self.assert_current_copies(&found);
            assert_eq!(found.iter().map(|one| one.id.to_string()).collect::<Vec<_>>(), titled, "{title}");
            let found = all_pages(limit, async |paging: Paging| {
                table.employees(EmployeeList::OfWarehouse(&warehouse_id), &paging).await
            });
            let found = found.await;
            self.assert_current_copies(&found);
            let found: Vec<String> = found.iter().map(|one| one.id.to_string()).collect();
            assert_eq!(found, working, "{warehouse}");
            let found = all_pages(limit, async |paging: Paging| {
                table.employees(EmployeeList::OfDepartment(&department_id), &paging).await
            });
            let found = found.await;
            self.assert_current_copies(&found);
            let found: Vec<String> = found.iter().map(|one| one.id.to_string()).collect();
            assert_eq!(found, of_department, "{department}");
            let found = all_pages(limit, async |paging: Paging| {
                table.employees(EmployeeList::Hired { after: hired_after, today: now().date_naive() }, &paging).await
            });
            let found = found.await;
            self.assert_current_copies(&found);
            let found: Vec<String> = found.iter().map(|one| one.id.to_string()).collect();
            assert!(found.is_sorted_by_key(|id| self.naive.employees[id].hired_on.clone()), "{hired_after}");
            assert_eq!((found.len(), BTreeSet::from_iter(found)), (hired.len(), hired.iter().cloned().collect()));
            let found = all_pages(limit, async |paging: Paging| {
                table.customers_of_representative(&representative_id, &paging).await
            });
            let found: Vec<String> = found.await.iter().map(ToString::to_string).collect();
            assert_eq!(found, customers, "{representative}");
        }
        self.count("employees by name", named.is_empty());
        self.count("employees by title", titled.is_empty());
        self.count("employees of a warehouse", working.is_empty());
        self.count("employees of a department", of_department.is_empty());
        self.count("employees by hire date", hired.is_empty());
        self.count("customers of a representative", customers.is_empty());
    }

    /// Asserts that the lists of employees contain the current data of each employee in `found`.
    fn assert_current_copies(&self, found: &[Employee]) {
        for Employee { id, name, assignment, .. } in found {
            let naive = &self.naive.employees[&id.to_string()];
            let title = assignment.as_ref().map(|assignment| assignment.job_title.as_str().to_owned());
            let department = assignment.as_ref().map(|assignment| assignment.department.to_string());
            let warehouse =
                assignment.as_ref().and_then(|assignment| assignment.warehouse.as_ref()).map(ToString::to_string);
            assert_eq!(
                (name.as_str(), title, department, warehouse),
                (naive.name.as_str(), naive.title.clone(), naive.department.clone(), naive.warehouse.clone()),
                "{id}"
            );
        }
    }

    /// Access patterns 1, 3, 8, 12, 13 and 14: single entities, stock and the ranking.
    async fn ask_for_details(&mut self) {
        let ids: Vec<String> = self.naive.employees.keys().cloned().collect();
        let id = ids.choose(&mut self.rng).unwrap().clone();
        let (naive, employee) = (&self.naive.employees[&id], id.parse().unwrap());
        let details = self.table.employee_details(&employee).await.unwrap().unwrap();
        let jobs: BTreeMap<String, String> =
            details.jobs.iter().map(|job| (job.from.to_string(), job.job_title.as_str().to_owned())).collect();
        assert_eq!((details.employee.name.as_str(), &jobs), (naive.name.as_str(), &naive.jobs), "{id}");
        let day = NaiveDate::from_ymd_opt(2019, 6, 1).unwrap() + Days::new(self.rng.random_range(0..3_000));
        let expected = naive.jobs.range(..=day.to_string()).next_back().map(|(_, title)| title.clone());
        let current = self.table.current_job(&employee, day).await.unwrap();
        assert_eq!(current.map(|job| job.job_title.as_str().to_owned()), expected, "{id} {day}");
        self.count("current job", expected.is_none());

        let product = format!("p-{}", self.rng.random_range(0..50));
        let (product_id, expected) = (product.parse().unwrap(), self.naive.stock_of(&product));
        let (orders, stock) = self.table.orders_and_stock_of_product(&product_id).await.unwrap();
        let in_warehouses = |stock: &[orders::Stock]| -> BTreeMap<String, i64> {
            stock.iter().map(|one| (one.warehouse.to_string(), i64::try_from(one.quantity).unwrap())).collect()
        };
        assert_eq!(in_warehouses(&stock), expected, "{product}");
        let containing = self.naive.orders_where(|order| order.products.contains_key(&product));
        let found: BTreeSet<String> = orders.iter().map(|order| order.order.to_string()).collect();
        assert_eq!((orders.len(), found), (containing.len(), containing.iter().map(|(_, id)| id.clone()).collect()));
        // The key of the warehouse wh-1 is a prefix of the key of wh-10, but the stock of wh-10 must not be returned.
        let one = self.table.get_stock(&product_id, Some(&"wh-1".parse().unwrap())).await.unwrap();
        assert_eq!(in_warehouses(&one).into_iter().collect::<Vec<_>>(), [("wh-1".to_owned(), expected["wh-1"])]);
        let total = self.table.get_product(&product_id).await.unwrap().unwrap().total_stock;
        assert_eq!(i64::try_from(total).unwrap(), expected.values().sum::<i64>(), "{product}");
        self.count("stock of a product", expected.is_empty());

        let quarter = format!("202{}-Q{}", self.rng.random_range(5..8), self.rng.random_range(1..5));
        let ranking = self.table.get_ranking(quarter.parse::<Quarter>().unwrap(), euro()).await.unwrap();
        let found = ranking.iter().map(|total| (total.total.minor(), total.representative.to_string()));
        // The total of a representative whose orders were all cancelled or refunded stays in the ranking as 0. The naive
        // reader does not return such totals, so they are left out.
        let found: Vec<_> = found.filter(|(sum, _)| *sum != 0).collect();
        let expected = self.naive.ranking(&quarter);
        assert_eq!(found, expected, "{quarter}");
        self.count("ranking", expected.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn access_patterns_return_the_same_as_a_naive_reader_of_all_items() {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut company = Company::new(company_size(), SEED);
    // All payments of the same second get the same instant, so some list pages end between orders with equal instants.
    company.paid.iter_mut().for_each(|paid| paid.paid_at = paid.paid_at.trunc_subsecs(0));
    let world = World::new(company, 60).await;
    make_history(&world, &mut rng).await;
    world.assert_consistent(&world.company.paid, "after three years").await;
    let (naive, _) = NaiveReader::read(&world.engine).await;
    let statuses: BTreeSet<&str> = naive.orders.values().map(|order| order.status.as_str()).collect();
    assert_eq!(statuses.len(), OrderStatus::iter().count(), "each status must occur: {statuses:?}");
    // The refunds are compared with those of each kind of order: refunded in part, in full before and after the shipment.
    for (is_in_full, is_cancelled) in [(false, false), (true, false), (true, true)] {
        let is_such = |order: &&NaiveOrder| {
            (order.refunds == order.amount, order.status == "CANCELLED") == (is_in_full, is_cancelled)
        };
        let refunded = naive.orders.values().filter(|order| order.refunds > 0);
        assert!(refunded.filter(is_such).count() > 5, "in full: {is_in_full}, cancelled: {is_cancelled}");
    }
    let desk = world.desk_without_faults();
    let mut questions =
        Questions { world: &world, table: &desk.table, naive, rng, compared: BTreeMap::new(), lists_by_one: 0 };
    for _ in 0..QUESTIONS {
        questions.ask_for_orders().await;
        questions.ask_for_people().await;
        questions.ask_for_details().await;
    }
    assert!(desk.table.employee_details(&"unknown".parse().unwrap()).await.unwrap().is_none());
    for (pattern, compared) in &questions.compared {
        assert!(*compared > 0, "each answer about {pattern} was empty");
    }
    assert_eq!(questions.compared.len(), 15);
    assert!(questions.lists_by_one > 0);
}
