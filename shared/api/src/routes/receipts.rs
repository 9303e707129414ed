//! `/accounts/{account}/receipts`: the receipts of an account, newest first. They are stored for about six months.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use billing::{
    Account, AccountId, Card, Currency, GatewayToken, Label, Money, Receipt, ReceiptId, ReceiptNumber, Sku,
    SubscriptionId, SucceededRefunds,
};
use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use mail::{Language, Merchant};
use minijinja::context;
use minijinja::value::Serde;
use rest::body::MinorUnits;
use rest::html_page;
use rest::list::ListView;
use rest::parameters::{AccountPath, NoParameters, PageQuery, Path, PathId, Query};
use rest::{OperatorAccess, Problem, RequestTime};
use serde::{Deserialize, Serialize};
use store::Table;
use utoipa::{IntoParams, ToSchema};

use crate::parameters::ReceiptPath;
use crate::{Api, problems};

/// The HTML template of the web page of a receipt.
const PAGE_TEMPLATE: &str = include_str!("receipt.html");

/// The receipt of a successful payment for one month of a subscription.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Receipt)]
pub struct ReceiptView {
    /// The id of the receipt: due date, subscription and SKU of the payment.
    #[schema(value_type = ReceiptId)]
    id: String,
    /// The receipt number, for people. Each route that takes a receipt also takes its number.
    number: ReceiptNumberView,
    /// The id of the account that paid.
    account: AccountId,
    /// The id of the subscription.
    subscription: SubscriptionId,
    /// The merchant's identifier of the product.
    sku: Sku,
    /// The name of the product in mails and receipts.
    product_name: Label,
    /// The due date of the payment.
    due_date: NaiveDate,
    /// The amount that was paid, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// The part of the amount that was refunded, or that a pending refund will return, in minor units.
    refunded_amount: RefundedAmount,
    /// The time at which the latest refund was requested; null if nothing was refunded.
    refunded_at: Option<DateTime<Utc>>,
    /// The part of the amount that the bank took back after the payment had succeeded, in minor units.
    reversed_amount: ReversedAmount,
    /// The time at which Dueday learned that the bank took the amount back; null if it did not. The batch never charges
    /// this month again.
    reversed_at: Option<DateTime<Utc>>,
    /// The amount that the merchant keeps, in minor units: after refunds and the reversal. Negative if the customer got
    /// more back than the paid amount.
    net_amount: NetAmount,
    /// The id of the payment at the payment gateway.
    #[schema(value_type = String)]
    gateway_payment_id: GatewayToken,
    /// The card that was charged; null for other payment methods, or if the payment gateway does not name the card.
    card: Option<CardView>,
    /// The time at which the payment succeeded.
    processed_at: DateTime<Utc>,
}

/// A receipt number: the year and month of the due date, and a code of the subscription. The code consists of twelve
/// letters and digits that are hard to confuse (Crockford's base 32).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReceiptNumber, pattern = "^[0-9]{6}-[0-9A-HJKMNP-TV-Z]{6}-[0-9A-HJKMNP-TV-Z]{6}$")]
pub struct ReceiptNumberView(String);

/// The path parameter that names a receipt of any account.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ReceiptNumberPath {
    /// The number of the receipt.
    #[param(inline, value_type = ReceiptNumberView)]
    number: PathId<ReceiptNumber>,
}

/// A refunded amount, in minor units; 0 if nothing was refunded.
#[derive(Debug, Serialize, ToSchema)]
#[schema(minimum = 0)]
pub struct RefundedAmount(i64);

/// The paid amount minus the refunded and the reversed amount, in minor units. Negative if the customer got more back
/// than the paid amount.
#[derive(Debug, Serialize, ToSchema)]
pub struct NetAmount(i64);

/// An amount that the bank took back, in minor units; 0 if nothing was taken back.
#[derive(Debug, Serialize, ToSchema)]
#[schema(minimum = 0)]
pub struct ReversedAmount(i64);

impl From<Receipt> for ReceiptView {
    fn from(receipt: Receipt) -> Self {
        Self {
            id: receipt.id().to_string(),
            number: ReceiptNumberView(receipt.number().to_string()),
            net_amount: NetAmount(receipt.net_amount().minor()),
            account: receipt.account,
            subscription: receipt.subscription,
            sku: receipt.sku,
            product_name: receipt.product_name,
            due_date: receipt.due_on,
            amount: receipt.amount.into(),
            currency: receipt.amount.currency(),
            refunded_amount: RefundedAmount(receipt.refunded.minor()),
            refunded_at: receipt.refunded_at,
            reversed_amount: ReversedAmount(receipt.reversal.map_or(0, |reversal| reversal.amount.minor())),
            reversed_at: receipt.reversal.map(|reversal| reversal.at),
            gateway_payment_id: receipt.payment,
            card: receipt.card.map(CardView::from),
            processed_at: receipt.processed_at,
        }
    }
}

/// The brand and the last digits of a charged card, as a receipt shows them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Card)]
pub struct CardView {
    /// The payment gateway's name of the card's brand, such as `visa`.
    brand: String,
    /// The last four digits of the card number.
    #[schema(pattern = "^[0-9]{4}$")]
    last4: String,
}

