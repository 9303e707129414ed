//! The problem types: the kinds of error responses of the HTTP APIs. `docs/api.md` lists them in a generated table.

use axum::http::StatusCode;

/// A problem type (RFC 9457): its HTTP status code and its texts are the same in each response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProblemType {
    /// The URN that is the `type` of the response.
    pub urn: &'static str,
    /// The kind of problem, for people.
    pub title: &'static str,
    /// The HTTP status code.
    pub status: StatusCode,
    /// When the problem occurs, for the table in `docs/api.md`.
    pub occurs_when: &'static str,
    /// What the client should do, for the table in `docs/api.md`.
    pub remedy: &'static str,
}

/// Declares each problem type as a constant of [`ProblemType`], and the list [`ProblemType::ALL`]. The five values are
/// the status code, the end of the URN, the title, when the problem occurs, and what the client should do.
macro_rules! problem_types {
    ($($constant:ident: $status:ident, $name:literal, $title:literal, $occurs_when:literal, $remedy:literal;)*) => {
        impl ProblemType {
            $(pub(crate) const $constant: Self = Self {
                urn: concat!("urn:dueday:problem:", $name),
                title: $title,
                status: StatusCode::$status,
                occurs_when: $occurs_when,
                remedy: $remedy,
            };)*
            /// All problem types, sorted by their status codes.
            pub const ALL: &'static [Self] = &[$(Self::$constant),*];
        }
    };
}

problem_types! {
    INVALID_FIELD: BAD_REQUEST, "invalid-field", "A field is not valid",
        "the value of `field` (a field, a parameter or a header) is missing, unknown or never valid",
        "Correct the request. `detail` names the allowed values";
    MALFORMED_BODY: BAD_REQUEST, "malformed-body", "The body cannot be read",
        "the body is not JSON, or not an object",
        "Correct the request";
    UNAUTHORIZED: UNAUTHORIZED, "unauthorized", "Not authenticated",
        "the request has no token",
        "Send the header `Authorization: Bearer TOKEN`";
    INVALID_TOKEN: UNAUTHORIZED, "invalid-token", "The token is not valid",
        "the token is expired, or not an access token for this API",
        "Get another token from the issuer";
    INSUFFICIENT_SCOPE: FORBIDDEN, "insufficient-scope", "The token has no rights",
        "the token has no scope of this API, or does not name its account",
        "Get a token with one of the scopes in `detail`";
    FORBIDDEN: FORBIDDEN, "forbidden", "Not allowed",
        "only an operator, or an operator with a higher role, may do this",
        "Let such an operator do it";
    REFUND_LIMIT: FORBIDDEN, "refund-limit", "The limit of the day is reached",
        "the role support has refunded as much as it may refund in one day",
        "Let an admin refund, or wait until tomorrow";
    NOT_FOUND: NOT_FOUND, "not-found", "Not found",
        "an item of the path does not exist, has expired, or belongs to another account",
        "Check the ids in the path";
    METHOD_NOT_ALLOWED: METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed",
        "the path does not support this method",
        "Use a method of the OpenAPI document";
    CONFLICT: CONFLICT, "conflict", "Conflict",
        "the current state does not allow the request, for example because a payment is owed or the subscription is cancelled",
        "Read the object again. `detail` says what must change first";
    IN_PROGRESS: CONFLICT, "in-progress", "Write conflict",
        "another request changes the same data at this moment",
        "Send the same request again";
    ALREADY_SUBSCRIBED: CONFLICT, "already-subscribed", "The account already has this product",
        "the account has a subscription of the same SKU that is not cancelled: `existing_subscription`",
        "Use that subscription. If the customer wants two, send `allow_second`";
    DISPUTED: CONFLICT, "disputed", "The payment is disputed",
        "the bank has taken back the money to refund, or may still do so",
        "Wait for the end of the dispute, or send `although_disputed` as an operator";
    NOT_DEPLOYED: CONFLICT, "not-deployed", "This part is not deployed",
        "the stack has only the core",
        "Deploy all parts";
    GONE: GONE, "gone", "Removed for good",
        "the account was erased",
        "Use another account id";
    STALE: PRECONDITION_FAILED, "stale", "The version has changed",
        "the object no longer has the version in `If-Match`",
        "Read the object again, and repeat the change if it still applies";
    TOO_LARGE: PAYLOAD_TOO_LARGE, "too-large", "The body is too large",
        "the body is larger than the limit in `detail`",
        "Send less";
    NOT_JSON: UNSUPPORTED_MEDIA_TYPE, "not-json", "Not JSON",
        "the header `Content-Type: application/json` is missing",
        "Send the header, even without a body";
    UNSUPPORTED_CONTENT_ENCODING: UNSUPPORTED_MEDIA_TYPE, "unsupported-content-encoding",
        "The content encoding is not supported",
        "the body is compressed",
        "Send it without the header `Content-Encoding`";
    REFUSED_FIELD: UNPROCESSABLE_ENTITY, "refused-field", "A field is refused",
        "the value of `field` is valid in itself, but not in the current state or together with the other fields",
        "Correct the request as `detail` says";
    IDEMPOTENCY_KEY_REUSED: UNPROCESSABLE_ENTITY, "idempotency-key-reused",
        "The idempotency key was used for another request",
        "the `Idempotency-Key` was used for a request with another body",
        "Use a new key for a new request";
    TOO_MANY_REQUESTS: TOO_MANY_REQUESTS, "too-many-requests", "Too many requests",
        "an hourly limit of the account is reached",
        "Wait for the seconds in `Retry-After`";
    INTERNAL: INTERNAL_SERVER_ERROR, "internal", "Internal error",
        "an error that would occur again; it is in the log",
        "Report it to the merchant. Sending it again does not help";
    UNAVAILABLE: SERVICE_UNAVAILABLE, "unavailable", "Temporarily unavailable",
        "the table, the gateway or a queue does not respond, or charging is not possible now",
        "Send the same request again later, with the same `Idempotency-Key`";
    REPORT_TOO_LARGE: SERVICE_UNAVAILABLE, "report-too-large", "The report takes too long",
        "the table is too large to be read within one request",
        "Use `dueday report`, or the archived events";
}
