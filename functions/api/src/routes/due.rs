//! `GET /due/payments` and `GET /due/reminders`: what a sweep of a date would find, oldest first. For the operator.

use axum::Json;
use axum::extract::State;
use chrono::NaiveDate;
use serde::Serialize;
use shared::billing::{AccountId, Currency, Label, Sku, SubscriptionId};
use shared::table::{Batch, Due, Position};
use utoipa::ToSchema;

use crate::list::{Unreadable, encoded};
use crate::parameters::Parameters;
use crate::{Api, Caller, Problem, schema};

/// A page of what is due.
#[derive(Debug, Serialize, ToSchema)]
pub struct DueList {
    date: NaiveDate,
    data: Vec<DueItem>,
    /// Entries that cannot be read.
    unreadable: Vec<Unreadable>,
    /// What `cursor` takes to go on; null at the list's end.
    next_cursor: Option<String>,
}

/// What is due for one subscription.
#[derive(Debug, Serialize, ToSchema)]
pub struct DueItem {
    #[schema(value_type = schema::Id)]
    account: AccountId,
    #[schema(value_type = schema::SubscriptionId)]
    subscription: SubscriptionId,
    #[schema(value_type = schema::Id)]
    sku: Sku,
    #[schema(value_type = schema::Label)]
    product_name: Label,
    /// When the batch is to look at it.
    date: NaiveDate,
    due_date: NaiveDate,
    #[schema(value_type = schema::Amount)]
    amount: i64,
    #[schema(value_type = schema::Currency)]
    currency: Currency,
}

impl From<Due> for DueItem {
    fn from(due: Due) -> Self {
        Self {
            account: due.key.account,
            subscription: due.key.subscription,
            sku: due.key.sku,
            product_name: due.product_name,
            date: due.on,
            due_date: due.due_on,
            amount: due.amount.minor(),
            currency: due.amount.currency(),
        }
    }
}

/// What the payment batch would find on a date
///
/// As the index shows it, shard by shard, oldest first: everything due on or before the date.
#[utoipa::path(
    get,
    path = "/due/payments",
    operation_id = "list_due_payments",
    tag = "operation",
    params(
        ("date" = Option<NaiveDate>, Query),
        ("cursor" = inline(Option<schema::Cursor>), Query),
        ("limit" = inline(Option<schema::Limit>), Query)
    ),
    responses((status = 200, description = "A page of what is due", body = DueList))
)]
pub async fn payments(
    State(api): State<Api>,
    caller: Caller,
    parameters: Parameters,
) -> Result<Json<DueList>, Problem> {
    api.due(Batch::Payments, &caller, parameters).await
}

/// What the reminder batch would find on a date
///
/// As the index shows it, shard by shard, oldest first: everything due on or before the date.
#[utoipa::path(
    get,
    path = "/due/reminders",
    operation_id = "list_due_reminders",
    tag = "operation",
    params(
        ("date" = Option<NaiveDate>, Query),
        ("cursor" = inline(Option<schema::Cursor>), Query),
        ("limit" = inline(Option<schema::Limit>), Query)
    ),
    responses((status = 200, description = "A page of what is due", body = DueList))
)]
pub async fn reminders(
    State(api): State<Api>,
    caller: Caller,
    parameters: Parameters,
) -> Result<Json<DueList>, Problem> {
    api.due(Batch::Reminders, &caller, parameters).await
}

impl Api {
    async fn due(&self, batch: Batch, caller: &Caller, parameters: Parameters) -> Result<Json<DueList>, Problem> {
        caller.operator()?;
        let parameters = parameters.only(&["date", "cursor", "limit"])?;
        let date = parameters.date("date")?.unwrap_or_else(|| self.today());
        let shards = self.table.get_settings().await?.map_or(self.settings.shards, |settings| settings.shards);
        let is_here = |position: &Position| position.shard < shards && position.is_due_by(date);
        let read = |text: String| serde_json::from_str(&text).ok().filter(is_here);
        let (after, limit) = (parameters.cursor(read)?, parameters.limit()?);
        let page = self.table.get_due_by_date(batch, shards, date, after, limit).await?;
        let (mut data, mut unreadable) = (Vec::new(), Vec::new());
        for row in page.rows {
            match row.due {
                Ok(due) => data.push(due.into()),
                Err(error) => unreadable.push(error),
            }
        }
        let shown = |position| encoded(&serde_json::to_string(&position).expect("a position is representable"));
        let unreadable = Unreadable::all(unreadable)?;
        Ok(Json(DueList { date, data, unreadable, next_cursor: page.next.map(shown) }))
    }
}
