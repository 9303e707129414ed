//! The caller of a request: an operator or an account. The claims of the access token, which the authorizer of API
//! Gateway has verified, determine the caller.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use billing::AccountId;

use crate::{AccountAction, AccountActions, Problem};

/// The caller of a request. Only the server creates callers, from the request's token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Caller {
    /// An operator: may send every request. Confidential data also needs [`ConfidentialAccess`].
    Operator,
    /// An account: may only send requests about its own data.
    Account {
        id: AccountId,
        /// The changes that the account may make itself.
        actions: AccountActions,
    },
}

impl Caller {
    /// Returns the caller for the account `id`, which may make every [`AccountAction`].
    pub fn account(id: AccountId) -> Self {
        Self::Account { id, actions: AccountActions::all() }
    }

    /// Checks that the caller may see the data of `account`.
    ///
    /// # Errors
    /// 404 if the caller is another account: the response does not reveal whether `account` exists.
    pub fn check_access(&self, account: &AccountId) -> Result<(), Problem> {
        match self {
            Caller::Account { id, .. } if id != account => Err(Problem::no_account()),
            Caller::Account { .. } | Caller::Operator => Ok(()),
        }
    }

    /// Checks that the caller may make the change `action`.
    ///
    /// # Errors
    /// 403 if the caller is an account, and the merchant does not allow accounts this change.
    pub fn check_action(&self, action: AccountAction) -> Result<(), Problem> {
        match self {
            Caller::Account { actions, .. } if !actions.contains(action) => Err(Problem::action_not_allowed(action)),
            Caller::Account { .. } | Caller::Operator => Ok(()),
        }
    }

    /// Returns the text that identifies the caller in the hash of an idempotency key.
    pub fn name(&self) -> String {
        match self {
            Caller::Operator => "operator".to_owned(),
            Caller::Account { id, .. } => format!("account {id}"),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        if let Some(caller) = parts.extensions.get::<Caller>() {
            return Ok(caller.clone());
        }
        let refused = parts.extensions.get::<RefusedToken>();
        Err(refused.map_or_else(Problem::unauthorized, |RefusedToken(problem)| problem.clone()))
    }
}

/// Proof that the caller is an operator. A handler with a parameter of this type refuses all other callers with 403.
#[derive(Debug)]
pub struct Operator;

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Caller::from_request_parts(parts, state).await? {
            Caller::Operator => Ok(Self),
            Caller::Account { .. } => Err(Problem::forbidden()),
        }
    }
}

/// Proof that the caller is an operator who may read confidential data of employees. Only the server creates this
/// proof, from the request's token. A handler with a parameter of this type refuses all other callers with 403.
#[derive(Clone, Copy, Debug)]
pub struct ConfidentialAccess;

impl<S: Sync> FromRequestParts<S> for ConfidentialAccess {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Operator::from_request_parts(parts, state).await?;
        parts.extensions.get::<Self>().copied().ok_or_else(Problem::lacks_confidential_scope)
    }
}

/// The problem of a request whose token grants no rights. The extractor of [`Caller`] responds with this problem.
#[derive(Clone, Debug)]
pub(crate) struct RefusedToken(pub Problem);
