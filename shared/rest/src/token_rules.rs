//! The rules that determine the caller from the verified claims of an access token. The authorizer has verified the
//! signature, the issuer, the audience and the expiry before.

use std::collections::HashMap;

use billing::{AccountId, ActorName};
use config::{ConfigError, Env, EnvVariable};
use sha2::{Digest, Sha256};
use strum::IntoEnumIterator as _;

use crate::config::{ACCOUNT_ACTIONS, ACCOUNT_CLAIM, SCOPE_PREFIX};
use crate::{AccountActions, Caller, Problem, Role};

/// The value of the variable for scopes without a common start.
const NO_PREFIX: &str = "none";
/// The variables of earlier versions that contained whole scopes. If one of them is still set, its tokens would have no
/// rights.
const REMOVED_VARIABLES: [EnvVariable; 3] = [
    EnvVariable::new(&[], "DUEDAY_OPERATOR_SCOPE", "", ""),
    EnvVariable::new(&[], "DUEDAY_CONFIDENTIAL_SCOPE", "", ""),
    EnvVariable::new(&[], "DUEDAY_ACCOUNT_SCOPE", "", ""),
];
/// The scope of an account, after the common start of the scopes.
const ACCOUNT: &str = "account";
/// The scope that made an operator of an earlier version an admin, together with the scope `operator`.
const CONFIDENTIAL: &str = "confidential";

/// The beginning of the account ids that are computed from claims that are not valid account ids.
pub const COMPUTED_ACCOUNT_PREFIX: &str = "sha256-";

/// The claims that contain scopes: `scope` in the tokens of most issuers, `scp` in the tokens of Entra ID, and
/// `permissions` in the tokens of Auth0.
const SCOPE_CLAIMS: [&str; 3] = ["scope", "scp", "permissions"];

/// The common start of the scopes, the claim that contains the account, and the changes that accounts may make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenRules {
    /// The common start of the scopes of this API (`DUEDAY_SCOPE_PREFIX`).
    scope_prefix: String,
    /// The claim that contains the account, in an account's token (`DUEDAY_ACCOUNT_CLAIM`).
    account_claim: String,
    /// The changes that accounts may make themselves (`DUEDAY_ACCOUNT_ACTIONS`).
    account_actions: AccountActions,
}

/// The rights that a token grants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallerRights {
    /// The caller of the request.
    pub caller: Caller,
    /// The subject of the token, for the action log; `None` if the token has no claim `sub`.
    pub subject: Option<ActorName>,
}

impl TokenRules {
    /// Reads the rules from the environment.
    ///
    /// # Errors
    /// [`ConfigError`] if an action of accounts is unknown, or a variable of an earlier version is set.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        if let Some(removed) = REMOVED_VARIABLES.iter().find(|variable| env.get(variable).is_some()) {
            let reason = format!("is not read any more: unset it, and set {}", SCOPE_PREFIX.name);
            return Err(ConfigError::Invalid { name: removed.name, reason });
        }
        Ok(Self {
            scope_prefix: Some(env.required_text(&SCOPE_PREFIX)?)
                .filter(|prefix| prefix != NO_PREFIX)
                .unwrap_or_default(),
            account_claim: env.required_text(&ACCOUNT_CLAIM)?,
            account_actions: env.read(&ACCOUNT_ACTIONS, AccountActions::parse)?,
        })
    }

    /// Returns the scope of a token of operators with `role`.
    pub fn scope_of_role(&self, role: Role) -> String {
        format!("{}{role}", self.scope_prefix)
    }

    /// Returns the scope of an account's token.
    pub fn account_scope(&self) -> String {
        format!("{}{ACCOUNT}", self.scope_prefix)
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
    pub fn rights_of_claims(&self, claims: &HashMap<String, String>) -> Result<CallerRights, Problem> {
        check_is_access_token(claims)?;
        let name = claims.get("sub").and_then(|subject| ActorName::new(subject));
        let granted: Vec<&str> =
            granted_scopes(claims).filter_map(|scope| scope.strip_prefix(&self.scope_prefix)).collect();
        if let Some(role) = role_of_scopes(&granted) {
            return Ok(CallerRights { caller: Caller::Operator(role), subject: name });
        }
        if !granted.contains(&ACCOUNT) {
            let operator_scopes = Role::GIVEN.map(|role| self.scope_of_role(role));
            return Err(Problem::insufficient_scope(&self.account_scope(), &operator_scopes));
        }
        let subject = claims.get(&self.account_claim).filter(|subject| !subject.is_empty());
        let subject = subject.ok_or_else(|| Problem::no_account_in_token(&self.account_claim))?;
        let caller = Caller::Account { id: account_of_subject(subject), actions: self.account_actions };
        Ok(CallerRights { caller, subject: name })
    }
}

/// Returns the highest role that `scopes` give, without their common start; `None` if they give no role.
fn role_of_scopes(scopes: &[&str]) -> Option<Role> {
    let role = Role::iter().filter(|role| scopes.contains(&<&str>::from(role))).max()?;
    Some(if role == Role::Operator && scopes.contains(&CONFIDENTIAL) { Role::Admin } else { role })
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
    SCOPE_CLAIMS.into_iter().chain(roles).filter_map(|claim| claims.get(claim)).flat_map(|text| claim_words(text))
}

/// Returns the words of a claim's `text`, which may be a list in brackets.
fn claim_words(text: &str) -> impl Iterator<Item = &str> {
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
