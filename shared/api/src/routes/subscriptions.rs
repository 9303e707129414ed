//! `/accounts/{account}/subscriptions`: what is paid each month.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use billing::{
    Changes, Currency, EmailAddress, Label, NewSubscription, PaymentDay, PaymentMethod, Settlement, Sku, Subscription,
    SubscriptionId,
};
use rest::body::{Body, MinorUnits};
use rest::caller::Operator;
use rest::etag::IfMatch;
use rest::idempotency::{IdempotencyKey, answer, replay};
use rest::list::ListView;
use rest::parameters::{AccountPath, CivilDate, NoParameters, PageQuery, Path, Query};
use rest::{Caller, Now, Problem};
use serde::Deserialize;
use store::{Changed, Created, IdempotentRequest, Table};
use utoipa::ToSchema;

use super::created_view::{CreatedSubscription, CreatedView};
use super::subscription_view::{CurrentSubscription, SubscriptionView, kept, shown};
use crate::parameters::SubscriptionPath;
use crate::{Api, missing};

/// A subscription as it is to begin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateSubscription)]
pub struct SubscriptionFields {
    /// The merchant's identifier of the product.
    sku: Sku,
    /// What mails call the product.
    product_name: Label,
    /// The day of the month on which it is paid.
    payment_day: PaymentDay,
    /// How much is paid each month, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// What is charged.
    payment_method: PaymentMethod,
    /// Where its mail goes, if not to the account's address.
    #[serde(default)]
    email: Option<EmailAddress>,
    /// The first payment day strictly after today if absent. It must fall on the payment day, today or later.
    #[serde(default)]
    #[schema(value_type = Option<NaiveDate>)]
    first_payment_date: Option<CivilDate>,
    /// With a `first_payment_date` of today: charge it now, before the response, and not in the next run. `payment` in the response says
    /// whether it is paid.
    #[serde(default)]
    charge_now: bool,
}

/// What is to be different; what is absent stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeSubscription)]
pub struct SubscriptionChange {
    /// It counts from the first month that has not fallen due. Only an operator may change it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = MinorUnits, required = false)]
    amount: Option<MinorUnits>,
    /// It counts from the first month whose due date lies ahead by the old day and by the new. It cannot be changed while
    /// paused.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = PaymentDay, required = false)]
    payment_day: Option<PaymentDay>,
    /// It makes what is owed payable at the next run. Only an operator may change the customer.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = PaymentMethod, required = false)]
    payment_method: Option<PaymentMethod>,
    /// Only an operator may change it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Label, required = false)]
    product_name: Option<Label>,
    /// Null: mail goes to the account's address. Only an operator may change it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<EmailAddress>, required = false)]
    email: Option<Option<EmailAddress>>,
}

/// A field that is there, though it may be absent: null is a value like any other, and refused where it is none.
fn present<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Create a subscription
///
/// Its first payment is on the first payment day after today, unless another is named. A first payment of today is charged by the next
/// run or, with `charge_now`, before the response; that needs an Idempotency-Key. The response then says in `payment` whether the customer
/// has paid. Deliver when `payment` is `paid`, not by `status`: a subscription is `active` while nothing is paid. After no response, or to
/// learn more of a payment that is `unknown` or `processing`, send the same request again under the same key: it never charges twice,
/// and says what is known by then.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions",
    operation_id = "create_subscription",
    tag = "subscriptions",
    params(AccountPath, IdempotencyKey),
    request_body = SubscriptionFields,
    responses(
        CreatedSubscription,
        (
            status = 202,
            description = "The subscription is created. Its first payment is processing, unknown or not attempted, as `payment` says",
            body = CreatedView
        )
    )
)]
pub async fn create(
    State(api): State<Api>,
    now: Now,
    Path(AccountPath { account }): Path<AccountPath>,
    _: Operator,
    _: Query<NoParameters>,
    key: IdempotencyKey,
    body: Body<SubscriptionFields>,
) -> Result<Response, Problem> {
    let mut request = key.request(&body.hash, now.at);
    // Before all else: what was allowed when it was first asked is answered as it was then, though the day has changed.
    if let Some(request) = &request
        && let Some(before) = api.table.get_answer(request).await?
    {
        return match body.value.charge_now {
            true => api.charged_before(&account, before, request, now.today).await,
            false => replay(before, StatusCode::CREATED),
        };
    }
    let SubscriptionFields {
        sku,
        product_name,
        payment_day,
        amount,
        currency,
        payment_method,
        email,
        first_payment_date,
        charge_now,
    } = body.value;
    let Now { at, today } = now;
    let is_today = matches!(&first_payment_date, Some(CivilDate(date)) if *date == today);
    if charge_now && !is_today {
        return Err(Problem::refused(
            "charge_now",
            format!("only a first_payment_date of today, {today}, is charged now"),
        ));
    }
    if charge_now && request.is_none() {
        return Err(Problem::refused(
            "charge_now",
            "needs an Idempotency-Key: without one, the same request again is a second charge",
        ));
    }
    if charge_now && api.charges.is_none() {
        return Err(Problem::unavailable());
    }
    let disputes = api.table.get_disputes_by_account(&account).await?;
    let new = NewSubscription {
        id: SubscriptionId::new(api.clock.ulid()),
        sku,
        product_name,
        email,
        payment_day,
        price: currency.price(amount.0).map_err(|error| Problem::field("amount", error))?,
        payment_method,
        first_payment_on: first_payment_date.map(|CivilDate(date)| date),
        account,
    };
    let shard = api.settings.shard_of(&new.account);
    let subscription = new
        .begin(shard, api.billing.policy.lead, today, at)
        .map_err(|refusal| Problem::refused("first_payment_date", refusal))?
        .disputed_by(&disputes);
    let created = kept(&subscription);
    if let Some(request) = &mut request {
        request.answer.clone_from(&created);
    }
    let account = &subscription.account;
    match (api.table.create_subscription(&subscription, request.as_ref()).await?, &request) {
        (Created::Created, Some(request)) if charge_now => {
            api.charged_now(account, subscription.id, request, now.today).await
        }
        (Created::Created, _) => Ok(answer(StatusCode::CREATED, created)),
        (Created::Replayed(replayed), Some(request)) if charge_now => {
            api.charged_before(account, replayed, request, now.today).await
        }
        (Created::Replayed(replayed), _) => replay(replayed, StatusCode::CREATED),
        (Created::NoAccount, _) => Err(Problem::no_account()),
        (Created::Exists, _) => Err(Problem::conflict("there is a subscription of this id already")),
    }
}

