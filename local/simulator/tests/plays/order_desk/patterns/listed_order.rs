//! An order in the result of an access pattern, and its comparison with the order that the naive reader found.

use std::collections::BTreeMap;

use billing::Money;
use orders::{Order, OrderLine};
use orders_table::{CreditedOrder, OrderToPack, ProductOrder};

use super::time_text;
use crate::order_desk::naive_reader::ScannedOrder;

/// An order as the result list of an access pattern shows it. A field is `None` if this kind of list does not contain
/// it.
#[derive(Debug, Default)]
pub struct ListedOrder {
    pub id: String,
    /// The time of the payment, such as `2027-01-31T07:00:00.000Z`.
    pub paid_at: String,
    status: String,
    customer: Option<String>,
    /// The amount of the payment, the refunded amount, and the currency of both amounts.
    amounts: Option<(i64, i64, String)>,
    /// For a list of the orders that contain a product: this product, and its quantity in the order.
    line: Option<(String, i64)>,
    details: Option<Details>,
}

/// The data that only those lists show that contain whole orders.
#[derive(PartialEq, Eq, Debug)]
struct Details {
    representative: Option<String>,
    warehouse: Option<String>,
    /// The quantity of each product.
    products: BTreeMap<String, i64>,
}

impl ListedOrder {
    /// Asserts that this listed order has the same data as `expected`, the order that the naive reader found. `query`
    /// describes the parameters of the access pattern for the failure message.
    pub fn assert_shows(&self, expected: &ScannedOrder, query: &str) {
        let Self { id, paid_at, status, customer, amounts, line, details } = self;
        assert_eq!((paid_at, status), (&expected.paid_at, &expected.status), "{id}: {query}");
        if let Some(customer) = customer {
            assert_eq!(*customer, expected.customer, "{id}: {query}");
        }
        if let Some(amounts) = amounts {
            assert_eq!(*amounts, (expected.amount, expected.refunds, expected.currency.clone()), "{id}: {query}");
        }
        if let Some((product, quantity)) = line {
            assert_eq!(expected.products.get(product), Some(quantity), "{id}: {query}");
        }
        if let Some(details) = details {
            let ScannedOrder { representative, warehouse, products, .. } = expected.clone();
            assert_eq!(*details, Details { representative, warehouse, products }, "{id}: {query}");
        }
    }

    /// Converts an order from the list of the orders that contain `product`.
    pub fn of_product(product: &str, order: &ProductOrder) -> Self {
        Self {
            id: order.order.to_string(),
            paid_at: time_text(order.placed_at),
            status: order.status.to_string(),
            line: Some((product.to_owned(), order.quantity.into())),
            ..Self::default()
        }
    }
}

/// Returns the amount `total`, the amount `refunded`, and their currency.
fn amounts(total: Money, refunded: Money) -> (i64, i64, String) {
    assert_eq!(total.currency(), refunded.currency());
    (total.minor(), refunded.minor(), total.currency().to_string())
}

/// Returns the details of `order`, with the products of `lines`.
fn details_of<'a>(order: &Order, lines: impl IntoIterator<Item = &'a OrderLine>) -> Details {
    Details {
        representative: order.representative.as_ref().map(ToString::to_string),
        warehouse: order.warehouse.as_ref().map(ToString::to_string),
        products: lines.into_iter().map(|line| (line.product.to_string(), line.quantity.into())).collect(),
    }
}

impl From<&Order> for ListedOrder {
    fn from(order: &Order) -> Self {
        Self {
            id: order.id.to_string(),
            paid_at: time_text(order.placed_at),
            status: order.status.to_string(),
            customer: Some(order.customer.to_string()),
            amounts: Some(amounts(order.total, order.refunded)),
            details: Some(details_of(order, &order.lines)),
            line: None,
        }
    }
}

impl From<&OrderToPack> for ListedOrder {
    fn from(OrderToPack { order, lines }: &OrderToPack) -> Self {
        Self { details: Some(details_of(order, lines.iter().map(|named| &named.line))), ..order.into() }
    }
}

impl From<&CreditedOrder> for ListedOrder {
    fn from(order: &CreditedOrder) -> Self {
        Self {
            id: order.order.to_string(),
            paid_at: time_text(order.placed_at),
            status: order.status.to_string(),
            customer: Some(order.customer.to_string()),
            amounts: Some(amounts(order.total, order.refunded)),
            ..Self::default()
        }
    }
}
