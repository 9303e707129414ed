//! Keys, and the texts of `Data` by which the indexes are sorted. The only place that knows how they are written and what
//! separates their parts.

use std::str::FromStr;

use chrono::{Datelike as _, Days, NaiveDate};
use ulid::Ulid;

use super::super::{
    DepartmentId, EmployeeId, JobId, LocationId, Order, OrderId, OrderStatus, PlaceId, ProductId, Quarter, WarehouseId,
};
use billing::{AccountId, Currency, Sku};
use dynamo::{Instant, Key};

const SEPARATOR: char = '#';
/// Between an order's status and its instant.
const STATUS_END: char = '-';

/// The prefixes of the partitions, which are the sort keys of the edges that lead to them.
pub const EMPLOYEES: &str = "EMP#";
pub const CUSTOMERS: &str = "CUSTOMER#";
pub const ORDERS: &str = "ORDER#";
pub const PRODUCTS: &str = "PRODUCT#";
pub const WAREHOUSES: &str = "WAREHOUSE#";
const REGIONS: &str = "REGION#";
pub const COUNTRIES: &str = "COUNTRY#";
const LOCATIONS: &str = "LOCATION#";
const JOBS: &str = "JOB#";
const DEPARTMENTS: &str = "DEPT#";
pub const SKUS: &str = "SKU#";

/// The prefix of the sort keys of a job history.
pub const JOB_HISTORY: &str = "JH#";
/// The prefix of the sort keys of what only few may read.
pub const CONFIDENTIAL: &str = "HR-CONFIDENTIAL#";
/// The sort key of the edge of everybody who looks after customers.
pub const REPRESENTATIVES: &str = "REPRESENTATIVES";
/// The sort keys of the edges by which all of a kind are listed.
pub const ALL_WAREHOUSES: &str = "WAREHOUSES";
pub const ALL_PRODUCTS: &str = "PRODUCTS";

/// The widest amount in minor units, so that amounts compare as their texts do.
const AMOUNT_DIGITS: usize = 19;

/// After every identifier.
pub const LAST: &str = "~";

/// An entity's own item: its partition, and the same again.
pub fn own(partition: String) -> Key {
    Key { sk: partition.clone(), pk: partition }
}

/// The edge from `from` to `to`.
pub fn edge(from: String, to: impl Into<String>) -> Key {
    Key { pk: from, sk: to.into() }
}

pub fn employee(id: &EmployeeId) -> String {
    format!("{EMPLOYEES}{id}")
}

/// Whoever looks after a customer, or nobody.
pub fn representative(id: Option<&EmployeeId>) -> String {
    // No identifier begins so.
    id.map_or_else(|| format!("{EMPLOYEES}-"), employee)
}

pub fn customer(account: &AccountId) -> String {
    format!("{CUSTOMERS}{account}")
}

pub fn order(id: OrderId) -> String {
    format!("{ORDERS}{id}")
}

pub fn product(id: &ProductId) -> String {
    format!("{PRODUCTS}{id}")
}

pub fn warehouse(id: &WarehouseId) -> String {
    format!("{WAREHOUSES}{id}")
}

pub fn region(id: &PlaceId) -> String {
    format!("{REGIONS}{id}")
}

pub fn country(id: &PlaceId) -> String {
    format!("{COUNTRIES}{id}")
}

pub fn location(id: &LocationId) -> String {
    format!("{LOCATIONS}{id}")
}

pub fn job(id: &JobId) -> String {
    format!("{JOBS}{id}")
}

pub fn department(id: &DepartmentId) -> String {
    format!("{DEPARTMENTS}{id}")
}

pub fn sku(sku: &Sku) -> String {
    format!("{SKUS}{sku}")
}

/// What somebody or something is looked up by: letters' case does not count, nor space.
fn name(kind: &str, name: &str) -> String {
    let words = name.to_lowercase();
    let words: Vec<&str> = words.split_whitespace().collect();
    format!("{kind}{SEPARATOR}{}", words.join(" "))
}

pub fn employee_name(of: &str) -> String {
    name("NAME", of)
}

pub fn job_title(title: &str) -> String {
    name("TITLE", title)
}

