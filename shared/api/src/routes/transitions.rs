//! `POST .../subscriptions/{subscription}/{pause|resume|cancel|uncancel|retry}`: transitions of a subscription.
//! Repeating a transition has no further effect.

use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use billing::{ActionKind, ChangeRefusal, Label, NewAction, Settlement, Subscription};
use rest::body::Body;
use rest::etag::IfMatch;
use rest::idempotency::IdempotencyKey;
use rest::parameters::{NoParameters, Path, Query};
use rest::{AccountAction, Caller, Problem, RequestActor, RequestTime, Role};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::{ChangeRecords, IdempotentRequest, LimitedOperation};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::{IntoParams, ToSchema};

use super::subscription_view::CurrentSubscription;
use crate::Api;
use crate::actions::new_action;
use crate::parameters::SubscriptionPath;

/// A request for a transition of a subscription: a pause, resumption, cancellation, uncancellation or retry.
#[derive(Debug)]
pub struct Transition<T> {
    caller: Caller,
    /// The actor in the entry of the action log.
    actor: RequestActor,
    /// The ids of the account and the subscription.
    pub(super) path: SubscriptionPath,
    /// The versions of the subscription for which the caller wants the transition.
    if_match: IfMatch,
    /// The idempotency record to store; `None` if the request has no key.
    idempotent: Option<IdempotentRequest>,
    pub(super) body: T,
    pub(super) now: RequestTime,
}

impl<T> Transition<T> {
    /// Returns a problem unless the caller is an operator who may make changes.
    pub(super) fn check_operator(&self) -> Result<(), Problem> {
        self.caller.check_role(Role::Support).map(drop)
    }
}

impl<T: DeserializeOwned> FromRequest<Api> for Transition<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, api).await?;
        let Ok(actor) = RequestActor::from_request_parts(&mut parts, api).await;
        let Path(path) = Path::from_request_parts(&mut parts, api).await?;
        Query::<NoParameters>::from_request_parts(&mut parts, api).await?;
        let if_match = IfMatch::from_request_parts(&mut parts, api).await?;
        let key = IdempotencyKey::from_request_parts(&mut parts, api).await?;
        let Ok(now) = RequestTime::from_request_parts(&mut parts, api).await;
        let body = Body::from_request(Request::from_parts(parts, body), api).await?;
        let idempotent = key.idempotent_request(&body.hash, now.at);
        Ok(Self { caller, actor, path, if_match, idempotent, body: body.value, now })
    }
}

impl<T> IntoParams for Transition<T> {
    fn into_params(provider: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let path = SubscriptionPath::into_params(&provider);
        path.into_iter().chain(IdempotencyKey::into_params(&provider)).chain(IfMatch::into_params(&provider)).collect()
    }
}

/// The reason for a change of the subscription.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeReason)]
pub struct ChangeReason {
    /// The reason for the change, for the action log. Do not write personal data into it.
    #[serde(default)]
    reason: Option<Label>,
}

/// When to cancel the subscription: now, or on its next due date.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CancelSubscription)]
pub struct Cancellation {
    /// Whether to cancel on the next due date, without charging it. By default, the subscription is cancelled now.
    #[serde(default)]
    at_period_end: bool,
    /// The reason for the change, for the action log. Do not write personal data into it.
    #[serde(default)]
    reason: Option<Label>,
}

/// The body of a request for a transition.
pub(super) trait TransitionBody {
    /// Returns the reason that the caller gives; `None` if the body contains no reason.
    fn change_reason(&self) -> Option<&Label>;
}

impl TransitionBody for ChangeReason {
    fn change_reason(&self) -> Option<&Label> {
        self.reason.as_ref()
    }
}

impl TransitionBody for Cancellation {
    fn change_reason(&self) -> Option<&Label> {
        self.reason.as_ref()
    }
}

/// Pause a subscription
///
/// Stops payments until the subscription is resumed. It fails with 409 while a payment is owed or open, and if the
/// subscription will be cancelled at period end. A month is waived if its own due date and the next one both fall into
/// the pause.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/pause",
    operation_id = "pause_subscription",
    tag = "subscriptions",
    params(Transition<ChangeReason>),
    request_body = ChangeReason,
    responses(CurrentSubscription)
)]
pub async fn pause_subscription(
    State(api): State<Api>,
    request: Transition<ChangeReason>,
) -> Result<Response, Problem> {
    api.apply_transition(&request, AccountAction::Pause, |stored| stored.pause(request.now.today)).await
}

/// Resume a subscription
///
/// Starts payments again. Of the payments that fell due during the pause, the last becomes payable today, and the
/// earlier ones are waived. The merchant can configure that the last is waived, too, unless it is due today. If no
/// payment fell due, the due date is unchanged.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/resume",
    operation_id = "resume_subscription",
    tag = "subscriptions",
    params(Transition<ChangeReason>),
    request_body = ChangeReason,
    responses(CurrentSubscription)
)]
pub async fn resume_subscription(
    State(api): State<Api>,
    request: Transition<ChangeReason>,
) -> Result<Response, Problem> {
    let (RequestTime { at, today }, policy) = (request.now, api.table.policy());
    api.apply_transition(&request, AccountAction::Resume, |stored| {
        stored.resume(policy.on_resume, policy.lead, today, at)
    })
    .await
}

