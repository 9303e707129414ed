//! A test fixture: an order desk with a warehouse, a product, two representatives and a customer, and its router.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use axum::{Extension, Router};
use billing::{Account, Money};
use clock::SimulatedClock;
use emulator::{Engine, EngineConnection};
use orders::{Country, Department, Job, Location, OrderId, PaidPeriod, Region};
use orders_api::OrdersApi;
use orders_desk::OrderDesk;
use orders_table::{BucketCount, OrdersTable};
use rest::{Caller, Role};
use serde_json::{Value, json};
use store::Table;
use testkit::sample_account;
use tower::ServiceExt as _;

/// An order desk with test data, and the router of its HTTP API.
pub struct TestDesk {
    router: Router,
    pub desk: OrderDesk,
    /// The payments table, with the accounts and the action log.
    pub payments: Table,
    pub clock: Arc<SimulatedClock>,
    pub connection: Arc<EngineConnection>,
}

/// A complete HTTP response with a JSON body.
pub struct TestResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub json: Value,
}

impl TestResponse {
    /// Returns the status, kind, field and detail of a problem response in one line, such as
    /// `422 refused-field to: must be ...`. A missing field is `-`.
    pub fn problem_line(&self) -> String {
        let text = |name: &str| self.json[name].as_str().unwrap_or("-").to_owned();
        let kind = text("type").replace("urn:dueday:problem:", "");
        format!("{} {kind} {}: {}", self.status, text("field"), text("detail"))
    }

    /// Returns the header `ETag`, which contains the version in double quotes.
    pub fn etag(&self) -> &str {
        self.headers["etag"].to_str().unwrap()
    }

    /// Returns the field `name` of each item of a list page.
    pub fn list_field(&self, name: &str) -> Vec<String> {
        let items = self.json["data"].as_array().unwrap_or_else(|| panic!("{}", self.json));
        items.iter().map(|item| item[name].as_str().unwrap().to_owned()).collect()
    }
}

/// Returns the caller of requests that the account `acme` sends with its own token.
pub fn acme_caller() -> Caller {
    Caller::of_account("acme".parse().unwrap())
}

/// Returns the paid month with the number `n`, of the account `acme`. Each number has its own subscription. The months
/// 0 to 3 were paid at the same instant, the months 4 to 7 one second later, and so on.
pub fn paid_month(n: u64) -> PaidPeriod {
    let subscription = ulid::Ulid::from_parts(1_000 + n % 7, n.into());
    PaidPeriod {
        order: OrderId::of_month("2027-01-31".parse().unwrap(), billing::SubscriptionId::new(subscription)),
        account: "acme".parse().unwrap(),
        sku: "coffee".parse().unwrap(),
        amount: Money::new(1_299, "EUR".parse().unwrap()),
        paid_at: "2027-01-31T06:00:00Z".parse::<chrono::DateTime<chrono::Utc>>().unwrap()
            + chrono::TimeDelta::seconds(i64::try_from(n / 4).unwrap()),
    }
}

/// Returns the body of a request that hires a customer representative with this name.
pub fn employee_body(name: &str) -> Value {
    json!({
        "name": name,
        "assignment": {"job": "sales", "job_title": "Account Manager", "represents_customers": true,
            "department": "sales-eu", "warehouse": "ams"},
        "hired_on": "2026-11-01", "salary": 5_400_000, "currency": "EUR",
    })
}

/// Returns the body of a request that sets a valid shipping address in Leeds, with all fields.
pub fn address_body() -> Value {
    json!({
        "name": "Acme", "street": "1 High Street", "line2": "Unit 4", "postal_code": "LS1", "city": "Leeds",
        "state": "West Yorkshire", "country": "gb", "region": "eu", "phone": "+44 113 496 0000",
    })
}

/// Returns a connection that changes the responses to the first `requests` BatchGetItem requests: half of the keys stay
/// unprocessed, as DynamoDB allows, so the client must read them again.
pub fn connection_with_unprocessed_keys(requests: u32) -> EngineConnection {
    let incomplete = AtomicU32::new(requests);
    let leave_unprocessed = move |request: &Value, response: &mut Value| {
        let Some(items) = response["Responses"]["dueday-orders"].as_array_mut() else { return };
        if incomplete.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            let left = items.split_off(items.len() / 2);
            let keys: Vec<Value> = left.iter().map(|item| json!({"PK": item["PK"], "SK": item["SK"]})).collect();
            let mut unprocessed = request["RequestItems"].clone();
            unprocessed["dueday-orders"]["Keys"] = json!(keys);
            response["UnprocessedKeys"] = unprocessed;
        }
    };
    EngineConnection::with_changed_responses(leave_unprocessed)
}

/// Creates the payments table with the accounts `acme` and `new`.
pub async fn payments_table(client: aws_sdk_dynamodb::Client) -> Table {
    let table = Table::new(client, "dueday");
    table.create_if_absent().await.unwrap();
    for account in ["acme", "new"] {
        let account = Account { id: account.parse().unwrap(), ..sample_account() };
        assert!(table.create_account(&account).await.unwrap());
    }
    table
}

