//! `/accounts/{account}/subscriptions`: the subscriptions of an account.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use billing::{
    AccountId, AccountRecords, ActionKind, AmountRules, Currency, EmailAddress, ExternalId, Label, NewAction,
    NewSubscription, PaymentDay, PaymentMethod, Settlement, Sku, Subscription, SubscriptionChanges, SubscriptionId,
};
use chrono::NaiveDate;
use rest::body::{Body, MinorUnits};
use rest::cursor::ListCursor;
use rest::etag::IfMatch;
use rest::idempotency::{IdempotencyKey, json_response, replay_response};
use rest::list::ListView;
use rest::parameters::{AccountPath, CivilDate, NoParameters, PageQuery, PageSize, Path, Query};
use rest::{AccountAction, Caller, OperatorAccess, Problem, RequestActor, RequestTime};
use serde::Deserialize;
use store::{ChangeOutcome, ChangeRecords, CreateOutcome, IdempotencyKeyReuse, IdempotentRequest, Page, Table};
use utoipa::{IntoParams, ToSchema};

use super::created_view::{CreatedSubscription, CreatedSubscriptionView};
use super::subscription_view::{
    CurrentSubscription, SubscriptionView, stored_subscription_response, subscription_json,
};
use crate::actions::new_action;
use crate::parameters::SubscriptionPath;
use crate::price_check::refused_price_problem;
use crate::{Api, problems};

/// The fields of a subscription to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateSubscription)]
pub struct SubscriptionFields {
    /// The merchant's identifier of the product.
    sku: Sku,
    /// The name of the product in mails and receipts.
    product_name: Label,
    /// The day of the month on which payments are due.
    payment_day: PaymentDay,
    /// The amount of each monthly payment, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// The payment method that is charged.
    payment_method: PaymentMethod,
    /// The address for mails about this subscription; the address of the account if absent.
    #[serde(default)]
    email: Option<EmailAddress>,
    /// The due date of the first payment: a date on the payment day, today or later. If absent, it is the first payment
    /// day after today.
    #[serde(default)]
    #[schema(value_type = Option<NaiveDate>)]
    first_payment_date: Option<CivilDate>,
    /// Whether to charge the first payment before the response, and not in the next run. It requires a
    /// `first_payment_date` of today and an Idempotency-Key. The field `payment` of the response shows whether the payment has
    /// succeeded.
    #[serde(default)]
    charge_now: bool,
    /// Whether to create the subscription even if the account has another subscription of the same SKU that is not
    /// cancelled. Both are charged each month.
    #[serde(default)]
    allow_second: bool,
}

/// The fields to change. Absent fields stay unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeSubscription)]
pub struct ChangeSubscriptionBody {
    /// The new amount in minor units. It applies from the first month that has not fallen due. Only an operator may
    /// change it.
    #[serde(default, deserialize_with = "read_value_if_present")]
    #[schema(value_type = MinorUnits, required = false)]
    amount: Option<MinorUnits>,
    /// The new day of the month on which payments are due. It applies from the first month in which both the old and
    /// the new due date are in the future. It cannot be changed while the subscription is paused.
    #[serde(default, deserialize_with = "read_value_if_present")]
    #[schema(value_type = PaymentDay, required = false)]
    payment_day: Option<PaymentDay>,
    /// The new payment method. The next run charges an owed payment with it. Only an operator may change its field
    /// `customer`.
    #[serde(default, deserialize_with = "read_value_if_present")]
    #[schema(value_type = PaymentMethod, required = false)]
    payment_method: Option<PaymentMethod>,
    /// The new name of the product in mails and receipts. Only an operator may change it.
    #[serde(default, deserialize_with = "read_value_if_present")]
    #[schema(value_type = Label, required = false)]
    product_name: Option<Label>,
    /// The new address for mails about this subscription; null to use the address of the account. Only an operator may
    /// change it.
    #[serde(default, deserialize_with = "read_value_if_present")]
    #[schema(value_type = Option<EmailAddress>, required = false)]
    email: Option<Option<EmailAddress>>,
    /// The reason for the change, for the action log. Do not write personal data into it.
    #[serde(default)]
    reason: Option<Label>,
}

