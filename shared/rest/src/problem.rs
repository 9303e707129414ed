//! Problems: the error responses of the HTTP API (RFC 9457). `problem_type.rs` lists their types with the HTTP status
//! codes.

use crate::html_page;
use crate::problem_type::ProblemType;
use crate::request_input::InvalidInput;
use crate::{AccountAction, Role};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use billing::{ChangeRefusal, CreationRefusal, SubscriptionId, SubscriptionStatus};
use serde::Serialize;
use store::TableError;
use utoipa::ToSchema;

/// An error response (RFC 9457). It names the reason, the field, and the allowed values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// The kind of problem, for programs: a URN that begins with `urn:dueday:problem:`.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    kind: &'static str,
    /// The kind of problem, for people.
    #[schema(value_type = String)]
    title: &'static str,
    /// The HTTP status code.
    #[serde(serialize_with = "serialize_status_code")]
    #[schema(value_type = u16)]
    status: StatusCode,
    /// The reason why this request failed, and which values are allowed.
    detail: String,
    /// The field, parameter or header that caused the problem; absent if the problem concerns the whole request.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The subscription because of which the request is refused; absent from other problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_subscription: Option<Box<ExistingSubscription>>,
    /// The number of seconds after which the same request may succeed (header `Retry-After`); `None` if the number is
    /// unknown.
    #[serde(skip)]
    retry_after: Option<i64>,
}

/// The subscription because of which a new subscription is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ExistingSubscription {
    /// The id of the subscription.
    id: SubscriptionId,
    /// The status of the subscription.
    status: SubscriptionStatus,
}

