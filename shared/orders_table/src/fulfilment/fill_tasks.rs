//! Fill tasks. Each task requests to try again to fill the backordered orders of a product or of a customer. All tasks are in
//! the partition `FILLS`, so that one query finds them.
//!
//! Two workers can work on the same task at the same time, because each order is filled in a conditional transaction.
//! Each change that requests a task replaces the identifier of the change in the task. A task is deleted only if this
//! identifier is still the same as at the start of the pass over its orders. So a change during a pass is never lost:
//! the task is kept, and another pass follows.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, Update};
use ulid::Ulid;

use crate::fulfilment::orders::read_status_and_instant;
use crate::items;
use crate::items::{CHANGE, DATA, FURTHER, FillPassItem, PASS};
use crate::partition_queries::ItemSelection;
use crate::schema::GSI_1;
use crate::{OrdersTable, keys};
use dynamo::{
    Entity as _, Item, Key, PRESENT, Page, Query, TableError, UpdateItemOutcome, collect_attribute_names, s, to_item,
    values,
};
use orders::{FillPass, FillTarget, FillTask, OrderStatus, ProductId, WaitingOrder};

/// A list page of the backordered orders of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingOrdersPage {
    /// The orders, oldest first.
    pub orders: Vec<WaitingOrder>,
    /// True on the last page.
    pub is_last: bool,
}

impl OrdersTable {
    /// Returns all fill tasks, sorted by their targets. Sends one strongly consistent query with `PK = FILLS`.
    pub async fn fill_tasks(&self) -> Result<Page<FillTask>, TableError> {
        let items = self.query_partition(keys::FILLS.to_owned(), ItemSelection::all_items()).await?;
        Ok(Page { items, unreadable: Vec::new(), next: None }.read(|item| FillTask::from_item(&item)))
    }

    /// Creates the fill task of `target`, or requests the existing task again: its current pass continues, and then
    /// another pass over its orders follows. `change` is the identifier of the change that requests the task. Sends one
    /// UpdateItem request.
    pub async fn request_fill(&self, target: &FillTarget, change: Ulid) -> Result<(), TableError> {
        self.dynamo.send_update(self.build_fill_request(target, change), ReturnValue::None).await.map(drop)
    }

    /// Builds the update of [`OrdersTable::request_fill`]. The update has no condition, so a transaction never fails
    /// because of it.
    pub(crate) fn build_fill_request(&self, target: &FillTarget, change: Ulid) -> Update {
        let expression = format!("SET #{CHANGE} = :change");
        Update::builder()
            .table_name(self.dynamo.name())
            .set_key(Some(keys::key_of_fill_task(target).attributes()))
            .set_expression_attribute_names(Some(collect_attribute_names(&[&expression])))
            .expression_attribute_values(":change", s(change))
            .update_expression(expression)
            .build()
            .expect("key and update are set")
    }

    /// Builds the update that requests to fill the orders of all `products` with one fill task: the task of the first
    /// product, which contains the others as its further products. The update has no condition, so a transaction never
    /// fails because of it. Returns `None` if there are no products.
    pub(crate) fn build_fill_request_for_all(&self, products: &[&ProductId], change: Ulid) -> Option<Update> {
        let (first, further) = products.split_first()?;
        let target = FillTarget::Product((*first).clone());
        if further.is_empty() {
            return Some(self.build_fill_request(&target, change));
        }
        let further = further.iter().map(s).collect();
        let expression =
            format!("SET #{CHANGE} = :change, #{FURTHER} = list_append(if_not_exists(#{FURTHER}, :none), :further)");
        let update = Update::builder()
            .table_name(self.dynamo.name())
            .set_key(Some(keys::key_of_fill_task(&target).attributes()))
            .set_expression_attribute_names(Some(collect_attribute_names(&[&expression])))
            .expression_attribute_values(":change", s(change))
            .expression_attribute_values(":further", AttributeValue::L(further))
            .expression_attribute_values(":none", AttributeValue::L(Vec::new()))
            .update_expression(expression)
            .build();
        Some(update.expect("key and update are set"))
    }