/// Reads a field that is present in the request. A null value is an error unless null is a valid `T`. An absent field
/// is not read by this function: `serde(default)` makes it `None`.
fn read_value_if_present<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Create a subscription
///
/// The first payment is due on the first payment day after today, unless `first_payment_date` is another day. If it is
/// due today, the next run charges it. With `charge_now`, it is charged before the response; this requires an
/// Idempotency-Key.
///
/// If the account has a subscription of the same SKU that is not cancelled, the request is refused, because a repeated
/// sign-up would charge the customer twice. State `allow_second` if the customer really wants two.
///
/// With `charge_now`, the field `payment` of the response says whether the customer has paid. Deliver the goods when
/// `payment` is `paid`; do not rely on `status`, since a subscription is `active` even before the first payment. If
/// there was no response, or if `payment` is `unknown` or `processing`, send the same request again under the same key:
/// it never charges twice, and it returns the current state.
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
            description = "The subscription was created. `payment` says whether its first payment is processing, unknown or not attempted",
            body = CreatedSubscriptionView
        ),
        (
            status = 409,
            description = "The account already has a subscription of this SKU that is not cancelled; `existing_subscription` names it. Or the account is being erased",
            body = Problem
        ),
        (status = 410, description = "The account was erased", body = Problem)
    )
)]
pub async fn create_subscription(
    State(api): State<Api>,
    now: RequestTime,
    Path(AccountPath { account }): Path<AccountPath>,
    (_, actor): (OperatorAccess, RequestActor),
    _: Query<NoParameters>,
    key: IdempotencyKey,
    body: Body<SubscriptionFields>,
) -> Result<Response, Problem> {
    let request = key.idempotent_request(&body.hash, now.at);
    let (request, fields) = (request.as_ref(), body.value);
    let charge_now = fields.charge_now;
    // Look up the stored response of an earlier, equal request before the validation. A repeated request must get this
    // response even if the first request was on an earlier date and would not be valid today.
    if let Some(earlier) = api.response_to_earlier_creation(&account, request, charge_now, now.today).await? {
        return Ok(earlier);
    }
    if charge_now {
        api.check_charge_now(&fields, request, now.today).await?;
    }
    let new = fields.into_new_subscription(SubscriptionId::new(api.clock.ulid()), account.clone())?;
    api.check_new_price(new.price, now.at).await?;
    let (shard, lead) = (api.settings.shard_of(&account), api.table.policy().lead);
    let create = |existing: &AccountRecords| new.clone().into_subscription(existing, shard, lead, now.today, now.at);
    let action = new_action(ActionKind::CreateSubscription, actor, now);
    let records = ChangeRecords { request, action: Some(&action) };
    let created = api.table.create_subscription_of_account(&account, records, subscription_json, create).await?;
    let (outcome, subscription) = match created {
        Ok(created) => created,
        // Since the look-up above, an equal request may have created the subscription because of which this request is
        // refused. Both must get the same response.
        Err(refusal) => {
            let earlier = api.response_to_earlier_creation(&account, request, charge_now, now.today).await?;
            return earlier.ok_or_else(|| refusal.into());
        }
    };
    match (outcome, request) {
        (CreateOutcome::Created, Some(request)) if charge_now => {
            api.charge_created_subscription(subscription, request, now.today).await
        }
        (CreateOutcome::Created, _) => {
            Ok(json_response(StatusCode::CREATED, stored_subscription_response(&subscription)))
        }
        (CreateOutcome::Replayed(replayed), Some(request)) => {
            api.respond_to_repeated_creation(&account, replayed, request, charge_now, now.today).await
        }
        (CreateOutcome::Replayed(replayed), None) => replay_response(replayed, StatusCode::CREATED),
        (CreateOutcome::NoAccount, _) => Err(Problem::account_not_found()),
        (CreateOutcome::AccountErased { is_complete: false }, _) => Err(problems::account_is_being_erased()),
        (CreateOutcome::AccountErased { is_complete: true }, _) => Err(problems::account_was_erased()),
        (CreateOutcome::AccountChanged, _) => Err(Problem::concurrent_change()),
        (CreateOutcome::Exists, _) => Err(Problem::conflict("there is already a subscription with this id")),
    }
}

impl SubscriptionFields {
    /// Returns the subscription to create in `account`, with the id `id`.
    ///
    /// # Errors
    /// 400 for the field `amount` if it is not a price.
    fn into_new_subscription(self, id: SubscriptionId, account: AccountId) -> Result<NewSubscription, Problem> {
        let price = self.currency.price(self.amount.0).map_err(|error| Problem::invalid_field("amount", error))?;
        Ok(NewSubscription {
            id,
            external_id: None,
            sku: self.sku,
            product_name: self.product_name,
            email: self.email,
            payment_day: self.payment_day,
            price,
            payment_method: self.payment_method,
            first_payment_on: self.first_payment_date.map(|CivilDate(date)| date),
            allow_second: self.allow_second,
            account,
        })
    }
}

