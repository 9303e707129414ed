//! Errors as problems (RFC 9457). The only place that knows HTTP status codes for them.

use crate::input::Invalid;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use billing::{RefundRefusal, Refusal};
use delivery::QueueError;
use gateways::GatewayError;
use orders::{DeskError, LinesError};
use serde::Serialize;
use settling::RefundError;
use settling::SetupError;
use store::TableError;
use utoipa::ToSchema;

/// An error as the caller is told it: what is wrong, where, and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// Tells programs what kind of problem it is: `urn:dueday:problem:...`.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    kind: &'static str,
    /// The kind, in words.
    #[schema(value_type = String)]
    title: &'static str,
    /// The HTTP status.
    #[serde(serialize_with = "as_number")]
    #[schema(value_type = u16)]
    status: StatusCode,
    /// What is wrong with this request, and what is allowed.
    detail: String,
    /// The field, parameter or header it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
}

fn as_number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

macro_rules! problem {
    ($status:ident, $kind:literal, $title:literal, $detail:expr) => {
        Problem {
            kind: concat!("urn:dueday:problem:", $kind),
            title: $title,
            status: StatusCode::$status,
            detail: $detail.into(),
            field: None,
        }
    };
}

impl Problem {
    /// 400: `field` is not what it must be.
    pub fn field(field: impl Into<String>, detail: impl ToString) -> Self {
        let problem = problem!(BAD_REQUEST, "invalid-field", "A field is not valid", detail.to_string());
        Problem { field: Some(field.into()), ..problem }
    }

    /// Whether the same request may succeed later.
    pub fn may_pass(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }

    /// 400: the body is not JSON, or not an object.
    pub fn malformed(detail: impl ToString) -> Self {
        problem!(BAD_REQUEST, "malformed-body", "The body cannot be read", detail.to_string())
    }

    /// 422: `field` is as it must be, but not now or not together with the others.
    pub fn refused(field: impl Into<String>, detail: impl ToString) -> Self {
        let problem = problem!(UNPROCESSABLE_ENTITY, "refused-field", "A field is refused", detail.to_string());
        Problem { field: Some(field.into()), ..problem }
    }

    /// 401.
    pub fn unauthorized() -> Self {
        problem!(UNAUTHORIZED, "unauthorized", "Not signed in", "the request carries no verified identity")
    }

    /// 403.
    pub fn forbidden() -> Self {
        problem!(FORBIDDEN, "forbidden", "Not allowed", "only an operator may do this")
    }

    /// 403: the operator's token lacks the scope for what is confidential.
    pub fn not_confidential() -> Self {
        problem!(
            FORBIDDEN,
            "forbidden",
            "Not allowed",
            "the token lacks the scope for what is confidential of employees"
        )
    }

    /// 403: only an operator may change `field`.
    pub fn forbidden_field(field: &str) -> Self {
        let problem = problem!(FORBIDDEN, "forbidden", "Not allowed", "only an operator may change this");
        Problem { field: Some(field.to_owned()), ..problem }
    }

    /// 404.
    pub fn not_found(detail: impl Into<String>) -> Self {
        problem!(NOT_FOUND, "not-found", "Not found", detail)
    }

