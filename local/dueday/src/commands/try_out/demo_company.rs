//! The demo's merchant: its products, warehouses, employees and shipping addresses.

use billing::{Currency, Money};
use chrono::{DateTime, Utc};
use orders::{Assignment, ConfidentialData, Employee, ShippingAddress};
use orders_desk::OrderDesk;

use crate::Failure;
use crate::commands::orders::goods::import;
use crate::commands::orders::people::places;

/// The products, SKUs, warehouses and initial stock, in the format of `dueday orders import`.
const GOODS_CSV: &str = include_str!("demo_goods.csv");
/// The regions, countries, locations, departments and jobs, in the format of `dueday orders places`.
const PLACES_CSV: &str = include_str!("demo_places.csv");
/// The account managers: id, name, hiring date, and yearly salary in minor units.
const ACCOUNT_MANAGERS: [(&str, &str, &str, i64); 3] = [
    ("ada", "Ada Archer", "2024-03-01", 5_200_000),
    ("bola", "Bola Cooper", "2025-06-15", 4_800_000),
    ("chen", "Chen Weaver", "2026-01-10", 4_650_000),
];
/// The shipping addresses of the customers: account, street, city, country, region. One customer has no address yet.
const ADDRESSES: [(&str, &str, &str, &str, &str); 11] = [
    ("harbour-books", "3 Quay Street", "Cork", "ie", "eu"),
    ("hotel-aurora", "Via Roma 12", "Torino", "it", "eu"),
    ("studio-north", "8 Mill Lane", "Leeds", "gb", "eu"),
    ("kita-sonnenschein", "Gartenweg 5", "Jena", "de", "eu"),
    ("maple-dental", "22 Maple Avenue", "Burlington", "us", "na"),
    ("bay-architects", "900 Bay Street", "Oakland", "us", "na"),
    ("old-mill-inn", "1 Mill Road", "Ludlow", "gb", "eu"),
    ("sakura-goods", "2-4 Sakura-cho", "Kyoto", "jp", "apac"),
    ("gulf-traders", "Dock 14", "Kuwait City", "kw", "apac"),
    ("union-library", "44 Union Square", "Portland", "us", "na"),
    ("corner-bakery", "7 Rue du Four", "Lille", "fr", "eu"),
];

/// Creates the regions, jobs, employees, products, stock and shipping addresses of the demo's merchant in the order
/// desk. Replaces existing places, jobs and products of SKUs. Other existing items stay unchanged.
pub async fn create_demo_company(desk: &OrderDesk, now: DateTime<Utc>) -> Result<(), Failure> {
    let invalid = |what: &str| Failure::Refused(format!("the built-in data of the demo's merchant is invalid: {what}"));
    places::put_places(desk, PLACES_CSV).await?;
    for (id, name, hired_on, salary) in ACCOUNT_MANAGERS {
        let id: orders::EmployeeId = id.parse().map_err(|_| invalid(id))?;
        let assignment = Assignment {
            job: "am".parse().map_err(|_| invalid("am"))?,
            job_title: "Account Manager".parse().map_err(|_| invalid("title"))?,
            represents_customers: true,
            department: "sales".parse().map_err(|_| invalid("sales"))?,
            warehouse: None,
        };
        let currency: Currency = "EUR".parse().map_err(|_| invalid("EUR"))?;
        let confidential = ConfidentialData {
            employee: id.clone(),
            hired_on: hired_on.parse().map_err(|_| invalid(hired_on))?,
            salary: Money::new(salary, currency),
        };
        let name = name.parse().map_err(|_| invalid(name))?;
        let employee = Employee { id, name, assignment: None, left_on: None, created_at: now, version: 1 };
        // `hire` does not change an employee that exists already.
        desk.table.hire_employee(&employee, &assignment, &confidential).await?;
    }
    import::import_goods_rows(
        desk,
        import::parse_goods_rows(GOODS_CSV.as_bytes()).map_err(|reason| invalid(&reason))?,
        now,
    )
    .await?;
    for (account, street, city, country, region) in ADDRESSES {
        let account = account.parse().map_err(|_| invalid(account))?;
        let customer = desk.table.get_customer(&account).await?;
        if customer.is_some_and(|customer| customer.address.is_some()) {
            continue;
        }
        let label = |text: &str| text.parse().map_err(|_| invalid(text));
        let address = ShippingAddress {
            name: label(account.as_str())?,
            street: label(street)?,
            line2: None,
            postal_code: label("00000")?,
            city: label(city)?,
            state: None,
            country: country.parse().map_err(|_| invalid(country))?,
            region: region.parse().map_err(|_| invalid(region))?,
            phone: None,
        };
        desk.set_shipping_address(&account, address).await?;
    }
    desk.fill_waiting_orders(DateTime::<Utc>::MAX_UTC).await;
    Ok(())
}
