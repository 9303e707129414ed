//! `/accounts/{account}/subscriptions`: what is paid each month.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use shared::billing::{
    AccountId, Attempt, Changes, Currency, EmailAddress, Label, NewSubscription, PaymentDay, PaymentMethod, Refusal,
    Sku, Status, Subscription, SubscriptionId,
};
use shared::table::{Changed, Created, Cursor, IdempotentRequest};
use utoipa::ToSchema;

use crate::body::Body;
use crate::etag::IfMatch;
use crate::idempotency::{IdempotencyKey, answer, replay};
use crate::list::List;
use crate::parameters::{AccountPath, NoParameters, Parameters, SubscriptionPath};
use crate::{Api, Caller, Problem, schema};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateSubscription)]
pub struct Create {
    #[schema(value_type = schema::Id)]
    sku: Sku,
    #[schema(value_type = schema::Label)]
    product_name: Label,
    #[schema(value_type = schema::PaymentDay)]
    payment_day: PaymentDay,
    #[schema(value_type = schema::Amount)]
    amount: i64,
    #[schema(value_type = schema::Currency)]
    currency: Currency,
    #[schema(value_type = schema::PaymentMethod)]
    payment_method: PaymentMethod,
    /// Where its mail goes, if not to the account's address.
    #[serde(default)]
    #[schema(value_type = Option<schema::EmailAddress>)]
    email: Option<EmailAddress>,
    /// The first payment day strictly after today if absent. It must fall on the payment day, today or later.
    #[serde(default)]
    first_payment_date: Option<NaiveDate>,
}

/// What is to be different; what is absent stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeSubscription)]
pub struct Change {
    /// Only an operator may change it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = schema::Amount, required = false)]
    amount: Option<i64>,
    /// It moves the current due date if that and the new one are still ahead; otherwise it counts from the next month.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = schema::PaymentDay, required = false)]
    payment_day: Option<PaymentDay>,
    /// It makes what is owed payable at the next run. Only an operator may change the customer.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = schema::PaymentMethod, required = false)]
    payment_method: Option<PaymentMethod>,
    /// Only an operator may change it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = schema::Label, required = false)]
    product_name: Option<Label>,
    /// Null: mail goes to the account's address. Only an operator may change it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<schema::EmailAddress>, required = false)]
    email: Option<Option<EmailAddress>>,
}

/// A field that is there, though it may be absent: null is a value like any other, and refused where it is none.
fn present<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// An agreement to pay an amount on the same day each month.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Subscription)]
pub struct View {
    #[schema(value_type = schema::SubscriptionId)]
    id: SubscriptionId,
    #[schema(value_type = schema::Id)]
    account: AccountId,
    #[schema(value_type = schema::Id)]
    sku: Sku,
    #[schema(value_type = schema::Label)]
    product_name: Label,
    /// Where its mail goes; null: to the account's address.
    #[schema(value_type = Option<schema::EmailAddress>)]
    email: Option<EmailAddress>,
    #[schema(value_type = schema::Status)]
    status: Status,
    #[schema(value_type = schema::PaymentDay)]
    payment_day: PaymentDay,
    #[schema(value_type = schema::Amount)]
    amount: i64,
    #[schema(value_type = schema::Currency)]
    currency: Currency,
    #[schema(value_type = schema::PaymentMethod)]
    payment_method: PaymentMethod,
    /// The due date of the earliest month not yet paid.
    due_date: NaiveDate,
    /// When the payment batch will look: the due date or a retry date.
    next_payment_date: Option<NaiveDate>,
    /// When the customer will be reminded.
    next_reminder_date: Option<NaiveDate>,
    last_payment_at: Option<DateTime<Utc>>,
    last_reminder_at: Option<DateTime<Utc>>,
    /// Declines in a row.
    failed_attempts: u32,
    /// The due date on which it will be cancelled, uncharged.
    cancel_date: Option<NaiveDate>,
    /// The payment that is being made; a change of amount or payment method counts from the next.
    open_payment: Option<OpenPayment>,
    created_at: DateTime<Utc>,
    /// Raised by one with every write; in quotes it is the ETag.
    version: u64,
}

/// A payment that is being made.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenPayment {
    due_date: NaiveDate,
    #[schema(value_type = schema::Amount)]
    amount: i64,
    #[schema(value_type = schema::Currency)]
    currency: Currency,
    since: DateTime<Utc>,
}

impl From<Attempt> for OpenPayment {
    fn from(attempt: Attempt) -> Self {
        let Attempt { due_on, amount, claimed_at, .. } = attempt;
        Self { due_date: due_on, amount: amount.minor(), currency: amount.currency(), since: claimed_at }
    }
}

impl From<Subscription> for View {
    fn from(s: Subscription) -> Self {
        Self {
            cancel_date: s.cancels_on(),
            id: s.id,
            account: s.account,
            sku: s.sku,
            product_name: s.product_name,
            email: s.email,
            status: s.status,
            payment_day: s.payment_day,
            amount: s.price.minor(),
            currency: s.price.currency(),
            payment_method: s.payment_method,
            due_date: s.due_on,
            next_payment_date: s.next_payment_on,
            next_reminder_date: s.next_reminder_on,
            last_payment_at: s.last_payment_at,
            last_reminder_at: s.last_reminder_at,
            failed_attempts: s.failed_attempts,
            open_payment: s.attempt.map(OpenPayment::from),
            created_at: s.created_at,
            version: s.version,
        }
    }
}

fn shown(subscription: &Subscription) -> String {
    serde_json::to_string(&View::from(subscription.clone())).expect("a view is representable")
}

