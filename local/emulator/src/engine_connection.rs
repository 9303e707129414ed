//! The connection between the SDK and the engine, on which tests observe requests and change responses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::config::retry::RetryConfig;
use serde_json::Value;

use crate::faults::{ExternalCall, Fault, FaultInjector};
use crate::permission::{Permission, needed_permissions};

/// A function that changes the response to a request. Its arguments are the request and the response.
type ChangeResponse = dyn Fn(&Value, &mut Value) + Send + Sync;

/// Observes the requests on a connection to the engine, and may respond in place of the engine.
pub trait RequestObserver: Send + Sync {
    /// Returns the response to a request that must not reach the engine; `None` passes the request on.
    fn replacement_response(&self, _operation: &str, _request: &Value) -> Option<Value> {
        None
    }

    /// Receives the JSON of each response (`Ok`) or error (`Err`), after the request took effect or was refused.
    fn observe_response(&self, operation: &str, request: &Value, response: Result<&str, &str>);
}

/// The connection between the SDK and the engine. It counts requests and capacity units, and injects faults.
#[derive(Default)]
pub struct EngineConnection {
    pub(crate) injector: Option<Arc<FaultInjector>>,
    pub(crate) observer: Option<Arc<dyn RequestObserver>>,
    change_response_body: Option<Box<ChangeResponse>>,
    has_no_retries: bool,
    /// Whether the idempotency tokens of transactions are dropped.
    pub(crate) ignores_tokens: bool,
    /// Whether capacity units are counted.
    pub(crate) is_metered: bool,
    /// Whether the permissions that the requests need are recorded.
    records_permissions: bool,
    recorded: Mutex<RecordedRequests>,
}

/// The requests, capacity units and permissions that a connection has counted and recorded.
#[derive(Default)]
struct RecordedRequests {
    /// The number of requests by operation.
    by_operation: BTreeMap<String, u64>,
    /// The consumed capacity units by name: `table`, or the name of an index.
    units: BTreeMap<String, f64>,
    /// The permissions that the requests need.
    permissions: BTreeSet<Permission>,
}

impl EngineConnection {
    /// Creates a connection on which `faults` decides the fault of each request.
    pub fn with_faults(faults: impl Fn(&ExternalCall<'_>) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self::with_injector(Arc::new(FaultInjector::new(Arc::new(faults))))
    }

    /// Creates a connection whose requests have the faults of `injector`.
    pub fn with_injector(injector: Arc<FaultInjector>) -> Self {
        Self { injector: Some(injector), ..Self::default() }
    }

    /// Creates a connection on which `change` modifies each response. For example, `change` can make an index return
    /// stale rows.
    pub fn with_changed_responses(change: impl Fn(&Value, &mut Value) + Send + Sync + 'static) -> Self {
        Self { change_response_body: Some(Box::new(change)), ..Self::default() }
    }

    /// Creates a connection that drops the idempotency tokens of transactions, because they make simulations slow. For
    /// each token, the engine searches all tokens of the last ten minutes of real time, and a simulation makes the
    /// transactions of years in this time.
    pub fn without_tokens() -> Self {
        Self::default().without_transaction_tokens()
    }

    /// Returns this connection with `observer`, which sees each request and its response.
    pub fn with_observer(self, observer: Arc<dyn RequestObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Creates a connection that counts capacity units.
    pub fn counting_capacity_units() -> Self {
        Self { is_metered: true, ..Self::default() }
    }

    /// Creates a connection that records the permissions that its requests need.
    pub fn recording_permissions() -> Self {
        Self { records_permissions: true, ..Self::default() }
    }

    /// Returns the permissions that the recorded requests needed.
    pub fn recorded_permissions(&self) -> BTreeSet<Permission> {
        self.lock_records().permissions.clone()
    }

    /// Returns this connection without retries: the SDK sends each request once.
    pub fn without_retries(self) -> Self {
        Self { has_no_retries: true, ..self }
    }

    /// Returns this connection without idempotency tokens, as [`EngineConnection::without_tokens`] does.
    pub fn without_transaction_tokens(self) -> Self {
        Self { ignores_tokens: true, ..self }
    }

    /// Returns the number of requests by operation, including lost requests.
    pub fn request_counts(&self) -> BTreeMap<String, u64> {
        self.lock_records().by_operation.clone()
    }

    /// Returns the capacity units that were used since the last call of this method, for `table` and for each index.
    pub fn take_capacity_units(&self) -> BTreeMap<String, f64> {
        std::mem::take(&mut self.lock_records().units)
    }

    /// Returns the setting of the SDK that decides whether a failed request is sent again.
    pub(crate) fn retry_config(&self) -> RetryConfig {
        if self.has_no_retries { RetryConfig::disabled() } else { RetryConfig::standard() }
    }

    /// Counts a request, and records the permissions that it needs.
    pub(crate) fn count_request(&self, operation: &str, request: &[u8]) {
        let mut recorded = self.lock_records();
        *recorded.by_operation.entry(operation.to_owned()).or_default() += 1;
        if self.records_permissions {
            recorded
                .permissions
                .extend(needed_permissions(operation, &serde_json::from_slice(request).unwrap_or_default()));
        }
    }

    /// Returns `response`, modified if this connection was created by [`EngineConnection::with_changed_responses`].
    pub(crate) fn change_response(&self, request: &[u8], response: String) -> String {
        let Some(change) = &self.change_response_body else { return response };
        let mut response = serde_json::from_str(&response).unwrap_or_default();
        change(&serde_json::from_slice(request).unwrap_or_default(), &mut response);
        response.to_string()
    }

    fn lock_records(&self) -> MutexGuard<'_, RecordedRequests> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the capacity units in `response`.
    pub(crate) fn count_units(&self, response: &str) {
        let response: Value = serde_json::from_str(response).unwrap_or_default();
        let Some(consumed) = response.get("ConsumedCapacity") else { return };
        let all = match consumed {
            Value::Array(tables) => tables.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut recorded = self.lock_records();
        let units = |part: &Value| part.get("CapacityUnits").and_then(Value::as_f64).unwrap_or(0.0);
        for consumed in all {
            *recorded.units.entry("table".to_owned()).or_default() += consumed.get("Table").map_or(0.0, units);
            for (index, part) in consumed.get("GlobalSecondaryIndexes").and_then(Value::as_object).into_iter().flatten()
            {
                *recorded.units.entry(index.clone()).or_default() += units(part);
            }
        }
    }
}

impl fmt::Debug for EngineConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineConnection").finish_non_exhaustive()
    }
}
