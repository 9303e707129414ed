//! A company's table, and the desk that works on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use clock::SimulatedClock;
use emulator::{Engine, Injector, Wire};
use orders::{Buckets, Days, OrderDesk, OrdersTable, PaidPeriod, Written};
use simulator::{Company, OrderBooks};
use ulid::Ulid;

pub const BUCKETS: u32 = 4;

pub struct World {
    pub company: Company,
    pub engine: Engine,
    pub desk: OrderDesk,
    pub wire: Arc<Wire>,
    /// What came of each product, by its key.
    pub arrived: BTreeMap<String, i64>,
}

pub fn now() -> DateTime<Utc> {
    "2027-02-15T12:00:00Z".parse().unwrap()
}

/// All days there are.
pub fn always() -> Days {
    (NaiveDate::from_ymd_opt(2000, 1, 1).unwrap(), NaiveDate::from_ymd_opt(2100, 1, 1).unwrap())
}

fn done(written: Written) {
    assert_eq!(written, Written::Done);
}

impl World {
    /// The table of `company`, with `stock` of each product in each warehouse.
    pub async fn new(company: Company, stock: u64) -> Self {
        Self::over(company, stock, Wire::without_tokens()).await
    }

    /// As [`World::new`]; the desk's calls pass `injector`.
    pub async fn through(company: Company, stock: u64, injector: Arc<Injector>) -> Self {
        Self::over(company, stock, Wire::through(injector)).await
    }

    async fn over(company: Company, stock: u64, wire: Wire) -> Self {
        let (engine, wire) = (Engine::memory(), Arc::new(wire));
        let calm = OrdersTable::new(engine.client_over(Arc::new(Wire::without_tokens())), "dueday-orders");
        calm.create_if_absent().await.unwrap();
        for region in &company.regions {
            done(calm.put_region(region).await.unwrap());
        }
        for country in &company.countries {
            done(calm.put_country(country).await.unwrap());
        }
        for location in &company.locations {
            done(calm.put_location(location).await.unwrap());
        }
        for job in &company.jobs {
            done(calm.put_job(job).await.unwrap());
        }
        for department in &company.departments {
            done(calm.put_department(department).await.unwrap());
        }
        for warehouse in &company.warehouses {
            done(calm.create_warehouse(warehouse).await.unwrap());
        }
        for (employee, assignment, confidential) in &company.employees {
            done(calm.hire(employee, assignment, confidential).await.unwrap());
        }
        let mut arrived = BTreeMap::new();
        for product in &company.products {
            done(calm.create_product(product).await.unwrap());
            for warehouse in company.warehouses.iter().filter(|_| stock > 0) {
                done(calm.add_stock(&product.id, &warehouse.id, stock, Ulid::generate()).await.unwrap());
                *arrived.entry(format!("PRODUCT#{}", product.id)).or_insert(0) += i64::try_from(stock).unwrap();
            }
        }
        for (sku, lines) in company.skus.iter().filter(|(_, lines)| !lines.is_empty()) {
            done(calm.set_lines(sku, lines).await.unwrap());
        }
        let table = OrdersTable::new(engine.client_over(wire.clone()), "dueday-orders");
        let desk = OrderDesk::new(table, Buckets::new(BUCKETS), Arc::new(SimulatedClock::new(now(), 1)));
        let world = Self { company, engine, desk, wire, arrived };
        let calm = world.calm_desk();
        for (account, address) in &world.company.customers {
            if let Some(address) = address {
                calm.ship_to(account, address.clone()).await.unwrap();
            }
        }
        world
    }

    /// A desk whose calls nothing disturbs.
    pub fn calm_desk(&self) -> OrderDesk {
        let client = self.engine.client_over(Arc::new(Wire::without_tokens()));
        let table = OrdersTable::new(client, "dueday-orders");
        OrderDesk::new(table, Buckets::new(BUCKETS), Arc::new(SimulatedClock::new(now(), 1)))
    }

    pub async fn books(&self) -> OrderBooks {
        let scan = self.engine.client().scan().table_name("dueday-orders").consistent_read(true);
        let items: Result<Vec<_>, _> = scan.into_paginator().items().send().collect().await;
        OrderBooks::read(&items.unwrap())
    }

    /// The orders that `paid` must come to: of SKUs that have products.
    pub fn expected(&self, paid: &[PaidPeriod]) -> BTreeSet<String> {
        let has_products =
            |paid: &&PaidPeriod| self.company.skus.iter().any(|(sku, lines)| *sku == paid.sku && !lines.is_empty());
        paid.iter().filter(has_products).map(|paid| format!("ORDER#{}", paid.order)).collect()
    }

    /// That the table can be true, if `paid` is all that was paid.
    pub async fn check(&self, paid: &[PaidPeriod], when: &str) {
        let wrong = self.books().await.wrong(&self.arrived, &self.expected(paid));
        assert!(wrong.is_empty(), "{when}: {wrong:#?}");
    }
}
