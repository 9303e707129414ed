//! Compares the access patterns about one employee, about one product, and about the ranking of the representatives.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Days, NaiveDate};
use orders::Quarter;
use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use simulator::euro_currency;

use super::RandomComparisons;

impl RandomComparisons<'_> {
    /// Compares the access patterns 1, 3, 8, 12, 13 and 14 with the naive reader, with random parameters.
    pub async fn compare_details(&mut self) {
        let ids: Vec<String> = self.naive.employees.keys().cloned().collect();
        let id = ids.choose(&mut self.rng).unwrap().clone();
        let (naive, employee) = (&self.naive.employees[&id], id.parse().unwrap());
        let details = self.table.employee_details(&employee).await.unwrap().unwrap();
        let jobs: BTreeMap<String, String> =
            details.jobs.iter().map(|job| (job.from.to_string(), job.job_title.as_str().to_owned())).collect();
        assert_eq!((details.employee.name.as_str(), &jobs), (naive.name.as_str(), &naive.jobs), "{id}");
        let day = NaiveDate::from_ymd_opt(2019, 6, 1).unwrap() + Days::new(self.rng.random_range(0..3_000));
        let expected = naive.jobs.range(..=day.to_string()).next_back().map(|(_, title)| title.clone());
        let current = self.table.current_job(&employee, day).await.unwrap();
        assert_eq!(current.map(|job| job.job_title.as_str().to_owned()), expected, "{id} {day}");
        self.count_comparison("current job", expected.is_none());

        let representative = format!("e-{}", 10 * self.rng.random_range(0..20));
        let details = self.table.employee_details(&representative.parse().unwrap()).await.unwrap().unwrap();
        let found = details.totals.iter().map(|total| {
            assert_eq!(total.representative.to_string(), representative);
            (total.quarter.to_string(), total.total.currency().to_string(), total.total.minor())
        });
        let found: Vec<_> = found.filter(|(.., sum)| *sum != 0).collect();
        let expected = self.naive.totals_of(&representative);
        assert_eq!(found, expected, "{representative}: oldest quarter first");
        self.count_comparison("quarter totals of a representative", expected.is_empty());

        let product = format!("p-{}", self.rng.random_range(0..50));
        let (product_id, expected) = (product.parse().unwrap(), self.naive.stock_of(&product));
        let (orders, stock) = self.table.orders_and_stock_of_product(&product_id).await.unwrap();
        let in_warehouses = |stock: &[orders::Stock]| -> BTreeMap<String, i64> {
            stock.iter().map(|one| (one.warehouse.to_string(), i64::try_from(one.quantity).unwrap())).collect()
        };
        assert_eq!(in_warehouses(&stock), expected, "{product}");
        let containing = self.naive.orders_where(|order| order.products.contains_key(&product));
        let found: BTreeSet<String> = orders.iter().map(|order| order.order.to_string()).collect();
        assert_eq!((orders.len(), found), (containing.len(), containing.iter().map(|(_, id)| id.clone()).collect()));
        // The key of the warehouse wh-1 is a prefix of the key of the warehouse wh-10. A query for wh-1 must not return
        // the stock of wh-10.
        let one = self.table.get_stock(&product_id, Some(&"wh-1".parse().unwrap())).await.unwrap();
        assert_eq!(in_warehouses(&one).into_iter().collect::<Vec<_>>(), [("wh-1".to_owned(), expected["wh-1"])]);
        let total = self.table.get_product(&product_id).await.unwrap().unwrap().total_stock;
        assert_eq!(i64::try_from(total).unwrap(), expected.values().sum::<i64>(), "{product}");
        self.count_comparison("stock of a product", expected.is_empty());

        let quarter = format!("202{}-Q{}", self.rng.random_range(5..8), self.rng.random_range(1..5));
        let ranking = self.table.get_ranking(quarter.parse::<Quarter>().unwrap(), euro_currency()).await.unwrap();
        assert!(
            ranking
                .iter()
                .all(|total| (total.quarter.to_string(), total.total.currency()) == (quarter.clone(), euro_currency()))
        );
        let found = ranking.iter().map(|total| (total.total.minor(), total.representative.to_string()));
        // If all orders of a representative were cancelled or refunded, the ranking contains the total 0. The naive
        // reader does not return totals of 0, so the comparison leaves them out.
        let found: Vec<_> = found.filter(|(sum, _)| *sum != 0).collect();
        let expected = self.naive.ranking(&quarter, "EUR");
        assert_eq!(found, expected, "{quarter}");
        self.count_comparison("ranking", expected.is_empty());
    }
}
