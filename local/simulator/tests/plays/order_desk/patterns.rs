//! The fourteen access patterns, on two years of a company of a thousand customers.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use orders::{OrderStatus, Quarter};
use simulator::{Company, CompanySize, OrderBooks, StoredEdge, euro};
use store::Paging;
use strum::IntoEnumIterator as _;

use crate::order_desk::world::{BUCKETS, World, always, now};

const SEED: u64 = 7;

fn size() -> CompanySize {
    let customers = std::env::var("DUEDAY_COMPANY_CUSTOMERS").map_or(1_000, |count| count.parse().unwrap());
    CompanySize { customers, ..CompanySize::usual() }
}

/// The partitions from which edges lead to `end`, with `Data` as wanted.
fn leading(books: &OrderBooks, end: &str, from: &str, data: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let is_found =
        |edge: &&StoredEdge| edge.sk == end && edge.pk.starts_with(from) && edge.data.as_deref().is_some_and(&data);
    books.edges.iter().filter(is_found).map(|edge| edge.pk.clone()).collect()
}

fn keyed<T: ToString>(prefix: &str, ids: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    ids.into_iter().map(|id| format!("{prefix}{}", id.to_string())).collect()
}

/// Requests since last asked, of queries and gets.
struct Counted<'a>(&'a World, BTreeMap<String, u64>);