pub fn region_name(of: &str) -> String {
    name("REGION-NAME", of)
}

pub fn country_name(of: &str) -> String {
    name("COUNTRY-NAME", of)
}

pub fn product_name(of: &str) -> String {
    name("PRODUCT-NAME", of)
}

pub fn job_record(from: NaiveDate) -> String {
    format!("{JOB_HISTORY}{from}")
}

/// Everybody who was hired in `year`: one partition for all of them ever would grow for good.
pub fn confidential(year: i32) -> String {
    format!("{CONFIDENTIAL}{year}")
}

/// The years of the partitions that hold whoever was hired from `from` to `to`.
pub fn years(from: NaiveDate, to: NaiveDate) -> std::ops::RangeInclusive<i32> {
    from.year()..=to.year()
}

/// The totals of `quarter` in `currency`, a part of them: all in one partition would take every order's write.
pub fn quarter(quarter: Quarter, currency: Currency, bucket: u32) -> String {
    format!("{quarter}{SEPARATOR}{currency}{SEPARATOR}{bucket}")
}

/// The quarter in the sort key of a total, `None` in any other.
pub fn quarter_of(sk: &str) -> Option<Quarter> {
    sk.split(SEPARATOR).next()?.parse().ok()
}

/// That a delivery of a product was counted.
pub fn arrival(of: &ProductId, delivery: Ulid) -> Key {
    edge(product(of), format!("ARRIVAL#{delivery}"))
}

/// That a SKU has no products was told.
pub fn without_products(of: &Sku) -> Key {
    edge(sku(of), "WITHOUT-PRODUCTS")
}

pub fn settings() -> Key {
    own("SETTINGS".to_owned())
}

/// What an order's three edges are sorted by.
pub fn status_data(order: &Order) -> String {
    format!("{}{STATUS_END}{}", order.status, Instant(order.placed_at).text())
}

/// What is less than every instant of these days, and more: the last day included.
pub fn instants(from: NaiveDate, to: NaiveDate) -> (String, String) {
    // Every instant of the last day is less than the next day's name.
    let end = to.checked_add_days(Days::new(1)).filter(|end| end.year() <= 9_999).unwrap_or(to);
    (from.to_string(), end.to_string())
}

/// What begins `Data` of orders in `status`.
pub fn status_prefix(status: OrderStatus) -> String {
    format!("{status}{STATUS_END}")
}

/// The status in an order's `Data`, and its instant.
pub fn status_of(data: &str) -> Option<(OrderStatus, &str)> {
    let (status, at) = data.split_once(STATUS_END)?;
    Some((status.parse().ok()?, at))
}

/// An amount, so that a larger one is a larger text: as texts, "5000" is more than "10000".
pub fn amount_data(minor: i64) -> String {
    format!("{minor:0AMOUNT_DIGITS$}")
}

/// The identifier in a key that begins with `prefix`.
pub fn id<T: FromStr>(key: &str, prefix: &str) -> Option<T> {
    key.strip_prefix(prefix)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_sorted_as_what_they_stand_for() {
        assert!(amount_data(5_000) < amount_data(10_000) && amount_data(i64::MAX).len() == AMOUNT_DIGITS);
        let (from, to) = instants("2027-01-31".parse().unwrap(), "2027-01-31".parse().unwrap());
        let open = status_prefix(OrderStatus::Open);
        let (from, to) = (format!("{open}{from}"), format!("{open}{to}"));
        for (data, is_within) in [
            ("OPEN-2027-01-30T23:59:59.999Z", false),
            ("OPEN-2027-01-31T00:00:00.000Z", true),
            ("OPEN-2027-01-31T23:59:59.999Z", true),
            ("OPEN-2027-02-01T00:00:00.000Z", false),
            ("PICKED-2027-01-31T12:00:00.000Z", false),
        ] {
            assert_eq!((from.as_str()..=to.as_str()).contains(&data), is_within, "{data}");
        }
        assert_eq!(status_of("BACKORDERED-2027-01-31T12:00:00.000Z").unwrap().0, OrderStatus::BackOrdered);
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        assert_eq!(employee_name("  Ada  LOVELACE "), employee_name("ada lovelace"));
    }
}
