//! `/accounts/{account}`: who pays.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::{Account, AccountId, EmailAddress, Label, Locale, MailStatus};
use chrono::{DateTime, Utc};
use rest::body::Body;
use rest::caller::Operator;
use rest::parameters::{AccountPath, NoParameters, Path, Query};
use rest::{Now, Problem};
use serde::{Deserialize, Serialize};
use store::PutAccount;
use utoipa::ToSchema;

use crate::Api;

/// An account as it is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutAccount)]
pub struct AccountFields {
    /// Where its mail goes.
    email: EmailAddress,
    /// What its mails call it.
    name: Label,
    /// What its mails are written in; `en` if absent.
    #[serde(default)]
    locale: Locale,
    /// Whether mail to the address arrives, by what you know; if absent, as it was, and deliverable for a new address.
    #[serde(default)]
    mail_status: Option<MailStatus>,
}

/// Who pays.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub struct AccountView {
    /// The merchant's identifier of it.
    id: AccountId,
    /// Where its mail goes.
    email: EmailAddress,
    /// What its mails call it.
    name: Label,
    /// What its mails are written in.
    locale: Locale,
    /// Whether mail to the address arrives. A new address is taken to be deliverable.
    mail_status: MailStatus,
    /// When it was created.
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
/// Creates it, or gives it another address, name and locale. Mail is sent again to an address of which you say that it is deliverable.
#[utoipa::path(
    put,
    path = "/accounts/{account}",
    operation_id = "put_account",
    tag = "accounts",
    params(AccountPath),
    request_body = AccountFields,
    responses(
        (status = 200, description = "It was there, and is now as asked for", body = AccountView),
        (status = 201, description = "It is created", body = AccountView)
    )
)]
pub async fn put(
    State(api): State<Api>,
    now: Now,
    Path(AccountPath { account: id }): Path<AccountPath>,
    _: Operator,
    _: Query<NoParameters>,
    body: Body<AccountFields>,
) -> Result<(StatusCode, Json<AccountView>), Problem> {
    let AccountFields { email, name, locale, mail_status: known } = body.value;
    let created_at = now.at;
    let account = Account { id, email, name, locale, mail_status: MailStatus::default(), created_at, version: 1 };
    let (status, mut put) = match api.table.put_account(&account).await? {
        PutAccount::Created(account) => (StatusCode::CREATED, account),
        PutAccount::Updated(account) => (StatusCode::OK, account),
    };
    if let Some(known) = known {
        put = api.table.set_mail_status(put, known).await?.ok_or_else(Problem::no_account)?;
    }
    Ok((status, Json(put.into())))
}

/// Read an account
///
/// Who pays, and where its mail goes.
#[utoipa::path(
    get,
    path = "/accounts/{account}",
    operation_id = "get_account",
    tag = "accounts",
    params(AccountPath),
    responses((status = 200, description = "The account", body = AccountView))
)]
pub async fn read(
    State(api): State<Api>,
    Path(AccountPath { account: id }): Path<AccountPath>,
    _: Query<NoParameters>,
) -> Result<Json<AccountView>, Problem> {
    let account = api.table.get_account(&id).await?.ok_or_else(Problem::no_account)?;
    Ok(Json(account.into()))
}
