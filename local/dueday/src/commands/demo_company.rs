//! What the demo's merchant sells, from where, and by whom.

use billing::{Currency, Money};
use chrono::{DateTime, Utc};
use orders::{Assignment, Confidential, Employee, OrderDesk, ShippingAddress};

use super::orders::setup;
use crate::Failure;

const GOODS: &str = include_str!("demo_goods.csv");
/// Account managers: id, name, hired on, salary a year in minor units.
const PEOPLE: [(&str, &str, &str, i64); 3] = [
    ("ada", "Ada Archer", "2024-03-01", 5_200_000),
    ("bola", "Bola Cooper", "2025-06-15", 4_800_000),
    ("chen", "Chen Weaver", "2026-01-10", 4_650_000),
];
/// Where orders go: account, street, city, country, region. One customer has not said it yet.
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

/// Sets all of it up, unless it is there.
pub async fn found(desk: &OrderDesk, now: DateTime<Utc>) -> Result<(), Failure> {
    let wrong = |what: &str| Failure::Refused(format!("the demo's company cannot be read: {what}"));
    for (id, name, hired_on, salary) in PEOPLE {
        let id: orders::EmployeeId = id.parse().map_err(|_| wrong(id))?;
        let assignment = Assignment {
            job: "am".parse().map_err(|_| wrong("am"))?,
            job_title: "Account Manager".parse().map_err(|_| wrong("title"))?,
            represents_customers: true,
            department: "sales".parse().map_err(|_| wrong("sales"))?,
            warehouse: None,
        };
        let currency: Currency = "EUR".parse().map_err(|_| wrong("EUR"))?;
        let confidential = Confidential {
            employee: id.clone(),
            hired_on: hired_on.parse().map_err(|_| wrong(hired_on))?,
            salary: Money::new(salary, currency),
        };
        let name = name.parse().map_err(|_| wrong(name))?;
        let employee = Employee { id, name, assignment: None, left_on: None, created_at: now, version: 1 };
        // One that is there stays as it is.
        desk.table.hire(&employee, &assignment, &confidential).await?;
    }
    setup::apply(desk, setup::parse(GOODS.as_bytes()).map_err(|reason| wrong(&reason))?, now).await?;
    for (account, street, city, country, region) in ADDRESSES {
        let account = account.parse().map_err(|_| wrong(account))?;
        let known = desk.table.customer(&account).await?;
        if known.is_some_and(|customer| customer.address.is_some()) {
            continue;
        }
        let label = |text: &str| text.parse().map_err(|_| wrong(text));
        let address = ShippingAddress {
            name: label(account.as_str())?,
            street: label(street)?,
            postal_code: label("00000")?,
            city: label(city)?,
            country: country.parse().map_err(|_| wrong(country))?,
            region: region.parse().map_err(|_| wrong(region))?,
        };
        desk.ship_to(&account, address).await?;
    }
    Ok(())
}
