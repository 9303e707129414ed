//! Who is asking: an operator or one account, by claims that the authorizer has verified.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use lambda_http::request::RequestContext;
use shared::billing::AccountId;
use shared::config::{ACCOUNT_CLAIM, ConfigError, Env, OPERATOR_SCOPE};

use crate::Problem;

/// Who is asking. Only the edge makes one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Caller {
    /// The merchant: may do everything.
    Operator,
    /// One account: may read its own things.
    Account(AccountId),
}

impl Caller {
    /// The right to see `account`.
    ///
    /// # Errors
    /// 404: another account's things are not there.
    pub fn sees(&self, account: &AccountId) -> Result<(), Problem> {
        match self {
            Caller::Account(own) if own != account => Err(Problem::no_account()),
            Caller::Account(_) | Caller::Operator => Ok(()),
        }
    }

    /// Names the caller in idempotency records.
    pub(crate) fn name(&self) -> String {
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

/// That the caller may do what only an operator may.
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

/// Which verified claims make a caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claims {
    /// `DUEDAY_OPERATOR_SCOPE`: a token with this scope is an operator's.
    operator_scope: String,
    /// `DUEDAY_ACCOUNT_CLAIM`: any other token is of the account this claim names.
    account_claim: String,
}

impl Claims {
    /// Reads which claims to look at.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self { operator_scope: env.text(&OPERATOR_SCOPE)?, account_claim: env.text(&ACCOUNT_CLAIM)? })
    }

    fn caller(&self, context: &RequestContext) -> Option<Caller> {
        let RequestContext::ApiGatewayV2(context) = context else { return None };
        let claims = &context.authorizer.as_ref()?.jwt.as_ref()?.claims;
        let scopes = claims.get("scope").map_or("", String::as_str);
        if scopes.split(' ').any(|scope| scope == self.operator_scope) {
            return Some(Caller::Operator);
        }
        claims.get(&self.account_claim)?.parse().ok().map(Caller::Account)
    }
}

/// The edge behind API Gateway: whatever a client could have sent along is replaced by what the claims say.
pub(crate) async fn from_claims(State(claims): State<Claims>, mut request: Request, next: Next) -> Response {
    request.extensions_mut().remove::<Caller>();
    let caller = request.extensions().get::<RequestContext>().and_then(|context| claims.caller(context));
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
    next.run(request).await
}
