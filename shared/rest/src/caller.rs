//! The caller of a request: an operator with a role, or an account. The claims of the access token, which the authorizer
//! of API Gateway has verified, determine the caller.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use billing::AccountId;

use crate::{AccountAction, AccountActions, Problem, Role};

/// The caller of a request. Only the server creates callers, from the request's token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Caller {
    /// An operator: may send the requests that the role allows.
    Operator(Role),
    /// An account: may only send requests about its own data.
    Account {
        id: AccountId,
        /// The changes that the account may make itself.
        actions: AccountActions,
    },
}

impl Caller {
    /// Returns the caller for the account `id`, which may make every [`AccountAction`].
    pub fn of_account(id: AccountId) -> Self {
        Self::Account { id, actions: AccountActions::all() }
    }

    /// Checks that the caller may see the data of `account`.
    ///
    /// # Errors
    /// 404 if the caller is another account: the response does not reveal whether `account` exists.
    pub fn check_access(&self, account: &AccountId) -> Result<(), Problem> {
        match self {
            Caller::Account { id, .. } if id != account => Err(Problem::account_not_found()),
            Caller::Account { .. } | Caller::Operator(_) => Ok(()),
        }
    }

    /// Returns whether the caller is an operator, with any role.
    pub fn is_operator(&self) -> bool {
        matches!(self, Caller::Operator(_))
    }

    /// Checks that the caller is an operator whose role is `needed` or a higher one. Returns the role.
    ///
    /// # Errors
    /// 403 if the caller is an account, or an operator with a lower role.
    pub fn check_role(&self, needed: Role) -> Result<Role, Problem> {
        match self {
            Caller::Operator(role) if *role >= needed => Ok(*role),
            Caller::Operator(role) => Err(Problem::missing_role(*role, needed)),
            Caller::Account { .. } => Err(Problem::forbidden()),
        }
    }

    /// Checks that the caller may make the change `action`.
    ///
    /// # Errors
    /// 403 if the caller is an account, and the merchant does not allow accounts this change.
    pub fn check_action(&self, action: AccountAction) -> Result<(), Problem> {
        match self {
            Caller::Account { actions, .. } if !actions.contains(action) => {
                Err(Problem::account_action_not_allowed(action))
            }
            Caller::Account { .. } | Caller::Operator(_) => Ok(()),
        }
    }

    /// Returns the text that identifies the caller in the hash of an idempotency key.
    pub fn idempotency_scope(&self) -> String {
        match self {
            Caller::Operator(_) => "operator".to_owned(),
            Caller::Account { id, .. } => format!("account {id}"),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    /// Returns the caller of the request. A request with a method that changes something, such as POST, is refused with 403
    /// if the caller is an operator whose role changes nothing.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(caller) = parts.extensions.get::<Caller>() else {
            let refused = parts.extensions.get::<RefusedToken>();
            return Err(refused.map_or_else(Problem::unauthorized, |RefusedToken(problem)| problem.clone()));
        };
        if !parts.method.is_safe() && caller.is_operator() {
            caller.check_role(Role::Support)?;
        }
        Ok(caller.clone())
    }
}

/// Proof that the caller is an operator. A handler with a parameter of this type refuses all other callers with 403, and
/// an operator with the role [`Role::Read`] too if the request changes something.
#[derive(Debug)]
pub struct OperatorAccess {
    /// The role of the operator.
    pub role: Role,
}

impl<S: Sync> FromRequestParts<S> for OperatorAccess {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let role = Caller::from_request_parts(parts, state).await?.check_role(Role::Read)?;
        Ok(Self { role })
    }
}

/// Proof that the caller is an operator who may change what concerns the whole company, such as webhook endpoints, and
/// erase accounts. A handler with a parameter of this type refuses all other callers with 403.
#[derive(Debug)]
pub struct AdminAccess;

impl<S: Sync> FromRequestParts<S> for AdminAccess {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // The scope of earlier versions allows everything except confidential data.
        Caller::from_request_parts(parts, state).await?.check_role(Role::Operator)?;
        Ok(Self)
    }
}

/// Proof that the caller is an operator who may read and write confidential data of employees. A handler with a
/// parameter of this type refuses all other callers with 403.
#[derive(Clone, Copy, Debug)]
pub struct ConfidentialAccess;

impl<S: Sync> FromRequestParts<S> for ConfidentialAccess {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Caller::from_request_parts(parts, state).await?.check_role(Role::Admin)?;
        Ok(Self)
    }
}

/// The problem of a request whose token grants no rights. The extractor of [`Caller`] responds with this problem.
#[derive(Clone, Debug)]
pub(crate) struct RefusedToken(pub Problem);
