//! The request for an erasure: checks that no payment is owed and that no refund, dispute or payment method setup is in
//! progress, and marks the account.

use billing::{
    AccountId, ErasedAccount, Erasure, ErasureCheck, ErasureObstacle, LoggedAction, NewAction, PaymentMethodSetup,
};
use chrono::{DateTime, TimeDelta, Utc};
use store::{AccountPartition, StoredAccount, Table, TableError};

/// The largest number of obstacles (reasons against an erasure) that an error lists. The check ends when it has found
/// more obstacles than this.
const MAX_OBSTACLES: usize = 50;

/// The largest age of a payment method setup whose checkout page can still be open.
const MAX_OPEN_SETUP_AGE: TimeDelta = TimeDelta::days(2);

/// The state of a requested erasure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ErasureState {
    /// The erasure is in progress.
    InProgress(Erasure),
    /// The account was erased.
    Ended(ErasedAccount),
}

/// The reason why an erasure was not requested.
#[derive(Debug, thiserror::Error)]
pub enum ErasureRequestError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("there is no such account")]
    NoAccount,
    #[error("the account cannot be erased: {}", describe_obstacles(.0))]
    Obstacles(Vec<ErasureObstacle>),
}

/// Returns one text with the first 50 `obstacles`, separated by semicolons. If there are more, the text ends with "and
/// more".
pub(crate) fn describe_obstacles(obstacles: &[ErasureObstacle]) -> String {
    let more = (obstacles.len() > MAX_OBSTACLES).then(|| "and more".to_owned());
    obstacles.iter().take(MAX_OBSTACLES).map(ToString::to_string).chain(more).collect::<Vec<_>>().join("; ")
}

/// Requests the erasure of `account` at `now`, and writes `action` to the action log. If the erasure was requested
/// before, returns the state of the erasure. Sends a GetItem request, the requests that look for obstacles, and a
/// TransactWriteItems request.
///
/// # Errors
/// - [`ErasureRequestError::NoAccount`] if the account does not exist.
/// - [`ErasureRequestError::Obstacles`] if a payment is owed, or a refund, dispute or payment method setup is in progress.
/// - [`ErasureRequestError::Table`] if a request to the table fails.
pub async fn request_erasure(
    table: &Table,
    account: &AccountId,
    action: &NewAction,
    now: DateTime<Utc>,
) -> Result<ErasureState, ErasureRequestError> {
    let stored = match table.get_stored_account(account).await?.ok_or(ErasureRequestError::NoAccount)? {
        StoredAccount::Erased(erased) => return Ok(ErasureState::Ended(erased)),
        StoredAccount::Account(stored) => stored,
    };
    if stored.erasure_requested_at.is_none() {
        let obstacles = find_erasure_obstacles(table, account, now).await?;
        if !obstacles.is_empty() {
            return Err(ErasureRequestError::Obstacles(obstacles));
        }
    }
    if let Some(erasure) = table.request_erasure(stored, action, now).await? {
        return Ok(ErasureState::InProgress(erasure));
    }
    // The table accepted no request for an erasure, because the erasure of the account has ended since the account was
    // read.
    match table.get_stored_account(account).await? {
        Some(StoredAccount::Erased(erased)) => Ok(ErasureState::Ended(erased)),
        _ => Err(ErasureRequestError::NoAccount),
    }
}

/// Returns the obstacles to an erasure of `account` at `now`: owed payments, and refunds, disputes and setups that are
/// in progress. If there are more than 50 obstacles, returns only some of them. Reads five kinds of items, with one
/// Query request for each list page, and each recent setup with a GetItem request. Only one list page is in memory at a
/// time.
pub(crate) async fn find_erasure_obstacles(
    table: &Table,
    account: &AccountId,
    now: DateTime<Utc>,
) -> Result<Vec<ErasureObstacle>, TableError> {
    let mut found = Vec::new();
    for mut items in table.items_that_can_prevent_erasure(account, now - MAX_OPEN_SETUP_AGE) {
        while let Some(page) = items.read_page().await? {
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

/// Returns the stored payment method setups that were created by one of `actions` in the last two days.
async fn recent_setups(
    table: &Table,
    actions: &[LoggedAction],
    now: DateTime<Utc>,
) -> Result<Vec<PaymentMethodSetup>, TableError> {
    let is_recent = |action: &&LoggedAction| now.signed_duration_since(action.at) < MAX_OPEN_SETUP_AGE;
    let ids = actions.iter().filter(is_recent).filter_map(LoggedAction::created_setup);
    let mut setups = Vec::new();
    for id in ids {
        setups.extend(table.get_setup(id).await?);
    }
    Ok(setups)
}
