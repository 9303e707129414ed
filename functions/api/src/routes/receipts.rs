//! `/accounts/{account}/receipts`: what was paid in the last six months, newest first.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse, Response};
use chrono::{DateTime, NaiveDate, Utc};
use minijinja::{Environment, context};
use serde::Serialize;
use shared::billing::{Account, Currency, GatewayToken, Label, Receipt, Sku, SubscriptionId};
use shared::table::Cursor;
use utoipa::ToSchema;

use crate::list::List;
use crate::parameters::{AccountPath, NoParameters, Parameters, ReceiptPath};
use crate::{Api, Problem, schema};

const PAGE: &str = include_str!("receipt.html");
/// The page has its style in itself and loads nothing.
const NOTHING_ELSE: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Proof of one payment of one month.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Receipt)]
pub struct View {
    #[schema(value_type = schema::ReceiptId)]
    id: String,
    #[schema(value_type = schema::SubscriptionId)]
    subscription: SubscriptionId,
    #[schema(value_type = schema::Id)]
    sku: Sku,
    #[schema(value_type = schema::Label)]
    product_name: Label,
    due_date: NaiveDate,
    #[schema(value_type = schema::Amount)]
    amount: i64,
    #[schema(value_type = schema::Currency)]
    currency: Currency,
    #[schema(value_type = String)]
    gateway_payment_id: GatewayToken,
    processed_at: DateTime<Utc>,
}

impl From<Receipt> for View {
    fn from(receipt: Receipt) -> Self {
        Self {
            id: receipt.id().to_string(),
            subscription: receipt.subscription,
            sku: receipt.sku,
            product_name: receipt.product_name,
            due_date: receipt.due_on,
            amount: receipt.amount.minor(),
            currency: receipt.amount.currency(),
            gateway_payment_id: receipt.payment,
            processed_at: receipt.processed_at,
        }
    }
}

/// List an account's receipts, newest first
#[utoipa::path(
    get,
    path = "/accounts/{account}/receipts",
    operation_id = "list_receipts",
    tag = "receipts",
    params(
        ("account" = schema::Id, Path),
        ("cursor" = inline(Option<schema::Cursor>), Query),
        ("limit" = inline(Option<schema::Limit>), Query)
    ),
    responses((status = 200, description = "A page of them", body = List<View>))
)]
pub async fn list(
    State(api): State<Api>,
    AccountPath(account): AccountPath,
    parameters: Parameters,
) -> Result<Json<List<View>>, Problem> {
    let paging = parameters.paging(Cursor::of_receipts)?;
    let page = api.table.get_receipts_by_account(&account, &paging, api.clock.now()).await?;
    Ok(Json(List::of(api.of_account(&account, page).await?)?))
}

/// Read a receipt, as JSON or, when `text/html` is accepted, as a page to print
#[utoipa::path(
    get,
    path = "/accounts/{account}/receipts/{receipt}",
    operation_id = "get_receipt",
    tag = "receipts",
    params(("account" = schema::Id, Path), ("receipt" = schema::ReceiptId, Path)),
    responses((status = 200, description = "The receipt", content(
        (View = "application/json"),
        (String = "text/html")
    )))
)]
pub async fn read(
    State(api): State<Api>,
    path: ReceiptPath,
    NoParameters: NoParameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let receipt = api.table.get_receipt(&path.account, &path.id, api.clock.now()).await?;
    let receipt = receipt.ok_or_else(Problem::no_receipt)?;
    if !wants_html(&headers) {
        return Ok(([(header::VARY, "accept")], Json(View::from(receipt))).into_response());
    }
    let account = api.table.get_account(&path.account).await?.ok_or_else(Problem::no_account)?;
    let headers = [
        (header::CONTENT_SECURITY_POLICY, NOTHING_ELSE),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::VARY, "accept"),
    ];
    Ok((headers, Html(page(&receipt, &account, &api.merchant))).into_response())
}

/// Whether a page is asked for, as browsers do; a program that takes anything gets JSON.
fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let media = |text: &str| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let first = accepted.flat_map(|text| text.split(',')).map(media).find(|media| {
        matches!(media.as_str(), "text/html" | "application/xhtml+xml" | "application/json" | "application/*")
    });
    first.is_some_and(|media| media.contains("html"))
}

fn page(receipt: &Receipt, account: &Account, merchant: &str) -> String {
    let environment = Environment::new();
    let values = context! {
        merchant,
        id => receipt.id().to_string(),
        customer => account.name.as_str(),
        account => receipt.account.as_str(),
        product => receipt.product_name.as_str(),
        sku => receipt.sku.as_str(),
        amount => receipt.amount.to_string(),
        due_on => receipt.due_on.to_string(),
        paid_at => receipt.processed_at.format("%Y-%m-%d %H:%M UTC").to_string(),
        payment => receipt.payment.as_str(),
    };
    // Every name in the template is one of these, as the page's snapshot shows.
    environment.render_named_str("receipt.html", PAGE, values).expect("the template's names are given")
}
