//! `/webhook-endpoints`: the merchant's endpoints that receive events. For operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use billing::{ActionKind, EndpointUrl, EventType, SigningSecret, WebhookEndpoint};
use chrono::{DateTime, Utc};
use outbound::{DELIVERY_UNREADABLE, EndpointChange, EndpointError, WebhookEndpoints, parse_event_type};
use rest::body::{Body, EmptyObject};
use rest::idempotency::{IdempotencyKey, json_response};
use rest::list::ListView;
use rest::openapi::UlidText;
use rest::parameters::{NoParameters, PageQuery, Path, PathId, Query};
use rest::{AdminAccess, OperatorAccess, Problem, RequestActor, RequestTime};
use serde::{Deserialize, Serialize};
use store::{StoredResponse, Table};
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use crate::actions::new_action;
use crate::{Api, problems};

/// The path parameter that names a webhook endpoint.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct EndpointPath {
    /// The id of the webhook endpoint.
    #[serde(rename = "endpoint")]
    #[param(value_type = UlidText)]
    pub id: PathId<Ulid>,
}

/// An event type in a request. The error for an unknown type lists all types.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct RequestedEventType(EventType);

impl TryFrom<String> for RequestedEventType {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_event_type(&text).map(Self)
    }
}

/// The fields of a webhook endpoint to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateWebhookEndpoint)]
pub struct NewEndpoint {
    /// The URL to which events are posted. It must begin with `https` and have a public address.
    #[schema(value_type = EndpointUrl)]
    url: String,
    /// The event types that are delivered to the endpoint; all types if empty.
    #[serde(default)]
    #[schema(value_type = Vec<EventType>)]
    types: Vec<RequestedEventType>,
}

/// The fields of a webhook endpoint to change. Absent fields stay unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeWebhookEndpoint)]
pub struct ChangedEndpoint {
    /// The URL to which events are posted. It must begin with `https` and have a public address.
    #[serde(default)]
    #[schema(value_type = Option<EndpointUrl>)]
    url: Option<String>,
    /// The event types that are delivered to the endpoint; all types if empty.
    #[serde(default)]
    #[schema(value_type = Option<Vec<EventType>>)]
    types: Option<Vec<RequestedEventType>>,
    /// Set to `false` to stop deliveries to the endpoint, and to `true` to start them again.
    #[serde(default)]
    enabled: Option<bool>,
}

/// A webhook endpoint: a URL of the merchant to which events are delivered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpoint)]
pub struct EndpointView {
    /// The id of the webhook endpoint.
    #[schema(value_type = UlidText)]
    pub id: String,
    /// The URL to which events are posted.
    pub url: EndpointUrl,
    /// The event types that are delivered to the endpoint; all types if empty.
    #[schema(value_type = Vec<EventType>)]
    pub types: Vec<String>,
    /// True if events are delivered to the endpoint.
    pub enabled: bool,
    /// Why the endpoint is disabled; null if it is enabled.
    pub disabled_because: Option<String>,
    /// The time until which the endpoint is not tried, because three or more tries failed one after the other; null if
    /// events are sent at once.
    pub not_tried_until: Option<DateTime<Utc>>,
    /// The time until which deliveries are also signed with the previous secret; null if they are not.
    pub previous_secret_valid_until: Option<DateTime<Utc>>,
    /// The time at which the endpoint was created.
    pub created_at: DateTime<Utc>,
}

/// A webhook endpoint with its secret. The secret is not returned again later.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpointWithSecret)]
pub struct EndpointWithSecret {
    /// The webhook endpoint.
    #[serde(flatten)]
    #[schema(inline)]
    pub endpoint: EndpointView,
    /// The signing secret, with which the endpoint verifies the signatures of deliveries.
    pub secret: String,
}

impl EndpointView {
    /// Returns the view of `endpoint` at the time `now`.
    pub fn new(endpoint: &WebhookEndpoint, now: DateTime<Utc>) -> Self {
        Self {
            id: endpoint.id.to_string(),
            url: endpoint.url.clone(),
            types: endpoint.types.iter().map(EventType::to_string).collect(),
            enabled: endpoint.disabled_because.is_none(),
            disabled_because: endpoint.disabled_because.clone(),
            not_tried_until: endpoint.backoff.until.filter(|until| now < *until),
            previous_secret_valid_until: endpoint.previous_secret_until(now),
            created_at: endpoint.created_at,
        }
    }
}

impl EndpointWithSecret {
    /// Returns the view of `endpoint` with its `secret` at the time `now`.
    pub fn new(endpoint: &WebhookEndpoint, secret: &SigningSecret, now: DateTime<Utc>) -> Self {
        Self { endpoint: EndpointView::new(endpoint, now), secret: secret.reveal() }
    }
}

