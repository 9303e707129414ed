//! An order in a list, and its comparison with the order of the naive reader.

use std::collections::BTreeMap;

use billing::Money;
use orders::{CreditedOrder, Order, OrderLine, OrderToPack, ProductOrder};

use super::instant;
use crate::order_desk::naive_reader::ScannedOrder;

/// An order as a list shows it. A field is `None` if the list does not show it.
#[derive(Debug, Default)]
pub struct ListedOrder {
    pub id: String,
    pub paid_at: String,
    status: String,
    customer: Option<String>,
    /// The amount of the payment and its refunded part, with the currency.
    amounts: Option<(i64, i64, String)>,
    /// One product of the order and its quantity: the product to which the list belongs.
    line: Option<(String, i64)>,
    details: Option<Details>,
}

/// The data that only lists of whole orders show.
#[derive(PartialEq, Eq, Debug)]
struct Details {
    representative: Option<String>,
    warehouse: Option<String>,
    /// The quantity of each product.
    products: BTreeMap<String, i64>,
}

impl ListedOrder {
    /// Asserts that the list shows the data of `expected`, which is the same order as the full table scan found it.
    /// `query` describes the query, for the failure message.
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

    /// Creates the order that the list of the orders of `product` shows.
    pub fn of_product(product: &str, order: &ProductOrder) -> Self {
        Self {
            id: order.order.to_string(),
            paid_at: instant(order.placed_at),
            status: order.status.to_string(),
            line: Some((product.to_owned(), order.quantity.into())),
            ..Self::default()
        }
    }
}

fn amounts(total: Money, refunded: Money) -> (i64, i64, String) {
    assert_eq!(total.currency(), refunded.currency());
    (total.minor(), refunded.minor(), total.currency().to_string())
}

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
            paid_at: instant(order.placed_at),
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
            paid_at: instant(order.placed_at),
            status: order.status.to_string(),
            customer: Some(order.customer.to_string()),
            amounts: Some(amounts(order.total, order.refunded)),
            ..Self::default()
        }
    }
}