impl Api {
    /// Checks whether the first payment of a new subscription with `fields` may be charged before the response.
    ///
    /// # Errors
    /// 422 for the field `charge_now` if the first payment is not due on `today`, or if the request has no idempotency
    /// key; 503 if this deployment has no gateway, or if its table may be older than the payments at the gateway.
    async fn check_charge_now(
        &self,
        fields: &SubscriptionFields,
        request: Option<&IdempotentRequest>,
        today: NaiveDate,
    ) -> Result<(), Problem> {
        let is_today = matches!(fields.first_payment_date, Some(CivilDate(date)) if date == today);
        if !is_today {
            let detail = format!("charge_now requires a first_payment_date of today, {today}");
            return Err(Problem::refused_field("charge_now", detail));
        }
        if request.is_none() {
            return Err(Problem::refused_field(
                "charge_now",
                "charge_now requires an Idempotency-Key: without one, repeating the request would charge twice",
            ));
        }
        // If the table was restored from a backup, the customer may have signed up after the time of the backup, and
        // would be charged a second time.
        let charges = self.charges.as_ref().ok_or_else(Problem::unavailable)?;
        if charges.accepts_sign_ups().await? { Ok(()) } else { Err(Problem::unavailable()) }
    }

    /// Returns the response to `request` if an earlier, equal request has created the subscription; `None` if there is
    /// no such request, or if the request has no idempotency key.
    async fn response_to_earlier_creation(
        &self,
        account: &AccountId,
        request: Option<&IdempotentRequest>,
        charge_now: bool,
        today: NaiveDate,
    ) -> Result<Option<Response>, Problem> {
        let Some(request) = request else { return Ok(None) };
        let Some(replayed) = self.table.get_stored_response(request).await? else { return Ok(None) };
        self.respond_to_repeated_creation(account, replayed, request, charge_now, today).await.map(Some)
    }

    /// Returns the response to `request`, which repeats an earlier request to create a subscription: with `charge_now`,
    /// the current state of the first payment, which is charged now if it was not attempted; otherwise the stored
    /// response.
    async fn respond_to_repeated_creation(
        &self,
        account: &AccountId,
        replayed: IdempotencyKeyReuse,
        request: &IdempotentRequest,
        charge_now: bool,
        today: NaiveDate,
    ) -> Result<Response, Problem> {
        match charge_now {
            true => self.respond_to_repeated_sign_up(account, replayed, request, today).await,
            false => replay_response(replayed, StatusCode::CREATED),
        }
    }
}

/// The query parameters of the list of subscriptions.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SubscriptionsQuery {
    /// The `next_cursor` of the previous page; absent for the first page.
    #[serde(default)]
    #[param(inline)]
    cursor: ListCursor,
    /// The page size: the largest number of items of the page.
    #[serde(default)]
    #[param(inline)]
    limit: PageSize,
    /// Only the subscription that was imported with this id of the earlier system.
    external_id: Option<ExternalId>,
}

/// List the subscriptions of an account
///
/// Lists the subscriptions in the order of their ids. An id begins with the time of creation, except for imported
/// subscriptions, which come first. With `external_id`, the list has at most one subscription.
#[utoipa::path(
    get,
    path = "/accounts/{account}/subscriptions",
    operation_id = "list_subscriptions",
    tag = "subscriptions",
    params(AccountPath, SubscriptionsQuery),
    responses((status = 200, description = "A page of the subscriptions", body = ListView<SubscriptionView>))
)]
pub async fn list_subscriptions(
    State(api): State<Api>,
    Path(AccountPath { account }): Path<AccountPath>,
    Query(SubscriptionsQuery { cursor, limit, external_id }): Query<SubscriptionsQuery>,
) -> Result<Json<ListView<SubscriptionView>>, Problem> {
    let paging = PageQuery { cursor, limit }.paging(Table::cursor_of_subscriptions)?;
    let page = match external_id {
        Some(external_id) => {
            let stored = api.table.get_subscription(&account, external_id.subscription_id(&account)).await?;
            Page { items: stored.into_iter().collect(), next: None, unreadable: Vec::new() }
        }
        None => api.table.get_subscriptions_by_account(&account, &paging).await?,
    };
    Ok(Json(api.convert_account_list(&account, page).await?))
}

