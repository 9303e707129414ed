//! The rules that determine the caller from the verified claims of an access token. The authorizer has verified the
//! signature, the issuer, the audience and the expiry before.

use std::collections::HashMap;

use billing::{AccountId, ActorName};
use config::{ConfigError, Env};
use sha2::{Digest, Sha256};

use crate::config::{ACCOUNT_ACTIONS, ACCOUNT_CLAIM, ACCOUNT_SCOPE, CONFIDENTIAL_SCOPE, OPERATOR_SCOPE};
use crate::{AccountActions, Caller, Problem};

/// The beginning of the account ids that are computed from claims that are not valid account ids.
pub const COMPUTED_ACCOUNT_PREFIX: &str = "sha256-";

/// The claims that contain scopes: `scope` in the tokens of most issuers, `scp` in the tokens of Entra ID, and
/// `permissions` in the tokens of Auth0.
const SCOPE_CLAIMS: [&str; 3] = ["scope", "scp", "permissions"];

/// The names of the scopes and of the claim that determine the caller, and the changes that accounts may make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenRules {
    /// The scope of an operator's token (`DUEDAY_OPERATOR_SCOPE`).
    operator_scope: String,
    /// The scope that an operator's token also needs to read confidential data (`DUEDAY_CONFIDENTIAL_SCOPE`).
    confidential_scope: String,
    /// The scope of an account's token (`DUEDAY_ACCOUNT_SCOPE`).
    account_scope: String,
    /// The claim that contains the account, in an account's token (`DUEDAY_ACCOUNT_CLAIM`).
    account_claim: String,
    /// The changes that accounts may make themselves (`DUEDAY_ACCOUNT_ACTIONS`).
    account_actions: AccountActions,
}

/// The rights that a token grants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rights {
    /// The caller of the request.
    pub caller: Caller,
    /// Whether the caller may read confidential data of employees.
    pub has_confidential_access: bool,
    /// The subject of the token, for the action log; `None` if the token has no claim `sub`.
    pub subject: Option<ActorName>,
}

impl TokenRules {
    /// Reads the rules from the environment.
    ///
    /// # Errors
    /// [`ConfigError`] if accounts and operators have the same scope, or an action of accounts is unknown.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let operator_scope = env.text(&OPERATOR_SCOPE)?;
        let other_than_operator = |scope: &str| match scope == operator_scope {
            true => Err(format!("must not be the scope of operators, {operator_scope}")),
            false => Ok(scope.to_owned()),
        };
        let account_scope = env.read(&ACCOUNT_SCOPE, other_than_operator)?;
        Ok(Self {
            confidential_scope: env.text(&CONFIDENTIAL_SCOPE)?,
            account_scope,
            operator_scope,
            account_claim: env.text(&ACCOUNT_CLAIM)?,
            account_actions: env.read(&ACCOUNT_ACTIONS, AccountActions::parse)?,
        })
    }

    /// Returns the scope of an operator's token.
    pub fn operator_scope(&self) -> &str {
        &self.operator_scope
    }

    /// Returns the scope that an operator's token also needs to read confidential data.
    pub fn confidential_scope(&self) -> &str {
        &self.confidential_scope
    }

    /// Returns the scope of an account's token.
    pub fn account_scope(&self) -> &str {
        &self.account_scope
    }

    /// Returns the name of the claim that contains the account.
    pub fn account_claim(&self) -> &str {
        &self.account_claim
    }

    /// Returns the rights of the token with the verified `claims`. The value of each claim is a text. A list of values
    /// is one text in brackets, such as `[read write]`: API Gateway passes claims to a function in this form.
    ///
    /// # Errors
    /// - 401 if the token is not an access token.
    /// - 403 if the token has no scope of this API.
    /// - 403 if the token has the scope of an account, but no claim with the account.
    pub fn rights(&self, claims: &HashMap<String, String>) -> Result<Rights, Problem> {
        check_is_access_token(claims)?;
        let name = claims.get("sub").and_then(|subject| ActorName::new(subject));
        let has = |wanted: &str| granted_scopes(claims).any(|scope| scope == wanted);
        if has(&self.operator_scope) {
            let has_confidential_access = has(&self.confidential_scope);
            return Ok(Rights { caller: Caller::Operator, has_confidential_access, subject: name });
        }
        if !has(&self.account_scope) {
            return Err(Problem::insufficient_scope(&self.operator_scope, &self.account_scope));
        }
        let subject = claims.get(&self.account_claim).filter(|subject| !subject.is_empty());
        let subject = subject.ok_or_else(|| Problem::no_account_in_token(&self.account_claim))?;
        let caller = Caller::Account { id: account_of_subject(subject), actions: self.account_actions };
        Ok(Rights { caller, has_confidential_access: false, subject: name })
    }
}

/// Checks that the claims do not belong to an ID token, a refresh token or a token that is bound to a key. Amazon
/// Cognito names the kind of a token in `token_use`, and Keycloak in `typ`. A token that contains a hash of another
/// token is an ID token.
fn check_is_access_token(claims: &HashMap<String, String>) -> Result<(), Problem> {
    for (claim, allowed) in [("token_use", "access"), ("typ", "Bearer")] {
        if claims.get(claim).is_some_and(|kind| !kind.eq_ignore_ascii_case(allowed)) {
            return Err(Problem::invalid_token(format!(
                "the token is not an access token: its claim {claim} is not {allowed}; send the access token, not the \
                 ID token"
            )));
        }
    }
    match ["at_hash", "c_hash"].into_iter().find(|claim| claims.contains_key(*claim)) {
        Some(claim) => Err(Problem::invalid_token(format!(
            "the token is an ID token: it has the claim {claim}; send the access token"
        ))),
        None => Ok(()),
    }
}

/// Returns the scopes that the claims grant. If Entra ID issues a token to an application without a user, the scopes
/// are in the claim `roles`. A user's ID token can also contain this claim, so the claim is read only if the claim
/// `idtyp` shows that the token is an application's access token.
fn granted_scopes(claims: &HashMap<String, String>) -> impl Iterator<Item = &str> {
    let is_application = claims.get("idtyp").is_some_and(|kind| kind == "app");
    let roles = is_application.then_some("roles");
    SCOPE_CLAIMS.into_iter().chain(roles).filter_map(|claim| claims.get(claim)).flat_map(|text| words(text))
}

/// Returns the words of a claim's `text`, which may be a list in brackets.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let list = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    list.unwrap_or(text).split_whitespace()
}

/// Returns the account of the subject `subject`. A subject that is a valid account id is the account's id. Any other
/// subject, such as `auth0|123`, becomes `sha256-` and the first 32 hexadecimal digits of its SHA-256. A subject that
/// begins with `sha256-` is hashed, too: otherwise a subject could equal the account id that was computed for another
/// subject, and would get access to that account.
///
/// ```
/// assert_eq!(rest::account_of_subject("acme").as_str(), "acme");
/// assert_eq!(rest::account_of_subject("auth0|123").as_str(), "sha256-4043445eadeeeb2a5d885af3c133f60e");
/// ```
///
/// # Panics
/// Never: every computed id is a valid account id.
pub fn account_of_subject(subject: &str) -> AccountId {
    match subject.parse() {
        Ok(account) if !subject.starts_with(COMPUTED_ACCOUNT_PREFIX) => account,
        _ => {
            let hash = Sha256::digest(subject);
            let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            format!("{COMPUTED_ACCOUNT_PREFIX}{digits}").parse().expect("a valid account id")
        }
    }
}
