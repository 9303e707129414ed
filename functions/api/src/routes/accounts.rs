//! `/accounts/{account}`: who pays.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use shared::billing::{Account, AccountId, EmailAddress, Label, Locale, MailStatus};
use shared::table::PutAccount;
use utoipa::ToSchema;

use crate::body::Body;
use crate::parameters::{AccountPath, NoParameters};
use crate::{Api, Caller, Problem, schema};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutAccount)]
pub struct Put {
    #[schema(value_type = schema::EmailAddress)]
    email: EmailAddress,
    #[schema(value_type = schema::Label)]
    name: Label,
    /// What its mails are written in; `en` if absent.
    #[serde(default)]
    #[schema(value_type = schema::Locale)]
    locale: Locale,
}

/// Who pays.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub struct View {
    #[schema(value_type = schema::Id)]
    id: AccountId,
    #[schema(value_type = schema::EmailAddress)]
    email: EmailAddress,
    #[schema(value_type = schema::Label)]
    name: Label,
    #[schema(value_type = schema::Locale)]
    locale: Locale,
    /// Whether mail to the address arrives. A new address is taken to be deliverable.
    #[schema(value_type = schema::MailStatus)]
    mail_status: MailStatus,
    created_at: DateTime<Utc>,
}

impl From<Account> for View {
    fn from(account: Account) -> Self {
        let Account { id, email, name, locale, mail_status, created_at, .. } = account;
        Self { id, email, name, locale, mail_status, created_at }
    }
}

/// Create an account, or give it another address, name and locale
#[utoipa::path(
    put,
    path = "/accounts/{account}",
    operation_id = "put_account",
    tag = "accounts",
    params(("account" = schema::Id, Path)),
    request_body = Put,
    responses(
        (status = 200, description = "It was there, and is now as asked for", body = View),
        (status = 201, description = "It is created", body = View)
    )
)]
pub async fn put(
    State(api): State<Api>,
    caller: Caller,
    AccountPath(id): AccountPath,
    NoParameters: NoParameters,
    body: Body<Put>,
) -> Result<(StatusCode, Json<View>), Problem> {
    caller.operator()?;
    let Put { email, name, locale } = body.value;
    let created_at = api.clock.now();
    let account = Account { id, email, name, locale, mail_status: MailStatus::default(), created_at, version: 1 };
    Ok(match api.table.put_account(&account).await? {
        PutAccount::Created(account) => (StatusCode::CREATED, Json(account.into())),
        PutAccount::Updated(account) => (StatusCode::OK, Json(account.into())),
    })
}

/// Read an account
#[utoipa::path(
    get,
    path = "/accounts/{account}",
    operation_id = "get_account",
    tag = "accounts",
    params(("account" = schema::Id, Path)),
    responses((status = 200, description = "The account", body = View))
)]
pub async fn read(
    State(api): State<Api>,
    AccountPath(id): AccountPath,
    NoParameters: NoParameters,
) -> Result<Json<View>, Problem> {
    let account = api.table.get_account(&id).await?.ok_or_else(Problem::no_account)?;
    Ok(Json(account.into()))
}