/// List an account's subscriptions
///
/// In the order of their ids. The ids of those that were created here begin with the time of their creation; imported ones
/// have none and come first.
#[utoipa::path(
    get,
    path = "/accounts/{account}/subscriptions",
    operation_id = "list_subscriptions",
    tag = "subscriptions",
    params(AccountPath, PageQuery),
    responses((status = 200, description = "A page of them", body = ListView<SubscriptionView>))
)]
pub async fn list(
    State(api): State<Api>,
    Path(AccountPath { account }): Path<AccountPath>,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<SubscriptionView>>, Problem> {
    let paging = page.paging(Table::cursor_of_subscriptions)?;
    let page = api.table.get_subscriptions_by_account(&account, &paging).await?;
    Ok(Json(api.list_of(&account, page).await?))
}

/// Read a subscription
///
/// As it is at this moment. Its `ETag` is what `If-Match` takes.
#[utoipa::path(
    get,
    path = "/accounts/{account}/subscriptions/{subscription}",
    operation_id = "get_subscription",
    tag = "subscriptions",
    params(SubscriptionPath),
    responses(CurrentSubscription)
)]
pub async fn read(
    State(api): State<Api>,
    Path(path): Path<SubscriptionPath>,
    _: Query<NoParameters>,
) -> Result<Response, Problem> {
    let stored = api.table.get_subscription(&path.account, path.id).await?.ok_or_else(missing::subscription)?;
    Ok(answer(StatusCode::OK, kept(&stored)))
}

/// Change a subscription
///
/// A payment that is being made keeps its amount and payment method.
#[utoipa::path(
    patch,
    path = "/accounts/{account}/subscriptions/{subscription}",
    operation_id = "change_subscription",
    tag = "subscriptions",
    params(SubscriptionPath, IfMatch),
    request_body = SubscriptionChange,
    responses(CurrentSubscription)
)]
pub async fn change(
    State(api): State<Api>,
    now: Now,
    caller: Caller,
    Path(path): Path<SubscriptionPath>,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<SubscriptionChange>,
) -> Result<Response, Problem> {
    let SubscriptionChange { amount, payment_day, payment_method, product_name, email } = body.value;
    let reserved = [("amount", amount.is_some()), ("product_name", product_name.is_some()), ("email", email.is_some())];
    if let Some((field, _)) = reserved.into_iter().find(|(_, is_given)| *is_given && caller != Caller::Operator) {
        return Err(Problem::forbidden_field(field));
    }
    let amount = amount.map(|MinorUnits(minor)| minor);
    let payment_method_at = payment_method.is_some().then_some(now.at);
    let changes = Changes { amount, payment_day, payment_method, payment_method_at, product_name, email };
    let disputes = match changes.payment_method {
        Some(_) => api.table.get_disputes_by_account(&path.account).await?,
        None => Vec::new(),
    };
    api.changed(&path, None, |stored| {
        if_match.allows(stored.version)?;
        let is_other = |method: &PaymentMethod| method.customer != stored.payment_method.customer;
        if changes.payment_method.as_ref().is_some_and(is_other) && caller != Caller::Operator {
            return Err(Problem::forbidden_field("payment_method.customer"));
        }
        Ok(stored.change(&changes, api.billing.policy.lead, now.today)?.disputed_anew(stored, &disputes))
    })
    .await
}

impl Api {
    /// The answer to a request that makes `change` of the subscription `path` names.
    pub(crate) async fn changed<S: Into<Settlement>>(
        &self,
        path: &SubscriptionPath,
        request: Option<&IdempotentRequest>,
        change: impl Fn(&Subscription) -> Result<S, Problem>,
    ) -> Result<Response, Problem> {
        match self.table.change_subscription(&path.account, path.id, request, shown, change).await? {
            Changed::Applied(written) => Ok(answer(StatusCode::OK, kept(&written))),
            Changed::Replayed(replayed) => replay(replayed, StatusCode::OK),
            Changed::Refused(problem) => Err(problem),
            Changed::Missing => Err(missing::subscription()),
        }
    }
}
