//! `/webhook-endpoints`: the merchant's endpoints that receive events. For operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use billing::{EndpointUrl, EventType, Secret, SubscriptionId, WebhookEndpoint};
use chrono::{DateTime, Utc};
use rest::body::{Body, EmptyObject};
use rest::caller::Operator;
use rest::idempotency::{IdempotencyKey, json_response, replayed_response};
use rest::list::ListView;
use rest::parameters::{NoParameters, PageQuery, Path, PathId, Query};
use rest::{Now, Problem};
use serde::{Deserialize, Serialize};
use store::{StoredResponse, Table};
use strum::IntoEnumIterator as _;
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use crate::{Api, missing};

/// The value of `disabled_because` for an endpoint that an operator has disabled.
const DISABLED_BY_OPERATOR: &str = "an operator has disabled it";
/// The largest number of webhook endpoints. There is a limit because all endpoints are read for each event.
const MAX_ENDPOINTS: usize = 20;

/// The path parameter that names a webhook endpoint.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct EndpointPath {
    /// The id of the webhook endpoint.
    #[serde(rename = "endpoint")]
    #[param(value_type = SubscriptionId)]
    pub id: PathId<Ulid>,
}

/// An event type in a request. The error for an unknown type lists all types.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct RequestedEventType(EventType);

impl TryFrom<String> for RequestedEventType {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let names = || EventType::iter().map(|event_type| event_type.to_string()).collect::<Vec<_>>().join(", ");
        text.parse().map(Self).map_err(|_| format!("must be one of {}", names()))
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
    #[schema(value_type = SubscriptionId)]
    id: String,
    /// The URL to which events are posted.
    url: EndpointUrl,
    /// The event types that are delivered to the endpoint; all types if empty.
    #[schema(value_type = Vec<EventType>)]
    types: Vec<String>,
    /// Whether events are delivered to the endpoint.
    enabled: bool,
    /// Why the endpoint is disabled; null if it is enabled.
    disabled_because: Option<String>,
    /// The time until which deliveries are also signed with the previous secret; null if they are not.
    previous_secret_valid_until: Option<DateTime<Utc>>,
    /// The time at which the endpoint was created.
    created_at: DateTime<Utc>,
}

/// A webhook endpoint with its secret. The secret is not returned again later.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpointWithSecret)]
pub struct EndpointWithSecret {
    /// The webhook endpoint.
    #[serde(flatten)]
    #[schema(inline)]
    endpoint: EndpointView,
    /// The signing secret, with which the endpoint verifies the signatures of deliveries.
    secret: String,
}

impl EndpointView {
    fn new(endpoint: &WebhookEndpoint, now: DateTime<Utc>) -> Self {
        Self {
            id: endpoint.id.to_string(),
            url: endpoint.url.clone(),
            types: endpoint.types.iter().map(EventType::to_string).collect(),
            enabled: endpoint.disabled_because.is_none(),
            disabled_because: endpoint.disabled_because.clone(),
            previous_secret_valid_until: endpoint.previous_secret_until(now),
            created_at: endpoint.created_at,
        }
    }
}

impl EndpointWithSecret {
    fn new(endpoint: &WebhookEndpoint, now: DateTime<Utc>) -> Json<Self> {
        Json(Self { endpoint: EndpointView::new(endpoint, now), secret: endpoint.secret.reveal() })
    }
}

impl Api {
    /// Parses the URL of an endpoint.
    ///
    /// # Errors
    /// 422 if `text` is not a URL to which events may be delivered.
    async fn endpoint_url(&self, text: &str) -> Result<EndpointUrl, Problem> {
        let url: EndpointUrl = text.parse().map_err(|error| Problem::refused_field("url", error))?;
        self.addresses.check(&url).await.map_err(|error| Problem::refused_field("url", error))?;
        Ok(url)
    }