impl From<Card> for CardView {
    fn from(card: Card) -> Self {
        Self { brand: card.brand().to_owned(), last4: card.last4().to_owned() }
    }
}

/// List the receipts of an account
///
/// Lists the receipts with the newest due date first. They expire after about six months, unless the merchant has
/// configured another time.
#[utoipa::path(
    get,
    path = "/accounts/{account}/receipts",
    operation_id = "list_receipts",
    tag = "receipts",
    params(AccountPath, PageQuery),
    responses((status = 200, description = "A page of the receipts", body = ListView<ReceiptView>))
)]
pub async fn list_receipts(
    State(api): State<Api>,
    now: RequestTime,
    Path(AccountPath { account }): Path<AccountPath>,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<ReceiptView>>, Problem> {
    let paging = page.paging(Table::cursor_of_receipts)?;
    let page = api.table.get_receipts_by_account(&account, &paging, now.at).await?;
    Ok(Json(api.convert_account_list(&account, page).await?))
}

/// Get a receipt
///
/// Returns JSON or, if the header `Accept` prefers `text/html`, a web page to print.
#[utoipa::path(
    get,
    path = "/accounts/{account}/receipts/{receipt}",
    operation_id = "get_receipt",
    tag = "receipts",
    params(ReceiptPath),
    responses((status = 200, description = "The receipt", content(
        (ReceiptView = "application/json"),
        (String = "text/html")
    )))
)]
pub async fn get_receipt(
    State(api): State<Api>,
    now: RequestTime,
    Path(path): Path<ReceiptPath>,
    _: Query<NoParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let reference = path.receipt.ok_or_else(problems::receipt_not_found)?;
    let receipt = api.table.find_receipt(&path.account, &reference, now.at).await?;
    let receipt = receipt.ok_or_else(problems::receipt_not_found)?;
    if !html_page::prefers_html(&headers) {
        return Ok(([(header::VARY, "accept")], Json(ReceiptView::from(receipt))).into_response());
    }
    let account = api.table.get_account(&path.account).await?.ok_or_else(Problem::account_not_found)?;
    let refunds = api.table.get_succeeded_refunds(&receipt).await?;
    let page = receipt_page(&receipt, refunds, &account, &api.merchant, api.table.policy().zone);
    Ok(html_page::html_response_with_logo(page, api.merchant.logo_url.as_deref()))
}

/// Find a receipt by its number
///
/// Finds the receipt with this number in any account. Only operators may send this request. A subscription that was
/// created by an earlier version of Dueday is not found here: use the path of its account.
#[utoipa::path(
    get,
    path = "/receipts/{number}",
    operation_id = "find_receipt",
    tag = "receipts",
    params(ReceiptNumberPath),
    responses((status = 200, description = "The receipt", body = ReceiptView))
)]
pub async fn find_receipt_of_number(
    State(api): State<Api>,
    _: OperatorAccess,
    now: RequestTime,
    Path(ReceiptNumberPath { number }): Path<ReceiptNumberPath>,
    _: Query<NoParameters>,
) -> Result<Json<ReceiptView>, Problem> {
    let number = number.ok_or_else(problems::receipt_not_found)?;
    let receipt = api.table.find_receipt_by_number(number, now.at).await?;
    Ok(Json(receipt.ok_or_else(problems::receipt_not_found)?.into()))
}

/// Returns the web page of `receipt` with its successful `refunds`, in the customer's language.
fn receipt_page(
    receipt: &Receipt,
    refunds: Option<SucceededRefunds>,
    account: &Account,
    merchant: &Merchant,
    zone: Tz,
) -> String {
    let language = Language::for_locale(&account.locale);
    let texts = language.texts;
    let day = |at: DateTime<Utc>| language.format_date(at.with_timezone(&zone).date_naive());
    let date = day(receipt.processed_at);
    let amount_on = |amount: Money, at: DateTime<Utc>| format!("{}, {}", language.format_amount(amount), day(at));
    let values = context! {
        language => texts.language.as_str(),
        labels => Serde(&texts.labels),
        texts => Serde(&texts.receipt),
        merchant => Serde(merchant),
        number => receipt.number().to_string(),
        paid => html_page::render_template("paid.txt", &texts.receipt.paid, context! { date }),
        customer => account.name.as_str(),
        account => receipt.account.as_str(),
        product => receipt.product_name.as_str(),
        sku => receipt.sku.as_str(),
        amount => language.format_amount(receipt.amount),
        month => language.format_month(receipt.due_on),
        due_on => language.format_date(receipt.due_on),
        refunded => refunds.map(|refunds| amount_on(refunds.amount, refunds.latest_at)),
        reversed => receipt.reversal.map(|reversal| amount_on(reversal.amount, reversal.at)),
        payment => receipt.payment.as_str(),
        card => receipt.card.as_ref().map(Card::label),
    };
    html_page::render_template("receipt.html", PAGE_TEMPLATE, values)
}
