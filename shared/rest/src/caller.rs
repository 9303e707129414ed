//! Who is asking: an operator or one account, by claims that the authorizer has verified.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use billing::AccountId;
use config::{ConfigError, Env};
use lambda_http::request::RequestContext;

use crate::config::{ACCOUNT_CLAIM, CONFIDENTIAL_SCOPE, OPERATOR_SCOPE};

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

/// That the caller is an operator who may read what is confidential of employees. Only the edge makes one.
#[derive(Clone, Copy, Debug)]
pub struct ReadsConfidential;

impl<S: Sync> FromRequestParts<S> for ReadsConfidential {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Operator::from_request_parts(parts, state).await?;
        parts.extensions.get::<Self>().copied().ok_or_else(Problem::not_confidential)
    }
}

/// Which verified claims make a caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claims {
    /// `DUEDAY_OPERATOR_SCOPE`: a token with this scope is an operator's.
    operator_scope: String,
    /// `DUEDAY_CONFIDENTIAL_SCOPE`: an operator's token with this scope, too, may read what is confidential.
    confidential_scope: String,
    /// `DUEDAY_ACCOUNT_CLAIM`: any other token is of the account this claim names.
    account_claim: String,
}

impl Claims {
    /// Reads which claims to look at.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            operator_scope: env.text(&OPERATOR_SCOPE)?,
            confidential_scope: env.text(&CONFIDENTIAL_SCOPE)?,
            account_claim: env.text(&ACCOUNT_CLAIM)?,
        })
    }

    /// The caller, and whether it may read what is confidential.
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

/// The edge behind API Gateway: whatever a client could have sent along is replaced by what the claims say.
pub(crate) async fn from_claims(State(claims): State<Claims>, mut request: Request, next: Next) -> Response {
    request.extensions_mut().remove::<Caller>();
    request.extensions_mut().remove::<ReadsConfidential>();
    let caller = request.extensions().get::<RequestContext>().and_then(|context| claims.caller(context));
    if let Some((caller, reads_confidential)) = caller {
        request.extensions_mut().insert(caller);
        if reads_confidential {
            request.extensions_mut().insert(ReadsConfidential);
        }
    }
    next.run(request).await
}
