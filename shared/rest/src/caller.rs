//! The caller of a request: an operator or an account, as the claims in the token say. The authorizer of API Gateway
//! has verified the claims.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use billing::AccountId;
use config::{ConfigError, Env};
use lambda_http::request::RequestContext;

use crate::config::{ACCOUNT_CLAIM, CONFIDENTIAL_SCOPE, OPERATOR_SCOPE};

use crate::Problem;

/// The caller of a request. Only the server creates callers, from the request's token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Caller {
    /// An operator: may send every request. Confidential data also needs [`ConfidentialAccess`].
    Operator,
    /// An account: may only send requests about its own data.
    Account(AccountId),
}

impl Caller {
    /// Checks that the caller may see the data of `account`.
    ///
    /// # Errors
    /// 404 if the caller is another account: the response does not reveal whether `account` exists.
    pub fn check_access(&self, account: &AccountId) -> Result<(), Problem> {
        match self {
            Caller::Account(own) if own != account => Err(Problem::no_account()),
            Caller::Account(_) | Caller::Operator => Ok(()),
        }
    }

    /// Returns the name of the caller, which is part of the hash of an idempotency key.
    pub fn name(&self) -> String {
        match self {
            Caller::Operator => "operator".to_owned(),
            Caller::Account(account) => format!("account {account}"),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Caller>().cloned().ok_or_else(Problem::unauthorized)
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
            Caller::Account(_) => Err(Problem::forbidden()),
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

/// The names of the token's claims and scopes that determine the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenClaims {
    /// The scope of an operator's token (`DUEDAY_OPERATOR_SCOPE`).
    operator_scope: String,
    /// The scope that an operator's token also needs to read confidential data (`DUEDAY_CONFIDENTIAL_SCOPE`).
    confidential_scope: String,
    /// The claim that contains the id of the account, in a token that is not an operator's (`DUEDAY_ACCOUNT_CLAIM`).
    account_claim: String,
}

impl TokenClaims {
    /// Reads the names of the claims and scopes from the environment.
    ///
    /// # Errors
    /// [`ConfigError`] if a variable is not valid.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            operator_scope: env.text(&OPERATOR_SCOPE)?,
            confidential_scope: env.text(&CONFIDENTIAL_SCOPE)?,
            account_claim: env.text(&ACCOUNT_CLAIM)?,
        })
    }

    /// Returns the caller of the request, and whether the caller may read confidential data; `None` if the request has
    /// no valid token.
    fn caller(&self, context: &RequestContext) -> Option<(Caller, bool)> {
        let RequestContext::ApiGatewayV2(context) = context else { return None };
        let claims = &context.authorizer.as_ref()?.jwt.as_ref()?.claims;
        let scopes = claims.get("scope").map_or("", String::as_str);
        let has = |wanted: &str| scopes.split(' ').any(|scope| scope == wanted);
        if has(&self.operator_scope) {
            return Some((Caller::Operator, has(&self.confidential_scope)));
        }
        let account = claims.get(&self.account_claim)?.parse().ok()?;
        Some((Caller::Account(account), false))
    }
}

/// The middleware for functions behind API Gateway. It sets the caller of the request from the verified claims, and
/// removes any caller that was set before.
pub(crate) async fn set_caller_from_claims(
    State(claims): State<TokenClaims>,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().remove::<Caller>();
    request.extensions_mut().remove::<ConfidentialAccess>();
    let caller = request.extensions().get::<RequestContext>().and_then(|context| claims.caller(context));
    if let Some((caller, has_confidential_access)) = caller {
        request.extensions_mut().insert(caller);
        if has_confidential_access {
            request.extensions_mut().insert(ConfidentialAccess);
        }
    }
    next.run(request).await
}
