//! The SDK's way to the engine without a socket, and what a test can see and do on it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use dynoxide::actions::transact_write_items::TransactWriteItemsRequest;
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What happens to one request on its way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Fault {
    /// It arrives and is answered.
    #[default]
    None,
    /// It is lost before it takes effect.
    LostBefore,
    /// It takes effect, and the answer is lost.
    LostAfter,
    /// It is lost before it takes effect, and nothing is ever heard of it.
    SilentBefore,
    /// It takes effect, and nothing is ever heard of it.
    SilentAfter,
    /// It is not carried out and answered with this error type, such as `ThrottlingException`.
    Answered(&'static str),
    /// A transaction that is not carried out, and cancelled for this reason, such as `TransactionConflict`.
    Cancelled(&'static str),
}

type Plan = dyn Fn(u64, &str) -> Fault + Send + Sync;
type Turns = dyn Fn() -> u32 + Send + Sync;
type Answers = dyn Fn(&Value, &mut Value) + Send + Sync;

/// The way between the SDK and the engine: counts requests and capacity units, injects faults.
#[derive(Default)]
pub struct Wire {
    plan: Option<Box<Plan>>,
    turns: Option<Box<Turns>>,
    answers: Option<Box<Answers>>,
    has_no_retries: bool,
    forgets_tokens: bool,
    is_metered: bool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    requests: u64,
    by_operation: BTreeMap<String, u64>,
    units: BTreeMap<String, f64>,
}

impl Wire {
    /// A wire that does to the nth request (from 1) of an operation what `plan` says.
    pub fn with_faults(plan: impl Fn(u64, &str) -> Fault + Send + Sync + 'static) -> Self {
        Self { plan: Some(Box::new(plan)), ..Self::default() }
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

    /// A wire that counts capacity units.
    pub fn metered() -> Self {
        Self { is_metered: true, ..Self::default() }
    }

    /// A wire on which each request lets others go first, as many times as `turns` says, before it takes effect and
    /// again before it is answered.
    pub fn in_turns(turns: impl Fn() -> u32 + Send + Sync + 'static) -> Self {
        Self { turns: Some(Box::new(turns)), ..Self::default() }
    }

    fn changed(&self, request: &[u8], answer: String) -> String {
        let Some(change) = &self.answers else { return answer };
        let mut answer = serde_json::from_str(&answer).unwrap_or_default();
        change(&serde_json::from_slice(request).unwrap_or_default(), &mut answer);
        answer.to_string()
    }

    async fn wait_turns(&self) {
        for _ in 0..self.turns.as_ref().map_or(0, |turns| turns()) {
            tokio::task::yield_now().await;
        }
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

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, operation: &str) -> Fault {
        let mut seen = self.seen();
        seen.requests += 1;
        *seen.by_operation.entry(operation.to_owned()).or_default() += 1;
        self.plan.as_ref().map_or(Fault::None, |plan| plan(seen.requests, operation))
    }

    fn count_units(&self, answer: &str) {
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

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

/// The SDK's HTTP client that calls the engine.
#[derive(Clone)]
pub(crate) struct InProcess {
    database: Database,
    wire: Arc<Wire>,
}

impl InProcess {
    pub fn new(database: Database, wire: Arc<Wire>) -> Self {
        Self { database, wire }
    }

    /// The answer to `request`; `None` if there is never one.
    fn answer(&self, request: &HttpRequest) -> Option<Result<HttpResponse, ConnectorError>> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        match self.wire.next(operation) {
            Fault::SilentBefore => None,
            Fault::SilentAfter => {
                let _ = self.answer_with(request, operation, &Fault::None);
                None
            }
            fault => Some(self.answer_with(request, operation, &fault)),
        }
    }

    fn answer_with(
        &self,
        request: &HttpRequest,
        operation: &str,
        fault: &Fault,
    ) -> Result<HttpResponse, ConnectorError> {
        let lost = || ConnectorError::io("the connection was lost".into());
        if *fault == Fault::LostBefore {
            return Err(lost());
        }
        if let Fault::Answered(kind) = fault {
            let body = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{kind}","message":"injected"}}"#);
            return Ok(response(if *kind == "InternalServerError" { 500 } else { 400 }, body));
        }
        if let Fault::Cancelled(reason) = fault {
            let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
            let reasons = format!(r#"[{{"Code":"{reason}","Message":"injected"}}]"#);
            let body = format!(r#"{{"__type":"{kind}","Message":"injected","CancellationReasons":{reasons}}}"#);
            return Ok(response(400, body));
        }
        let bytes = request.body().bytes().unwrap_or_default();
        let answered = if self.wire.is_metered {
            let body = metered(bytes).map_err(|error| ConnectorError::user(error.into()))?;
            self.carry_out(operation, &body).inspect(|answer| self.wire.count_units(answer))
        } else {
            self.carry_out(operation, bytes)
        };
        if *fault == Fault::LostAfter {
            return Err(lost());
        }
        match answered {
            Ok(answer) => Ok(response(200, self.wire.changed(bytes, answer))),
            Err(error) => Ok(response(error.status_code(), error.to_json())),
        }
    }

    fn carry_out(&self, operation: &str, body: &[u8]) -> Result<String, DynoxideError> {
        fn call<Q: DeserializeOwned, A: Serialize>(
            body: &[u8],
            f: impl FnOnce(Q) -> Result<A, DynoxideError>,
        ) -> Result<String, DynoxideError> {
            let request = serde_json::from_slice(body)
                .map_err(|error| DynoxideError::SerializationException(error.to_string()))?;
            serde_json::to_string(&f(request)?).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
        }
        let database = &self.database;
        match operation {
            "PutItem" => call(body, |request| database.put_item(request)),
            "GetItem" => call(body, |request| database.get_item(request)),
            "UpdateItem" => call(body, |request| database.update_item(request)),
            "DeleteItem" => call(body, |request| database.delete_item(request)),
            "Query" => call(body, |request| database.query(request)),
            "Scan" => call(body, |request| database.scan(request)),
            "TransactWriteItems" => call(body, |mut request: TransactWriteItemsRequest| {
                if self.wire.forgets_tokens {
                    request.client_request_token = None;
                }
                database.transact_write_items(request)
            }),
            "CreateTable" => call(body, |request| database.create_table(request)),
            "DescribeTable" => call(body, |request| database.describe_table(request)),
            "UpdateTimeToLive" => call(body, |request| database.update_time_to_live(request)),
            "DescribeTimeToLive" => call(body, |request| database.describe_time_to_live(request)),
            _ => Err(DynoxideError::ValidationException(format!("{operation} is not used here"))),
        }
    }
}

/// The request with its consumed capacity asked for.
fn metered(body: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut body: Value = serde_json::from_slice(body)?;
    body["ReturnConsumedCapacity"] = "INDEXES".into();
    serde_json::to_vec(&body)
}

fn response(status: u16, body: String) -> HttpResponse {
    let mut response = HttpResponse::new(status.try_into().expect("a status code"), SdkBody::from(body));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}

impl HttpConnector for InProcess {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        if self.wire.turns.is_some() {
            let this = self.clone();
            return HttpConnectorFuture::new(async move {
                this.wire.wait_turns().await;
                let answer = this.answer(&request);
                this.wire.wait_turns().await;
                match answer {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                }
            });
        }
        match self.answer(&request) {
            Some(answer) => HttpConnectorFuture::ready(answer),
            None => HttpConnectorFuture::new(std::future::pending()),
        }
    }
}

impl HttpClient for InProcess {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

/// The SDK waits between its tries; in one process there is nothing to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instantly;

impl AsyncSleep for Instantly {
    fn sleep(&self, _: Duration) -> Sleep {
        Sleep::new(std::future::ready(()))
    }
}
