//! The keys of items, and the texts in the attribute `Data` by which the indexes are sorted. Only this module knows the
//! format and the separators of these texts.

use std::str::FromStr;

use chrono::{DateTime, Datelike as _, Days, NaiveDate, Utc};
use icu_normalizer::ComposingNormalizerBorrowed;
use ulid::Ulid;

use billing::{AccountId, Currency, Sku};
use dynamo::{Instant, Key};
use orders::{
    DepartmentId, EmployeeId, FillTarget, LocationId, Order, OrderId, OrderStatus, PlaceId, ProductId, Quarter,
    ReferenceKind, WarehouseId,
};

/// The character that separates the parts of a key.
const SEPARATOR: char = '#';
/// The character that separates the status and the time of the payment in the `Data` of an order.
const STATUS_SEPARATOR: char = '-';

// The key prefixes of entities, by which a query distinguishes the kinds of entities.
pub const EMPLOYEE_PREFIX: &str = "EMP#";
pub const CUSTOMER_PREFIX: &str = "CUSTOMER#";
pub const ORDER_PREFIX: &str = "ORDER#";
pub const PRODUCT_PREFIX: &str = "PRODUCT#";
pub const WAREHOUSE_PREFIX: &str = "WAREHOUSE#";
pub const REGION_PREFIX: &str = "REGION#";
pub const COUNTRY_PREFIX: &str = "COUNTRY#";
pub const LOCATION_PREFIX: &str = "LOCATION#";
pub const JOB_PREFIX: &str = "JOB#";
pub const DEPARTMENT_PREFIX: &str = "DEPT#";
pub const SKU_PREFIX: &str = "SKU#";

// The prefixes of the sort keys by which GSI-1 finds entities by name.
pub const EMPLOYEE_NAME_PREFIX: &str = "NAME#";
pub const JOB_TITLE_PREFIX: &str = "TITLE#";
pub const REGION_NAME_PREFIX: &str = "REGION-NAME#";
pub const COUNTRY_NAME_PREFIX: &str = "COUNTRY-NAME#";
pub const PRODUCT_NAME_PREFIX: &str = "PRODUCT-NAME#";

// The sort keys of the items by which GSI-1 lists all entities of a kind.
pub const ALL_REGIONS: &str = "REGIONS";
pub const ALL_COUNTRIES: &str = "COUNTRIES";
pub const ALL_LOCATIONS: &str = "LOCATIONS";
pub const ALL_JOBS: &str = "JOBS";
pub const ALL_DEPARTMENTS: &str = "DEPARTMENTS";

/// The sort key of the item with the refunds of an order.
pub const REFUNDS: &str = "REFUNDS";
/// The prefix of the sort keys of the entries of an employee's job history.
pub const JOB_HISTORY_PREFIX: &str = "JH#";
/// The sort key of the items with the confidential data of employees. The partition of GSI-1 with this key lists the
/// employees by hire date. Earlier versions of Dueday appended the year of the hire date, so this text is also a prefix
/// of sort keys.
pub const CONFIDENTIAL: &str = "HR-CONFIDENTIAL";
/// The sort key of the items by which GSI-1 lists all customer representatives.
pub const REPRESENTATIVES: &str = "REPRESENTATIVES";
/// The sort key of the items by which an earlier version of Dueday listed the employees with a planned change.
pub const PLANNED_CHANGES: &str = "PLANNED-CHANGES";
/// The sort key of the items by which GSI-1 lists all warehouses. `SK` is the partition key of GSI-1, so a query of
/// GSI-1 with this key returns all warehouses.
pub const ALL_WAREHOUSES: &str = "WAREHOUSES";
/// The sort key of the items by which GSI-1 lists all products.
pub const ALL_PRODUCTS: &str = "PRODUCTS";
/// The prefix of the sort keys of stock movements, in the partition of a product or of an order.
pub const MOVEMENT_PREFIX: &str = "MOVEMENT#";
/// The partition key of all fill tasks: the requests to try again to fill backordered orders.
pub const FILLS: &str = "FILLS";

/// The partition key and the sort key of the item with the settings.
pub const SETTINGS: &str = "SETTINGS";
/// The prefix of the sort keys of the delivery records, which an earlier version of Dueday wrote.
pub const DELIVERY_RECORD_PREFIX: &str = "ARRIVAL#";
/// The sort key of the record that a SKU without products was reported to the operator.
pub const NO_PRODUCTS_REPORT: &str = "WITHOUT-PRODUCTS";