fn serialize_status_code<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    /// Creates a problem that concerns the whole request.
    fn new(problem_type: ProblemType, detail: impl Into<String>) -> Self {
        Self {
            kind: problem_type.urn,
            title: problem_type.title,
            status: problem_type.status,
            detail: detail.into(),
            field: None,
            existing_subscription: None,
            retry_after: None,
        }
    }

    /// Returns the web page that shows the problem to a person.
    pub(crate) fn to_html_page(&self) -> String {
        let values = minijinja::context! { title => self.title, detail => self.detail.as_str() };
        html_page::render_template("error_page.html", include_str!("error_page.html"), values)
    }

    /// 400: the value of `field` is never valid.
    pub fn invalid_field(field: impl Into<String>, detail: impl ToString) -> Self {
        let problem = Problem::new(ProblemType::INVALID_FIELD, detail.to_string());
        Problem { field: Some(field.into()), ..problem }
    }

    /// Returns whether the problem is temporary (503): the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }

    /// Returns whether the requested item does not exist (404).
    pub fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// 400: the body is not JSON, or not an object.
    pub fn malformed_body(detail: impl ToString) -> Self {
        Problem::new(ProblemType::MALFORMED_BODY, detail.to_string())
    }

    /// 422: the value of `field` is valid in itself, but not in the current state or not together with the other
    /// fields.
    pub fn refused_field(field: impl Into<String>, detail: impl ToString) -> Self {
        let problem = Problem::new(ProblemType::REFUSED_FIELD, detail.to_string());
        Problem { field: Some(field.into()), ..problem }
    }

    /// 401: the request has no token.
    pub fn unauthorized() -> Self {
        Problem::new(ProblemType::UNAUTHORIZED, "the request has no token; send the header Authorization: Bearer TOKEN")
    }

    /// 401: the token is not accepted, for the reason in `detail`.
    pub fn invalid_token(detail: impl Into<String>) -> Self {
        Problem::new(ProblemType::INVALID_TOKEN, detail)
    }

    /// 403: the token has no scope of this API.
    pub fn insufficient_scope(account_scope: &str, operator_scopes: &[String]) -> Self {
        let operators = operator_scopes.join(", ");
        Problem::new(
            ProblemType::INSUFFICIENT_SCOPE,
            format!("the token needs the scope {account_scope} of an account, or a scope of operators: {operators}"),
        )
    }

    /// 403: an account's token does not name its account in `claim`.
    pub fn no_account_in_token(claim: &str) -> Self {
        Problem::new(
            ProblemType::INSUFFICIENT_SCOPE,
            format!("the token has the scope of an account, but no claim {claim} with the account"),
        )
    }

    /// Returns the value of the header `WWW-Authenticate` (RFC 6750), which asks the caller for another token; `None`
    /// if the problem is not about the token.
    fn www_authenticate(&self) -> Option<&'static str> {
        let challenges = [
            (ProblemType::UNAUTHORIZED, "Bearer"),
            (ProblemType::INVALID_TOKEN, "Bearer error=\"invalid_token\""),
            (ProblemType::INSUFFICIENT_SCOPE, "Bearer error=\"insufficient_scope\""),
        ];
        challenges.into_iter().find(|(of, _)| of.urn == self.kind).map(|(_, challenge)| challenge)
    }

    /// 403: the caller is an account, but only an operator may send this request.
    pub fn forbidden() -> Self {
        Problem::new(ProblemType::FORBIDDEN, "only an operator may do this")
    }

    /// 403: the operator has the role `role`, but this request needs the role `needed`.
    pub fn missing_role(role: Role, needed: Role) -> Self {
        // The role of earlier versions can be an operator's role, but is no longer given to anyone.
        let needed = if needed == Role::Operator { Role::Admin } else { needed };
        let detail = format!("this needs the role {needed} of operators; the token has the role {role}");
        Problem::new(ProblemType::FORBIDDEN, detail)
    }

    /// 403: support has refunded as much as it may refund today.
    pub fn over_refund_limit(detail: impl Into<String>) -> Self {
        Problem::new(ProblemType::REFUND_LIMIT, detail)
    }

    /// 403: only an operator may change `field`.
    pub fn forbidden_field(field: &str) -> Self {
        let problem = Problem::new(ProblemType::FORBIDDEN, "only an operator may change this");
        Problem { field: Some(field.to_owned()), ..problem }
    }

    /// 403: the caller is an account, and the merchant does not allow accounts the change `action`.
    pub fn account_action_not_allowed(action: AccountAction) -> Self {
        let what = action.description();
        let detail = format!("the merchant does not allow customers to {what}; only an operator may do this");
        Problem::new(ProblemType::FORBIDDEN, detail)
    }

    /// Returns this problem with the field that caused it.
    pub fn with_field(self, field: &str) -> Self {
        Self { field: Some(field.to_owned()), ..self }
    }

    /// 404: the item of the path does not exist, or the caller has no right to see it.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Problem::new(ProblemType::NOT_FOUND, detail)
    }

    /// 404: the account does not exist, or the caller has no right to see it.
    pub fn account_not_found() -> Self {
        Self::not_found("there is no such account")
    }

    /// 410: the item of the path was removed for good.
    pub fn item_removed(detail: impl Into<String>) -> Self {
        Problem::new(ProblemType::GONE, detail)
    }

    /// 429: the caller has reached an hourly limit, which `detail` describes. The next hour begins in `seconds`
    /// seconds.
    pub fn too_many_requests(detail: impl Into<String>, seconds: i64) -> Self {
        let problem = Problem::new(ProblemType::TOO_MANY_REQUESTS, detail);
        Problem { retry_after: Some(seconds), ..problem }
    }

    /// 405: the path exists, but not with this method.
    pub fn method_not_allowed() -> Self {
        Problem::new(ProblemType::METHOD_NOT_ALLOWED, "the path does not support this method")
    }

    /// 409: the current state does not allow the request.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Problem::new(ProblemType::CONFLICT, detail)
    }

    /// 409: the deployment lacks the part that would carry out the request.
    pub fn not_deployed(detail: impl Into<String>) -> Self {
        Problem::new(ProblemType::NOT_DEPLOYED, detail)
    }

    /// 409: the bank has reversed the payment to refund, or may still reverse it because of an open dispute.
    pub fn payment_disputed(detail: impl Into<String>) -> Self {
        Problem::new(ProblemType::DISPUTED, detail)
    }

    /// 409: another request is changing the same items at this moment.
    pub fn concurrent_change() -> Self {
        Problem::new(
            ProblemType::IN_PROGRESS,
            "another request is changing the same data at this moment; send this request again",
        )
    }

    /// 412: the stored item no longer has the version in `If-Match`.
    pub fn version_mismatch() -> Self {
        Problem::new(
            ProblemType::STALE,
            "the stored item does not have the version in If-Match; get it again before you repeat the request",
        )
    }

    /// 413: the body is larger than `limit_bytes`.
    pub fn body_too_large(limit_bytes: usize) -> Self {
        Problem::new(ProblemType::TOO_LARGE, format!("the body must be at most {limit_bytes} bytes"))
    }

    /// 415: the header `Content-Type: application/json` is missing.
    pub fn body_not_json() -> Self {
        Problem::new(ProblemType::NOT_JSON, "send the header Content-Type: application/json, even without a body")
    }

    /// 415: the body is compressed, or has another content encoding than `identity`.
    pub fn unsupported_content_encoding() -> Self {
        Problem::new(
            ProblemType::UNSUPPORTED_CONTENT_ENCODING,
            "send the body without compression: leave out the header Content-Encoding; only the value identity is allowed",
        )
    }

    /// 422: the idempotency key was used for a request with another body.
    pub fn idempotency_key_reused() -> Self {
        Problem::new(
            ProblemType::IDEMPOTENCY_KEY_REUSED,
            "this Idempotency-Key was used for a request with another body; use a new key",
        )
    }

    /// 503: the table, the gateway or the queue is unavailable; the same request may succeed later.
    pub fn unavailable() -> Self {
        Problem::new(ProblemType::UNAVAILABLE, "send the same request again shortly")
    }

    /// 503: the table is too large to be read completely within the time limit of a request.
    pub fn report_too_large() -> Self {
        Problem::new(
            ProblemType::REPORT_TOO_LARGE,
            "the table is too large to be read in one request; use the command `dueday report`, or archived events",
        )
    }

    /// 500: an error that would occur again if the caller repeated the request.
    pub fn internal_error() -> Self {
        Problem::new(ProblemType::INTERNAL, "the error is logged; sending the request again will not help")
    }
}

