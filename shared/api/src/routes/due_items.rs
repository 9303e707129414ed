//! `GET /due/{batch}`: the payments or reminders that are due on a date. For operators.

use axum::Json;
use axum::extract::State;
use billing::{AccountId, Currency, Label, Policy, Sku, SubscriptionId};
use chrono::NaiveDate;
use rest::body::MinorUnits;
use rest::cursor::ListCursor;
use rest::list::UnreadableView;
use rest::parameters::{CivilDate, PageSize, Path, Query};
use rest::{OperatorAccess, Problem, RequestTime};
use serde::{Deserialize, Serialize};
use store::{Batch, DueIndexPosition, DuePayment, DueSubscription};
use utoipa::{IntoParams, ToSchema};

use crate::Api;
use crate::parameters::BatchPath;

/// The query parameters of the list of due payments or reminders.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DueQuery {
    /// List items that are due on or before this date; today in the billing time zone if absent.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    date: Option<CivilDate>,
    /// The `next_cursor` of the previous page; absent for the first page.
    #[serde(default)]
    #[param(inline)]
    cursor: ListCursor,
    /// The page size: the largest number of items of the page.
    #[serde(default)]
    #[param(inline)]
    limit: PageSize,
}

/// A page of due payments or reminders.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DueList)]
pub struct DueListView {
    /// The requested date.
    date: NaiveDate,
    /// The payments or reminders that are due on or before `date`.
    data: Vec<DueView>,
    /// The index entries of this page that cannot be read. An operator must repair them.
    unreadable: Vec<UnreadableView>,
    /// The value of the parameter `cursor` for the next page; null on the last page.
    next_cursor: Option<String>,
}

/// A due payment or reminder of a subscription.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DueItem)]
pub struct DueView {
    /// The id of the account.
    account: AccountId,
    /// The id of the subscription.
    subscription: SubscriptionId,
    /// The merchant's identifier of the product.
    sku: Sku,
    /// The name of the product in mails and receipts.
    product_name: Label,
    /// The date from which the batch processes the item: the payment or retry date, or the reminder date.
    date: NaiveDate,
    /// The due date of the payment.
    due_date: NaiveDate,
    /// The amount of the payment, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
}

impl DueView {
    /// Returns the row if its payment will be charged, or its reminder will be sent; otherwise `None`.
    fn new(row: DueSubscription, batch: Batch, policy: &Policy, today: NaiveDate) -> Option<Self> {
        let DuePayment { due_on, amount } = row.due_payment(batch, policy, today)?;
        let due = row.due;
        Some(Self {
            account: due.key.account,
            subscription: due.key.subscription,
            sku: due.key.sku,
            product_name: due.product_name,
            date: due.on,
            due_date: due_on,
            amount: amount.into(),
            currency: amount.currency(),
        })
    }
}

/// List due payments or reminders
///
/// Lists all items of the batch's index that are due on or before the date, shard by shard, and by date within a shard.
/// A payment is also listed if it is due, but its payment date is so late that only a clock that was ahead can have
/// planned it. Subscriptions that are not charged are omitted: for example, because they end on the due date, or
/// because their payment method is disputed. A page may therefore have fewer items than `limit` and still not be the
/// last page.
#[utoipa::path(
    get,
    path = "/due/{batch}",
    operation_id = "list_due",
    tag = "operation",
    params(BatchPath, DueQuery),
    responses((status = 200, description = "A page of the due payments or reminders", body = DueListView))
)]
pub async fn list_due_subscriptions(
    State(api): State<Api>,
    now: RequestTime,
    _: OperatorAccess,
    Path(BatchPath { batch }): Path<BatchPath>,
    Query(DueQuery { date, cursor, limit }): Query<DueQuery>,
) -> Result<Json<DueListView>, Problem> {
    let date = date.map_or(now.today, NaiveDate::from);
    let shards = api.read_shard_count().await?;
    let is_in_list = |position: &DueIndexPosition| position.shard < shards && position.is_in_due_list(date, now.today);
    let parse = |text: String| serde_json::from_str(&text).ok().filter(is_in_list);
    let after = cursor.decode(parse)?;
    let page = api.table.get_due_and_postponed_by_date(batch, shards, date, now.today, after, limit.0).await?;
    let (mut data, mut unreadable) = (Vec::new(), Vec::new());
    let policy = api.table.policy();
    for row in api.table.get_subscriptions_of_due_rows(page.rows).await? {
        match row {
            Ok(row) => data.extend(DueView::new(row, batch, &policy, now.today)),
            Err(error) => unreadable.push(error),
        }
    }
    let encode = |next| ListCursor::encode(&serde_json::to_string(&next).expect("a position can be serialized"));
    let unreadable = UnreadableView::from_errors(unreadable)?;
    Ok(Json(DueListView { date, data, unreadable, next_cursor: page.next.map(encode) }))
}