/// The number of digits of the largest amount in minor units. Amounts are padded with zeros to this length, so that
/// their texts sort like the numbers.
const AMOUNT_DIGITS: usize = 19;

/// The number of digits of an order's version in the sort key of a movement. Versions are padded with zeros to this
/// length, so that the movements of an order are sorted by version.
const MOVEMENT_DIGITS: usize = 6;

/// A text that sorts after every identifier.
pub const AFTER_ANY_ID: &str = "~";

/// Returns the key of the own item of an entity, which contains the data of the entity. Its `PK` and its `SK` are both
/// `partition`.
pub fn key_of_own_item(partition: String) -> Key {
    Key { sk: partition.clone(), pk: partition }
}

/// Returns the key of the item that relates two entities, or an entity and a part of its data: its `PK` is `from` (the
/// key of the entity), and its `SK` is `to` (the key of the other entity, of a list, or of the part).
pub fn key_of_relation(from: String, to: impl Into<String>) -> Key {
    Key { pk: from, sk: to.into() }
}

/// Returns the key of the employee `id`.
pub fn key_of_employee(id: &EmployeeId) -> String {
    format!("{EMPLOYEE_PREFIX}{id}")
}

/// Returns the key of the representative `id`. If there is no representative, returns a placeholder that is the key of
/// no employee.
pub fn key_of_representative(id: Option<&EmployeeId>) -> String {
    // An identifier cannot start with a hyphen.
    id.map_or_else(|| format!("{EMPLOYEE_PREFIX}-"), key_of_employee)
}

/// Returns the key of the customer of `account`.
pub fn key_of_customer(account: &AccountId) -> String {
    format!("{CUSTOMER_PREFIX}{account}")
}

/// Returns the key of the order `id`. The own item of the order has another sort key: the key of the customer.
pub fn key_of_order(id: OrderId) -> String {
    format!("{ORDER_PREFIX}{id}")
}

/// Returns the key of the item with the refunds of an order.
pub fn key_of_refunds(order: OrderId) -> Key {
    key_of_relation(key_of_order(order), REFUNDS)
}

/// Returns the key of the product `id`.
pub fn key_of_product(id: &ProductId) -> String {
    format!("{PRODUCT_PREFIX}{id}")
}

/// Returns the key of the warehouse `id`.
pub fn key_of_warehouse(id: &WarehouseId) -> String {
    format!("{WAREHOUSE_PREFIX}{id}")
}

/// Returns the key of the region `id`.
pub fn key_of_region(id: &PlaceId) -> String {
    format!("{REGION_PREFIX}{id}")
}

/// Returns the key of the location `id`.
pub fn key_of_location(id: &LocationId) -> String {
    format!("{LOCATION_PREFIX}{id}")
}

/// Returns the key of the department `id`.
pub fn key_of_department(id: &DepartmentId) -> String {
    format!("{DEPARTMENT_PREFIX}{id}")
}

/// Returns the key of the entity of `kind` with this id.
pub fn key_of_reference(kind: ReferenceKind, id: &str) -> String {
    let prefix = match kind {
        ReferenceKind::Region => REGION_PREFIX,
        ReferenceKind::Country => COUNTRY_PREFIX,
        ReferenceKind::Location => LOCATION_PREFIX,
        ReferenceKind::Job => JOB_PREFIX,
        ReferenceKind::Department => DEPARTMENT_PREFIX,
    };
    format!("{prefix}{id}")
}

/// Returns the sort key of the items by which GSI-1 lists all entities of `kind`.
pub fn key_of_reference_list(kind: ReferenceKind) -> String {
    let list = match kind {
        ReferenceKind::Region => ALL_REGIONS,
        ReferenceKind::Country => ALL_COUNTRIES,
        ReferenceKind::Location => ALL_LOCATIONS,
        ReferenceKind::Job => ALL_JOBS,
        ReferenceKind::Department => ALL_DEPARTMENTS,
    };
    list.to_owned()
}

/// Returns the key of the SKU `sku`.
pub fn key_of_sku(sku: &Sku) -> String {
    format!("{SKU_PREFIX}{sku}")
}

/// Returns the sort key of the items by which GSI-1 finds entities by their `name`, ignoring case and extra white
/// space. `prefix` says which kind of name it is. The key is in Unicode normalization form C: a letter with an accent has
/// the same key, whether it is written as one character or as two.
fn build_name_key(prefix: &str, name: &str) -> String {
    format!("{prefix}{}", normalize_name(name))
}

