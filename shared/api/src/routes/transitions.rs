//! `POST .../subscriptions/{subscription}/{pause|resume|cancel|uncancel|retry}`. Doing it twice is doing it once.

use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use billing::{Refusal, Settlement, Subscription};
use rest::body::{Body, Nothing};
use rest::etag::IfMatch;
use rest::idempotency::IdempotencyKey;
use rest::parameters::{NoParameters, Path, Query};
use rest::{Caller, Now, Problem};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::IdempotentRequest;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::{IntoParams, ToSchema};

use super::subscription_view::CurrentSubscription;
use crate::Api;
use crate::parameters::SubscriptionPath;

/// What every transition takes: which subscription, in which version, under which idempotency key.
#[derive(Debug)]
pub struct Transition<T> {
    path: SubscriptionPath,
    if_match: IfMatch,
    request: Option<IdempotentRequest>,
    body: T,
    now: Now,
}

impl<T: DeserializeOwned> FromRequest<Api> for Transition<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Path(path) = Path::from_request_parts(&mut parts, api).await?;
        Query::<NoParameters>::from_request_parts(&mut parts, api).await?;
        let if_match = IfMatch::from_request_parts(&mut parts, api).await?;
        let key = IdempotencyKey::from_request_parts(&mut parts, api).await?;
        let Ok(now) = Now::from_request_parts(&mut parts, api).await;
        let body = Body::from_request(Request::from_parts(parts, body), api).await?;
        Ok(Self { path, if_match, request: key.request(&body.hash, now.at), body: body.value, now })
    }
}

impl<T> IntoParams for Transition<T> {
    fn into_params(provider: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let path = SubscriptionPath::into_params(&provider);
        path.into_iter().chain(IdempotencyKey::into_params(&provider)).chain(IfMatch::into_params(&provider)).collect()
    }
}

/// When to cancel.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CancelSubscription)]
pub struct Cancellation {
    /// Cancel when the next due date comes, uncharged, instead of now and for good.
    #[serde(default)]
    at_period_end: bool,
}

/// Stop payments until resumed
///
/// Refused while anything is owed or under way. A month whose due date and the next one fall into the pause is waived.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/pause",
    operation_id = "pause_subscription",
    tag = "subscriptions",
    params(Transition<Nothing>),
    request_body = Nothing,
    responses(CurrentSubscription)
)]
pub async fn pause(State(api): State<Api>, asked: Transition<Nothing>) -> Result<Response, Problem> {
    api.transition(&asked, |stored| stored.pause(asked.now.today)).await
}

/// Take payments up again
///
/// Of the payments that fell due in the pause, the last is payable today (or, if the operator has set so, waived), and
/// those before it are waived. Otherwise it goes on with the due date it had.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/resume",
    operation_id = "resume_subscription",
    tag = "subscriptions",
    params(Transition<Nothing>),
    request_body = Nothing,
    responses(CurrentSubscription)
)]
pub async fn resume(State(api): State<Api>, asked: Transition<Nothing>) -> Result<Response, Problem> {
    let Now { at, today } = asked.now;
    api.transition(&asked, |stored| stored.resume(api.billing.policy.on_resume, api.billing.policy.lead, today, at))
        .await
}

/// Cancel
///
/// Now and for good, or when the next due date comes.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/cancel",
    operation_id = "cancel_subscription",
    tag = "subscriptions",
    params(Transition<Cancellation>),
    request_body = Cancellation,
    responses(CurrentSubscription)
)]
pub async fn cancel(State(api): State<Api>, asked: Transition<Cancellation>) -> Result<Response, Problem> {
    let Now { at, today } = asked.now;
    let change = |stored: &Subscription| match asked.body.at_period_end {
        true => stored.cancel_at_period_end(today).map(Settlement::from),
        false => Ok(stored.cancel(today, at)),
    };
    api.transition(&asked, change).await
}

/// Undo a cancellation at period end
///
/// Until that day has come.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/uncancel",
    operation_id = "uncancel_subscription",
    tag = "subscriptions",
    params(Transition<Nothing>),
    request_body = Nothing,
    responses(CurrentSubscription)
)]
pub async fn uncancel(State(api): State<Api>, asked: Transition<Nothing>) -> Result<Response, Problem> {
    api.transition(&asked, |stored| stored.uncancel(api.billing.policy.lead, asked.now.today)).await
}

/// Try what is owed again
///
/// With the same payment method, at the next run, and with a retry schedule of its own. Only an operator may retry one that is
/// disputed.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/retry",
    operation_id = "retry_subscription",
    tag = "subscriptions",
    params(Transition<Nothing>),
    request_body = Nothing,
    responses(CurrentSubscription)
)]
pub async fn retry(State(api): State<Api>, caller: Caller, asked: Transition<Nothing>) -> Result<Response, Problem> {
    let Now { at, today } = asked.now;
    api.transition(&asked, |stored| stored.retry(caller == Caller::Operator, today, at)).await
}

impl Api {
    async fn transition<T, S: Into<Settlement>>(
        &self,
        asked: &Transition<T>,
        change: impl Fn(&Subscription) -> Result<S, Refusal>,
    ) -> Result<Response, Problem> {
        // What was done under this key is not done again, whatever has become of the subscription since.
        if let Some(before) = self.replay(asked.request.as_ref(), StatusCode::OK).await? {
            return Ok(before);
        }
        let change = |stored: &Subscription| {
            asked.if_match.allows(stored.version)?;
            change(stored).map_err(Problem::from)
        };
        self.changed(&asked.path, asked.request.as_ref(), change).await
    }
}
