//! `/accounts/{account}/subscriptions`: what is paid each month.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use shared::billing::{
    AccountId, Currency, EmailAddress, Label, Money, NewSubscription, PaymentDay, PaymentMethod, Sku, Status,
    Subscription, SubscriptionId,
};
use shared::table::{Created, IdempotentRequest};

use super::List;
use crate::body::{AccountPath, Body, hex};
use crate::{Api, Caller, Problem};

/// An answer is kept under its idempotency key for this long.
const IDEMPOTENCY_KEPT: TimeDelta = TimeDelta::hours(24);
/// An idempotency key is at most this many characters.
const MAX_IDEMPOTENCY_KEY_CHARS: usize = 255;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    sku: Sku,
    product_name: Label,
    payment_day: PaymentDay,
    amount: i64,
    currency: Currency,
    payment_method: PaymentMethod,
    #[serde(default)]
    email: Option<EmailAddress>,
    #[serde(default)]
    first_payment_date: Option<NaiveDate>,
}

#[derive(Debug, Serialize)]
pub struct View {
    id: SubscriptionId,
    account: AccountId,
    sku: Sku,
    product_name: Label,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<EmailAddress>,
    status: Status,
    payment_day: PaymentDay,
    #[serde(flatten)]
    price: Money,
    payment_method: PaymentMethod,
    due_date: NaiveDate,
    next_payment_date: Option<NaiveDate>,
    next_reminder_date: Option<NaiveDate>,
    last_payment_at: Option<DateTime<Utc>>,
    last_reminder_at: Option<DateTime<Utc>>,
    failed_attempts: u32,
    created_at: DateTime<Utc>,
}

impl From<Subscription> for View {
    fn from(s: Subscription) -> Self {
        Self {
            id: s.id,
            account: s.account,
            sku: s.sku,
            product_name: s.product_name,
            email: s.email,
            status: s.status,
            payment_day: s.payment_day,
            price: s.price,
            payment_method: s.payment_method,
            due_date: s.due_on,
            next_payment_date: s.next_payment_on,
            next_reminder_date: s.next_reminder_on,
            last_payment_at: s.last_payment_at,
            last_reminder_at: s.last_reminder_at,
            failed_attempts: s.failed_attempts,
            created_at: s.created_at,
        }
    }
}

pub async fn create(
    State(api): State<Api>,
    caller: Caller,
    AccountPath(account): AccountPath,
    headers: HeaderMap,
    body: Body<Create>,
) -> Result<Response, Problem> {
    caller.operator()?;
    let idempotency_key = idempotency_key(&headers)?;
    let Create { sku, product_name, payment_day, amount, currency, payment_method, email, first_payment_date } =
        body.value;
    let price = currency.price(amount).map_err(|error| Problem::field("amount", error))?;
    let now = api.ambient.now();
    let id = SubscriptionId::new(api.ambient.ulid());
    let shard = api.settings.shard_of(&account);
    let mut request = idempotency_key.map(|key| {
        let named = format!("{}\nPOST\n/accounts/{account}/subscriptions\n{key}", caller.name());
        IdempotentRequest {
            made_at: now,
            key_hash: hex(&Sha256::digest(named)),
            request_hash: body.hash,
            answer: String::new(),
            expires_at: now + IDEMPOTENCY_KEPT,
        }
    });
    let new = NewSubscription {
        account,
        id,
        sku,
        product_name,
        email,
        payment_day,
        price,
        payment_method,
        first_payment_on: first_payment_date,
    };
    let subscription = match new.begin(shard, api.lead, api.today(), now) {
        Ok(subscription) => subscription,
        Err(refusal) => {
            // What was allowed when it was first asked is answered as it was then, though the day has changed.
            let before = match &request {
                Some(request) => api.table.get_answer(request).await?,
                None => None,
            };
            return before.map_or_else(
                || Err(Problem::field("first_payment_date", refusal)),
                |before| answer(before, String::new()),
            );
        }
    };
    let view = serde_json::to_string(&View::from(subscription.clone())).expect("a view is representable");
    if let Some(request) = &mut request {
        request.answer.clone_from(&view);
    }
    answer(api.table.create_subscription(&subscription, request.as_ref()).await?, view)
}

fn answer(created: Created, view: String) -> Result<Response, Problem> {
    match created {
        Created::Created => Ok(as_created(view, false)),
        Created::Answered(before) => Ok(as_created(before, true)),
        Created::KeyReused => Err(Problem::key_reused()),
        Created::NoAccount => Err(Problem::no_account()),
        Created::Exists => Err(Problem::conflict("there is a subscription of this id already")),
    }
}

pub async fn list(
    State(api): State<Api>,
    caller: Caller,
    AccountPath(account): AccountPath,
) -> Result<Json<List<View>>, Problem> {
    caller.sees(&account)?;
    let subscriptions = api.table.get_subscriptions_by_account(&account).await?;
    if subscriptions.is_empty() && api.table.get_account(&account).await?.is_none() {
        return Err(Problem::no_account());
    }
    Ok(Json(subscriptions.into_iter().map(View::from).collect()))
}

fn as_created(answer: String, is_replay: bool) -> Response {
    let mut response = (StatusCode::CREATED, answer).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if is_replay {
        response.headers_mut().insert(HeaderName::from_static("idempotent-replayed"), HeaderValue::from_static("true"));
    }
    response
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=MAX_IDEMPOTENCY_KEY_CHARS).contains(&key.len()) => Ok(Some(key)),
        _ => Err(Problem::field(
            "Idempotency-Key",
            format!("must be 1 to {MAX_IDEMPOTENCY_KEY_CHARS} visible ASCII characters"),
        )),
    }
}
