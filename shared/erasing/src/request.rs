//! The request for an erasure: the check of what is owed or in progress, and the mark of the account.

use billing::{
    AccountId, ActionKind, ErasedAccount, Erasure, ErasureCheck, ErasureObstacle, LoggedAction, NewAction,
    PaymentMethodSetup,
};
use chrono::{DateTime, TimeDelta, Utc};
use store::{AccountPartition, StoredAccount, Table, TableError};

/// The largest number of obstacles that are named. The check ends when it has found more.
const MAX_OBSTACLES: usize = 50;

/// The largest age of a setup whose page can still be open.
const MAX_OPEN_SETUP_AGE: TimeDelta = TimeDelta::days(2);

/// The state of a requested erasure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ErasureRequest {
    /// The erasure is in progress.
    InProgress(Erasure),
    /// The account was erased.
    Ended(ErasedAccount),
}

/// The reason why an erasure was not requested.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("there is no such account")]
    NoAccount,
    #[error("the account cannot be erased: {}", list(.0))]
    Obstacles(Vec<ErasureObstacle>),
}

/// Returns the texts of the first 50 `obstacles`, separated by semicolons, and whether there are more.
pub(crate) fn list(obstacles: &[ErasureObstacle]) -> String {
    let more = (obstacles.len() > MAX_OBSTACLES).then(|| "and more".to_owned());
    obstacles.iter().take(MAX_OBSTACLES).map(ToString::to_string).chain(more).collect::<Vec<_>>().join("; ")
}

/// Requests the erasure of `account` at `now`, with the entry of `action`. If it was requested before, returns its state.
/// Sends a GetItem request, the requests of the check, and a TransactWriteItems request.
///
/// # Errors
/// [`RequestError::Obstacles`] if something is owed or in progress.
pub async fn request_erasure(
    table: &Table,
    account: &AccountId,
    action: &NewAction,
    now: DateTime<Utc>,
) -> Result<ErasureRequest, RequestError> {
    let stored = match table.get_stored_account(account).await?.ok_or(RequestError::NoAccount)? {
        StoredAccount::Erased(erased) => return Ok(ErasureRequest::Ended(erased)),
        StoredAccount::Account(stored) => stored,
    };
    if stored.erasure_requested_at.is_none() {
        let obstacles = obstacles(table, account, now).await?;
        if !obstacles.is_empty() {
            return Err(RequestError::Obstacles(obstacles));
        }
    }
    if let Some(erasure) = table.request_erasure(stored, action, now).await? {
        return Ok(ErasureRequest::InProgress(erasure));
    }
    // The erasure ended between the two requests.
    match table.get_stored_account(account).await? {
        Some(StoredAccount::Erased(erased)) => Ok(ErasureRequest::Ended(erased)),
        _ => Err(RequestError::NoAccount),
    }
}

/// Returns what of `account` is owed or in progress at `now`; of more than 50 obstacles only some. Sends at least five Query
/// requests, one for each kind of item and page, and a GetItem request for each new setup. One page is in memory at a time.
pub(crate) async fn obstacles(
    table: &Table,
    account: &AccountId,
    now: DateTime<Utc>,
) -> Result<Vec<ErasureObstacle>, TableError> {
    let mut found = Vec::new();
    for mut items in table.items_that_can_prevent_erasure(account, now - MAX_OPEN_SETUP_AGE) {
        while let Some(page) = items.page().await? {
            let mut partition = AccountPartition::of_account(account, page, now);
            if let Some(error) = partition.unreadable.pop() {
                return Err(error);
            }
            let AccountPartition { subscriptions, refunds, disputes, findings, actions, .. } = &partition;
            let setups = &recent_setups(table, actions, now).await?;
            found.extend(ErasureCheck { subscriptions, refunds, disputes, findings, setups }.obstacles(now));
            if found.len() > MAX_OBSTACLES {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// Returns the stored setups that `actions` have created in the last two days.
async fn recent_setups(
    table: &Table,
    actions: &[LoggedAction],
    now: DateTime<Utc>,
) -> Result<Vec<PaymentMethodSetup>, TableError> {
    let is_recent = |action: &&LoggedAction| {
        action.kind == ActionKind::CreateSetup && now.signed_duration_since(action.at) < MAX_OPEN_SETUP_AGE
    };
    let ids = actions.iter().filter(is_recent).filter_map(|action| action.item.as_ref()?.parse().ok());
    let mut setups = Vec::new();
    for id in ids {
        setups.extend(table.get_setup(id).await?);
    }
    Ok(setups)
}