    /// Removes the further products of `task`, after each of them has got a task of its own. Changes nothing if another
    /// change has requested the task after it was read, because that change may have added products. Sends one
    /// UpdateItem request.
    pub async fn remove_further_products(&self, task: &FillTask) -> Result<(), TableError> {
        let (key, condition) = (keys::key_of_fill_task(&task.target), format!("#{CHANGE} = :change"));
        let values = HashMap::from([(":change".to_owned(), s(task.change))]);
        let update = self.dynamo.build_update(key, &format!("REMOVE #{FURTHER}"), &condition, values);
        self.dynamo.send_update(update, ReturnValue::None).await.map(drop)
    }

    /// Saves the position of a pass over the orders of `target` in its fill task. Returns false without a change if the
    /// task does not exist any more, or if a pass that belongs to another change has started. Sends one UpdateItem
    /// request.
    pub async fn save_fill_pass(&self, target: &FillTarget, pass: &FillPass) -> Result<bool, TableError> {
        let condition = format!("{PRESENT} AND (attribute_not_exists(#{PASS}) OR #{PASS}.#{CHANGE} = :change)");
        let position = AttributeValue::M(to_item(&FillPassItem::from(pass.clone())));
        let values = HashMap::from([(":pass".to_owned(), position), (":change".to_owned(), s(pass.change))]);
        let key = keys::key_of_fill_task(target);
        let update = self.dynamo.build_update(key, &format!("SET #{PASS} = :pass"), &condition, values);
        Ok(matches!(self.dynamo.send_update(update, ReturnValue::None).await?, UpdateItemOutcome::Updated(_)))
    }

    /// Deletes the fill task of `target` after the end of `pass`. Returns false without a change if a change has
    /// requested the task after the start of the pass, or if a further product has no task of its own yet. Sends one
    /// DeleteItem request.
    pub async fn delete_fill_task(&self, target: &FillTarget, pass: &FillPass) -> Result<bool, TableError> {
        let values = values([(":change", s(pass.change))]);
        let condition = format!("#{CHANGE} = :change AND attribute_not_exists(#{FURTHER})");
        self.dynamo.delete_if(keys::key_of_fill_task(target), &condition, values).await
    }

    /// Ends the current pass of the fill task of `target` and keeps the task, so that the next pass starts with the
    /// oldest order. Does nothing if the task does not exist. Sends one UpdateItem request.
    pub async fn restart_fill_task(&self, target: &FillTarget) -> Result<(), TableError> {
        let (key, expression) = (keys::key_of_fill_task(target), format!("REMOVE #{PASS}"));
        let update = self.dynamo.build_update(key, &expression, PRESENT, HashMap::new());
        self.dynamo.send_update(update, ReturnValue::None).await.map(drop)
    }

    /// Returns at most `limit` backordered orders of `target` that follow the order `after`, oldest first. If `after`
    /// is `None`, begins with the oldest order. Sends one query of the target's partition of GSI-1; `Data` must begin
    /// with the status `BACKORDERED`.
    pub async fn waiting_orders(
        &self,
        target: &FillTarget,
        after: Option<&WaitingOrder>,
        limit: usize,
    ) -> Result<WaitingOrdersPage, TableError> {
        let end = keys::key_of_fill_target(target);
        let start_after = after.map(|after| {
            let key = Key { pk: keys::key_of_order(after.order), sk: end.clone() };
            let mut key: Item = key.attributes();
            key.insert(DATA.to_owned(), s(keys::build_status_data(OrderStatus::BackOrdered, after.placed_at)));
            key
        });
        let values = values([(":end", s(end)), (":prefix", s(keys::status_prefix(OrderStatus::BackOrdered)))]);
        let condition = format!("#SK = :end AND begins_with(#{DATA}, :prefix)");
        let query =
            Query { index: Some(GSI_1), page_items: Some(limit), after: start_after, ..Query::new(condition, values) };
        let mut items = self.dynamo.query(query);
        let page = items.read_page().await?.unwrap_or_default();
        let read = |item: &Item| {
            let (_, placed_at) = read_status_and_instant(item)?;
            Ok(WaitingOrder { order: items::order_id_in(item)?, placed_at })
        };
        let orders = page.iter().map(read).collect::<Result<_, TableError>>()?;
        Ok(WaitingOrdersPage { orders, is_last: items.last_evaluated_key().is_none() })
    }
}
