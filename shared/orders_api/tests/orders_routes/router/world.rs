//! A desk with a warehouse, a product, two representatives and a customer, and its router.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use axum::{Extension, Router};
use billing::Money;
use clock::SimulatedClock;
use emulator::Engine;
use orders::{Buckets, OrderDesk, OrderId, OrdersTable, PaidPeriod};
use orders_api::OrdersApi;
use rest::Caller;
use rest::caller::ReadsConfidential;
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub struct World {
    router: Router,
    pub desk: OrderDesk,
}

pub struct Answered {
    pub status: u16,
    pub headers: HeaderMap,
    pub json: Value,
}

impl Answered {
    /// Status, kind, field and detail of a problem, in a line.
    pub fn problem(&self) -> String {
        let text = |name: &str| self.json[name].as_str().unwrap_or("-").to_owned();
        let kind = text("type").replace("urn:dueday:problem:", "");
        format!("{} {kind} {}: {}", self.status, text("field"), text("detail"))
    }

    pub fn etag(&self) -> &str {
        self.headers["etag"].to_str().unwrap()
    }

    /// What each item of a list has under `name`.
    pub fn listed(&self, name: &str) -> Vec<String> {
        let items = self.json["data"].as_array().unwrap_or_else(|| panic!("{}", self.json));
        items.iter().map(|item| item[name].as_str().unwrap().to_owned()).collect()
    }
}

pub fn acme() -> Caller {
    Caller::Account("acme".parse().unwrap())
}

/// The `n`th order of acme's, paid in the order of their numbers, some at the same instant.
pub fn paid(n: u64) -> PaidPeriod {
    let subscription = ulid::Ulid::from_parts(1_000 + n % 7, n.into());
    PaidPeriod {
        order: OrderId {
            due_on: "2027-01-31".parse().unwrap(),
            subscription: billing::SubscriptionId::new(subscription),
        },
        account: "acme".parse().unwrap(),
        sku: "coffee".parse().unwrap(),
        amount: Money::new(1_299, "EUR".parse().unwrap()),
        paid_at: "2027-01-31T06:00:00Z".parse::<chrono::DateTime<chrono::Utc>>().unwrap()
            + chrono::TimeDelta::seconds(i64::try_from(n / 4).unwrap()),
    }
}

pub fn somebody(name: &str) -> Value {
    json!({
        "name": name,
        "assignment": {"job": "sales", "job_title": "Account Manager", "represents_customers": true,
            "department": "sales-eu", "warehouse": "ams"},
        "hired_on": "2026-11-01", "salary": 5_400_000, "currency": "EUR",
    })
}

pub fn address() -> Value {
    json!({"name": "Acme", "street": "1 High Street", "postal_code": "LS1", "city": "Leeds", "country": "gb", "region": "eu"})
}

impl World {
    pub async fn new() -> Self {
        let clock = Arc::new(SimulatedClock::new("2027-01-31T12:00:00Z".parse().unwrap(), 1));
        let table = OrdersTable::new(Engine::memory().client(), "dueday-orders");
        table.create_if_absent().await.unwrap();
        let desk = OrderDesk::new(table.clone(), table.buckets(Buckets::new(3)).await.unwrap(), clock.clone());
        let world = Self { router: OrdersApi::new(desk.clone(), clock).router(), desk };
        for (request, body) in [
            ("PUT /warehouses/ams", json!({"name": "Amsterdam", "region": "eu"})),
            ("PUT /products/beans", json!({"name": "House Blend"})),
            ("PUT /employees/e-10", somebody("Ada Lovelace")),
            ("PUT /employees/e-11", somebody("Grace Hopper")),
        ] {
            assert_eq!(world.ask(request, &body).await.status, 201, "{request}");
        }
        for (request, body) in [
            ("PUT /skus/coffee", json!({"lines": [{"product": "beans", "quantity": 2}]})),
            ("PUT /products/beans/deliveries/01MCCKG2G0000G000000000003", json!({"warehouse": "ams", "quantity": 100})),
            ("PUT /customers/acme", address()),
        ] {
            assert_eq!(world.ask(request, &body).await.status, 200, "{request}");
        }
        world
    }

    /// Its orders from the first to the last of these numbers.
    pub async fn order(&self, numbers: std::ops::Range<u64>) {
        for n in numbers {
            self.desk.place(&paid(n)).await.unwrap();
        }
    }

    pub async fn send(&self, callers: Router, request: &str, headers: &[(&str, &str)], body: &Value) -> Answered {
        let (method, path) = request.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        if method != "GET" {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let response = callers.oneshot(request.body(body).unwrap()).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), 1_000_000).await.unwrap();
        Answered { status, headers, json: serde_json::from_slice(&bytes).unwrap_or_default() }
    }

    pub fn of(&self, caller: Caller) -> Router {
        self.router.clone().layer(Extension(caller))
    }

    /// Of nobody in particular.
    pub fn anonymous(&self) -> Router {
        self.router.clone()
    }

    /// The operator's request, who may read everything.
    pub async fn ask(&self, request: &str, body: &Value) -> Answered {
        self.ask_with(request, &[], body).await
    }

    pub async fn ask_with(&self, request: &str, headers: &[(&str, &str)], body: &Value) -> Answered {
        let operator = self.of(Caller::Operator).layer(Extension(ReadsConfidential));
        self.send(operator, request, headers, body).await
    }

    pub async fn get(&self, path: &str) -> Answered {
        self.ask(&format!("GET {path}"), &Value::Null).await
    }
}
