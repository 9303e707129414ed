//! `DELETE /accounts/{account}`: requests the erasure of an account. For operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::{AccountId, ActionKind, ErasureCounts};
use chrono::{DateTime, Utc};
use erasing::{ErasureRequestError, ErasureState, request_erasure};
use rest::parameters::{AccountPath, NoParameters, Path, Query};
use rest::{AdminAccess, Problem, RequestActor, RequestTime};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::actions::new_action;

/// The state of the erasure of an account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Erasure)]
pub struct ErasureView {
    /// The id of the account.
    account: AccountId,
    /// The time at which the erasure was requested.
    requested_at: DateTime<Utc>,
    /// The time at which the account was erased; null while the erasure is in progress.
    erased_at: Option<DateTime<Utc>>,
    /// The step that is carried out next: `order_desk`, `other_partitions`, `subscriptions`, `records` or `account`; null if the
    /// account was erased.
    step: Option<String>,
    /// What the erasure waits for, such as orders that must be shipped; null if it does not wait.
    waits_for: Option<String>,
    /// The number of stored items that were removed so far.
    removed_items: u64,
    /// The number of stored items that are kept, and from which personal data was removed so far.
    pseudonymised_items: u64,
}

impl ErasureView {
    /// Creates the view of the erasure of `account`, which has the state `state`.
    pub fn new(account: AccountId, state: ErasureState) -> Self {
        let counts = |counts: ErasureCounts| (counts.removed, counts.pseudonymised);
        match state {
            ErasureState::InProgress(erasure) => {
                let (removed_items, pseudonymised_items) = counts(erasure.counts);
                Self {
                    account,
                    requested_at: erasure.requested_at,
                    erased_at: None,
                    step: Some(erasure.step.to_string()),
                    waits_for: erasure.waits_for,
                    removed_items,
                    pseudonymised_items,
                }
            }
            ErasureState::Ended(erased) => {
                let (removed_items, pseudonymised_items) = counts(erased.counts);
                Self {
                    account,
                    requested_at: erased.requested_at,
                    erased_at: Some(erased.erased_at),
                    step: None,
                    waits_for: None,
                    removed_items,
                    pseudonymised_items,
                }
            }
        }
    }
}

/// Erase an account
///
/// Requests the erasure of the account. It is refused while something is owed or in progress: a subscription that is not
/// cancelled, an open payment, refund or dispute, a payment about which a person must decide, or an open page for a payment
/// method. From the request on, the account cannot be changed and gets no subscriptions. A scheduled function erases the
/// account within hours: it removes the personal data, and keeps the records of payments with the id of the account. Then the
/// event `account.erased` is published, and no account can have the id again. Repeat the request to see the state of the
/// erasure.
#[utoipa::path(
    delete,
    path = "/accounts/{account}",
    operation_id = "erase_account",
    tag = "accounts",
    params(AccountPath),
    responses(
        (status = 200, description = "The account was erased", body = ErasureView),
        (status = 202, description = "The erasure is in progress", body = ErasureView),
        (status = 409, description = "A payment is owed, an operation is still in progress, or the deployment cannot erase accounts; `detail` names it", body = Problem)
    )
)]
pub async fn request_account_erasure(
    State(api): State<Api>,
    now: RequestTime,
    Path(AccountPath { account }): Path<AccountPath>,
    _: AdminAccess,
    actor: RequestActor,
    _: Query<NoParameters>,
) -> Result<(StatusCode, Json<ErasureView>), Problem> {
    api.parts.require_erasures()?;
    let action = new_action(ActionKind::EraseAccount, actor, now);
    let state = request_erasure(&api.table, &account, &action, now.at).await.map_err(|error| match error {
        ErasureRequestError::Table(error) => error.into(),
        ErasureRequestError::NoAccount => Problem::account_not_found(),
        error @ ErasureRequestError::Obstacles(_) => Problem::conflict(error.to_string()),
    })?;
    let status = match state {
        ErasureState::InProgress(_) => StatusCode::ACCEPTED,
        ErasureState::Ended(_) => StatusCode::OK,
    };
    Ok((status, Json(ErasureView::new(account, state))))
}
