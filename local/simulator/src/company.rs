//! A sample company for the order desk: employees, locations, products, customers, and the months that the customers
//! paid. Equal seeds give equal companies.

use billing::{AccountId, Currency, Label, Money, Sku, SubscriptionId};
use chrono::{DateTime, Days, Months, NaiveDate, Utc};
use orders::{
    Assignment, ConfidentialData, Country, Department, Employee, Job, Location, OrderId, OrderLine, PaidPeriod,
    Product, Region, ShippingAddress, Warehouse,
};
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use ulid::Ulid;

/// The size of a sample company.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompanySize {
    pub customers: u32,
    pub employees: u32,
    pub products: u32,
    pub warehouses: u32,
    /// The number of months, from January 2025 on, in which the customers pay.
    pub months: u32,
}

impl CompanySize {
    /// The default size: 1,000 customers and 25 months.
    pub fn default_size() -> Self {
        Self { customers: 1_000, employees: 200, products: 50, warehouses: 10, months: 25 }
    }
}

/// A random company: its locations, employees, warehouses, products and customers, and the months that the customers
/// paid.
#[derive(Clone, Debug)]
pub struct Company {
    pub regions: Vec<Region>,
    pub countries: Vec<Country>,
    pub locations: Vec<Location>,
    pub jobs: Vec<Job>,
    pub departments: Vec<Department>,
    pub warehouses: Vec<Warehouse>,
    pub employees: Vec<(Employee, Assignment, ConfidentialData)>,
    pub products: Vec<Product>,
    /// Each SKU, with the products and quantities of one order of this SKU. The last SKU contains no products.
    pub skus: Vec<(Sku, Vec<OrderLine>)>,
    /// The shipping address of each customer; `None` if the customer has not given one.
    pub customers: Vec<(AccountId, Option<ShippingAddress>)>,
    /// The months that the customers paid, ordered by the instant of payment.
    pub paid: Vec<PaidPeriod>,
}

/// The first day of the first month in which customers pay.
const FIRST_MONTH: &str = "2025-01-01";
const FIRST_NAMES: [&str; 10] = ["Ada", "Bola", "Chen", "Dana", "Elif", "Femi", "Gita", "Hana", "Iván", "Jun"];
const LAST_NAMES: [&str; 8] = ["Archer", "Baker", "Cooper", "Fisher", "Mason", "Potter", "Smith", "Weaver"];
const PRODUCT_NAMES: [&str; 10] =
    ["House Blend", "Dark Roast", "Filter", "Mug", "Grinder", "Teapot", "Oolong", "Cocoa", "Biscuit", "Syrup"];

/// Converts `text` to a label. The text must be valid.
fn parse_label(text: &str) -> Label {
    text.parse().expect("a valid label")
}

impl Company {
    /// Creates a random company of this size. Equal seeds give equal companies.
    ///
    /// # Panics
    /// If a count in `size` is 0.
    pub fn new(size: CompanySize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let regions = create_regions();
        let countries = create_countries(&regions);
        let locations = create_locations(&countries);
        let jobs = create_jobs();
        let departments = create_departments(&locations[0]);
        let warehouses = create_warehouses(size.warehouses, &regions);
        let employees =
            (0..size.employees).map(|n| random_employee(n, &jobs, &departments, &warehouses, &mut rng)).collect();
        let products = create_products(size.products);
        let skus = random_skus(&products, &mut rng);
        let customers: Vec<(AccountId, Option<ShippingAddress>)> =
            (0..size.customers).map(|n| random_customer(n, &countries, &mut rng)).collect();
        let paid = monthly_payments(&customers, &skus, size.months, &mut rng);
        Self {
            regions,
            countries,
            locations,
            jobs,
            departments,
            warehouses,
            employees,
            products,
            skus,
            customers,
            paid,
        }
    }
}

/// Returns the currency of all prices and salaries.
pub fn euro_currency() -> Currency {
    "EUR".parse().expect("a currency")
}