    /// Changes the stored endpoint with `change`, and returns it. If `change` returns `None`, the endpoint is returned
    /// unchanged.
    ///
    /// # Errors
    /// 404 if there is no endpoint with this id.
    async fn change_endpoint(
        &self,
        id: Ulid,
        change: impl Fn(&WebhookEndpoint) -> Option<WebhookEndpoint>,
    ) -> Result<WebhookEndpoint, Problem> {
        let stored = self.table.get_webhook_endpoint(id).await?.ok_or_else(missing::endpoint_not_found)?;
        self.table.change_webhook_endpoint(stored, change).await?.ok_or_else(missing::endpoint_not_found)
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
pub async fn create(
    State(api): State<Api>,
    Now { at: now, .. }: Now,
    _: Operator,
    _: Query<NoParameters>,
    key: IdempotencyKey,
    body: Body<NewEndpoint>,
) -> Result<Response, Problem> {
    let mut request = key.request(&body.hash, now);
    if let Some(stored) = api.stored_response(request.as_ref(), StatusCode::CREATED).await? {
        return Ok(stored);
    }
    let NewEndpoint { url, types } = body.value;
    let url = api.endpoint_url(&url).await?;
    let all = store::Paging { after: None, limit: Some(MAX_ENDPOINTS) };
    if api.table.get_webhook_endpoints(&all).await?.items.len() >= MAX_ENDPOINTS {
        return Err(Problem::conflict(format!(
            "there are already {MAX_ENDPOINTS} webhook endpoints; remove one first"
        )));
    }
    let endpoint = WebhookEndpoint {
        types: types.into_iter().map(|RequestedEventType(event_type)| event_type).collect(),
        ..WebhookEndpoint::new(api.clock.ulid(), url, Secret::new(api.clock.random_secret()), now)
    };
    let Json(view) = EndpointWithSecret::new(&endpoint, now);
    let created = StoredResponse {
        json: serde_json::to_string(&view).expect("an endpoint can be serialized"),
        version: endpoint.version,
    };
    if let Some(request) = &mut request {
        request.response = created.clone();
    }
    match api.table.create_webhook_endpoint_once(&endpoint, request.as_ref()).await? {
        Some(replayed) => replayed_response(replayed, StatusCode::CREATED),
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
pub async fn list(
    State(api): State<Api>,
    Now { at: now, .. }: Now,
    _: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<EndpointView>>, Problem> {
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
pub async fn read(
    State(api): State<Api>,
    now: Now,
    Path(path): Path<EndpointPath>,
    _: Operator,
    _: Query<NoParameters>,
) -> Result<Json<EndpointView>, Problem> {
    let endpoint = api
        .table
        .get_webhook_endpoint(path.id.ok_or_else(missing::endpoint_not_found)?)
        .await?
        .ok_or_else(missing::endpoint_not_found)?;
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
pub async fn change(
    State(api): State<Api>,
    now: Now,
    Path(path): Path<EndpointPath>,
    _: Operator,
    _: Query<NoParameters>,
    body: Body<ChangedEndpoint>,
) -> Result<Json<EndpointView>, Problem> {
    let ChangedEndpoint { url, types, enabled } = body.value;
    let url = match url {
        Some(text) => Some(api.endpoint_url(&text).await?),
        None => None,
    };
    let types: Option<Vec<_>> = types.map(|types| types.into_iter().map(|requested| requested.0).collect());
    let changed = |stored: &WebhookEndpoint| {
        let stored = stored.with_url(url.clone().unwrap_or_else(|| stored.url.clone()));
        let types = types.clone().unwrap_or(stored.types);
        let endpoint = WebhookEndpoint { types, ..stored };
        Some(match enabled {
            Some(true) => endpoint.enabled(),
            Some(false) => endpoint.disabled(DISABLED_BY_OPERATOR),
            None => endpoint,
        })
    };
    let endpoint = api.change_endpoint(path.id.ok_or_else(missing::endpoint_not_found)?, changed).await?;
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
pub async fn remove(
    State(api): State<Api>,
    Path(path): Path<EndpointPath>,
    _: Operator,
    _: Query<NoParameters>,
) -> Result<StatusCode, Problem> {
    if api.table.delete_webhook_endpoint(path.id.ok_or_else(missing::endpoint_not_found)?).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(missing::endpoint_not_found())
    }
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
pub async fn rotate_secret(
    State(api): State<Api>,
    now: Now,
    Path(path): Path<EndpointPath>,
    _: Operator,
    _: Query<NoParameters>,
    _: Body<EmptyObject>,
) -> Result<Json<EndpointWithSecret>, Problem> {
    let (secret, now) = (Secret::new(api.clock.random_secret()), now.at);
    let endpoint = api
        .change_endpoint(path.id.ok_or_else(missing::endpoint_not_found)?, |stored| {
            stored.with_new_secret(secret.clone(), now).ok()
        })
        .await?;
    match endpoint.previous_secret_until(now) {
        // The new secret was not stored, because the secret was already rotated less than 24 hours ago. If a concurrent
        // request did that, its caller has received the stored secret.
        Some(until) if endpoint.secret != secret => {
            let until = until.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
            Err(Problem::conflict(format!("the previous secret is still valid until {until}; rotate again after that")))
        }
        _ => Ok(EndpointWithSecret::new(&endpoint, now)),
    }
}