impl Api {
    /// Returns the service that creates, changes and removes webhook endpoints.
    pub(super) fn webhook_endpoints(&self) -> WebhookEndpoints {
        let (table, keys) = (self.table.clone(), self.encryption.clone());
        WebhookEndpoints::new(table, keys, self.addresses.clone(), self.clock.clone())
    }
}

/// Returns the response to a request that was refused because of `error`.
pub(super) fn webhook_endpoint_problem(error: EndpointError) -> Problem {
    match error {
        EndpointError::Url(_) | EndpointError::Address(_) => Problem::refused_field("url", error),
        EndpointError::NoEndpoint => problems::endpoint_not_found(),
        EndpointError::NoDelivery => problems::delivery_not_found(),
        EndpointError::TooMany | EndpointError::Disabled | EndpointError::SecretStillValid(_) => {
            Problem::conflict(error.to_string())
        }
        EndpointError::DeliveryLost(_) => {
            tracing::error!(%error, error_type = error.error_type(), "{DELIVERY_UNREADABLE}, so it cannot be sent again");
            Problem::conflict(error.to_string())
        }
        EndpointError::NoEncryptionKeys => {
            tracing::error!(%error, error_type = error.error_type(), "a webhook endpoint was not created, or its signing secret was not rotated, because there are no encryption keys");
            Problem::unavailable()
        }
        EndpointError::Table(error) => error.into(),
    }
}

/// Create a webhook endpoint
///
/// From now on, events are posted to the endpoint and signed as in the Standard Webhooks specification. Save the
/// secret: it is not returned again.
#[utoipa::path(
    post,
    path = "/webhook-endpoints",
    operation_id = "create_webhook_endpoint",
    tag = "webhooks",
    params(IdempotencyKey),
    request_body = NewEndpoint,
    responses((status = 201, description = "The webhook endpoint was created", body = EndpointWithSecret))
)]
pub async fn create_webhook_endpoint(
    State(api): State<Api>,
    request_time: RequestTime,
    _: AdminAccess,
    actor: RequestActor,
    _: Query<NoParameters>,
    key: IdempotencyKey,
    body: Body<NewEndpoint>,
) -> Result<Response, Problem> {
    api.parts.require_outbound_webhooks()?;
    let now = request_time.at;
    let request = key.idempotent_request(&body.hash, now);
    if let Some(request) = &request
        && let Some(replayed) = api.table.get_stored_response(request).await?
    {
        return api.decrypted_response(request, replayed, StatusCode::CREATED);
    }
    let NewEndpoint { url, types } = body.value;
    let types = types.into_iter().map(|requested| requested.0).collect();
    let (endpoint, secret) = api.webhook_endpoints().prepare(&url, types).await.map_err(webhook_endpoint_problem)?;
    let view = EndpointWithSecret::new(&endpoint, &secret, now);
    let created = StoredResponse {
        json: serde_json::to_string(&view).expect("an endpoint can be serialized"),
        version: endpoint.version,
    };
    let action = new_action(ActionKind::CreateEndpoint, actor, request_time);
    let Some(request) = request else {
        api.table.create_webhook_endpoint(&endpoint, Some(&action)).await?;
        return Ok(json_response(StatusCode::CREATED, created));
    };
    let request = api.with_encrypted_response(request, &created)?;
    match api.table.create_webhook_endpoint_once(&endpoint, &request, &action).await? {
        Some(replayed) => api.decrypted_response(&request, replayed, StatusCode::CREATED),
        None => Ok(json_response(StatusCode::CREATED, created)),
    }
}

/// List webhook endpoints
///
/// Lists the oldest endpoint first.
#[utoipa::path(
    get,
    path = "/webhook-endpoints",
    operation_id = "list_webhook_endpoints",
    tag = "webhooks",
    params(PageQuery),
    responses((status = 200, description = "A page of the webhook endpoints", body = ListView<EndpointView>))
)]
pub async fn list_webhook_endpoints(
    State(api): State<Api>,
    RequestTime { at: now, .. }: RequestTime,
    _: OperatorAccess,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<EndpointView>>, Problem> {
    api.parts.require_outbound_webhooks()?;
    let page = api.table.get_webhook_endpoints(&page.paging(Table::cursor_of_webhook_endpoints)?).await?;
    Ok(Json(ListView::from_page(page, |endpoint| EndpointView::new(&endpoint, now))?))
}

/// Get a webhook endpoint
///
/// Returns the URL and the event types of the endpoint, and whether it is enabled, but not its secret.
#[utoipa::path(
    get,
    path = "/webhook-endpoints/{endpoint}",
    operation_id = "get_webhook_endpoint",
    tag = "webhooks",
    params(EndpointPath),
    responses((status = 200, description = "The webhook endpoint", body = EndpointView))
)]
pub async fn get_webhook_endpoint(
    State(api): State<Api>,
    now: RequestTime,
    Path(path): Path<EndpointPath>,
    _: OperatorAccess,
    _: Query<NoParameters>,
) -> Result<Json<EndpointView>, Problem> {
    api.parts.require_outbound_webhooks()?;
    let endpoint = api
        .table
        .get_webhook_endpoint(path.id.ok_or_else(problems::endpoint_not_found)?)
        .await?
        .ok_or_else(problems::endpoint_not_found)?;
    Ok(Json(EndpointView::new(&endpoint, now.at)))
}

