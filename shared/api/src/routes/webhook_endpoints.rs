//! `/webhook-endpoints`: the merchant's programs that events are delivered to. For the operator.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::{EndpointUrl, EventType, Secret, SubscriptionId, WebhookEndpoint};
use chrono::{DateTime, Utc};
use delivery::Reach;
use rest::body::{Body, Nothing};
use rest::caller::Operator;
use rest::list::ListView;
use rest::parameters::{NoParameters, PageQuery, Path, PathId, Query};
use rest::{Now, Problem};
use serde::{Deserialize, Serialize};
use store::Table;
use strum::IntoEnumIterator as _;
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use crate::{Api, missing};

/// Why an operator's endpoint is disabled.
const BY_AN_OPERATOR: &str = "an operator has disabled it";
/// So many endpoints are read for each event.
const MAX_ENDPOINTS: usize = 20;

/// A webhook endpoint.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct EndpointPath {
    /// The endpoint.
    #[serde(rename = "endpoint")]
    #[param(value_type = SubscriptionId)]
    pub id: PathId<Ulid>,
}

/// A type of events, by its name.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct NamedType(EventType);

impl TryFrom<String> for NamedType {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let names = || EventType::iter().map(|event_type| event_type.to_string()).collect::<Vec<_>>().join(", ");
        text.parse().map(Self).map_err(|_| format!("must be one of {}", names()))
    }
}

/// An endpoint that is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateWebhookEndpoint)]
pub struct NewEndpoint {
    /// Where events are posted to: HTTPS, at a public address.
    #[schema(value_type = EndpointUrl)]
    url: String,
    /// The types of events that it is told of; all types if there are none.
    #[serde(default)]
    #[schema(value_type = Vec<EventType>)]
    types: Vec<NamedType>,
}

/// What is to be changed of an endpoint. What is absent stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeWebhookEndpoint)]
pub struct ChangedEndpoint {
    /// Where events are posted to.
    #[serde(default)]
    #[schema(value_type = Option<EndpointUrl>)]
    url: Option<String>,
    /// The types of events that it is told of; all types if there are none.
    #[serde(default)]
    #[schema(value_type = Option<Vec<EventType>>)]
    types: Option<Vec<NamedType>>,
    /// Whether anything is delivered to it.
    #[serde(default)]
    enabled: Option<bool>,
}

/// Where events are delivered to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpoint)]
pub struct EndpointView {
    /// The endpoint's id.
    #[schema(value_type = SubscriptionId)]
    id: String,
    /// Where events are posted to.
    url: EndpointUrl,
    /// The types of events that it is told of; all types if there are none.
    #[schema(value_type = Vec<EventType>)]
    types: Vec<String>,
    /// Whether anything is delivered to it.
    enabled: bool,
    /// Why nothing is.
    disabled_because: Option<String>,
    /// Until when the secret before the present one is valid, too.
    previous_secret_valid_until: Option<DateTime<Utc>>,
    /// When it was created.
    created_at: DateTime<Utc>,
}

/// An endpoint with its secret, which is shown this once.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpointWithSecret)]
pub struct EndpointWithSecret {
    /// The endpoint.
    #[serde(flatten)]
    #[schema(inline)]
    endpoint: EndpointView,
    /// What deliveries are verified with.
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
    /// The URL that `text` is, if deliveries may go there.
    fn endpoint_url(&self, text: &str) -> Result<EndpointUrl, Problem> {
        let url: EndpointUrl = text.parse().map_err(|error| Problem::refused("url", error))?;
        if self.reach == Reach::Public && !url.is_https() {
            return Err(Problem::refused("url", "must be an https URL"));
        }
        Ok(url)
    }

    async fn change(
        &self,
        id: Ulid,
        change: impl Fn(&WebhookEndpoint) -> Option<WebhookEndpoint>,
    ) -> Result<WebhookEndpoint, Problem> {
        let stored = self.table.get_webhook_endpoint(id).await?.ok_or_else(missing::endpoint)?;
        self.table.change_webhook_endpoint(stored, change).await?.ok_or_else(missing::endpoint)
    }
}

/// Create a webhook endpoint
///
/// Events are posted to it from now on, signed by the Standard Webhooks specification. The secret is shown this once.
#[utoipa::path(
    post,
    path = "/webhook-endpoints",
    operation_id = "create_webhook_endpoint",
    tag = "webhooks",
    request_body = NewEndpoint,
    responses((status = 201, description = "It is created", body = EndpointWithSecret))
)]
pub async fn create(
    State(api): State<Api>,
    Now { at: now, .. }: Now,
    _: Operator,
    _: Query<NoParameters>,
    body: Body<NewEndpoint>,
) -> Result<(StatusCode, Json<EndpointWithSecret>), Problem> {
    let NewEndpoint { url, types } = body.value;
    let url = api.endpoint_url(&url)?;
    let all = store::Paging { after: None, limit: Some(MAX_ENDPOINTS) };
    if api.table.get_webhook_endpoints(&all).await?.items.len() >= MAX_ENDPOINTS {
        return Err(Problem::conflict(format!("there are {MAX_ENDPOINTS} endpoints already; remove one first")));
    }
    let endpoint = WebhookEndpoint {
        types: types.into_iter().map(|NamedType(event_type)| event_type).collect(),
        ..WebhookEndpoint::new(api.clock.ulid(), url, Secret::new(api.clock.secret()), now)
    };
    api.table.create_webhook_endpoint(&endpoint).await?;
    Ok((StatusCode::CREATED, EndpointWithSecret::new(&endpoint, now)))
}