/// Returns the text by which names are compared: in lower case, in Unicode normalization form C, and without extra white
/// space.
pub fn normalize_name(name: &str) -> String {
    let lower_case = name.to_lowercase();
    let words = ComposingNormalizerBorrowed::new_nfc().normalize(&lower_case);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the sort key of the items by which GSI-1 finds employees with this name.
pub fn key_of_employee_name(name: &str) -> String {
    build_name_key(EMPLOYEE_NAME_PREFIX, name)
}

/// Returns the sort key of the items by which GSI-1 finds employees and jobs with this job title.
pub fn key_of_job_title(title: &str) -> String {
    build_name_key(JOB_TITLE_PREFIX, title)
}

/// Returns the sort key of the items by which GSI-1 finds regions with this name.
pub fn key_of_region_name(name: &str) -> String {
    build_name_key(REGION_NAME_PREFIX, name)
}

/// Returns the sort key of the items by which GSI-1 finds the country with this name, and its locations.
pub fn key_of_country_name(name: &str) -> String {
    build_name_key(COUNTRY_NAME_PREFIX, name)
}

/// Returns the sort key of the items by which GSI-1 finds products with this name.
pub fn key_of_product_name(name: &str) -> String {
    build_name_key(PRODUCT_NAME_PREFIX, name)
}

/// Returns the sort key of the entry in the job history for the job that an employee started on the day `from`.
pub fn key_of_job_record(from: NaiveDate) -> String {
    format!("{JOB_HISTORY_PREFIX}{from}")
}

/// Returns the sort key under which earlier versions of Dueday stored the confidential data of an employee who was
/// hired on `hired_on`.
pub fn earlier_key_of_confidential_data(hired_on: NaiveDate) -> String {
    format!("{CONFIDENTIAL}{SEPARATOR}{}", hired_on.year())
}

/// Returns the sort key of the quarter totals in `bucket` for `quarter` and `currency`. GSI-1 uses this key as its
/// partition key. The totals of a quarter are spread over several partitions ("buckets"), because every order changes a
/// total.
pub fn key_of_quarter_totals(quarter: Quarter, currency: Currency, bucket: u32) -> String {
    format!("{quarter}{SEPARATOR}{currency}{SEPARATOR}{bucket}")
}

/// Returns the quarter in the sort key of a quarter total, or `None` for any other sort key.
pub fn parse_quarter(sk: &str) -> Option<Quarter> {
    sk.split(SEPARATOR).next()?.parse().ok()
}

/// Returns the key of the stock movement `id` of a product.
pub fn key_of_movement(product: &ProductId, id: Ulid) -> Key {
    key_of_relation(key_of_product(product), format!("{MOVEMENT_PREFIX}{id}"))
}

/// Returns the key of the stock movement that a change of `order` recorded. `version` is the version of the order after
/// this change.
pub fn key_of_order_movement(order: OrderId, version: u64) -> Key {
    key_of_relation(key_of_order(order), format!("{MOVEMENT_PREFIX}{version:0MOVEMENT_DIGITS$}"))
}

/// Returns the key of the item with which an earlier version of Dueday recorded that a delivery was added to the stock.
/// The present version records a movement instead.
pub fn key_of_delivery_record(id: &ProductId, delivery: Ulid) -> Key {
    key_of_relation(key_of_product(id), format!("{DELIVERY_RECORD_PREFIX}{delivery}"))
}

/// Returns the key of the item which records that a SKU without products was reported to the operator.
pub fn key_of_no_products_report(id: &Sku) -> Key {
    key_of_relation(key_of_sku(id), NO_PRODUCTS_REPORT)
}

/// Returns the key of the product or the customer whose orders a fill task tries to fill. In the items that relate
/// these orders to the product or the customer, this key is the sort key.
pub fn key_of_fill_target(target: &FillTarget) -> String {
    match target {
        FillTarget::Product(product) => key_of_product(product),
        FillTarget::Customer(account) => key_of_customer(account),
    }
}

/// Returns the target of a fill task (a product or a customer) whose key is `key`, or `None` for any other key.
pub fn parse_fill_target(key: &str) -> Option<FillTarget> {
    let product = id_after_prefix(key, PRODUCT_PREFIX).map(FillTarget::Product);
    product.or_else(|| id_after_prefix(key, CUSTOMER_PREFIX).map(FillTarget::Customer))
}

/// Returns the key of the fill task of `target`.
pub fn key_of_fill_task(target: &FillTarget) -> Key {
    key_of_relation(FILLS.to_owned(), key_of_fill_target(target))
}

/// Returns the key of the item with the settings that all processes of the order desk share.
pub fn key_of_settings() -> Key {
    key_of_own_item(SETTINGS.to_owned())
}

/// Returns the value of `Data` in the own item of an order and in its relations: the status and the time of the
/// payment.
pub fn status_data(order: &Order) -> String {
    build_status_data(order.status, order.placed_at)
}

/// Returns the value of `Data` in the items of an order that has `status` and was paid at `placed_at`.
pub fn build_status_data(status: OrderStatus, placed_at: DateTime<Utc>) -> String {
    format!("{}{}", status_prefix(status), Instant(placed_at).to_text())
}

/// Returns a lower and an upper bound for the texts of all instants from the start of the day `from` to the end of the
/// day `to`.
pub fn instant_text_bounds(from: NaiveDate, to: NaiveDate) -> (String, String) {
    // The text of every instant of the last day sorts before the text of the next day's date. The bound must not be
    // after the year 9999, because only years with four digits sort correctly.
    let end = to.checked_add_days(Days::new(1)).filter(|end| end.year() <= 9_999).unwrap_or(to);
    (from.to_string(), end.to_string())
}

/// Returns the prefix of the attribute `Data` of orders in `status`.
pub fn status_prefix(status: OrderStatus) -> String {
    format!("{status}{STATUS_SEPARATOR}")
}

/// Parses the attribute `Data` of an order: returns the status, and the time of the payment as text. Returns `None` if
/// `data` has another format.
pub fn parse_status_data(data: &str) -> Option<(OrderStatus, &str)> {
    let (status, at) = data.split_once(STATUS_SEPARATOR)?;
    Some((status.parse().ok()?, at))
}

/// Returns an amount in minor units as text, padded with zeros so that the texts sort like the numbers. Without
/// padding, "5000" would sort after "10000".
pub fn amount_data(minor: i64) -> String {
    format!("{minor:0AMOUNT_DIGITS$}")
}

/// Returns the identifier that follows `prefix` in `key`. Returns `None` if `key` has another prefix, or no valid
/// identifier after it.
pub fn id_after_prefix<T: FromStr>(key: &str, prefix: &str) -> Option<T> {
    key.strip_prefix(prefix)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_sort_like_the_amounts_and_days_in_them() {
        assert!(amount_data(5_000) < amount_data(10_000) && amount_data(i64::MAX).len() == AMOUNT_DIGITS);
        let (from, to) = instant_text_bounds("2027-01-31".parse().unwrap(), "2027-01-31".parse().unwrap());
        let open = status_prefix(OrderStatus::Open);
        let (from, to) = (format!("{open}{from}"), format!("{open}{to}"));
        // The columns are: the `Data` of an order, and whether the order is OPEN and was placed on 2027-01-31.
        for (data, is_within) in [
            ("OPEN-2027-01-30T23:59:59.999Z", false),
            ("OPEN-2027-01-31T00:00:00.000Z", true),
            ("OPEN-2027-01-31T23:59:59.999Z", true),
            ("OPEN-2027-02-01T00:00:00.000Z", false),
            ("PICKED-2027-01-31T12:00:00.000Z", false),
        ] {
            assert_eq!((from.as_str()..=to.as_str()).contains(&data), is_within, "{data}");
        }
        assert_eq!(parse_status_data("BACKORDERED-2027-01-31T12:00:00.000Z").unwrap().0, OrderStatus::BackOrdered);
    }

    #[test]
    fn employee_name_key_ignores_case_and_extra_white_space() {
        assert_eq!(key_of_employee_name("  Ada  LOVELACE "), key_of_employee_name("ada lovelace"));
    }

    #[test]
    fn name_key_is_the_same_in_each_unicode_normalization_form() {
        for (composed, decomposed) in [("Zo\u{eb} \u{c9}mile", "Zoe\u{308} E\u{301}mile"), ("\u{c5}sa", "\u{212b}sa")] {
            assert_eq!(key_of_employee_name(composed), key_of_employee_name(decomposed), "{composed}");
        }
        assert_ne!(key_of_employee_name("Zoe"), key_of_employee_name("Zo\u{eb}"));
    }
}
