//! Compares the access patterns that return lists of orders with the naive reader.

use std::collections::BTreeSet;

use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use store::Paging;

use super::listed_order::ListedOrder;
use super::{RandomComparisons, all_pages, page_sizes};
use crate::order_desk::naive_reader::ScannedOrder;

impl RandomComparisons<'_> {
    /// Compares the access patterns 4, 5, 8 and 10, and the list of the orders of a warehouse, with random parameters.
    pub async fn compare_orders(&mut self) {
        let (statuses, days) = (self.random_statuses(), self.random_days());
        let names: BTreeSet<String> = statuses.iter().map(ToString::to_string).collect();
        let (from, to) = (days.0.to_string(), days.1.to_string());
        let is_within = |order: &ScannedOrder| {
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
        let query = format!("{customer} {representative} {product} {warehouse} {statuses:?} {days:?}");
        let (table, buckets) = (self.table, self.world.desk.buckets());
        let account = customer.parse().unwrap();
        let (employee, product_id) = (representative.parse().unwrap(), product.parse().unwrap());
        for limit in page_sizes(of_all.len().max(of_product.len()).max(of_warehouse.len())) {
            let found = all_pages(limit, async |paging: Paging| {
                table.orders_of_customer(&account, &statuses, days, &paging).await
            });
            self.assert_orders(found.await.iter().map(ListedOrder::from), &of_customer, &query);
            let found = all_pages(limit, async |paging: Paging| {
                table.orders_of_all_customers(&statuses, days, buckets, &paging).await
            });
            self.assert_orders(found.await.iter().map(ListedOrder::from), &of_all, &query);
            let found = all_pages(limit, async |paging: Paging| {
                table.orders_of_product(&product_id, &statuses, days, &paging).await
            });
            let found = found.await;
            let found = found.iter().map(|order| ListedOrder::of_product(&product, order));
            self.assert_orders(found, &of_product, &query);
            let found = all_pages(limit, async |paging: Paging| {
                table.orders_of_representative(&employee, &statuses, days, &paging).await
            });
            self.assert_orders(found.await.iter().map(ListedOrder::from), &of_representative, &query);
            for is_newest_first in [false, true] {
                let id = warehouse.parse().unwrap();
                let mut found = all_pages(limit, async |paging: Paging| {
                    table.orders_of_warehouse(&id, status, is_newest_first, &paging).await
                })
                .await;
                if is_newest_first {
                    found.reverse();
                }
                self.assert_orders(found.iter().map(ListedOrder::from), &of_warehouse, &query);
            }
        }
        let is_refunded = |(_, id): &(String, String)| self.naive.orders[id].refunds > 0;
        let listed = [&of_customer, &of_all, &of_representative, &of_warehouse];
        let no_refunds = !listed.into_iter().flatten().any(is_refunded);
        self.count_comparison("refunds", no_refunds);
        self.count_comparison("orders of a customer", of_customer.is_empty());
        self.count_comparison("orders in a status", of_all.is_empty());
        self.count_comparison("orders of a product", of_product.is_empty());
        self.count_comparison("orders of a representative", of_representative.is_empty());
        self.count_comparison("orders of a warehouse", of_warehouse.is_empty());
    }

    /// Asserts that the list `found` contains exactly the orders `expected`, each order once, and oldest payment first.
    /// Also asserts that the data of each listed order is correct. Orders that were paid at the same time may be in any
    /// sequence.
    fn assert_orders(&self, found: impl Iterator<Item = ListedOrder>, expected: &[(String, String)], query: &str) {
        let mut ids = Vec::new();
        for order in found {
            if let Some(naive) = self.naive.orders.get(&order.id) {
                order.assert_shows(naive, query);
            }
            ids.push((order.paid_at, order.id));
        }
        assert!(ids.is_sorted_by_key(|(paid_at, _)| paid_at.clone()), "{query}: {ids:?}");
        ids.sort();
        assert_eq!(ids, expected, "{query}");
    }
}