impl Counted<'_> {
    fn since(&mut self) -> u64 {
        let requests = self.0.wire.requests();
        let count = |all: &BTreeMap<String, u64>| all.values().sum::<u64>();
        let new = count(&requests) - count(&self.1);
        self.1 = requests;
        new
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_answer_what_a_reading_of_all_items_says_in_so_many_requests() {
    let company = Company::new(size(), SEED);
    let world = World::new(company, 2_000).await;
    let desk = world.calm_desk();
    for (n, paid) in world.company.paid.iter().enumerate() {
        desk.place(paid).await.unwrap();
        // The older ones have gone their ways.
        let id = paid.order;
        let moves: &[OrderStatus] = match n % 5 {
            _ if desk.table.order(id).await.unwrap().is_none_or(|(order, _)| order.status != OrderStatus::Open) => &[],
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
    world.check(&world.company.paid, "after two years").await;
    let books = world.books().await;
    let (table, mut counted) = (&world.desk.table, Counted(&world, world.wire.requests()));
    let day = |text: &str| text.parse::<NaiveDate>().unwrap();
    let employee = &world.company.employees[20].0;
    let representative: orders::EmployeeId = "e-10".parse().unwrap();

    // 1: one employee, whole.
    let details = table.employee_details(&employee.id).await.unwrap().unwrap();
    assert_eq!((details.employee.name.as_str(), counted.since()), (employee.name.as_str(), 1));
    let all_of = |pk: &str| books.edges.iter().filter(|edge| edge.pk == pk).cloned().collect::<Vec<_>>();
    let stored = all_of(&format!("EMP#{}", employee.id));
    assert_eq!(details.jobs.len(), stored.iter().filter(|edge| edge.sk.starts_with("JH#")).count());
    assert_eq!(details.totals.len(), stored.iter().filter(|edge| edge.sk.contains("-Q")).count());
    assert!(table.employee_details(&"nobody".parse().unwrap()).await.unwrap().is_none());
    counted.since();

    // 2: by name, however it is written.
    let named = table
        .employees_by_name(&employee.name.as_str().to_uppercase(), &Paging::all())
        .await
        .unwrap()
        .into_items()
        .unwrap();
    let end = format!("NAME#{}", employee.name.as_str().to_lowercase());
    assert_eq!((keyed("EMP#", named), counted.since()), (leading(&books, &end, "EMP#", |_| true), 1));

    // 3: the present job only.
    let desk_now = world.calm_desk();
    let assignment = details.employee.assignment.clone().unwrap();
    let promoted = orders::Assignment { job_title: "Chief Picker".parse().unwrap(), ..assignment };
    let written = desk_now.table.reassign(&details.employee, Some(&promoted), day("2027-02-01")).await.unwrap();
    assert_eq!(written, orders::Written::Done);
    let job = table.current_job(&employee.id).await.unwrap().unwrap();
    assert_eq!((job.job_title.as_str(), job.from, counted.since()), ("Chief Picker", day("2027-02-01"), 1));
    let books = world.books().await;

    // 4: a customer's orders, in days.
    let customer = &world.company.customers[0].0;
    let days = (day("2025-03-01"), day("2026-02-28"));
    let every: Vec<OrderStatus> = OrderStatus::iter().collect();
    let within = |placed: &str, (from, to): (NaiveDate, NaiveDate)| {
        (from.to_string().as_str()..=to.to_string().as_str()).contains(&&placed[..10])
    };
    let found = table.orders_of_customer(customer, &every, days, &Paging::all()).await.unwrap().into_items().unwrap();
    let of_customer = format!("CUSTOMER#{customer}");
    let expected: BTreeSet<String> = books
        .orders
        .iter()
        .filter(|(_, order)| order.customer == of_customer && within(&order.placed_at, days))
        .map(|(id, _)| id.clone())
        .collect();
    assert!(expected.len() >= 11, "{expected:?}");
    assert_eq!((keyed("ORDER#", found.iter().map(|o| o.id)), counted.since()), (expected, every.len() as u64));
    assert!(found.is_sorted_by_key(|order| order.placed_at));

    // 5: all that are open, over all customers.
    for (status, days) in [
        (OrderStatus::Open, always()),
        (OrderStatus::Open, (day("2026-01-10"), day("2026-01-10"))),
        (OrderStatus::BackOrdered, always()),
        (OrderStatus::Returned, always()),
    ] {
        let found =
            table.orders_in(&[status], days, world.desk.buckets(), &Paging::all()).await.unwrap().into_items().unwrap();
        let expected: BTreeSet<String> = books
            .orders
            .iter()
            .filter(|(_, order)| order.status == status.to_string() && within(&order.placed_at, days))
            .map(|(id, _)| id.clone())
            .collect();
        assert_eq!(expected.is_empty(), status == OrderStatus::Returned, "{status} {days:?}");
        assert_eq!(keyed("ORDER#", found.iter().map(|order| order.id)), expected, "{status} {days:?}");
        // A query answers at most a megabyte: what is more takes more pages.
        let pages = u64::from(BUCKETS) + expected.len() as u64 * 400 / 1_048_576;
        let asked = counted.since();
        assert!((u64::from(BUCKETS)..=pages).contains(&asked), "{asked} {pages}");
    }
    let used: BTreeSet<&str> = books.orders.values().map(|order| order.bucket.as_str()).collect();
    assert_eq!(used, BTreeSet::from(["0", "1", "2", "3"]));

    // 6: hired recently.
    let hired =
        table.hired_after(day("2023-06-30"), now().date_naive(), &Paging::all()).await.unwrap().into_items().unwrap();
    let expected: BTreeSet<String> = books
        .edges
        .iter()
        .filter(|edge| edge.sk.starts_with("HR-CONFIDENTIAL#") && edge.data.as_deref() > Some("2023-06-30"))
        .map(|edge| edge.pk.clone())
        .collect();
    assert!(!expected.is_empty());
    assert_eq!((keyed("EMP#", hired.iter().map(|c| &c.employee)), counted.since()), (expected, 5), "2023 to 2027");

    // 7: the employees of a warehouse.
    let found =
        table.employees_of_warehouse(&"wh-3".parse().unwrap(), &Paging::all()).await.unwrap().into_items().unwrap();
    let expected = leading(&books, "WAREHOUSE#wh-3", "EMP#", |_| true);
    assert!(!expected.is_empty());
    assert_eq!((keyed("EMP#", found), counted.since()), (expected, 1));

    // 8: the orders of a product, and its stock by warehouse.
    let (orders, stock) = table.product_orders(&"p-3".parse().unwrap()).await.unwrap();
    let expected: BTreeSet<String> = books
        .orders
        .iter()
        .filter(|(_, order)| order.lines.contains_key("PRODUCT#p-3"))
        .map(|(id, _)| id.clone())
        .collect();
    let by_warehouse = |product: &str| -> BTreeMap<String, i64> {
        let of = |((p, w), n): (&(String, String), &i64)| (p == product).then(|| (w.clone(), *n));
        books.stock.iter().filter_map(of).collect()
    };
    let told = |stock: &[orders::Stock]| -> BTreeMap<String, i64> {
        stock.iter().map(|s| (format!("WAREHOUSE#{}", s.warehouse), i64::try_from(s.quantity).unwrap())).collect()
    };
    assert!(!expected.is_empty());
    assert_eq!(keyed("ORDER#", orders.iter().map(|order| order.order)), expected);
    assert_eq!((told(&stock), counted.since()), (by_warehouse("PRODUCT#p-3"), 2));

    // 9: the customers of a representative.
    let found = table.customers_of(&representative, &Paging::all()).await.unwrap().into_items().unwrap();
    let expected = leading(&books, "EMP#e-10", "CUSTOMER#", |_| true);
    assert!(!expected.is_empty());
    assert_eq!((keyed("CUSTOMER#", found), counted.since()), (expected, 1));

    // 10: the orders of a representative, in days.
    let statuses = [OrderStatus::Open, OrderStatus::Delivered];
    let found = table
        .orders_of_representative(&representative, &statuses, days, &Paging::all())
        .await
        .unwrap()
        .into_items()
        .unwrap();
    let expected: BTreeSet<String> = books
        .orders
        .iter()
        .filter(|(_, order)| order.representative == "EMP#e-10" && within(&order.placed_at, days))
        .filter(|(_, order)| ["OPEN", "DELIVERED"].contains(&order.status.as_str()))
        .map(|(id, _)| id.clone())
        .collect();
    assert!(!expected.is_empty());
    assert_eq!((keyed("ORDER#", found.iter().map(|order| order.order)), counted.since()), (expected, 2));

    // 11: the employees of a job title, without the job itself.
    let found = table.employees_by_title("account manager", &Paging::all()).await.unwrap().into_items().unwrap();
    let expected = leading(&books, "TITLE#account manager", "EMP#", |_| true);
    assert!(expected.len() >= 19);
    assert_eq!((keyed("EMP#", found), counted.since()), (expected, 1));

    // 12: stock by product and warehouse; wh-1 is not wh-10.
    let all = table.stock(&"p-0".parse().unwrap(), None).await.unwrap();
    assert_eq!((told(&all), counted.since()), (by_warehouse("PRODUCT#p-0"), 1));
    let one = table.stock(&"p-0".parse().unwrap(), Some(&"wh-1".parse().unwrap())).await.unwrap();
    assert_eq!((one.len(), counted.since()), (1, 1));

    // 13: the total stock of a product.
    let product = table.product(&"p-0".parse().unwrap()).await.unwrap().unwrap();
    let sum: i64 = by_warehouse("PRODUCT#p-0").values().sum();
    assert_eq!((i64::try_from(product.total_stock).unwrap(), counted.since()), (sum, 1));

    // 14: the representatives by what was ordered.
    let ranking = table.ranking("2026-Q1".parse::<Quarter>().unwrap(), euro()).await.unwrap();
    let mut expected: Vec<(i64, String)> = books
        .totals
        .iter()
        .filter(|((_, quarter, currency), _)| quarter == "2026-Q1" && currency == "EUR")
        .map(|((employee, ..), (total, _))| (-total, employee.clone()))
        .collect();
    expected.sort();
    let told: Vec<(i64, String)> =
        ranking.iter().map(|total| (-total.total.minor(), format!("EMP#{}", total.representative))).collect();
    assert!(expected.len() >= 18, "{expected:?}");
    assert_eq!((told, counted.since()), (expected, 8));
}