impl From<InvalidInput> for Problem {
    fn from(invalid: InvalidInput) -> Self {
        match invalid.field() {
            Some(field) => Self::invalid_field(field, invalid.detail),
            None => Self::malformed_body(format!("the body {}", invalid.detail)),
        }
    }
}

impl From<TableError> for Problem {
    /// Logs the error. The problem contains no details of the table. It only shows whether the same request may succeed
    /// later.
    fn from(error: TableError) -> Self {
        if error.is_conflict() {
            tracing::warn!(%error, error_type = "Table", "write conflict with another request");
            Self::concurrent_change()
        } else if matches!(error, TableError::LocalStorage { .. }) {
            tracing::error!(%error, error_type = "Table", "the data file cannot be used");
            Self::unavailable()
        } else if error.is_transient() {
            tracing::warn!(%error, error_type = "Table", "the table is temporarily unavailable");
            Self::unavailable()
        } else {
            tracing::error!(%error, error_type = "Table", "a request to the table failed");
            Self::internal_error()
        }
    }
}

impl From<CreationRefusal> for Problem {
    fn from(refusal: CreationRefusal) -> Self {
        match refusal {
            CreationRefusal::FirstPayment(refusal) => Self::refused_field("first_payment_date", refusal),
            CreationRefusal::AlreadySubscribed { id, status, .. } => {
                let problem = Problem::new(ProblemType::ALREADY_SUBSCRIBED, refusal.to_string());
                let existing_subscription = Some(Box::new(ExistingSubscription { id, status }));
                Problem { field: Some("sku".to_owned()), existing_subscription, ..problem }
            }
        }
    }
}

impl From<ChangeRefusal> for Problem {
    fn from(refusal: ChangeRefusal) -> Self {
        match refusal {
            ChangeRefusal::Amount(error) => Problem::invalid_field("amount", error),
            refusal => Problem::conflict(refusal.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).expect("a problem can be serialized");
        let mut response = (self.status, body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(challenge) = self.www_authenticate() {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.kind == ProblemType::UNSUPPORTED_CONTENT_ENCODING.urn {
            // The header names the content encodings that are allowed (RFC 9110, section 15.5.16).
            response.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        // Add the problem to the response, so that a middleware can show a web page in place of the JSON body to
        // browsers.
        response.extensions_mut().insert(self);
        response
    }
}
