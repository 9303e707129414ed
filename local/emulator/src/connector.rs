//! The SDK's HTTP client that calls the engine without a socket.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use dynoxide::{Database, DynoxideError};
use serde_json::Value;

use crate::faults::{Fault, Operation};
use crate::operations::{carry_out, carry_out_without_tokens};
use crate::wire::{Wire, Witness};

type Answered = Result<HttpResponse, ConnectorError>;

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

    fn answer(&self, request: &HttpRequest) -> Answered {
        let bytes = request.body().bytes().unwrap_or_default();
        let operation = operation(request);
        let answered = if self.wire.is_metered {
            let body = metered(bytes).map_err(|error| ConnectorError::user(error.into()))?;
            self.carry_out(operation, &body).inspect(|answer| self.wire.count_units(answer))
        } else if let Some(witness) = &self.wire.witness {
            let request = serde_json::from_slice(bytes).map_err(|error| ConnectorError::user(error.into()))?;
            self.witnessed(witness.as_ref(), operation, &request, bytes)
        } else {
            self.carry_out(operation, bytes)
        };
        match answered {
            Ok(answer) => Ok(response(200, self.wire.changed(bytes, answer))),
            Err(error) => Ok(response(error.status_code(), error.to_json())),
        }
    }

    fn witnessed(
        &self,
        witness: &dyn Witness,
        operation: &str,
        request: &Value,
        bytes: &[u8],
    ) -> Result<String, DynoxideError> {
        let answered = match witness.instead(operation, request) {
            Some(answer) => Ok(answer.to_string()),
            None => self.carry_out(operation, bytes),
        };
        match &answered {
            Ok(answer) => witness.saw(operation, request, Ok(answer)),
            Err(error) => witness.saw(operation, request, Err(&error.to_json())),
        }
        answered
    }

    fn carry_out(&self, operation: &str, body: &[u8]) -> Result<String, DynoxideError> {
        let carry_out = if self.wire.forgets_tokens { carry_out_without_tokens } else { carry_out };
        carry_out(&self.database, operation, body)
    }
}

fn operation(request: &HttpRequest) -> &str {
    request.headers().get("x-amz-target").unwrap_or_default().rsplit('.').next().unwrap_or_default()
}

/// What the SDK gets of a request that was lost, refused or cancelled.
fn failed(fault: Fault) -> Answered {
    const ERRORS: &str = "com.amazonaws.dynamodb.v20120810";
    match fault {
        Fault::Refused(kind) => {
            let body = format!(r#"{{"__type":"{ERRORS}#{kind}","message":"injected"}}"#);
            Ok(response(if kind == "InternalServerError" { 500 } else { 400 }, body))
        }
        Fault::Cancelled(reason) => {
            let kind = format!("{ERRORS}#TransactionCanceledException");
            let reasons = format!(r#"[{{"Code":"{reason}","Message":"injected"}}]"#);
            let body = format!(r#"{{"__type":"{kind}","Message":"injected","CancellationReasons":{reasons}}}"#);
            Ok(response(400, body))
        }
        Fault::LostBefore | Fault::LostAfter | Fault::CrashBefore | Fault::CrashAfter => {
            Err(ConnectorError::io("the connection was lost".into()))
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
        self.wire.count(operation(&request), request.body().bytes().unwrap_or_default());
        let Some(injector) = self.wire.injector.clone() else {
            return HttpConnectorFuture::ready(self.answer(&request));
        };
        let this = self.clone();
        HttpConnectorFuture::new(async move {
            let answer = async { this.answer(&request) };
            injector.call(Operation::DynamoDb(operation(&request)), failed, answer).await
        })
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
