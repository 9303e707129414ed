//! `POST .../subscriptions/{subscription}/{pause|resume|cancel|uncancel}`. Doing it twice is doing it once.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use shared::billing::{Refusal, Subscription};
use shared::table::IdempotentRequest;
use utoipa::ToSchema;

use super::subscriptions::View;
use crate::body::{Body, Nothing};
use crate::etag::IfMatch;
use crate::idempotency::IdempotencyKey;
use crate::parameters::{NoParameters, SubscriptionPath};
use crate::{Api, Problem, schema};

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CancelSubscription)]
pub struct Cancel {
    /// Cancel when the next due date comes, uncharged, instead of now and for good.
    #[serde(default)]
    at_period_end: bool,
}

/// Stop payments until resumed
///
/// Months whose due date falls while paused are not owed.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/pause",
    operation_id = "pause_subscription",
    tag = "subscriptions",
    params(
        ("account" = schema::Id, Path),
        ("subscription" = schema::SubscriptionId, Path),
        ("Idempotency-Key" = inline(Option<schema::IdempotencyKey>), Header),
        ("If-Match" = inline(Option<schema::EntityTag>), Header)
    ),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The subscription as it is now", body = View, headers(("ETag" = String))))
)]
pub async fn pause(
    State(api): State<Api>,
    path: SubscriptionPath,
    NoParameters: NoParameters,
    if_match: IfMatch,
    key: IdempotencyKey,
    body: Body<Nothing>,
) -> Result<Response, Problem> {
    api.transition(&path, api.idempotent(key, &body.hash), &if_match, Subscription::pause).await
}

/// Take payments up again
///
/// On the first payment day from today on, and not before the due date it had.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/resume",
    operation_id = "resume_subscription",
    tag = "subscriptions",
    params(
        ("account" = schema::Id, Path),
        ("subscription" = schema::SubscriptionId, Path),
        ("Idempotency-Key" = inline(Option<schema::IdempotencyKey>), Header),
        ("If-Match" = inline(Option<schema::EntityTag>), Header)
    ),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The subscription as it is now", body = View, headers(("ETag" = String))))
)]
pub async fn resume(
    State(api): State<Api>,
    path: SubscriptionPath,
    NoParameters: NoParameters,
    if_match: IfMatch,
    key: IdempotencyKey,
    body: Body<Nothing>,
) -> Result<Response, Problem> {
    let (lead, today) = (api.lead, api.today());
    api.transition(&path, api.idempotent(key, &body.hash), &if_match, |stored| stored.resume(lead, today)).await
}

/// Cancel, now and for good or when the next due date comes
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/cancel",
    operation_id = "cancel_subscription",
    tag = "subscriptions",
    params(
        ("account" = schema::Id, Path),
        ("subscription" = schema::SubscriptionId, Path),
        ("Idempotency-Key" = inline(Option<schema::IdempotencyKey>), Header),
        ("If-Match" = inline(Option<schema::EntityTag>), Header)
    ),
    request_body = Option<Cancel>,
    responses((status = 200, description = "The subscription as it is now", body = View, headers(("ETag" = String))))
)]
pub async fn cancel(
    State(api): State<Api>,
    path: SubscriptionPath,
    NoParameters: NoParameters,
    if_match: IfMatch,
    key: IdempotencyKey,
    body: Body<Cancel>,
) -> Result<Response, Problem> {
    let today = api.today();
    let change = |stored: &Subscription| match body.value.at_period_end {
        true => stored.cancel_at_period_end(today),
        false => Ok(stored.cancel()),
    };
    api.transition(&path, api.idempotent(key, &body.hash), &if_match, change).await
}

/// Undo a cancellation at period end, until that day has come
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/uncancel",
    operation_id = "uncancel_subscription",
    tag = "subscriptions",
    params(
        ("account" = schema::Id, Path),
        ("subscription" = schema::SubscriptionId, Path),
        ("Idempotency-Key" = inline(Option<schema::IdempotencyKey>), Header),
        ("If-Match" = inline(Option<schema::EntityTag>), Header)
    ),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The subscription as it is now", body = View, headers(("ETag" = String))))
)]
pub async fn uncancel(
    State(api): State<Api>,
    path: SubscriptionPath,
    NoParameters: NoParameters,
    if_match: IfMatch,
    key: IdempotencyKey,
    body: Body<Nothing>,
) -> Result<Response, Problem> {
    let (lead, today) = (api.lead, api.today());
    api.transition(&path, api.idempotent(key, &body.hash), &if_match, |stored| stored.uncancel(lead, today)).await
}

impl Api {
    async fn transition(
        &self,
        path: &SubscriptionPath,
        request: Option<IdempotentRequest>,
        if_match: &IfMatch,
        change: impl Fn(&Subscription) -> Result<Subscription, Refusal>,
    ) -> Result<Response, Problem> {
        // What was done under this key is not done again, whatever has become of the subscription since.
        if let Some(before) = self.replay(request.as_ref(), StatusCode::OK).await? {
            return Ok(before);
        }
        let change = |stored: &Subscription| {
            if_match.allows(stored.version)?;
            change(stored).map_err(Problem::from)
        };
        self.changed(path, request.as_ref(), change).await
    }
}