    /// 404: no such account, or none the caller may see.
    pub fn no_account() -> Self {
        Self::not_found("there is no such account")
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        problem!(METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed", "the path does not take this method")
    }

    /// 409.
    pub fn conflict(detail: impl Into<String>) -> Self {
        problem!(CONFLICT, "conflict", "Conflict", detail)
    }

    /// 409: another request is writing the same things at this moment.
    pub fn in_progress() -> Self {
        problem!(
            CONFLICT,
            "in-progress",
            "In progress",
            "another request is changing the same thing at this moment; send this one again"
        )
    }

    /// 412: it is no longer what the caller has seen.
    pub fn stale() -> Self {
        problem!(
            PRECONDITION_FAILED,
            "stale",
            "It has changed",
            "it is no longer what If-Match says; read it again and decide anew"
        )
    }

    /// 413.
    pub fn too_large(limit_bytes: usize) -> Self {
        problem!(
            PAYLOAD_TOO_LARGE,
            "too-large",
            "The body is too large",
            format!("at most {limit_bytes} bytes are taken")
        )
    }

    /// 415.
    pub fn not_json() -> Self {
        problem!(
            UNSUPPORTED_MEDIA_TYPE,
            "not-json",
            "Not JSON",
            "send the header Content-Type: application/json, also when there is no body"
        )
    }

    /// 422: an idempotency key was used for another request.
    pub fn key_reused() -> Self {
        problem!(
            UNPROCESSABLE_ENTITY,
            "idempotency-key-reused",
            "The idempotency key was used before",
            "this Idempotency-Key belongs to a request with another body; use a new key"
        )
    }

    /// 503: the same request may succeed later.
    pub fn unavailable() -> Self {
        problem!(SERVICE_UNAVAILABLE, "unavailable", "Temporarily unavailable", "try the same request again shortly")
    }

    /// 503: the table is too large to be read whole while a request waits.
    pub fn too_large_a_report() -> Self {
        problem!(
            SERVICE_UNAVAILABLE,
            "report-too-large",
            "The report takes too long",
            "the table is too large to be read in one request: ask the command `dueday report`, or the kept events"
        )
    }

    /// 500.
    pub fn internal() -> Self {
        problem!(INTERNAL_SERVER_ERROR, "internal", "Internal error", "it is logged; trying again will not help")
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        match invalid.field() {
            Some(field) => Self::field(field, invalid.detail),
            None => Self::malformed(format!("the body {}", invalid.detail)),
        }
    }
}

impl From<TableError> for Problem {
    /// Logged here, once: the caller is told only whether trying again may help.
    fn from(error: TableError) -> Self {
        if error.is_conflict() {
            tracing::warn!(%error, "two requests met");
            Self::in_progress()
        } else if error.is_transient() {
            tracing::warn!(%error, "the table did not answer");
            Self::unavailable()
        } else {
            tracing::error!(%error, "the table cannot be used");
            Self::internal()
        }
    }
}

impl From<GatewayError> for Problem {
    fn from(error: GatewayError) -> Self {
        match &error {
            GatewayError::Unusable { .. } => {
                tracing::error!(%error, "the gateway cannot be used");
                Self::unavailable()
            }
            GatewayError::Unknown { .. } | GatewayError::Throttled { .. } => {
                tracing::warn!(%error, "the gateway did not answer");
                Self::unavailable()
            }
        }
    }
}

impl From<SetupError> for Problem {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Table(error) => error.into(),
            SetupError::Gateway(error) => error.into(),
            SetupError::NoSubscription(_) | SetupError::Cancelled(_) => Self::refused("subscriptions", error),
        }
    }
}

impl From<RefundError> for Problem {
    fn from(error: RefundError) -> Self {
        match error {
            RefundError::Table(error) => error.into(),
            RefundError::Gateway(error) => error.into(),
            RefundError::NoReceipt | RefundError::NoRefund { .. } => Self::not_found(error.to_string()),
            RefundError::Refused(RefundRefusal::Refunded) => Self::conflict(error.to_string()),
            RefundError::Refused(RefundRefusal::NotLeft { .. }) => Self::refused("amount", error),
            RefundError::OtherRefund { .. } => Self::key_reused(),
            RefundError::InProgress => Self::in_progress(),
            RefundError::GivenAfterAll { .. } => {
                tracing::error!(%error, "a refund contradicts what is kept");
                Self::internal()
            }
        }
    }
}

impl From<DeskError> for Problem {
    fn from(error: DeskError) -> Self {
        match error {
            DeskError::Table(error) => error.into(),
            DeskError::Contended { .. } => {
                tracing::warn!(%error, "requests met again and again");
                Self::in_progress()
            }
            DeskError::Transition(_) | DeskError::StillRepresents { .. } => Self::conflict(error.to_string()),
            DeskError::NoOrder(_) | DeskError::NoEmployee(_) => Self::not_found(error.to_string()),
            DeskError::NoProduct(_) => Self::refused("product", error),
            DeskError::Lines(error @ LinesError::Twice(_)) => Self::refused("lines", error),
            DeskError::Lines(error) => Self::field("lines", error),
            DeskError::OtherDelivery(_) => Self::refused("delivery", error),
            DeskError::BeforeJob { .. } => Self::conflict(error.to_string()),
            DeskError::NoWarehouse(_) => Self::refused("warehouse", error),
            DeskError::NoRepresentative(_) => Self::refused("representative", error),
            DeskError::NoWarehouseIn { .. } => Self::refused("region", error),
        }
    }
}

impl From<QueueError> for Problem {
    fn from(error: QueueError) -> Self {
        tracing::error!(%error, "the delivery queue did not answer");
        Self::unavailable()
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Amount(error) => Problem::field("amount", error),
            refusal => Problem::conflict(refusal.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).expect("a problem is representable");
        let mut response = (self.status, body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
