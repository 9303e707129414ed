//! The routes of the OpenAPI documents, and the callers who may use them.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use super::server::Ids;

/// The callers who may use a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteAccess {
    /// Everyone, without a token.
    Public,
    /// An account, for its own data, and an operator, for all accounts.
    Own,
    /// An account, for its own data, and an operator with the role support or a higher one, although the method is GET: the
    /// response contains the page on which a card is entered.
    OwnOrSupport,
    /// An operator: with any role if the route reads, and with the role support or a higher one if it changes something.
    Operator,
    /// An operator with the role admin, or with the scope `operator` of earlier versions.
    Admin,
    /// An operator with the role admin.
    Confidential,
}

/// The ids of the operations with the access [`RouteAccess::Public`]. The constants below list the operations of the
/// other kinds of access. The tests fail if an operation is in none of the lists.
const PUBLIC_OPERATION_IDS: [&str; 5] =
    ["check_health", "read_index", "show_card_link", "open_card_link", "return_from_payment_method_setup"];
/// The ids of the operations with the access [`RouteAccess::Own`].
const OWN_OPERATION_IDS: [&str; 22] = [
    "get_account",
    "export_account",
    "list_actions",
    "list_subscriptions",
    "get_subscription",
    "change_subscription",
    "pause_subscription",
    "resume_subscription",
    "cancel_subscription",
    "uncancel_subscription",
    "retry_subscription",
    "get_schedule",
    "explain_charge",
    "list_receipts",
    "get_receipt",
    "create_payment_method_setup",
    "get_payment_method_setup",
    "put_customer",
    "get_customer",
    "list_customer_orders",
    "get_order",
    "put_order_address",
];
/// The ids of the operations with the access [`RouteAccess::Confidential`].
const CONFIDENTIAL_OPERATION_IDS: [&str; 2] = ["get_confidential", "hire_employee"];
/// The ids of the operations with the access [`RouteAccess::Operator`].
const OPERATOR_OPERATION_IDS: [&str; 45] = [
    "put_account",
    "create_subscription",
    "correct_price",
    "waive_month",
    "record_paid_elsewhere",
    "refund_receipt",
    "find_receipt",
    "list_due",
    "get_forecast",
    "list_runs",
    "list_audits",
    "get_audit",
    "get_report",
    "get_status",
    "list_webhook_endpoints",
    "get_webhook_endpoint",
    "list_deliveries",
    "redeliver_event",
    "list_orders",
    "get_ranking",
    "advance_order",
    "advance_orders",
    "put_order_lines",
    "split_order",
    "replace_order",
    "hand_over_customer",
    "get_sku",
    "list_products",
    "get_product",
    "list_product_orders",
    "receive_delivery",
    "count_stock",
    "write_off_stock",
    "transfer_stock",
    "list_movements",
    "list_order_movements",
    "list_employees",
    "get_employee",
    "list_employee_customers",
    "list_employee_orders",
    "list_warehouses",
    "get_warehouse",
    "list_warehouse_employees",
    "list_warehouse_orders",
    "list_company",
];
/// The ids of the operations with the access [`RouteAccess::Admin`].
const ADMIN_OPERATION_IDS: [&str; 10] = [
    "erase_account",
    "create_webhook_endpoint",
    "change_webhook_endpoint",
    "remove_webhook_endpoint",
    "rotate_webhook_secret",
    "put_sku",
    "put_product",
    "assign_employee",
    "leave_employee",
    "put_warehouse",
];

impl RouteAccess {
    /// Returns whether an operator with the scopes `scopes` may send a request with this method to the route.
    pub fn allows_operator(self, scopes: &str, method: &Method) -> bool {
        let allowed: &[&str] = match (self, method == Method::GET) {
            (Self::Public, _) | (Self::Own | Self::Operator, true) => return true,
            (Self::OwnOrSupport, _) | (Self::Own | Self::Operator, false) => {
                &["dueday/support", "dueday/admin", "dueday/operator"]
            }
            (Self::Admin, _) => &["dueday/admin", "dueday/operator"],
            (Self::Confidential, _) => &["dueday/admin"],
        };
        let is_earlier_admin = scopes == "dueday/operator dueday/confidential";
        is_earlier_admin || allowed.contains(&scopes)
    }
}