/// Get a subscription
///
/// Returns the current state. Send the `ETag` of the response in `If-Match` to change only this version.
#[utoipa::path(
    get,
    path = "/accounts/{account}/subscriptions/{subscription}",
    operation_id = "get_subscription",
    tag = "subscriptions",
    params(SubscriptionPath),
    responses(CurrentSubscription)
)]
pub async fn get_subscription(
    State(api): State<Api>,
    Path(path): Path<SubscriptionPath>,
    _: Query<NoParameters>,
) -> Result<Response, Problem> {
    let stored =
        api.table.get_subscription(&path.account, path.id).await?.ok_or_else(problems::subscription_not_found)?;
    Ok(json_response(StatusCode::OK, stored_subscription_response(&stored)))
}

/// Change a subscription
///
/// Changes the fields in the body, all or none. An open payment attempt keeps its amount and payment method.
#[utoipa::path(
    patch,
    path = "/accounts/{account}/subscriptions/{subscription}",
    operation_id = "change_subscription",
    tag = "subscriptions",
    params(SubscriptionPath, IfMatch),
    request_body = ChangeSubscriptionBody,
    responses(CurrentSubscription)
)]
pub async fn change_subscription(
    State(api): State<Api>,
    now: RequestTime,
    (caller, actor): (Caller, RequestActor),
    Path(path): Path<SubscriptionPath>,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<ChangeSubscriptionBody>,
) -> Result<Response, Problem> {
    let ChangeSubscriptionBody { amount, payment_day, payment_method, product_name, email, reason } = body.value;
    let operator_fields =
        [("amount", amount.is_some()), ("product_name", product_name.is_some()), ("email", email.is_some())];
    if let Some((field, _)) = operator_fields.into_iter().find(|(_, is_present)| *is_present && !caller.is_operator()) {
        return Err(Problem::forbidden_field(field));
    }
    for (action, field, is_present) in [
        (AccountAction::PaymentDay, "payment_day", payment_day.is_some()),
        (AccountAction::PaymentMethod, "payment_method", payment_method.is_some()),
    ] {
        if is_present {
            caller.check_action(action).map_err(|problem| problem.with_field(field))?;
        }
    }
    let amount = amount.map(|MinorUnits(minor)| minor);
    let rules = match amount {
        Some(_) => api.read_amount_rules(now.at).await,
        None => AmountRules::none(),
    };
    let payment_method_at = payment_method.is_some().then_some(now.at);
    let changes = SubscriptionChanges { amount, payment_day, payment_method, payment_method_at, product_name, email };
    let disputes = match changes.payment_method {
        Some(_) => api.table.get_disputes_by_account(&path.account).await?,
        None => Vec::new(),
    };
    let action = NewAction { reason, ..new_action(ActionKind::ChangeSubscription, actor, now) };
    api.change_subscription(&path, ChangeRecords { request: None, action: Some(&action) }, |stored| {
        if_match.check_version(stored.version)?;
        let has_other_customer = |method: &PaymentMethod| method.customer != stored.payment_method.customer;
        if changes.payment_method.as_ref().is_some_and(has_other_customer) && !caller.is_operator() {
            return Err(Problem::forbidden_field("payment_method.customer"));
        }
        if let Some(price) = amount.and_then(|minor| stored.price.currency().price(minor).ok()) {
            rules.check_amount(price).map_err(|refusal| refused_price_problem("amount", refusal))?;
        }
        Ok(stored
            .apply_changes(&changes, api.table.policy().lead, now.today)?
            .with_dispute_mark_if_method_changed(stored, &disputes))
    })
    .await
}

impl Api {
    /// Applies `change` to the subscription in `path`, writes `records` in the same transaction, and returns the
    /// response.
    pub(crate) async fn change_subscription<S: Into<Settlement>>(
        &self,
        path: &SubscriptionPath,
        records: ChangeRecords<'_>,
        change: impl Fn(&Subscription) -> Result<S, Problem>,
    ) -> Result<Response, Problem> {
        match self.table.change_subscription(&path.account, path.id, records, subscription_json, change).await? {
            ChangeOutcome::Applied(written) => {
                Ok(json_response(StatusCode::OK, stored_subscription_response(&written)))
            }
            ChangeOutcome::Replayed(replayed) => replay_response(replayed, StatusCode::OK),
            ChangeOutcome::Refused(problem) => Err(problem),
            ChangeOutcome::Missing => Err(problems::subscription_not_found()),
        }
    }
}