/// Returns the first day of the first month in which customers pay.
fn first_payment_day() -> NaiveDate {
    FIRST_MONTH.parse().expect("a date")
}

/// Returns the instant at which all employees and products were created.
fn company_creation_time() -> DateTime<Utc> {
    first_payment_day().and_hms_opt(6, 0, 0).expect("a time").and_utc()
}

fn create_regions() -> Vec<Region> {
    [("eu", "Europe"), ("na", "North America"), ("apac", "Asia Pacific")]
        .map(|(id, name)| Region { id: id.parse().expect("an id"), name: parse_label(name) })
        .into()
}

fn create_countries(regions: &[Region]) -> Vec<Country> {
    [("de", "Germany", 0), ("fr", "France", 0), ("us", "United States", 1), ("jp", "Japan", 2)]
        .map(|(id, name, region): (&str, &str, usize)| Country {
            id: id.parse().expect("an id"),
            name: parse_label(name),
            region: regions[region].id.clone(),
        })
        .into()
}

fn create_locations(countries: &[Country]) -> Vec<Location> {
    (0..6)
        .map(|n| Location {
            id: format!("loc-{n}").parse().expect("an id"),
            address: parse_label(&format!("{n} Harbour Street")),
            country_name: countries[n % countries.len()].name.clone(),
        })
        .collect()
}

fn create_jobs() -> Vec<Job> {
    [("am", "Account Manager", true), ("pk", "Picker", false), ("wm", "Warehouse Manager", false)]
        .map(|(id, title, represents_customers)| Job {
            id: id.parse().expect("an id"),
            title: parse_label(title),
            represents_customers,
        })
        .into()
}

/// Creates the departments, all of them at `location`.
fn create_departments(location: &Location) -> Vec<Department> {
    ["sales", "logistics", "office"]
        .map(|id| Department { id: id.parse().expect("an id"), name: parse_label(id), location: location.id.clone() })
        .into()
}

fn create_warehouses(count: u32, regions: &[Region]) -> Vec<Warehouse> {
    (0..count)
        .map(|n| Warehouse {
            id: format!("wh-{n}").parse().expect("an id"),
            name: parse_label(&format!("Warehouse {n}")),
            region: regions[n as usize % regions.len()].id.clone(),
            version: 1,
        })
        .collect()
}

/// Returns the employee with the number `n`, with a random name, salary and date of hire. One employee of ten
/// represents customers.
fn random_employee(
    n: u32,
    jobs: &[Job],
    departments: &[Department],
    warehouses: &[Warehouse],
    rng: &mut ChaCha8Rng,
) -> (Employee, Assignment, ConfidentialData) {
    let job = if n.is_multiple_of(10) { &jobs[0] } else { &jobs[1 + n as usize % 2] };
    let name = format!("{} {}", FIRST_NAMES.choose(rng).expect("a name"), LAST_NAMES.choose(rng).expect("a name"));
    let id: orders::EmployeeId = format!("e-{n}").parse().expect("an id");
    let assignment = Assignment {
        job: job.id.clone(),
        job_title: job.title.clone(),
        represents_customers: job.represents_customers,
        department: departments[n as usize % departments.len()].id.clone(),
        warehouse: (!job.represents_customers).then(|| warehouses[n as usize % warehouses.len()].id.clone()),
    };
    let confidential = ConfidentialData {
        employee: id.clone(),
        hired_on: first_payment_day() - Days::new(rng.random_range(0..2_000)),
        salary: Money::new(rng.random_range(2_500_000..9_000_000), euro_currency()),
    };
    let employee = Employee {
        id,
        name: parse_label(&name),
        assignment: None,
        left_on: None,
        created_at: company_creation_time(),
        version: 1,
    };
    (employee, assignment, confidential)
}

