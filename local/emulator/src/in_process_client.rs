//! An HTTP client for the AWS SDK that calls the DynamoDB engine in this process, without a socket.

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

use crate::dynamodb_operations::{execute_operation, execute_operation_without_token};
use crate::engine_connection::{EngineConnection, RequestObserver};
use crate::error_response::dynamodb_error_response;
use crate::faults::{ExternalOperation, Fault};

/// The HTTP response to a request of the SDK, or the error of the connection.
type ConnectorResult = Result<HttpResponse, ConnectorError>;

/// An HTTP client for the AWS SDK that calls the DynamoDB engine in this process, without a socket.
#[derive(Clone)]
pub(crate) struct InProcessClient {
    database: Database,
    connection: Arc<EngineConnection>,
}

impl InProcessClient {
    pub fn new(database: Database, connection: Arc<EngineConnection>) -> Self {
        Self { database, connection }
    }

    /// Executes `request` on the engine. The connection decides whether capacity units are counted, whether an observer
    /// receives the request, and whether the response is changed.
    fn respond(&self, request: &HttpRequest) -> ConnectorResult {
        let bytes = request.body().bytes().unwrap_or_default();
        let operation = requested_operation_name(request);
        let result = if self.connection.is_metered {
            let body = with_consumed_capacity(bytes).map_err(|error| ConnectorError::user(error.into()))?;
            self.execute(operation, &body).inspect(|response_body| self.connection.count_units(response_body))
        } else if let Some(observer) = &self.connection.observer {
            let request = serde_json::from_slice(bytes).map_err(|error| ConnectorError::user(error.into()))?;
            self.respond_with_observer(observer.as_ref(), operation, &request, bytes)
        } else {
            self.execute(operation, bytes)
        };
        match result {
            Ok(response_body) => Ok(json_response(200, self.connection.change_response(bytes, response_body))),
            Err(error) => {
                let (status, body) = dynamodb_error_response(&error);
                Ok(json_response(status, body))
            }
        }
    }

    /// Executes `request`, and passes the result to `observer`. If `observer` replaces the response, the engine does
    /// not execute `request`.
    fn respond_with_observer(
        &self,
        observer: &dyn RequestObserver,
        operation: &str,
        request: &Value,
        bytes: &[u8],
    ) -> Result<String, DynoxideError> {
        let result = match observer.replacement_response(operation, request) {
            Some(response_body) => Ok(response_body.to_string()),
            None => self.execute(operation, bytes),
        };
        match &result {
            Ok(response_body) => observer.observe_response(operation, request, Ok(response_body)),
            Err(error) => observer.observe_response(operation, request, Err(&error.to_json())),
        }
        result
    }

    /// Executes the operation on the engine, without the idempotency token if the connection ignores tokens.
    fn execute(&self, operation: &str, body: &[u8]) -> Result<String, DynoxideError> {
        let execute = if self.connection.ignores_tokens { execute_operation_without_token } else { execute_operation };
        execute(&self.database, operation, body)
    }
}

/// Returns the DynamoDB operation of `request`, such as `GetItem`.
fn requested_operation_name(request: &HttpRequest) -> &str {
    request.headers().get("x-amz-target").unwrap_or_default().rsplit('.').next().unwrap_or_default()
}

/// Returns the result that the SDK receives for a request with this fault.
fn sdk_result_of_fault(fault: Fault) -> ConnectorResult {
    const ERROR_TYPE_PREFIX: &str = "com.amazonaws.dynamodb.v20120810";
    match fault {
        Fault::Refused(kind) => {
            let body = format!(r#"{{"__type":"{ERROR_TYPE_PREFIX}#{kind}","message":"injected"}}"#);
            Ok(json_response(if kind == "InternalServerError" { 500 } else { 400 }, body))
        }
        Fault::Cancelled(reason) => {
            let kind = format!("{ERROR_TYPE_PREFIX}#TransactionCanceledException");
            let reasons = format!(r#"[{{"Code":"{reason}","Message":"injected"}}]"#);
            let body = format!(r#"{{"__type":"{kind}","Message":"injected","CancellationReasons":{reasons}}}"#);
            Ok(json_response(400, body))
        }
        Fault::LostBefore | Fault::LostAfter | Fault::CrashBefore | Fault::CrashAfter => {
            Err(ConnectorError::io("the connection was lost".into()))
        }
    }
}

/// Returns the request `body` with the option `ReturnConsumedCapacity`, so that the response contains the consumed
/// capacity.
fn with_consumed_capacity(body: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut body: Value = serde_json::from_slice(body)?;
    body["ReturnConsumedCapacity"] = "INDEXES".into();
    serde_json::to_vec(&body)
}

fn json_response(status: u16, body: String) -> HttpResponse {
    let mut response = HttpResponse::new(status.try_into().expect("a status code"), SdkBody::from(body));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}

impl HttpConnector for InProcessClient {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.connection.count_request(requested_operation_name(&request), request.body().bytes().unwrap_or_default());
        let Some(injector) = self.connection.injector.clone() else {
            return HttpConnectorFuture::ready(self.respond(&request));
        };
        let this = self.clone();
        HttpConnectorFuture::new(async move {
            let response_body = async { this.respond(&request) };
            injector
                .call_with_faults(
                    ExternalOperation::DynamoDb(requested_operation_name(&request)),
                    sdk_result_of_fault,
                    response_body,
                )
                .await
        })
    }
}

impl HttpClient for InProcessClient {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl fmt::Debug for InProcessClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessClient").finish_non_exhaustive()
    }
}

/// A sleep that ends immediately, so the SDK repeats a request without a pause. The engine in the same process needs no
/// time to recover.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoSleep;

impl AsyncSleep for NoSleep {
    fn sleep(&self, _: Duration) -> Sleep {
        Sleep::new(std::future::ready(()))
    }
}
