//! The transaction that creates a follow-up order, with which an order is split or its products are replaced.

use std::collections::BTreeSet;

use ulid::Ulid;

use crate::fulfilment::order_lines::order_lines_as_text;
use crate::fulfilment::orders::{move_products_of_order, relations_of_order};
use crate::items;
use crate::write_transaction::{WriteOutcome, WriteTransaction};
use crate::{OrdersTable, keys};
use billing::{ActionKind, ItemChange, Label};
use chrono::{DateTime, Utc};
use dynamo::{Entity as _, IdempotentRequest, TableError};
use orders::{
    BackOrderReason, Customer, Order, OrderId, OrderLine, OrderMovement, OrderStatus, ProductId, StockEffect,
};

/// A follow-up order, and everything that the same transaction changes or checks.
#[derive(Clone, Copy, Debug)]
pub struct NewFollowUp<'a> {
    /// The main order of the paid month, before and after the change of its number of follow-up orders.
    pub main: (&'a Order, &'a Order),
    /// The order that is split, or whose products are replaced, before and after the change. If this order is the main
    /// order, the change also adds 1 to its number of follow-up orders (`follow_ups`).
    pub order: (&'a Order, &'a Order),
    pub follow_up: &'a Order,
    /// The customer of the orders. The transaction is refused if the customer changed since it was read.
    pub customer: &'a Customer,
    /// The request whose response is saved.
    pub request: Option<&'a IdempotentRequest>,
    /// Why products are replaced; `None` if the order is split.
    pub reason: Option<&'a Label>,
}

impl OrdersTable {
    /// Creates a follow-up order and its relations (items that relate the order to other entities), and counts it in
    /// the main order, in one transaction. If an order is split, the transaction also changes its lines and relations.
    /// It deducts the products of each order that becomes `OPEN` from the stock. Returns `Refused` if an order or the
    /// customer changed since it was read, or if the stock does not suffice. Returns `NoAccount` if the table has a
    /// requester, products are replaced, and the account does not exist or is being erased.
    ///
    /// The transaction also writes a fill task, with `change` as the identifier of the change, for these products: one
    /// product of each of the two orders that waits for stock, and, if a backordered order is split, each product that
    /// both parts contain. Newer orders had to wait for this order, and each part needs fewer pieces.
    ///
    /// A transaction has at most 100 actions. The split of an order with 20 products needs at most 91 actions: 20 for
    /// the product relations of the order and 20 for those of the follow-up order, two actions for each of 20 products
    /// whose stock changes, and 11 others.
    pub async fn create_follow_up(&self, new: &NewFollowUp<'_>, change: Ulid) -> Result<WriteOutcome, TableError> {
        let (before, after) = new.order;
        let (follow_up, at) = (new.follow_up, DateTime::from(change.datetime()));
        let mut writes = self.transaction();
        if new.main.0.id != before.id {
            writes = writes.change(new.main.0, new.main.1);
        }
        writes = if before == after { writes.check_unchanged(before) } else { writes.change(before, after) };
        let is_split = before.lines != after.lines;
        if is_split {
            writes = change_relations_of_split_order(writes, before, after);
        }
        writes = writes.create(follow_up.to_item());
        writes = relations_of_order(follow_up, &follow_up.lines).into_iter().fold(writes, WriteTransaction::create);
        writes = match is_split && before.status == OrderStatus::Open {
            true => hand_over_stock_to_follow_up(writes, new, at),
            false => {
                let mut writes = writes;
                for order in [after, follow_up] {
                    let is_filled = order.status == OrderStatus::Open && (order.id == follow_up.id || is_split);
                    if is_filled {
                        let deducted = StockEffect::Deducted;
                        writes = move_products_of_order(writes, order, &order.lines, deducted, order.version, at);
                    }
                }
                writes
            }
        };
        let waiting = [after, follow_up].into_iter().filter(|order| order.waits_for == Some(BackOrderReason::Stock));
        let mut products: Vec<&ProductId> =
            waiting.filter_map(|order| order.lines.first()).map(|line| &line.product).collect();
        if is_split && before.status == OrderStatus::BackOrdered {
            let of_both = |line: &&OrderLine| follow_up.lines.iter().any(|other| other.product == line.product);
            products.extend(after.lines.iter().filter(of_both).map(|line| &line.product));
        }
        let mut seen = BTreeSet::new();
        products.retain(|product| seen.insert(*product));
        writes = writes.request_fill_of_all(&products, change).check_unchanged(new.customer).save_response(new.request);
        if !is_split {
            writes = writes.check_account(&follow_up.customer);
        }
        writes
            .add_action_entry_with_reason(ActionKind::ChangeOrder, new.reason, || follow_up_action_entry(new))
            .commit()
            .await
    }
}