/// Change a webhook endpoint
///
/// Changes the URL, the event types, or whether the endpoint is enabled. Deliveries that failed while it was disabled
/// are not retried; redeliver their events one by one.
#[utoipa::path(
    patch,
    path = "/webhook-endpoints/{endpoint}",
    operation_id = "change_webhook_endpoint",
    tag = "webhooks",
    params(EndpointPath),
    request_body = ChangedEndpoint,
    responses((status = 200, description = "The changed webhook endpoint", body = EndpointView))
)]
pub async fn change_webhook_endpoint(
    State(api): State<Api>,
    now: RequestTime,
    Path(path): Path<EndpointPath>,
    _: AdminAccess,
    actor: RequestActor,
    _: Query<NoParameters>,
    body: Body<ChangedEndpoint>,
) -> Result<Json<EndpointView>, Problem> {
    api.parts.require_outbound_webhooks()?;
    let ChangedEndpoint { url, types, enabled } = body.value;
    let types = types.map(|types| types.into_iter().map(|requested| requested.0).collect());
    let (id, change) = (path.id.ok_or_else(problems::endpoint_not_found)?, EndpointChange { url, types, enabled });
    let action = new_action(ActionKind::ChangeEndpoint, actor, now);
    let endpoint = api.webhook_endpoints().change(id, change, &action).await.map_err(webhook_endpoint_problem)?;
    Ok(Json(EndpointView::new(&endpoint, now.at)))
}

/// Remove a webhook endpoint
///
/// Deletes the endpoint. No more events are delivered to it.
#[utoipa::path(
    delete,
    path = "/webhook-endpoints/{endpoint}",
    operation_id = "remove_webhook_endpoint",
    tag = "webhooks",
    params(EndpointPath),
    responses((status = 204, description = "The webhook endpoint was removed"))
)]
pub async fn remove_webhook_endpoint(
    State(api): State<Api>,
    now: RequestTime,
    Path(path): Path<EndpointPath>,
    _: AdminAccess,
    actor: RequestActor,
    _: Query<NoParameters>,
) -> Result<StatusCode, Problem> {
    api.parts.require_outbound_webhooks()?;
    let id = path.id.ok_or_else(problems::endpoint_not_found)?;
    let action = new_action(ActionKind::RemoveEndpoint, actor, now);
    api.webhook_endpoints().remove(id, &action).await.map_err(webhook_endpoint_problem)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Rotate the secret of a webhook endpoint
///
/// Creates a new secret and returns it; it is not returned again. For 24 hours, deliveries are signed with both
/// secrets, so that you can update your program. It fails with 409 if the previous secret is still valid.
#[utoipa::path(
    post,
    path = "/webhook-endpoints/{endpoint}/rotate-secret",
    operation_id = "rotate_webhook_secret",
    tag = "webhooks",
    params(EndpointPath),
    request_body = EmptyObject,
    responses((status = 200, description = "The webhook endpoint with its new secret", body = EndpointWithSecret))
)]
pub async fn rotate_webhook_secret(
    State(api): State<Api>,
    now: RequestTime,
    Path(path): Path<EndpointPath>,
    _: AdminAccess,
    actor: RequestActor,
    _: Query<NoParameters>,
    _: Body<EmptyObject>,
) -> Result<Json<EndpointWithSecret>, Problem> {
    api.parts.require_outbound_webhooks()?;
    let id = path.id.ok_or_else(problems::endpoint_not_found)?;
    let action = new_action(ActionKind::RotateEndpointSecret, actor, now);
    let (endpoint, secret) =
        api.webhook_endpoints().rotate_secret(id, &action).await.map_err(webhook_endpoint_problem)?;
    Ok(Json(EndpointWithSecret::new(&endpoint, &secret, now.at)))
}