fn create_products(count: u32) -> Vec<Product> {
    (0..count)
        .map(|n| Product {
            id: format!("p-{n}").parse().expect("an id"),
            name: parse_label(&format!("{} {n}", PRODUCT_NAMES[n as usize % PRODUCT_NAMES.len()])),
            total_stock: 0,
            created_at: company_creation_time(),
            version: 1,
        })
        .collect()
}

/// Returns as many SKUs as there are `products`, each with the lines of one order, and a last SKU without products.
fn random_skus(products: &[Product], rng: &mut ChaCha8Rng) -> Vec<(Sku, Vec<OrderLine>)> {
    let mut skus: Vec<(Sku, Vec<OrderLine>)> = (0..products.len())
        .map(|n| (format!("sku-{n}").parse().expect("an id"), random_order_lines(products, rng)))
        .collect();
    skus.push(("membership".parse().expect("an id"), Vec::new()));
    skus
}

/// Returns one to three lines, each of another product.
fn random_order_lines(products: &[Product], rng: &mut ChaCha8Rng) -> Vec<OrderLine> {
    let mut lines: Vec<OrderLine> = Vec::new();
    for _ in 0..rng.random_range(1..=3) {
        let product = products.choose(rng).expect("a product").id.clone();
        if lines.iter().all(|line| line.product != product) {
            lines.push(OrderLine { product, quantity: rng.random_range(1..=3) });
        }
    }
    lines
}

/// Returns the customer with the number `n` in a random country. One customer of twenty has no shipping address.
fn random_customer(n: u32, countries: &[Country], rng: &mut ChaCha8Rng) -> (AccountId, Option<ShippingAddress>) {
    let country = countries.choose(rng).expect("a country");
    let has_optional_fields = n.is_multiple_of(10);
    let address = ShippingAddress {
        name: parse_label(&format!("Customer {n}")),
        street: parse_label(&format!("{n} Market Street")),
        line2: has_optional_fields.then(|| parse_label("Floor 2")),
        postal_code: parse_label(&format!("{:05}", n % 100_000)),
        city: parse_label("Springfield"),
        state: has_optional_fields.then(|| parse_label("Illinois")),
        country: country.id.clone(),
        region: country.region.clone(),
        phone: has_optional_fields.then(|| "+1 217 555 0100".parse().expect("a phone number")),
    };
    (format!("customer-{n}").parse().expect("an id"), rng.random_ratio(19, 20).then_some(address))
}

/// Returns the monthly payments of all customers: every hundredth customer pays every month, and each other customer
/// pays for up to six consecutive months.
fn monthly_payments(
    customers: &[(AccountId, Option<ShippingAddress>)],
    skus: &[(Sku, Vec<OrderLine>)],
    months: u32,
    rng: &mut ChaCha8Rng,
) -> Vec<PaidPeriod> {
    let mut paid = Vec::new();
    for (n, (account, _)) in customers.iter().enumerate() {
        let (sku, _) = skus.choose(rng).expect("a SKU");
        let subscription = SubscriptionId::new(Ulid::from_parts(1, n as u128 + 1));
        let (day, amount) = (rng.random_range(0..28), Money::new(rng.random_range(500..10_000), euro_currency()));
        let begins = if n % 100 == 0 { 0 } else { rng.random_range(0..months) };
        let ends = if n % 100 == 0 { months } else { months.min(begins + rng.random_range(1..=6)) };
        for month in begins..ends {
            let due_on = first_payment_day() + Months::new(month) + Days::new(day);
            let paid_at: DateTime<Utc> = due_on.and_hms_opt(7, 0, 0).expect("a time").and_utc()
                + chrono::TimeDelta::milliseconds(i64::try_from(n).unwrap_or_default());
            paid.push(PaidPeriod {
                order: OrderId::of_month(due_on, subscription),
                account: account.clone(),
                sku: sku.clone(),
                amount,
                paid_at,
            });
        }
    }
    paid.sort_by_key(|paid| paid.paid_at);
    paid
}