/// Create a subscription
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions",
    operation_id = "create_subscription",
    tag = "subscriptions",
    params(("account" = schema::Id, Path), ("Idempotency-Key" = inline(Option<schema::IdempotencyKey>), Header)),
    request_body = Create,
    responses((status = 201, description = "It is created", body = View, headers(("ETag" = String))))
)]
pub async fn create(
    State(api): State<Api>,
    caller: Caller,
    AccountPath(account): AccountPath,
    NoParameters: NoParameters,
    key: IdempotencyKey,
    body: Body<Create>,
) -> Result<Response, Problem> {
    caller.operator()?;
    let mut request = api.idempotent(key, &body.hash);
    // Before all else: what was allowed when it was first asked is answered as it was then, though the day has changed.
    if let Some(before) = api.replay(request.as_ref(), StatusCode::CREATED).await? {
        return Ok(before);
    }
    let Create { sku, product_name, payment_day, amount, currency, payment_method, email, first_payment_date } =
        body.value;
    let new = NewSubscription {
        id: SubscriptionId::new(api.clock.ulid()),
        sku,
        product_name,
        email,
        payment_day,
        price: currency.price(amount).map_err(|error| Problem::field("amount", error))?,
        payment_method,
        first_payment_on: first_payment_date,
        account,
    };
    let shard = api.settings.shard_of(&new.account);
    let subscription = new
        .begin(shard, api.lead, api.today(), api.clock.now())
        .map_err(|refusal| Problem::refused("first_payment_date", refusal))?;
    let view = shown(&subscription);
    if let Some(request) = &mut request {
        request.answer.clone_from(&view);
    }
    match api.table.create_subscription(&subscription, request.as_ref()).await? {
        Created::Created => Ok(answer(StatusCode::CREATED, view)),
        Created::Replayed(replayed) => replay(replayed, StatusCode::CREATED),
        Created::NoAccount => Err(Problem::no_account()),
        Created::Exists => Err(Problem::conflict("there is a subscription of this id already")),
    }
}

/// List an account's subscriptions, oldest first
#[utoipa::path(
    get,
    path = "/accounts/{account}/subscriptions",
    operation_id = "list_subscriptions",
    tag = "subscriptions",
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
    let paging = parameters.paging(Cursor::of_subscriptions)?;
    let page = api.table.get_subscriptions_by_account(&account, &paging).await?;
    Ok(Json(List::of(api.of_account(&account, page).await?)?))
}

/// Read a subscription
#[utoipa::path(
    get,
    path = "/accounts/{account}/subscriptions/{subscription}",
    operation_id = "get_subscription",
    tag = "subscriptions",
    params(("account" = schema::Id, Path), ("subscription" = schema::SubscriptionId, Path)),
    responses((status = 200, description = "The subscription", body = View, headers(("ETag" = String))))
)]
pub async fn read(
    State(api): State<Api>,
    path: SubscriptionPath,
    NoParameters: NoParameters,
) -> Result<Response, Problem> {
    let stored = api.table.get_subscription(&path.account, path.id).await?.ok_or_else(Problem::no_subscription)?;
    Ok(answer(StatusCode::OK, shown(&stored)))
}

/// Change a subscription
///
/// A payment that is being made keeps its amount and payment method.
#[utoipa::path(
    patch,
    path = "/accounts/{account}/subscriptions/{subscription}",
    operation_id = "change_subscription",
    tag = "subscriptions",
    params(
        ("account" = schema::Id, Path),
        ("subscription" = schema::SubscriptionId, Path),
        ("If-Match" = inline(Option<schema::EntityTag>), Header)
    ),
    request_body = Change,
    responses((status = 200, description = "The subscription as it is now", body = View, headers(("ETag" = String))))
)]
pub async fn change(
    State(api): State<Api>,
    caller: Caller,
    path: SubscriptionPath,
    NoParameters: NoParameters,
    if_match: IfMatch,
    body: Body<Change>,
) -> Result<Response, Problem> {
    let Change { amount, payment_day, payment_method, product_name, email } = body.value;
    let reserved = [("amount", amount.is_some()), ("product_name", product_name.is_some()), ("email", email.is_some())];
    if let Some((field, _)) = reserved.into_iter().find(|(_, is_given)| *is_given && caller != Caller::Operator) {
        return Err(Problem::forbidden_field(field));
    }
    let changes = Changes { amount, payment_day, payment_method, product_name, email };
    let today = api.today();
    api.changed(&path, None, |stored| {
        if_match.allows(stored.version)?;
        let is_other = |method: &PaymentMethod| method.customer != stored.payment_method.customer;
        if changes.payment_method.as_ref().is_some_and(is_other) && caller != Caller::Operator {
            return Err(Problem::forbidden_field("payment_method.customer"));
        }
        stored.change(&changes, api.lead, today).map_err(Problem::from)
    })
    .await
}

impl Api {
    /// The answer to a request that makes `change` of the subscription `path` names.
    pub(crate) async fn changed(
        &self,
        path: &SubscriptionPath,
        request: Option<&IdempotentRequest>,
        change: impl Fn(&Subscription) -> Result<Subscription, Problem>,
    ) -> Result<Response, Problem> {
        match self.table.change_subscription(&path.account, path.id, request, shown, change).await? {
            Changed::Applied(written) => Ok(answer(StatusCode::OK, shown(&written))),
            Changed::Replayed(replayed) => replay(replayed, StatusCode::OK),
            Changed::Refused(problem) => Err(problem),
            Changed::Missing => Err(Problem::no_subscription()),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Amount(error) => Problem::field("amount", error),
            refusal => Problem::conflict(refusal.to_string()),
        }
    }
}