/// Adds writes that change the relations of an order that is split: the items that relate the order to its
/// representative, its products and its warehouse.
fn change_relations_of_split_order<'a>(
    mut writes: WriteTransaction<'a>,
    before: &Order,
    after: &Order,
) -> WriteTransaction<'a> {
    let order = keys::key_of_order(before.id);
    let has_new_status = before.status != after.status;
    if has_new_status {
        let representative = keys::key_of_representative(before.representative.as_ref());
        let data = keys::status_data(after);
        writes = writes.update_relation_data(keys::key_of_relation(order.clone(), representative), &data);
    }
    for removed in before.lines.iter().filter(|line| after.lines.iter().all(|kept| kept.product != line.product)) {
        writes = writes.delete(keys::key_of_relation(order.clone(), keys::key_of_product(&removed.product)));
    }
    for line in after.lines.iter().filter(|line| has_new_status || !before.lines.contains(line)) {
        writes = writes.put(items::product_relation(after, line));
    }
    match items::warehouse_relation(after, &after.lines) {
        Some(relation) => writes.put(relation),
        None => writes,
    }
}

/// Adds the movements of the products that the order reserved before the split, and that the follow-up order reserves
/// now. The stock of the warehouse does not change, but the stored number of its movements does, so that an audit that
/// runs at the same time notices the new movements.
fn hand_over_stock_to_follow_up<'a>(
    writes: WriteTransaction<'a>,
    new: &NewFollowUp<'_>,
    at: DateTime<Utc>,
) -> WriteTransaction<'a> {
    let ((before, after), follow_up) = (new.order, new.follow_up);
    let from = OrderMovement::of_exchanged_lines(before, &before.lines, &after.lines, after.version, at);
    let to = OrderMovement::of_order_change(follow_up, &follow_up.lines, StockEffect::Deducted, follow_up.version, at);
    let mut writes = writes;
    for change in to.iter().flat_map(OrderMovement::stock_changes) {
        let product = keys::key_of_product(&change.product);
        writes = writes.count_movements(keys::key_of_relation(product, keys::key_of_warehouse(&change.warehouse)), 2);
    }
    from.into_iter().chain(to).fold(writes, |writes, movement| writes.create(movement.to_item()))
}

/// Returns the entry of the action log for a split, which belongs to the order that is split, or for a replacement,
/// which belongs to the follow-up order.
fn follow_up_action_entry(new: &NewFollowUp<'_>) -> ItemChange {
    let ((before, after), follow_up) = (new.order, new.follow_up);
    if before.lines == after.lines {
        let entry = ItemChange::new(follow_up.id, follow_up.version).of_account(&follow_up.customer);
        return entry.field("follows", None::<OrderId>, Some(before.id)).field(
            "products",
            None,
            order_lines_as_text(&follow_up.lines),
        );
    }
    let entry = ItemChange::new(after.id, after.version).of_account(&after.customer);
    entry
        .field("products", order_lines_as_text(&before.lines), order_lines_as_text(&after.lines))
        .field("status", Some(before.status), Some(after.status))
        .field("follow_up", None::<OrderId>, Some(follow_up.id))
}
