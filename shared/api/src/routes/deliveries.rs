//! `/webhook-endpoints/{endpoint}/deliveries`: what was delivered to an endpoint, and was not. For the operator.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::{Delivery, DeliveryKey, DeliveryStatus, EventType, SubscriptionId};
use chrono::{DateTime, Utc};
use rest::body::{Body, Nothing};
use rest::caller::Operator;
use rest::list::ListView;
use rest::parameters::{NoParameters, PageQuery, Path, PathId, Query};
use rest::{Now, Problem};
use serde::{Deserialize, Serialize};
use store::Table;
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use super::webhook_endpoints::EndpointPath;
use crate::{Api, missing};

/// An event on its way to an endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    /// The event's id, which is the delivery's, too.
    event: String,
    /// The event's type.
    #[serde(rename = "type")]
    #[schema(value_type = EventType)]
    event_type: String,
    /// How it stands.
    status: DeliveryStatus,
    /// How often it was tried, since it was last asked for.
    attempts: u32,
    /// What the last try came to: an HTTP status, or why there was no answer.
    last_answer: Option<String>,
    /// When it is tried next.
    next_try_at: Option<DateTime<Utc>>,
    /// When it was first to be delivered.
    created_at: DateTime<Utc>,
}

impl From<Delivery> for DeliveryView {
    fn from(delivery: Delivery) -> Self {
        let Delivery { key, event_type, status, attempts, last_answer, next_try_at, created_at, .. } = delivery;
        Self { event: key.event, event_type, status, attempts, last_answer, next_try_at, created_at }
    }
}

/// The id of an event.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(min_length = 1, max_length = 255)]
pub struct EventId(String);

/// A delivery.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct DeliveryPath {
    /// The endpoint.
    #[param(value_type = SubscriptionId)]
    endpoint: PathId<Ulid>,
    /// The event's id.
    #[param(inline)]
    event: EventId,
}

/// List the deliveries to a webhook endpoint
///
/// Of the last 30 days, by the ids of their events.
#[utoipa::path(
    get,
    path = "/webhook-endpoints/{endpoint}/deliveries",
    operation_id = "list_deliveries",
    tag = "webhooks",
    params(EndpointPath, PageQuery),
    responses((status = 200, description = "A page of them", body = ListView<DeliveryView>))
)]
pub async fn list(
    State(api): State<Api>,
    now: Now,
    Path(path): Path<EndpointPath>,
    _: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<DeliveryView>>, Problem> {
    let (id, paging) = (path.id.or(missing::endpoint)?, page.paging(Table::cursor_of_deliveries)?);
    let page = api.table.get_deliveries(id, &paging, now.at).await?;
    if page.is_empty() && api.table.get_webhook_endpoint(id).await?.is_none() {
        return Err(missing::endpoint());
    }
    Ok(Json(ListView::of(page, DeliveryView::from)?))
}

/// Deliver an event again
///
/// Now, and by the whole schedule if it fails; whether it was delivered before or given up.
#[utoipa::path(
    post,
    path = "/webhook-endpoints/{endpoint}/deliveries/{event}/redeliver",
    operation_id = "redeliver_event",
    tag = "webhooks",
    params(DeliveryPath),
    request_body = Nothing,
    responses((status = 202, description = "It is on its way", body = DeliveryView))
)]
pub async fn redeliver(
    State(api): State<Api>,
    Now { at: now, .. }: Now,
    Path(DeliveryPath { endpoint, event: EventId(event) }): Path<DeliveryPath>,
    _: Operator,
    _: Query<NoParameters>,
    _: Body<Nothing>,
) -> Result<(StatusCode, Json<DeliveryView>), Problem> {
    let endpoint = endpoint.or(missing::endpoint)?;
    let stored = api.table.get_webhook_endpoint(endpoint).await?.ok_or_else(missing::endpoint)?;
    if stored.disabled_because.is_some() {
        return Err(Problem::conflict("the endpoint is disabled; enable it first"));
    }
    let queue = api.deliveries.as_ref().ok_or_else(Problem::internal)?;
    let key = DeliveryKey { endpoint, event };
    let delivery = api.table.get_delivery(&key).await?.ok_or_else(missing::delivery)?;
    let again = api.table.change_delivery(delivery, |stored| Some(stored.again(now))).await?;
    let again = again.ok_or_else(missing::delivery)?;
    queue.send(&[key]).await?;
    Ok((StatusCode::ACCEPTED, Json(again.into())))
}
