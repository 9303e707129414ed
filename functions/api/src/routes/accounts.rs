//! `/accounts/{account}`: who pays.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use shared::billing::{Account, AccountId, EmailAddress, Label, Locale, MailStatus};
use shared::table::PutAccount;

use crate::body::{AccountPath, Body};
use crate::{Api, Caller, Problem};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    email: EmailAddress,
    name: Label,
    #[serde(default)]
    locale: Locale,
}

#[derive(Debug, Serialize)]
pub struct View {
    id: AccountId,
    email: EmailAddress,
    name: Label,
    locale: Locale,
    mail_status: MailStatus,
    created_at: DateTime<Utc>,
}

impl From<Account> for View {
    fn from(account: Account) -> Self {
        let Account { id, email, name, locale, mail_status, created_at, .. } = account;
        Self { id, email, name, locale, mail_status, created_at }
    }
}

pub async fn put(
    State(api): State<Api>,
    caller: Caller,
    AccountPath(id): AccountPath,
    body: Body<Put>,
) -> Result<(StatusCode, Json<View>), Problem> {
    caller.operator()?;
    let Put { email, name, locale } = body.value;
    let created_at = api.ambient.now();
    let account = Account { id, email, name, locale, mail_status: MailStatus::default(), created_at, version: 1 };
    Ok(match api.table.put_account(&account).await? {
        PutAccount::Created(account) => (StatusCode::CREATED, Json(account.into())),
        PutAccount::Updated(account) => (StatusCode::OK, Json(account.into())),
    })
}

pub async fn read(State(api): State<Api>, caller: Caller, AccountPath(id): AccountPath) -> Result<Json<View>, Problem> {
    caller.sees(&id)?;
    let account = api.table.get_account(&id).await?.ok_or_else(Problem::no_account)?;
    Ok(Json(account.into()))
}
