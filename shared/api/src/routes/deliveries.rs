//! `/webhook-endpoints/{endpoint}/deliveries`: the deliveries of events to an endpoint. For operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::{ActionKind, Delivery, DeliveryKey, DeliveryStatus, EventType};
use chrono::{DateTime, Utc};
use rest::body::{Body, EmptyObject};
use rest::list::ListView;
use rest::openapi::UlidText;
use rest::parameters::{NoParameters, PageQuery, Path, PathId, Query};
use rest::{OperatorAccess, Problem, RequestActor, RequestTime};
use serde::{Deserialize, Serialize};
use store::Table;
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use super::webhook_endpoints::{EndpointPath, webhook_endpoint_problem};
use crate::actions::new_action;
use crate::error_responses::queue_problem;
use crate::{Api, problems};

/// The delivery of an event to a webhook endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    /// The id of the event. It also identifies the delivery.
    pub event: String,
    /// The type of the event.
    #[serde(rename = "type")]
    #[schema(value_type = EventType)]
    pub event_type: String,
    /// The state of the delivery: `pending` until the endpoint accepts the event or there are no more retries.
    pub status: DeliveryStatus,
    /// The number of tries since the event was published, or since it was last redelivered.
    pub attempts: u32,
    /// The result of the last try: the HTTP status code, or the reason why there was no response; null before the first
    /// try.
    pub last_answer: Option<String>,
    /// The time of the next try; null if there is none.
    pub next_try_at: Option<DateTime<Utc>>,
    /// The time at which the delivery was created.
    pub created_at: DateTime<Utc>,
}

impl From<Delivery> for DeliveryView {
    fn from(delivery: Delivery) -> Self {
        let Delivery { key, event_type, status, attempts, last_response, next_try_at, created_at, .. } = delivery;
        Self { event: key.event, event_type, status, attempts, last_answer: last_response, next_try_at, created_at }
    }
}

/// The id of an event in a path.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(min_length = 1, max_length = 255)]
pub struct EventId(String);

/// The path parameters that name a delivery.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct DeliveryPath {
    /// The id of the webhook endpoint.
    #[param(value_type = UlidText)]
    endpoint: PathId<Ulid>,
    /// The id of the event.
    #[param(inline)]
    event: EventId,
}

/// List the deliveries to a webhook endpoint
///
/// Lists the deliveries of the last 30 days, in no particular order.
#[utoipa::path(
    get,
    path = "/webhook-endpoints/{endpoint}/deliveries",
    operation_id = "list_deliveries",
    tag = "webhooks",
    params(EndpointPath, PageQuery),
    responses((status = 200, description = "A page of the deliveries", body = ListView<DeliveryView>))
)]
pub async fn list_webhook_deliveries(
    State(api): State<Api>,
    now: RequestTime,
    Path(path): Path<EndpointPath>,
    _: OperatorAccess,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<DeliveryView>>, Problem> {
    api.parts.require_outbound_webhooks()?;
    let (id, paging) = (path.id.ok_or_else(problems::endpoint_not_found)?, page.paging(Table::cursor_of_deliveries)?);
    let page = api.table.get_deliveries(id, &paging, now.at).await?;
    if page.is_empty() && api.table.get_webhook_endpoint(id).await?.is_none() {
        return Err(problems::endpoint_not_found());
    }
    Ok(Json(ListView::from_page(page, DeliveryView::from)?))
}

/// Redeliver an event
///
/// Sends the event to the endpoint again, whatever the state of its delivery. If the endpoint does not accept it, the
/// delivery is retried like that of a new event. A stored delivery that cannot be read is replaced, if it contains its
/// event.
#[utoipa::path(
    post,
    path = "/webhook-endpoints/{endpoint}/deliveries/{event}/redeliver",
    operation_id = "redeliver_event",
    tag = "webhooks",
    params(DeliveryPath),
    request_body = EmptyObject,
    responses((status = 202, description = "The event is queued for delivery", body = DeliveryView))
)]
pub async fn redeliver_event(
    State(api): State<Api>,
    now: RequestTime,
    Path(DeliveryPath { endpoint, event: EventId(event) }): Path<DeliveryPath>,
    _: OperatorAccess,
    actor: RequestActor,
    _: Query<NoParameters>,
    _: Body<EmptyObject>,
) -> Result<(StatusCode, Json<DeliveryView>), Problem> {
    api.parts.require_outbound_webhooks()?;
    let endpoint = endpoint.ok_or_else(problems::endpoint_not_found)?;
    let queue = api.deliveries.as_ref().ok_or_else(Problem::internal_error)?;
    let key = DeliveryKey { endpoint, event };
    let action = new_action(ActionKind::RedeliverEvent, actor, now);
    let restarted = api.webhook_endpoints().redeliver(&key, &action).await.map_err(webhook_endpoint_problem)?;
    queue.send(&[key]).await.map_err(queue_problem)?;
    Ok((StatusCode::ACCEPTED, Json(restarted.into())))
}
