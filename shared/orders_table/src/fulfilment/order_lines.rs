//! The transaction that changes the products of an order.

use std::collections::BTreeSet;

use ulid::Ulid;

use crate::fulfilment::orders::write_movement;
use crate::items;
use crate::write_transaction::WriteOutcome;
use crate::{OrdersTable, keys};
use billing::{ActionKind, ItemChange};
use chrono::DateTime;
use dynamo::TableError;
use orders::{FillTarget, Order, OrderLine, OrderMovement, ProductId};

/// Returns `lines` as text for the action log, such as "2 x beans, 1 x cups"; `None` if there are no lines.
pub(crate) fn order_lines_as_text(lines: &[OrderLine]) -> Option<String> {
    let texts: Vec<String> = lines.iter().map(|line| format!("{} x {}", line.quantity, line.product)).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

impl OrdersTable {
    /// Replaces the products `old` of the order `before` by those of `after`, in one transaction, which also changes
    /// the items that relate the order to products and to its warehouse, and the stock of the warehouse. Returns
    /// `Refused` if the stored order changed since it was read, or if the stock does not suffice.
    ///
    /// The transaction also writes fill tasks, with `change` as the identifier of the change:
    /// - If the order is open: for each product whose stock grows.
    /// - If the order is backordered: for one of its products, and for each product of which the order now needs fewer
    ///   pieces, because newer orders had to wait for this order.
    ///
    /// The transaction has at most four actions for each changed product, and seven others.
    pub async fn change_lines(
        &self,
        before: &Order,
        old: &[OrderLine],
        after: &Order,
        change: Ulid,
    ) -> Result<WriteOutcome, TableError> {
        let (order, at) = (keys::key_of_order(before.id), DateTime::from(change.datetime()));
        let mut writes = self.transaction().change(before, after);
        for removed in old.iter().filter(|line| after.lines.iter().all(|new| new.product != line.product)) {
            writes = writes.delete(keys::key_of_relation(order.clone(), keys::key_of_product(&removed.product)));
        }
        for line in after.lines.iter().filter(|line| !old.contains(line)) {
            writes = writes.put(items::product_relation(after, line));
        }
        if let Some(relation) = items::warehouse_relation(after, &after.lines) {
            writes = writes.put(relation);
        }
        match OrderMovement::of_exchanged_lines(before, old, &after.lines, after.version, at) {
            Some(movement) => {
                writes = write_movement(writes, &movement);
                for grown in movement.stock_changes().into_iter().filter(|change| change.pieces > 0) {
                    writes = writes.request_fill(&FillTarget::Product(grown.product), change);
                }
            }
            None => {
                let wants_less = |line: &&OrderLine| {
                    after.lines.iter().all(|new| new.product != line.product || new.quantity < line.quantity)
                };
                let unblocked = old.iter().filter(wants_less).chain(after.lines.first());
                let targets: BTreeSet<&ProductId> = unblocked.map(|line| &line.product).collect();
                for product in targets {
                    writes = writes.request_fill(&FillTarget::Product(product.clone()), change);
                }
            }
        }
        let entry = || {
            let entry = ItemChange::new(before.id, after.version).of_account(&before.customer);
            entry.field("products", order_lines_as_text(old), order_lines_as_text(&after.lines))
        };
        writes.add_action_entry(ActionKind::ChangeOrder, entry).commit().await
    }
}