/// A route of an API, and its example request from the OpenAPI document.
#[derive(Clone, Debug)]
pub struct Route {
    pub operation_id: String,
    pub access: RouteAccess,
    pub method: Method,
    /// The path with the required query parameters. Only the account, the subscription, the receipt and the order are
    /// still parameters in braces.
    path: String,
    pub body: Option<Value>,
}

impl Route {
    /// Returns the path of the route for the items with the ids `ids`.
    pub fn path_for(&self, ids: &Ids) -> String {
        self.path
            .replace("{account}", &ids.account)
            .replace("{subscription}", &ids.subscription)
            .replace("{receipt}", &ids.receipt)
            .replace("{order}", &ids.order)
    }

    /// Returns whether the path contains the id of an account, or the id of an order that belongs to an account.
    pub fn names_account(&self) -> bool {
        self.path.contains("{account}")
            || (self.path.contains("{order}") && [RouteAccess::Own, RouteAccess::OwnOrSupport].contains(&self.access))
    }
}

/// Returns all routes of both APIs.
pub fn all_routes() -> Vec<Route> {
    let routes: Vec<Route> =
        [api::openapi_document(), orders_api::openapi_document()].iter().flat_map(routes_of).collect();
    let served: BTreeSet<&str> = routes.iter().map(|route| route.operation_id.as_str()).collect();
    let known: BTreeSet<&str> = [
        &PUBLIC_OPERATION_IDS[..],
        &OWN_OPERATION_IDS,
        &CONFIDENTIAL_OPERATION_IDS,
        &ADMIN_OPERATION_IDS,
        &OPERATOR_OPERATION_IDS,
    ]
    .concat()
    .into_iter()
    .collect();
    assert_eq!(served, known, "each route must be in exactly one of the lists of this file");
    routes
}

/// Returns the routes of an OpenAPI document.
fn routes_of(document: &Value) -> Vec<Route> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().iter().map(move |(method, route)| (path, method, route))
        })
        .map(|(path, method, operation)| {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let access = match id.as_str() {
                "get_payment_method_setup" => RouteAccess::OwnOrSupport,
                id if PUBLIC_OPERATION_IDS.contains(&id) => RouteAccess::Public,
                id if OWN_OPERATION_IDS.contains(&id) => RouteAccess::Own,
                id if CONFIDENTIAL_OPERATION_IDS.contains(&id) => RouteAccess::Confidential,
                id if ADMIN_OPERATION_IDS.contains(&id) => RouteAccess::Admin,
                _ => RouteAccess::Operator,
            };
            let body = match id.as_str() {
                // The example of the document changes the amount, which only an operator may do. So use another body.
                "change_subscription" => Some(json!({"payment_day": 12})),
                _ => Some(&operation["requestBody"]["content"]["application/json"]["example"])
                    .filter(|body| !body.is_null())
                    .cloned(),
            };
            let method = method.to_uppercase().parse().unwrap();
            Route { operation_id: id, access, method, path: insert_examples(path, operation), body }
        })
        .collect()
}

/// Replaces the parameters in `path` by their examples, and appends the required query parameters with their examples.
/// The account, the subscription, the receipt and the order stay in braces, because a test sets them.
fn insert_examples(path: &str, operation: &Value) -> String {
    let mut path = path.to_owned();
    let mut query = Vec::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        let example = match &parameter["example"] {
            Value::String(text) => text.clone(),
            // The documents contain no example of this parameter, so use a well-formed identifier.
            Value::Null => "01MCCKG2G0000G0000000000ZZ".to_owned(),
            other => other.to_string(),
        };
        let is_of_account = ["account", "subscription", "receipt", "order"].contains(&name);
        match parameter["in"].as_str().unwrap() {
            "path" if !is_of_account => path = path.replace(&format!("{{{name}}}"), &example),
            "query" if parameter["required"] == true => query.push(format!("{name}={example}")),
            _ => {}
        }
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}