/// List the webhook endpoints
///
/// The oldest first.
#[utoipa::path(
    get,
    path = "/webhook-endpoints",
    operation_id = "list_webhook_endpoints",
    tag = "webhooks",
    params(PageQuery),
    responses((status = 200, description = "A page of them", body = ListView<EndpointView>))
)]
pub async fn list(
    State(api): State<Api>,
    Now { at: now, .. }: Now,
    _: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<EndpointView>>, Problem> {
    let page = api.table.get_webhook_endpoints(&page.paging(Table::cursor_of_webhook_endpoints)?).await?;
    Ok(Json(ListView::of(page, |endpoint| EndpointView::new(&endpoint, now))?))
}

/// Read a webhook endpoint
///
/// Where it is, what it is told of, and whether anything is delivered to it.
#[utoipa::path(
    get,
    path = "/webhook-endpoints/{endpoint}",
    operation_id = "get_webhook_endpoint",
    tag = "webhooks",
    params(EndpointPath),
    responses((status = 200, description = "The endpoint", body = EndpointView))
)]
pub async fn read(
    State(api): State<Api>,
    now: Now,
    Path(path): Path<EndpointPath>,
    _: Operator,
    _: Query<NoParameters>,
) -> Result<Json<EndpointView>, Problem> {
    let endpoint =
        api.table.get_webhook_endpoint(path.id.or(missing::endpoint)?).await?.ok_or_else(missing::endpoint)?;
    Ok(Json(EndpointView::new(&endpoint, now.at)))
}

/// Change a webhook endpoint
///
/// Its URL, its types, or whether it is enabled. What was given up while it was disabled can be delivered again by its id.
#[utoipa::path(
    patch,
    path = "/webhook-endpoints/{endpoint}",
    operation_id = "change_webhook_endpoint",
    tag = "webhooks",
    params(EndpointPath),
    request_body = ChangedEndpoint,
    responses((status = 200, description = "The endpoint as it is now", body = EndpointView))
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
    let url = url.map(|text| api.endpoint_url(&text)).transpose()?;
    let types: Option<Vec<_>> = types.map(|types| types.into_iter().map(|NamedType(event_type)| event_type).collect());
    let changed = |stored: &WebhookEndpoint| {
        let stored = stored.clone();
        let url = url.clone().unwrap_or(stored.url);
        let types = types.clone().unwrap_or(stored.types);
        let endpoint = WebhookEndpoint { url, types, ..stored };
        Some(match enabled {
            Some(true) => WebhookEndpoint { disabled_because: None, ..endpoint },
            Some(false) => endpoint.disabled(BY_AN_OPERATOR),
            None => endpoint,
        })
    };
    let endpoint = api.change(path.id.or(missing::endpoint)?, changed).await?;
    Ok(Json(EndpointView::new(&endpoint, now.at)))
}

/// Remove a webhook endpoint
///
/// Nothing is delivered to it any more.
#[utoipa::path(
    delete,
    path = "/webhook-endpoints/{endpoint}",
    operation_id = "remove_webhook_endpoint",
    tag = "webhooks",
    params(EndpointPath),
    responses((status = 204, description = "It is removed"))
)]
pub async fn remove(
    State(api): State<Api>,
    Path(path): Path<EndpointPath>,
    _: Operator,
    _: Query<NoParameters>,
) -> Result<StatusCode, Problem> {
    if api.table.delete_webhook_endpoint(path.id.or(missing::endpoint)?).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(missing::endpoint())
    }
}

/// Give a webhook endpoint another secret
///
/// It is shown this once. Deliveries are signed with both for 24 hours, so that no delivery fails while the program learns it.
#[utoipa::path(
    post,
    path = "/webhook-endpoints/{endpoint}/rotate-secret",
    operation_id = "rotate_webhook_secret",
    tag = "webhooks",
    params(EndpointPath),
    request_body = Nothing,
    responses((status = 200, description = "The endpoint, with its new secret", body = EndpointWithSecret))
)]
pub async fn rotate_secret(
    State(api): State<Api>,
    now: Now,
    Path(path): Path<EndpointPath>,
    _: Operator,
    _: Query<NoParameters>,
    _: Body<Nothing>,
) -> Result<Json<EndpointWithSecret>, Problem> {
    let (secret, now) = (Secret::new(api.clock.secret()), now.at);
    let endpoint =
        api.change(path.id.or(missing::endpoint)?, |stored| stored.rotated(secret.clone(), now).ok()).await?;
    match endpoint.previous_secret_until(now) {
        // Two at once: the other one's secret is shown to the other one.
        Some(until) if endpoint.secret != secret => {
            let until = until.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
            Err(Problem::conflict(format!("the secret before the present one is still valid, until {until}")))
        }
        _ => Ok(EndpointWithSecret::new(&endpoint, now)),
    }
}
