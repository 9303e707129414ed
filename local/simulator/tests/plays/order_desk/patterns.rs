//! The fourteen access patterns of the orders table, with two years of orders of a thousand customers.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use orders::{OrderStatus, Quarter};
use simulator::{Company, CompanySize, OrdersTableContents, StoredItem, euro};
use store::Paging;
use strum::IntoEnumIterator as _;

use crate::order_desk::world::{BUCKETS, World, all_days, now};

const SEED: u64 = 7;

/// Returns the size of the sample company; an environment variable can change its number of customers.
fn company_size() -> CompanySize {
    let customers = std::env::var("DUEDAY_COMPANY_CUSTOMERS").map_or(1_000, |count| count.parse().unwrap());
    CompanySize { customers, ..CompanySize::default_size() }
}

/// Returns the partition keys that begin with `from` and have an edge (an item that connects two entities) to `end`.
/// The attribute `Data` of the edge must fulfil the condition `data`.
fn edges_to(contents: &OrdersTableContents, end: &str, from: &str, data: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let is_match =
        |edge: &&StoredItem| edge.sk == end && edge.pk.starts_with(from) && edge.data.as_deref().is_some_and(&data);
    contents.items.iter().filter(is_match).map(|edge| edge.pk.clone()).collect()
}

/// Converts ids to keys, by adding `prefix` to each id.
fn with_prefix<T: ToString>(prefix: &str, ids: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    ids.into_iter().map(|id| format!("{prefix}{}", id.to_string())).collect()
}

/// Counts the requests of the order desk to the table. The second field contains the totals at the last count.
struct RequestCounter<'a>(&'a World, BTreeMap<String, u64>);