/// Cancel a subscription
///
/// Cancels the subscription now or, with `at_period_end`, on the next due date. A cancelled subscription cannot be
/// resumed. Payments that are owed when it is cancelled are waived, except for an open attempt, which is settled.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/cancel",
    operation_id = "cancel_subscription",
    tag = "subscriptions",
    params(Transition<Cancellation>),
    request_body = Cancellation,
    responses(CurrentSubscription)
)]
pub async fn cancel_subscription(
    State(api): State<Api>,
    request: Transition<Cancellation>,
) -> Result<Response, Problem> {
    let RequestTime { at, today } = request.now;
    let change = |stored: &Subscription| match request.body.at_period_end {
        true => stored.cancel_at_period_end(today).map(Settlement::from),
        false => Ok(stored.cancel(today, at)),
    };
    api.apply_transition(&request, AccountAction::Cancel, change).await
}

/// Undo a cancellation at period end
///
/// Removes `cancel_date`. It fails with 409 from that date on.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/uncancel",
    operation_id = "uncancel_subscription",
    tag = "subscriptions",
    params(Transition<ChangeReason>),
    request_body = ChangeReason,
    responses(CurrentSubscription)
)]
pub async fn uncancel_subscription(
    State(api): State<Api>,
    request: Transition<ChangeReason>,
) -> Result<Response, Problem> {
    api.apply_transition(&request, AccountAction::Uncancel, |stored| {
        stored.uncancel(api.table.policy().lead, request.now.today)
    })
    .await
}

/// Retry an owed payment
///
/// The next run charges the owed payment, with the same payment method and a new retry schedule. Only an
/// operator may retry while the payment method is disputed. It fails with 409 if nothing is owed.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/retry",
    operation_id = "retry_subscription",
    tag = "subscriptions",
    params(Transition<ChangeReason>),
    request_body = ChangeReason,
    responses(CurrentSubscription)
)]
pub async fn retry_owed_payment(
    State(api): State<Api>,
    request: Transition<ChangeReason>,
) -> Result<Response, Problem> {
    let (RequestTime { at, today }, is_operator) = (request.now, request.caller.is_operator());
    api.apply_transition(&request, AccountAction::Retry, |stored| stored.retry_owed_payment(is_operator, today, at))
        .await
}

impl Api {
    /// Applies `change` to the subscription of `request`. If the request is repeated under its idempotency key, returns
    /// the stored response instead, and does not count the request toward the hourly limit of retries.
    ///
    /// # Errors
    /// - 403 if the caller is an account that may not make the change `action`.
    /// - 412 if `If-Match` does not allow the stored version.
    /// - 422 if the idempotency key was used with another body.
    /// - 429 if an account has reached the hourly limit of retries.
    /// - The problem of the refusal if `change` refuses the transition.
    async fn apply_transition<T: TransitionBody, S: Into<Settlement>>(
        &self,
        request: &Transition<T>,
        action: AccountAction,
        change: impl Fn(&Subscription) -> Result<S, ChangeRefusal>,
    ) -> Result<Response, Problem> {
        request.caller.check_action(action)?;
        // A request that is repeated under its idempotency key gets the stored response, whatever the state of the
        // subscription is now.
        if let Some(stored) = self.replay_stored_response(request.idempotent.as_ref(), StatusCode::OK).await? {
            return Ok(stored);
        }
        if action == AccountAction::Retry {
            let limited = LimitedOperation::RetriesOf(request.path.account.clone());
            self.count_limited_use_by_caller(&request.caller, &limited, request.now.at).await?;
        }
        let kind = match action {
            AccountAction::Pause => ActionKind::PauseSubscription,
            AccountAction::Resume => ActionKind::ResumeSubscription,
            AccountAction::Cancel => ActionKind::CancelSubscription,
            AccountAction::Uncancel => ActionKind::UncancelSubscription,
            AccountAction::Retry => ActionKind::RetrySubscription,
            AccountAction::PaymentDay | AccountAction::PaymentMethod | AccountAction::Address => {
                ActionKind::ChangeSubscription
            }
        };
        self.write_transition(request, kind, |stored| change(stored).map_err(Problem::from)).await
    }

    /// Applies `change`, the correction of an operator, to the subscription of `request`, and logs it with the kind
    /// `kind`. If the request is repeated under its idempotency key, returns the stored response instead.
    ///
    /// # Errors
    /// The errors of [`Api::apply_transition`], except those about accounts.
    pub(super) async fn apply_correction<T: TransitionBody, S: Into<Settlement>>(
        &self,
        request: &Transition<T>,
        kind: ActionKind,
        change: impl Fn(&Subscription) -> Result<S, Problem>,
    ) -> Result<Response, Problem> {
        if let Some(stored) = self.replay_stored_response(request.idempotent.as_ref(), StatusCode::OK).await? {
            return Ok(stored);
        }
        self.write_transition(request, kind, change).await
    }

    /// Writes `change` with the entry of the action log of the kind `kind`.
    async fn write_transition<T: TransitionBody, S: Into<Settlement>>(
        &self,
        request: &Transition<T>,
        kind: ActionKind,
        change: impl Fn(&Subscription) -> Result<S, Problem>,
    ) -> Result<Response, Problem> {
        let change = |stored: &Subscription| {
            request.if_match.check_version(stored.version)?;
            change(stored)
        };
        let action = new_action(kind, request.actor.clone(), request.now);
        let action = NewAction { reason: request.body.change_reason().cloned(), ..action };
        let records = ChangeRecords { request: request.idempotent.as_ref(), action: Some(&action) };
        self.change_subscription(&request.path, records, change).await
    }
}
