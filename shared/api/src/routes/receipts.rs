//! `/accounts/{account}/receipts`: what was paid in the last six months, newest first.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use billing::{Account, AccountId, Card, Currency, GatewayToken, Label, Receipt, ReceiptId, Sku, SubscriptionId};
use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use mail::{Language, Merchant};
use minijinja::context;
use minijinja::value::Serde;
use rest::body::MinorUnits;
use rest::html_page as page;
use rest::list::ListView;
use rest::parameters::{AccountPath, NoParameters, PageQuery, Path, Query};
use rest::{Now, Problem};
use serde::Serialize;
use store::Table;
use utoipa::ToSchema;

use crate::parameters::ReceiptPath;
use crate::{Api, missing};

const PAGE: &str = include_str!("receipt.html");

/// Proof of one payment of one month.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Receipt)]
pub struct ReceiptView {
    /// Due date, subscription and SKU.
    #[schema(value_type = ReceiptId)]
    id: String,
    /// A number that a person can read out.
    number: ReceiptNumber,
    /// The account that paid.
    account: AccountId,
    /// The subscription it is of.
    subscription: SubscriptionId,
    /// The merchant's identifier of the product.
    sku: Sku,
    /// What mails call the product.
    product_name: Label,
    /// The due date that was paid.
    due_date: NaiveDate,
    /// How much was paid, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// How much of it was given back, or is being.
    refunded_amount: RefundedAmount,
    /// How much of it the bank took back after it had succeeded.
    reversed_amount: ReversedAmount,
    /// When we learned that the bank took it back; null if it did not. The batch never charges the period again.
    reversed_at: Option<DateTime<Utc>>,
    /// What the payment gateway calls the payment.
    #[schema(value_type = String)]
    gateway_payment_id: GatewayToken,
    /// The card that was charged; null if it was none, or the payment gateway does not say.
    card: Option<CardView>,
    /// When it was paid.
    processed_at: DateTime<Utc>,
}

/// The month, and letters and digits that none can be taken for another of.
#[derive(Debug, Serialize, ToSchema)]
#[schema(pattern = "^[0-9]{6}-[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}$")]
pub struct ReceiptNumber(String);

/// In minor units; 0 if nothing was.
#[derive(Debug, Serialize, ToSchema)]
#[schema(minimum = 0)]
pub struct RefundedAmount(i64);

/// An amount that the bank took back, in the smallest unit of the currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(minimum = 0)]
pub struct ReversedAmount(i64);

impl From<Receipt> for ReceiptView {
    fn from(receipt: Receipt) -> Self {
        Self {
            id: receipt.id().to_string(),
            number: ReceiptNumber(receipt.number()),
            account: receipt.account,
            subscription: receipt.subscription,
            sku: receipt.sku,
            product_name: receipt.product_name,
            due_date: receipt.due_on,
            amount: receipt.amount.into(),
            currency: receipt.amount.currency(),
            refunded_amount: RefundedAmount(receipt.refunded.minor()),
            reversed_amount: ReversedAmount(receipt.reversal.map_or(0, |reversal| reversal.amount.minor())),
            reversed_at: receipt.reversal.map(|reversal| reversal.at),
            gateway_payment_id: receipt.payment,
            card: receipt.card.map(CardView::from),
            processed_at: receipt.processed_at,
        }
    }
}

/// What is printed of a card.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Card)]
pub struct CardView {
    /// Its brand, as the payment gateway calls it.
    brand: String,
    /// The last four digits of its number.
    #[schema(pattern = "^[0-9]{4}$")]
    last4: String,
}

impl From<Card> for CardView {
    fn from(card: Card) -> Self {
        Self { brand: card.brand().to_owned(), last4: card.last4().to_owned() }
    }
}

/// List an account's receipts
///
/// The newest due date first; those of the last six months.
#[utoipa::path(
    get,
    path = "/accounts/{account}/receipts",
    operation_id = "list_receipts",
    tag = "receipts",
    params(AccountPath, PageQuery),
    responses((status = 200, description = "A page of them", body = ListView<ReceiptView>))
)]
pub async fn list(
    State(api): State<Api>,
    now: Now,
    Path(AccountPath { account }): Path<AccountPath>,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<ReceiptView>>, Problem> {
    let paging = page.paging(Table::cursor_of_receipts)?;
    let page = api.table.get_receipts_by_account(&account, &paging, now.at).await?;
    Ok(Json(api.list_of(&account, page).await?))
}

/// Read a receipt
///
/// As JSON or, when `text/html` is accepted, as a page to print.
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
pub async fn read(
    State(api): State<Api>,
    now: Now,
    Path(path): Path<ReceiptPath>,
    _: Query<NoParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = path.id.or(missing::receipt)?;
    let receipt = api.table.get_receipt(&path.account, &id, now.at).await?;
    let receipt = receipt.ok_or_else(missing::receipt)?;
    if !page::is_asked(&headers) {
        return Ok(([(header::VARY, "accept")], Json(ReceiptView::from(receipt))).into_response());
    }
    let account = api.table.get_account(&path.account).await?.ok_or_else(Problem::no_account)?;
    let logo = api.merchant.logo_url.as_deref();
    Ok(page::answer_with(printed(&receipt, &account, &api.merchant, api.billing.zone), logo))
}

/// A brand as it is printed: the gateway's word, which is in lower case.
fn branded(brand: &str) -> String {
    match brand {
        "visa" => "Visa".to_owned(),
        "mastercard" => "Mastercard".to_owned(),
        "amex" => "American Express".to_owned(),
        "discover" => "Discover".to_owned(),
        "diners" => "Diners Club".to_owned(),
        "jcb" => "JCB".to_owned(),
        "unionpay" => "UnionPay".to_owned(),
        other => other.to_owned(),
    }
}

/// In the language of the customer, as mails are.
fn printed(receipt: &Receipt, account: &Account, merchant: &Merchant, zone: Tz) -> String {
    let language = Language::of(&account.locale);
    let texts = language.texts;
    let day = |at: DateTime<Utc>| language.date(at.with_timezone(&zone).date_naive());
    let date = day(receipt.processed_at);
    let values = context! {
        language => texts.language.as_str(),
        labels => Serde(&texts.labels),
        texts => Serde(&texts.receipt),
        merchant => Serde(merchant),
        number => receipt.number(),
        paid => page::rendered("paid.txt", &texts.receipt.paid, context! { date }),
        customer => account.name.as_str(),
        account => receipt.account.as_str(),
        product => receipt.product_name.as_str(),
        sku => receipt.sku.as_str(),
        amount => language.amount(receipt.amount),
        due_on => language.date(receipt.due_on),
        refunded => (receipt.refunded.minor() > 0).then(|| language.amount(receipt.refunded)),
        reversed => receipt.reversal.map(|reversal| format!("{}, {}", language.amount(reversal.amount), day(reversal.at))),
        payment => receipt.payment.as_str(),
        card => receipt.card.as_ref().map(|card| format!("{} •••• {}", branded(card.brand()), card.last4())),
    };
    page::rendered("receipt.html", PAGE, values)
}
