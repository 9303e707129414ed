//! `/accounts/{account}`: the accounts of customers.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::{Account, AccountChanges, AccountId, ActionKind, EmailAddress, Label, Locale, MailStatus};
use chrono::{DateTime, Utc};
use rest::body::Body;
use rest::parameters::{AccountPath, NoParameters, Path, Query};
use rest::{OperatorAccess, Problem, RequestActor, RequestTime};
use serde::{Deserialize, Serialize};
use store::PutAccountOutcome;
use utoipa::ToSchema;

use crate::actions::new_action;
use crate::{Api, problems};

/// The fields of an account to create or change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutAccount)]
pub struct AccountFields {
    /// The e-mail address of the customer.
    email: EmailAddress,
    /// The name of the customer, for mails and receipts.
    name: Label,
    /// The language and region of mails and receipts, such as `de-AT`. If absent, it is `en` for a new account, and
    /// unchanged otherwise.
    #[serde(default)]
    locale: Option<Locale>,
    /// The delivery state of the e-mail address. If absent, it is `deliverable` for a new address, and unchanged
    /// otherwise.
    #[serde(default)]
    mail_status: Option<MailStatus>,
}

/// The account of a customer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub struct AccountView {
    /// The id of the account, chosen by the merchant.
    id: AccountId,
    /// The e-mail address of the customer.
    email: EmailAddress,
    /// The name of the customer, for mails and receipts.
    name: Label,
    /// The language and region of mails and receipts.
    locale: Locale,
    /// The delivery state of the e-mail address: `deliverable`, or why mails to the address are not sent.
    mail_status: MailStatus,
    /// The time at which the account was created.
    created_at: DateTime<Utc>,
}

impl From<Account> for AccountView {
    fn from(account: Account) -> Self {
        let Account { id, email, name, locale, mail_status, created_at, .. } = account;
        Self { id, email, name, locale, mail_status, created_at }
    }
}

/// Create or change an account
///
/// Creates the account, or replaces its e-mail address and name. An optional field that is absent keeps its value. Set
/// `mail_status` to `deliverable` to send mails again to an address that has refused mails before.
#[utoipa::path(
    put,
    path = "/accounts/{account}",
    operation_id = "put_account",
    tag = "accounts",
    params(AccountPath),
    request_body = AccountFields,
    responses(
        (status = 200, description = "The existing account now has these fields", body = AccountView),
        (status = 201, description = "The account was created", body = AccountView),
        (status = 410, description = "The account was erased: its id cannot be used again", body = Problem)
    )
)]
pub async fn put_account(
    State(api): State<Api>,
    now: RequestTime,
    Path(AccountPath { account: id }): Path<AccountPath>,
    _: OperatorAccess,
    actor: RequestActor,
    _: Query<NoParameters>,
    body: Body<AccountFields>,
) -> Result<(StatusCode, Json<AccountView>), Problem> {
    let AccountFields { email, name, locale, mail_status } = body.value;
    let account = Account {
        id,
        email: email.clone(),
        name: name.clone(),
        locale: locale.clone().unwrap_or_default(),
        mail_status: mail_status.unwrap_or_default(),
        created_at: now.at,
        erasure_requested_at: None,
        version: 1,
    };
    let changes = AccountChanges { email: Some(email), name: Some(name), locale, mail_status };
    let action = new_action(ActionKind::PutAccount, actor, now);
    let outcome = api.table.put_account_with_changes(&account, &changes, Some(&action)).await?;
    let (status, put) = match outcome {
        PutAccountOutcome::Created(account) => (StatusCode::CREATED, account),
        PutAccountOutcome::Updated(account) => (StatusCode::OK, account),
        PutAccountOutcome::BeingErased => return Err(problems::account_is_being_erased()),
        PutAccountOutcome::Erased => return Err(problems::account_was_erased()),
    };
    Ok((status, Json(put.into())))
}

/// Get an account
///
/// Returns the customer's name, e-mail address and locale.
#[utoipa::path(
    get,
    path = "/accounts/{account}",
    operation_id = "get_account",
    tag = "accounts",
    params(AccountPath),
    responses((status = 200, description = "The account", body = AccountView))
)]
pub async fn get_account(
    State(api): State<Api>,
    Path(AccountPath { account: id }): Path<AccountPath>,
    _: Query<NoParameters>,
) -> Result<Json<AccountView>, Problem> {
    let account = api.table.get_account(&id).await?.ok_or_else(Problem::account_not_found)?;
    Ok(Json(account.into()))
}
