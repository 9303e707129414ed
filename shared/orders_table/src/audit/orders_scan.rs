//! The scan of the orders for the audit of every night, which continues in the next night.

use chrono::{DateTime, Utc};

use crate::audit::audit_scan::AuditScan;
use crate::{OrdersTable, keys};
use dynamo::{FaultyItem, TableError};
use orders::{AuditedItem, Order};

/// A scan of the orders in the table, page by page. It also checks all items between the orders.
#[derive(Debug)]
pub struct OrdersScan {
    scan: AuditScan,
    /// The last order that was read, if its partition may continue on the next page.
    held: Option<Order>,
}

/// The orders and the faulty items of partitions that the scan has read to their ends.
#[derive(Debug, Default)]
pub struct OrdersPage {
    pub orders: Vec<Order>,
    pub faulty: Vec<FaultyItem>,
}

impl OrdersTable {
    /// Creates a scan of the orders after `position`, which [`OrdersScan::position`] returned; of all orders if
    /// `position` is `None`. The orders are in the sequence in which DynamoDB scans the table. All items are checked at
    /// the time `now`. [`OrdersScan::next_page`] sends the strongly consistent Scan requests.
    pub fn scan_orders_after(&self, position: Option<&str>, now: DateTime<Utc>) -> OrdersScan {
        OrdersScan { scan: self.scan_for_audit_after(position).with_items_checked(now), held: None }
    }
}

impl OrdersScan {
    /// Returns the orders and the faulty items of the next page; `None` after the last page. An order whose partition may
    /// continue on the next page is returned with the next page. Sends one Scan request, and one Query request for each
    /// partition with a faulty item.
    pub async fn next_page(&mut self) -> Result<Option<OrdersPage>, TableError> {
        let Some(items) = self.scan.next_page().await? else { return Ok(None) };
        let orders = items.into_iter().filter_map(|item| match item {
            Ok(AuditedItem::Order(order)) => Some(*order),
            // An item that cannot be read is a faulty item.
            Ok(_) | Err(_) => None,
        });
        let mut orders: Vec<Order> = self.held.take().into_iter().chain(orders).collect();
        let last = orders.last().map(|order| keys::key_of_order(order.id));
        if last.is_some() && last.as_deref() == self.scan.partition_being_read() {
            self.held = orders.pop();
        }
        Ok(Some(OrdersPage { orders, faulty: self.scan.take_faulty_items() }))
    }

    /// Returns the position after the last partition that was read to its end, from which
    /// [`OrdersTable::scan_orders_after`] continues; `None` if there is none.
    pub fn position(&self) -> Option<String> {
        self.scan.position()
    }

    /// Returns whether the last page was read.
    pub fn is_at_end(&self) -> bool {
        self.scan.is_at_end()
    }
}