/// Creates the regions, the country, the location, the jobs and the departments to which the requests of the tests refer.
pub async fn create_company(table: &OrdersTable) {
    for (id, name) in [("eu", "Europe"), ("na", "North America")] {
        table.put_entity(&Region { id: id.parse().unwrap(), name: name.parse().unwrap() }).await.unwrap();
    }
    let (id, name, region) = ("gb".parse().unwrap(), "Britain".parse().unwrap(), "eu".parse().unwrap());
    table.put_entity(&Country { id, name, region }).await.unwrap();
    let (id, address) = ("leeds".parse().unwrap(), "1 High Street".parse().unwrap());
    table.put_entity(&Location { id, address, country_name: "Britain".parse().unwrap() }).await.unwrap();
    for (id, title, represents_customers) in [("sales", "Account Manager", true), ("buying", "Buyer", false)] {
        let job = Job { id: id.parse().unwrap(), title: title.parse().unwrap(), represents_customers };
        table.put_entity(&job).await.unwrap();
    }
    for id in ["sales-eu", "sales-na", "buying"] {
        let (location, name) = ("leeds".parse().unwrap(), id.parse().unwrap());
        table.put_entity(&Department { id: id.parse().unwrap(), name, location }).await.unwrap();
    }
}

impl TestDesk {
    /// Creates an order desk with the company, the warehouse, the product, the representatives and the customer.
    pub async fn new() -> Self {
        Self::with_connection(EngineConnection::default()).await
    }

    /// Creates the same test desk as [`TestDesk::new`], whose requests to the tables are sent through `connection`.
    pub async fn with_connection(connection: EngineConnection) -> Self {
        let test_desk = Self::with_empty_table(connection).await;
        create_company(&test_desk.desk.table).await;
        test_desk.create_test_data().await;
        test_desk
    }

    /// Creates an order desk with an empty table, without a company.
    pub async fn without_data() -> Self {
        Self::with_empty_table(EngineConnection::default()).await
    }

    /// Creates an order desk with an empty table, whose requests are sent through `connection`.
    async fn with_empty_table(connection: EngineConnection) -> Self {
        let connection = Arc::new(connection);
        let clock = Arc::new(SimulatedClock::new("2027-01-31T12:00:00Z".parse().unwrap(), 1));
        let client = Engine::in_memory().client_with_connection(connection.clone());
        let table = OrdersTable::new(client.clone(), "dueday-orders");
        table.create_if_absent().await.unwrap();
        let payments = payments_table(client).await;
        let desk = OrderDesk::new(
            table.clone(),
            table.get_or_store_buckets(BucketCount::new(3)).await.unwrap(),
            clock.clone(),
        );
        let api = OrdersApi::new(desk.clone(), payments.clone(), "Example & Sons", clock.clone());
        Self { router: api.router(), desk, payments, clock, connection }
    }

    /// Creates the warehouse, the product with its SKU and stock, the representatives and the customer.
    async fn create_test_data(&self) {
        for (request, body) in [
            ("PUT /warehouses/ams", json!({"name": "Amsterdam", "region": "eu"})),
            ("PUT /products/beans", json!({"name": "House Blend"})),
            ("PUT /employees/e-10", employee_body("Ada Lovelace")),
            ("PUT /employees/e-11", employee_body("Grace Hopper")),
        ] {
            assert_eq!(self.send_as_operator(request, &body).await.status, 201, "{request}");
        }
        for (request, body) in [
            ("PUT /skus/coffee", json!({"lines": [{"product": "beans", "quantity": 2}]})),
            ("PUT /products/beans/deliveries/01MCCKG2G0000G000000000003", json!({"warehouse": "ams", "quantity": 100})),
            ("PUT /customers/acme", address_body()),
        ] {
            assert_eq!(self.send_as_operator(request, &body).await.status, 200, "{request}");
        }
    }

    /// Places the orders for [`paid_month`] of each of `numbers`.
    pub async fn place_orders(&self, numbers: std::ops::Range<u64>) {
        for n in numbers {
            self.desk.place_order(&paid_month(n)).await.unwrap();
        }
    }

    /// Works on all fill tasks. Returns the number of orders that were filled.
    pub async fn fill_waiting_orders(&self) -> u32 {
        self.desk.fill_waiting_orders(chrono::DateTime::<chrono::Utc>::MAX_UTC).await.filled
    }

    /// Sends `request`, such as `GET /orders`, with additional headers and a body (`null`: no body) to `router`.
    pub async fn send_to_router(
        &self,
        router: Router,
        request: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> TestResponse {
        let (method, path) = request.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        if method != "GET" {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let response = router.oneshot(request.body(body).unwrap()).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), 1_000_000).await.unwrap();
        TestResponse { status, headers, json: serde_json::from_slice(&bytes).unwrap_or_default() }
    }

    /// Sends `request` to `router` with the header `Accept`. Returns the text of the response.
    pub async fn send_for_text(&self, router: Router, request: &str, accept: &str) -> String {
        let (method, path) = request.split_once(' ').unwrap();
        let request = Request::builder().method(method).uri(path).header("accept", accept).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        String::from_utf8(to_bytes(response.into_body(), 1_000_000).await.unwrap().to_vec()).unwrap()
    }

    /// Returns the router, which treats each request as a request of `caller`.
    pub fn router_for(&self, caller: Caller) -> Router {
        self.router.clone().layer(Extension(caller))
    }

    /// Returns the router without an authenticated caller.
    pub fn router_without_caller(&self) -> Router {
        self.router.clone()
    }

    /// Sends `request` as an operator who may also read confidential data.
    pub async fn send_as_operator(&self, request: &str, body: &Value) -> TestResponse {
        self.send_as_operator_with(request, &[], body).await
    }

    /// Like [`TestDesk::send_as_operator`], but with additional request headers.
    pub async fn send_as_operator_with(&self, request: &str, headers: &[(&str, &str)], body: &Value) -> TestResponse {
        let operator = self.router_for(Caller::Operator(Role::Admin));
        self.send_to_router(operator, request, headers, body).await
    }

    /// Sends a GET request for `path` as an operator who may also read confidential data.
    pub async fn get_as_operator(&self, path: &str) -> TestResponse {
        self.send_as_operator(&format!("GET {path}"), &Value::Null).await
    }
}
