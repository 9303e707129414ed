//! Questions about lists of orders.

use std::collections::BTreeSet;

use orders::OrderToPack;
use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use store::Paging;

use super::{Questions, all_pages, assert_same_orders, instant, page_sizes};
use crate::order_desk::naive_reader::NaiveOrder;

impl Questions<'_> {
    /// Access patterns 4, 5, 8 and 10, and the list of a warehouse: lists of orders.
    pub async fn ask_for_orders(&mut self) {
        let (statuses, days) = (self.statuses(), self.days());
        let names: BTreeSet<String> = statuses.iter().map(ToString::to_string).collect();
        let (from, to) = (days.0.to_string(), days.1.to_string());
        let is_within = |order: &NaiveOrder| {
            names.contains(&order.status) && *from <= order.paid_at[..10] && order.paid_at[..10] <= *to
        };
        let customers: Vec<String> = self.naive.customers.keys().cloned().collect();
        let customer = customers.choose(&mut self.rng).unwrap().clone();
        let representative = format!("e-{}", 10 * self.rng.random_range(0..20));
        let (product, warehouse) =
            (format!("p-{}", self.rng.random_range(0..50)), format!("wh-{}", self.rng.random_range(0..10)));
        let of_customer = self.naive.orders_where(|order| is_within(order) && order.customer == customer);
        let of_all = self.naive.orders_where(is_within);
        let of_product = self.naive.orders_where(|order| is_within(order) && order.products.contains_key(&product));
        let of_representative =
            self.naive.orders_where(|order| is_within(order) && order.representative.as_ref() == Some(&representative));
        let status = statuses[0];
        let of_warehouse = self
            .naive
            .orders_where(|order| order.status == status.to_string() && order.warehouse.as_ref() == Some(&warehouse));
        self.lists_by_one += usize::from(page_sizes(of_all.len()).next() == Some(Some(1)));
        let question = format!("{customer} {representative} {product} {warehouse} {statuses:?} {days:?}");
        let (table, buckets) = (self.table, self.world.desk.buckets());
        let account = customer.parse().unwrap();
        let (employee, product_id) = (representative.parse().unwrap(), product.parse().unwrap());
        // The refunded amounts of the listed orders.
        let mut refunds: Vec<(String, i64)> = Vec::new();
        for limit in page_sizes(of_all.len().max(of_product.len()).max(of_warehouse.len())) {
            let found = all_pages(limit, async |paging: Paging| {
                table.orders_of_customer(&account, &statuses, days, &paging).await
            });
            let found = found.await;
            refunds.extend(found.iter().map(|order| (order.id.to_string(), order.refunded.minor())));
            let found = found.into_iter().map(|order| (instant(order.placed_at), order.id.to_string())).collect();
            assert_same_orders(found, &of_customer, &question);
            let found =
                all_pages(limit, async |paging: Paging| table.orders_in(&statuses, days, buckets, &paging).await);
            let found = found.await;
            refunds.extend(found.iter().map(|order| (order.id.to_string(), order.refunded.minor())));
            let found = found.into_iter().map(|order| (instant(order.placed_at), order.id.to_string())).collect();
            assert_same_orders(found, &of_all, &question);
            let found = all_pages(limit, async |paging: Paging| {
                table.orders_of_product(&product_id, &statuses, days, &paging).await
            });
            let found =
                found.await.into_iter().map(|order| (instant(order.placed_at), order.order.to_string())).collect();
            assert_same_orders(found, &of_product, &question);
            let found = all_pages(limit, async |paging: Paging| {
                table.orders_of_representative(&employee, &statuses, days, &paging).await
            });
            let found = found.await;
            refunds.extend(found.iter().map(|order| (order.order.to_string(), order.refunded.minor())));
            let found = found.into_iter().map(|order| (instant(order.placed_at), order.order.to_string())).collect();
            assert_same_orders(found, &of_representative, &question);
            for is_newest_first in [false, true] {
                let id = warehouse.parse().unwrap();
                let mut found = all_pages(limit, async |paging: Paging| {
                    table.orders_of_warehouse(&id, status, is_newest_first, &paging).await
                })
                .await;
                if is_newest_first {
                    found.reverse();
                }
                let found =
                    found.into_iter().map(|OrderToPack { order, .. }| (instant(order.placed_at), order.id.to_string()));
                assert_same_orders(found.collect(), &of_warehouse, &question);
            }
        }
        for (id, refunded) in &refunds {
            assert_eq!(*refunded, self.naive.refunded(id), "{id}");
        }
        self.count("refunds", refunds.iter().all(|(_, refunded)| *refunded == 0));
        self.count("orders of a customer", of_customer.is_empty());
        self.count("orders in a status", of_all.is_empty());
        self.count("orders of a product", of_product.is_empty());
        self.count("orders of a representative", of_representative.is_empty());
        self.count("orders of a warehouse", of_warehouse.is_empty());
    }
}
