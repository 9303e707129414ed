//! The lists of charges, customers, Checkout Sessions, SetupIntents and payment methods. Dueday reads these lists only
//! to check whether an API key has the permission to read them, so the stand-in offers only the first list page.

use std::collections::BTreeMap;
use std::ops::Range;

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{JsonResponse, MAX_PAGE_ITEMS, ServerState, invalid_request_response};

impl ServerState {
    /// Returns the first list page of the list at `path`, the newest objects first.
    pub(super) fn list_first_page(
        &self,
        path: &str,
        parameters: &BTreeMap<String, String>,
        now: DateTime<Utc>,
    ) -> JsonResponse {
        let sessions = || self.sessions.iter().rev();
        let setups = || sessions().map(|session| session.json(now, true)["setup_intent"].clone());
        let all: Vec<Value> = match path {
            "/v1/charges" => {
                let newest = self.intents.iter().rev();
                newest.filter_map(|intent| self.find_charge(&intent.id.replace("pi_", "ch_"))).collect()
            }
            "/v1/customers" => self.customers.iter().rev().map(super::Customer::json).collect(),
            "/v1/checkout/sessions" => sessions().map(|session| session.json(now, false)).collect(),
            "/v1/setup_intents" => setups().collect(),
            _ => setups().map(|setup| setup["payment_method"].clone()).filter(|method| !method.is_null()).collect(),
        };
        first_list_page(path, &all, parameters)
    }
}

/// Returns the first list page of the objects `all` of the list `url`. The stand-in offers no other page of such a
/// list.
pub(super) fn first_list_page(url: &str, all: &[Value], parameters: &BTreeMap<String, String>) -> JsonResponse {
    if parameters.keys().any(|name| name != "limit") {
        return invalid_request_response("parameter_unknown");
    }
    let limit = parameters.get("limit").map_or(Some(10), |limit| limit.parse().ok());
    let Some(limit) = limit.filter(|limit| (1..=MAX_PAGE_ITEMS).contains(limit)) else {
        return invalid_request_response("parameter_invalid_integer");
    };
    let data = &all[..limit.min(all.len())];
    (StatusCode::OK, json!({"object": "list", "url": url, "has_more": all.len() > limit, "data": data}))
}

/// Returns the range of creation times, in seconds since 1970, that `parameters` select; `None` if one of
/// these parameters is not an integer.
pub(super) fn requested_creation_times(parameters: &BTreeMap<String, String>) -> Option<Range<i64>> {
    let bound = |name: &str, default: i64| parameters.get(name).map_or(Some(default), |text| text.parse().ok());
    Some(bound("created[gte]", i64::MIN)?..bound("created[lt]", i64::MAX)?)
}
