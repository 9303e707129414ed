//! The way between the SDK and the engine: what a test can see of it and change on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::config::retry::RetryConfig;
use serde_json::Value;

use crate::faults::{Call, Fault, Injector};

type Answers = dyn Fn(&Value, &mut Value) + Send + Sync;

/// Sees what passes a wire, and may answer in the engine's place.
pub trait Witness: Send + Sync {
    /// The answer to a request that is not to reach the engine; `None` lets it through.
    fn instead(&self, _operation: &str, _request: &Value) -> Option<Value> {
        None
    }

    /// A request has taken effect or was refused, and this is its answer, in JSON.
    fn saw(&self, operation: &str, request: &Value, answer: Result<&str, &str>);
}

/// The way between the SDK and the engine: counts requests and capacity units, injects faults.
#[derive(Default)]
pub struct Wire {
    pub(crate) injector: Option<Arc<Injector>>,
    pub(crate) witness: Option<Arc<dyn Witness>>,
    answers: Option<Box<Answers>>,
    has_no_retries: bool,
    pub(crate) forgets_tokens: bool,
    pub(crate) is_metered: bool,
    is_recorded: bool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    by_operation: BTreeMap<String, u64>,
    units: BTreeMap<String, f64>,
    permissions: BTreeSet<Permission>,
}

/// What IAM has to allow for a request: an action, and the table or one of its indexes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Permission {
    /// Such as `dynamodb:GetItem`.
    pub action: String,
    /// The index; `None` is the table.
    pub index: Option<String>,
    /// The one partition of which items are deleted; `None` for what else is done.
    pub partition: Option<String>,
}

impl Wire {
    /// A wire on which each request has the fault that `faults` decides.
    pub fn with_faults(faults: impl Fn(&Call<'_>) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self::through(Arc::new(Injector::new(Arc::new(faults))))
    }

    /// A wire whose requests pass `injector`.
    pub fn through(injector: Arc<Injector>) -> Self {
        Self { injector: Some(injector), ..Self::default() }
    }

    /// A wire that makes of the answer to each request what `change` says: an index may show what was.
    pub fn with_answers(change: impl Fn(&Value, &mut Value) + Send + Sync + 'static) -> Self {
        Self { answers: Some(Box::new(change)), ..Self::default() }
    }

    /// Drops the tokens by which DynamoDB knows a repeated transaction. The engine looks through all of the last ten
    /// minutes for each transaction, and a simulation makes years of them in that time.
    pub fn without_tokens() -> Self {
        Self::default().and_no_tokens()
    }

    /// The same wire, and `witness` sees what passes it.
    pub fn and_witness(self, witness: Arc<dyn Witness>) -> Self {
        Self { witness: Some(witness), ..self }
    }

    /// A wire that counts capacity units.
    pub fn metered() -> Self {
        Self { is_metered: true, ..Self::default() }
    }

    /// A wire that records what its requests have to be allowed.
    pub fn recorded() -> Self {
        Self { is_recorded: true, ..Self::default() }
    }

    /// What the requests so far had to be allowed.
    pub fn permissions(&self) -> BTreeSet<Permission> {
        self.seen().permissions.clone()
    }

    /// The SDK tries each request once.
    pub fn and_no_retries(self) -> Self {
        Self { has_no_retries: true, ..self }
    }

    /// As [`Wire::without_tokens`].
    pub fn and_no_tokens(self) -> Self {
        Self { forgets_tokens: true, ..self }
    }

    /// Requests that were carried out or lost so far, by operation.
    pub fn requests(&self) -> BTreeMap<String, u64> {
        self.seen().by_operation.clone()
    }

    /// Capacity units used since last asked, by `table` and index.
    pub fn take_units(&self) -> BTreeMap<String, f64> {
        std::mem::take(&mut self.seen().units)
    }

    pub(crate) fn retries(&self) -> RetryConfig {
        if self.has_no_retries { RetryConfig::disabled() } else { RetryConfig::standard() }
    }

    pub(crate) fn count(&self, operation: &str, request: &[u8]) {
        let mut seen = self.seen();
        *seen.by_operation.entry(operation.to_owned()).or_default() += 1;
        if self.is_recorded {
            seen.permissions.extend(permissions(operation, &serde_json::from_slice(request).unwrap_or_default()));
        }
    }

    pub(crate) fn changed(&self, request: &[u8], answer: String) -> String {
        let Some(change) = &self.answers else { return answer };
        let mut answer = serde_json::from_str(&answer).unwrap_or_default();
        change(&serde_json::from_slice(request).unwrap_or_default(), &mut answer);
        answer.to_string()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count_units(&self, answer: &str) {
        let answer: Value = serde_json::from_str(answer).unwrap_or_default();
        let Some(consumed) = answer.get("ConsumedCapacity") else { return };
        let all = match consumed {
            Value::Array(tables) => tables.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut seen = self.seen();
        let units = |part: &Value| part.get("CapacityUnits").and_then(Value::as_f64).unwrap_or(0.0);
        for consumed in all {
            *seen.units.entry("table".to_owned()).or_default() += consumed.get("Table").map_or(0.0, units);
            for (index, part) in consumed.get("GlobalSecondaryIndexes").and_then(Value::as_object).into_iter().flatten()
            {
                *seen.units.entry(index.clone()).or_default() += units(part);
            }
        }
    }
}

/// A transaction needs what each of its writes does ("IAM for DynamoDB transactions" in the DynamoDB developer guide).
fn permissions(operation: &str, request: &Value) -> Vec<Permission> {
    let index = request.get("IndexName").and_then(Value::as_str).map(str::to_owned);
    if operation != "TransactWriteItems" {
        let partition = request["Key"]["PK"]["S"].as_str().filter(|_| operation == "DeleteItem").map(str::to_owned);
        return vec![Permission { action: format!("dynamodb:{operation}"), index, partition }];
    }
    let writes = request["TransactItems"].as_array().into_iter().flatten().filter_map(Value::as_object);
    let actions = writes.flat_map(|write| write.keys()).map(|kind| match kind.as_str() {
        "ConditionCheck" => "dynamodb:ConditionCheckItem".to_owned(),
        kind => format!("dynamodb:{kind}Item"),
    });
    actions.map(|action| Permission { action, index: None, partition: None }).collect()
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}
