//! `GET /due/{batch}`: what a sweep of a date would find. For the operator.

use axum::Json;
use axum::extract::State;
use billing::{AccountId, Currency, Label, Sku, SubscriptionId};
use chrono::NaiveDate;
use rest::body::MinorUnits;
use rest::caller::Operator;
use rest::cursor::ShownCursor;
use rest::list::UnreadableView;
use rest::parameters::{CivilDate, Limit, Path, Query};
use rest::{Now, Problem};
use serde::{Deserialize, Serialize};
use store::{Due, Position};
use utoipa::{IntoParams, ToSchema};

use crate::Api;
use crate::parameters::BatchPath;

/// Which page of what is due is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DueQuery {
    /// What is due on or before this date; today in the billing time zone if absent.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    date: Option<CivilDate>,
    /// The `next_cursor` of an earlier page; absent for the first.
    #[serde(default)]
    #[param(inline)]
    cursor: ShownCursor,
    /// At most this many items.
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
}

/// A page of what is due.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DueList)]
pub struct DueListView {
    /// The date that was asked about.
    date: NaiveDate,
    /// What is due on or before it.
    data: Vec<DueView>,
    /// Entries of this page that cannot be read.
    unreadable: Vec<UnreadableView>,
    /// What `cursor` takes to go on; null at the list's end.
    next_cursor: Option<String>,
}

/// What is due for one subscription.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DueItem)]
pub struct DueView {
    /// The account.
    account: AccountId,
    /// The subscription.
    subscription: SubscriptionId,
    /// The merchant's identifier of the product.
    sku: Sku,
    /// What mails call the product.
    product_name: Label,
    /// When the batch is to look at it.
    date: NaiveDate,
    /// The due date of the payment.
    due_date: NaiveDate,
    /// How much is to be paid, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
}

impl From<Due> for DueView {
    fn from(due: Due) -> Self {
        Self {
            account: due.key.account,
            subscription: due.key.subscription,
            sku: due.key.sku,
            product_name: due.product_name,
            date: due.on,
            due_date: due.due_on,
            amount: due.amount.into(),
            currency: due.amount.currency(),
        }
    }
}

/// What a batch would find on a date
///
/// Everything due on or before the date, as the index shows it: shard by shard, in each shard the oldest date first. What
/// ends on its due date is left out, so that a page may hold fewer items than were asked for and still not be the last.
#[utoipa::path(
    get,
    path = "/due/{batch}",
    operation_id = "list_due",
    tag = "operation",
    params(BatchPath, DueQuery),
    responses((status = 200, description = "A page of what is due", body = DueListView))
)]
pub async fn list(
    State(api): State<Api>,
    now: Now,
    _: Operator,
    Path(BatchPath { batch }): Path<BatchPath>,
    Query(DueQuery { date, cursor, limit }): Query<DueQuery>,
) -> Result<Json<DueListView>, Problem> {
    let date = date.map_or(now.today, NaiveDate::from);
    let shards = api.shards().await?;
    let is_here = |position: &Position| position.shard < shards && position.is_due_by(date);
    let read = |text: String| serde_json::from_str(&text).ok().filter(is_here);
    let after = cursor.read(read)?;
    let page = api.table.get_due_by_date(batch, shards, date, after, limit.0).await?;
    let (mut data, mut unreadable) = (Vec::new(), Vec::new());
    for row in page.rows {
        match row.due {
            // Nothing will be charged of it.
            Ok(due) if !due.will_be_charged() => {}
            Ok(due) => data.push(due.into()),
            Err(error) => unreadable.push(error),
        }
    }
    let shown = |next| ShownCursor::shown(&serde_json::to_string(&next).expect("a position is representable"));
    let unreadable = UnreadableView::all(unreadable)?;
    Ok(Json(DueListView { date, data, unreadable, next_cursor: page.next.map(shown) }))
}