impl RequestCounter<'_> {
    /// Returns the number of requests since the last call of this function.
    fn since_last_call(&mut self) -> u64 {
        let totals = self.0.wire.requests();
        let count = |all: &BTreeMap<String, u64>| all.values().sum::<u64>();
        let new = count(&totals) - count(&self.1);
        self.1 = totals;
        new
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn access_patterns_return_the_same_as_a_full_scan_with_the_expected_number_of_requests() {
    let company = Company::new(company_size(), SEED);
    let world = World::new(company, 2_000).await;
    let desk = world.desk_without_faults();
    for (n, paid) in world.company.paid.iter().enumerate() {
        desk.place(paid).await.unwrap();
        // Some of the open orders move to a later status.
        let id = paid.order;
        let moves: &[OrderStatus] = match n % 5 {
            _ if desk.table.get_order(id).await.unwrap().is_none_or(|(order, _)| order.status != OrderStatus::Open) => {
                &[]
            }
            0 => &[],
            1 => &[OrderStatus::Picked],
            2 => &[OrderStatus::Picked, OrderStatus::Shipped],
            3 => &[OrderStatus::Picked, OrderStatus::Shipped, OrderStatus::Delivered],
            _ => &[OrderStatus::Cancelled],
        };
        for next in moves.iter().filter(|_| n % 4 == 0) {
            desk.advance(id, *next).await.unwrap();
        }
    }
    world.assert_consistent(&world.company.paid, "after two years").await;
    let contents = world.contents().await;
    let (table, mut requests) = (&world.desk.table, RequestCounter(&world, world.wire.requests()));
    let day = |text: &str| text.parse::<NaiveDate>().unwrap();
    let employee = &world.company.employees[20].0;
    let representative: orders::EmployeeId = "e-10".parse().unwrap();

    // Access pattern 1: all items of one employee.
    let details = table.employee_details(&employee.id).await.unwrap().unwrap();
    assert_eq!((details.employee.name.as_str(), requests.since_last_call()), (employee.name.as_str(), 1));
    let items_of = |pk: &str| contents.items.iter().filter(|edge| edge.pk == pk).cloned().collect::<Vec<_>>();
    let stored = items_of(&format!("EMP#{}", employee.id));
    assert_eq!(details.jobs.len(), stored.iter().filter(|edge| edge.sk.starts_with("JH#")).count());
    assert_eq!(details.totals.len(), stored.iter().filter(|edge| edge.sk.contains("-Q")).count());
    assert!(table.employee_details(&"unknown".parse().unwrap()).await.unwrap().is_none());
    requests.since_last_call();

    // Access pattern 2: employees by name, in any case.
    let named = table
        .employees_by_name(&employee.name.as_str().to_uppercase(), &Paging::all())
        .await
        .unwrap()
        .into_items()
        .unwrap();
    let end = format!("NAME#{}", employee.name.as_str().to_lowercase());
    assert_eq!(
        (with_prefix("EMP#", named.iter().map(|e| &e.id)), requests.since_last_call()),
        (edges_to(&contents, &end, "EMP#", |_| true), 1)
    );

    // The lists of employees contain the same data as the items of the employees.
    let second_desk = world.desk_without_faults();
    for listed in &named {
        assert_eq!(second_desk.table.get_employee(&listed.id).await.unwrap().as_ref(), Some(listed));
    }

    // Access pattern 3: the current job only.
    let assignment = details.employee.assignment.clone().unwrap();
    let promoted = orders::Assignment { job_title: "Chief Picker".parse().unwrap(), ..assignment };
    let written = second_desk.table.reassign(&details.employee, Some(&promoted), day("2027-02-01")).await.unwrap();
    assert_eq!(written, orders::WriteOutcome::Done);
    let job = table.current_job(&employee.id, now().date_naive()).await.unwrap().unwrap();
    assert_eq!((job.job_title.as_str(), job.from, requests.since_last_call()), ("Chief Picker", day("2027-02-01"), 1));
    let contents = world.contents().await;

    // Access pattern 4: the orders of a customer in a date range.
    let customer = &world.company.customers[0].0;
    let days = (day("2025-03-01"), day("2026-02-28"));
    let every: Vec<OrderStatus> = OrderStatus::iter().collect();
    let within = |placed: &str, (from, to): (NaiveDate, NaiveDate)| {
        (from.to_string().as_str()..=to.to_string().as_str()).contains(&&placed[..10])
    };
    let found = table.orders_of_customer(customer, &every, days, &Paging::all()).await.unwrap().into_items().unwrap();
    let of_customer = format!("CUSTOMER#{customer}");
    let expected: BTreeSet<String> = contents
        .orders
        .iter()
        .filter(|(_, order)| order.customer == of_customer && within(&order.placed_at, days))
        .map(|(id, _)| id.clone())
        .collect();
    assert!(expected.len() >= 11, "{expected:?}");
    assert_eq!(
        (with_prefix("ORDER#", found.iter().map(|o| o.id)), requests.since_last_call()),
        (expected, every.len() as u64)
    );
    assert!(found.is_sorted_by_key(|order| order.placed_at));

    // Access pattern 5: all orders with a status, over all customers.
    for (status, days) in [
        (OrderStatus::Open, all_days()),
        (OrderStatus::Open, (day("2026-01-10"), day("2026-01-10"))),
        (OrderStatus::BackOrdered, all_days()),
        (OrderStatus::Returned, all_days()),
    ] {
        let found =
            table.orders_in(&[status], days, world.desk.buckets(), &Paging::all()).await.unwrap().into_items().unwrap();
        let expected: BTreeSet<String> = contents
            .orders
            .iter()
            .filter(|(_, order)| order.status == status.to_string() && within(&order.placed_at, days))
            .map(|(id, _)| id.clone())
            .collect();
        assert_eq!(expected.is_empty(), status == OrderStatus::Returned, "{status} {days:?}");
        assert_eq!(with_prefix("ORDER#", found.iter().map(|order| order.id)), expected, "{status} {days:?}");
        // A query returns at most one megabyte; more data needs more requests.
        let pages = u64::from(BUCKETS) + expected.len() as u64 * 400 / 1_048_576;
        let request_count = requests.since_last_call();
        assert!((u64::from(BUCKETS)..=pages).contains(&request_count), "{request_count} {pages}");
    }
    let used: BTreeSet<&str> = contents.orders.values().map(|order| order.bucket.as_str()).collect();
    assert_eq!(used, BTreeSet::from(["0", "1", "2", "3"]));

    // Access pattern 6: recently hired employees.
    let hired =
        table.hired_after(day("2023-06-30"), now().date_naive(), &Paging::all()).await.unwrap().into_items().unwrap();
    let expected: BTreeSet<String> = contents
        .items
        .iter()
        .filter(|edge| edge.sk.starts_with("HR-CONFIDENTIAL#") && edge.data.as_deref() > Some("2023-06-30"))
        .map(|edge| edge.pk.clone())
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(
        (with_prefix("EMP#", hired.iter().map(|e| &e.id)), requests.since_last_call()),
        (expected, 5),
        "one request for each year from 2023 to 2027"
    );

    for listed in &hired {
        assert_eq!(second_desk.table.get_employee(&listed.id).await.unwrap().as_ref(), Some(listed));
    }
    assert!(hired.iter().any(|listed| listed.assignment.is_some()));

    // Access pattern 7: the employees of a warehouse.
    let found =
        table.employees_of_warehouse(&"wh-3".parse().unwrap(), &Paging::all()).await.unwrap().into_items().unwrap();
    let expected = edges_to(&contents, "WAREHOUSE#wh-3", "EMP#", |_| true);
    assert!(!expected.is_empty());
    assert_eq!((with_prefix("EMP#", found.iter().map(|e| &e.id)), requests.since_last_call()), (expected, 1));

    // Access pattern 8: the orders of a product, and its stock by warehouse.
    let (orders, stock) = table.orders_and_stock_of_product(&"p-3".parse().unwrap()).await.unwrap();
    let expected: BTreeSet<String> = contents
        .orders
        .iter()
        .filter(|(_, order)| order.lines.contains_key("PRODUCT#p-3"))
        .map(|(id, _)| id.clone())
        .collect();
    let by_warehouse = |product: &str| -> BTreeMap<String, i64> {
        let quantity = |((p, w), n): (&(String, String), &i64)| (p == product).then(|| (w.clone(), *n));
        contents.stock.iter().filter_map(quantity).collect()
    };
    let stock_by_warehouse = |stock: &[orders::Stock]| -> BTreeMap<String, i64> {
        stock.iter().map(|s| (format!("WAREHOUSE#{}", s.warehouse), i64::try_from(s.quantity).unwrap())).collect()
    };
    assert!(!expected.is_empty());
    assert_eq!(with_prefix("ORDER#", orders.iter().map(|order| order.order)), expected);
    assert_eq!((stock_by_warehouse(&stock), requests.since_last_call()), (by_warehouse("PRODUCT#p-3"), 2));

    // Access pattern 9: the customers of a representative.
    let found = table.customers_of_representative(&representative, &Paging::all()).await.unwrap().into_items().unwrap();
    let expected = edges_to(&contents, "EMP#e-10", "CUSTOMER#", |_| true);
    assert!(!expected.is_empty());
    assert_eq!((with_prefix("CUSTOMER#", found), requests.since_last_call()), (expected, 1));

    // Access pattern 10: the orders of a representative in a date range.
    let statuses = [OrderStatus::Open, OrderStatus::Delivered];
    let found = table
        .orders_of_representative(&representative, &statuses, days, &Paging::all())
        .await
        .unwrap()
        .into_items()
        .unwrap();
    let expected: BTreeSet<String> = contents
        .orders
        .iter()
        .filter(|(_, order)| order.representative == "EMP#e-10" && within(&order.placed_at, days))
        .filter(|(_, order)| ["OPEN", "DELIVERED"].contains(&order.status.as_str()))
        .map(|(id, _)| id.clone())
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(
        (with_prefix("ORDER#", found.iter().map(|order| order.order)), requests.since_last_call()),
        (expected, 2)
    );

    // Access pattern 11: the employees of a job title, without the job itself.
    let found = table.employees_by_title("account manager", &Paging::all()).await.unwrap().into_items().unwrap();
    let expected = edges_to(&contents, "TITLE#account manager", "EMP#", |_| true);
    assert!(expected.len() >= 19);
    assert_eq!((with_prefix("EMP#", found.iter().map(|e| &e.id)), requests.since_last_call()), (expected, 1));

    // Access pattern 12: stock by product and warehouse; wh-1 is not wh-10.
    let all = table.get_stock(&"p-0".parse().unwrap(), None).await.unwrap();
    assert_eq!((stock_by_warehouse(&all), requests.since_last_call()), (by_warehouse("PRODUCT#p-0"), 1));
    let one = table.get_stock(&"p-0".parse().unwrap(), Some(&"wh-1".parse().unwrap())).await.unwrap();
    assert_eq!((one.len(), requests.since_last_call()), (1, 1));

    // Access pattern 13: the total stock of a product.
    let product = table.get_product(&"p-0".parse().unwrap()).await.unwrap().unwrap();
    let sum: i64 = by_warehouse("PRODUCT#p-0").values().sum();
    assert_eq!((i64::try_from(product.total_stock).unwrap(), requests.since_last_call()), (sum, 1));

    // Access pattern 14: the ranking of representatives by their order totals.
    let ranking = table.get_ranking("2026-Q1".parse::<Quarter>().unwrap(), euro()).await.unwrap();
    let mut expected: Vec<(i64, String)> = contents
        .totals
        .iter()
        .filter(|((_, quarter, currency), _)| quarter == "2026-Q1" && currency == "EUR")
        .map(|((employee, ..), (total, _))| (-total, employee.clone()))
        .collect();
    expected.sort();
    let actual: Vec<(i64, String)> =
        ranking.iter().map(|total| (-total.total.minor(), format!("EMP#{}", total.representative))).collect();
    assert!(expected.len() >= 18, "{expected:?}");
    assert_eq!((actual, requests.since_last_call()), (expected, 8));
}
