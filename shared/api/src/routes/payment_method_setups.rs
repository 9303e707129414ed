//! `/accounts/{account}/payment-method-setups`: a customer enters a payment method on a web page of the payment
//! gateway.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use billing::{AccountId, ActionKind, PaymentMethod, PaymentMethodSetup, SubscriptionId};
use chrono::{DateTime, Utc};
use gateway_objects::PaymentMethodSetups;
use mail::Language;
use minijinja::context;
use rest::body::Body;
use rest::html_page;
use rest::idempotency::{IdempotencyKey, json_response, replay_response};
use rest::openapi::UlidText;
use rest::parameters::{AccountPath, NoParameters, Path, PathId, Query};
use rest::{AccountAction, Caller, Problem, PublicUrl, RequestActor, RequestTime, Role};
use serde::{Deserialize, Serialize};
use store::{ChangeRecords, LimitedOperation, StoredResponse};
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use crate::actions::new_action;
use crate::error_responses::setup_problem;
use crate::{Api, problems};

/// The HTML template of the web page to which the customer returns from the gateway's page.
const PAGE_TEMPLATE: &str = include_str!("payment_method_given.html");

/// The path parameters that name a payment method setup of an account.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct SetupPath {
    /// The id of the account.
    account: AccountId,
    /// The id of the setup.
    #[serde(rename = "setup")]
    #[param(value_type = UlidText)]
    id: PathId<Ulid>,
}

/// The path parameter that names a payment method setup of any account.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ReturnPath {
    /// The id of the setup.
    #[serde(rename = "setup")]
    #[param(value_type = UlidText)]
    id: PathId<Ulid>,
}

/// The subscriptions that will use the new payment method.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreatePaymentMethodSetup)]
pub struct NewSetup {
    /// The ids of the subscriptions that will use the new payment method; if absent, all subscriptions that are not
    /// cancelled.
    #[serde(default)]
    #[schema(min_items = 1, max_items = 100)]
    subscriptions: Option<Vec<SubscriptionId>>,
}

/// The state of a payment method setup. `open`: the customer can still enter a payment method. `complete`: the customer
/// has entered one, and the subscriptions use it. `expired`: the customer entered none before the gateway's page
/// closed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetupStatus {
    /// The customer can still enter a payment method.
    Open,
    /// The customer has entered a payment method, and the subscriptions use it.
    Complete,
    /// The gateway's page closed before the customer entered a payment method.
    Expired,
}

/// A payment method setup: a web page of the payment gateway on which a customer enters a payment method.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PaymentMethodSetup)]
pub struct SetupView {
    /// The id of the setup.
    #[schema(value_type = UlidText)]
    id: String,
    /// The id of the account.
    account: AccountId,
    /// The state of the payment method setup.
    status: SetupStatus,
    /// The URL of the gateway's page. Everyone who has the URL can enter a payment method: send it only to the
    /// customer.
    url: String,
    /// The time at which the gateway's page closes.
    expires_at: DateTime<Utc>,
    /// The ids of the subscriptions that will use the payment method; null for all subscriptions that are not
    /// cancelled.
    subscriptions: Option<Vec<SubscriptionId>>,
    /// The payment method that the customer has entered; null until then.
    payment_method: Option<PaymentMethod>,
    /// The time at which the setup was created.
    created_at: DateTime<Utc>,
}

/// The state of a payment method setup when the customer returns from the gateway's page.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReturnedFromSetup)]
pub struct ReturnView {
    /// The state of the payment method setup.
    status: SetupStatus,
}

impl SetupView {
    /// Returns the view of `setup` at the time `now`.
    pub fn new(setup: PaymentMethodSetup, now: DateTime<Utc>) -> Self {
        let status = match setup.payment_method {
            Some(_) => SetupStatus::Complete,
            None if now >= setup.expires_at => SetupStatus::Expired,
            None => SetupStatus::Open,
        };
        Self {
            id: setup.id.to_string(),
            account: setup.account,
            status,
            url: setup.url,
            expires_at: setup.expires_at,
            subscriptions: setup.subscriptions,
            payment_method: setup.payment_method,
            created_at: setup.created_at,
        }
    }
}

/// Returns the URL to which the gateway sends the customer back after the page of `setup`.
pub(super) fn setup_return_url(public_url: &PublicUrl, setup: Ulid) -> String {
    public_url.join(&format!("/payment-method-setups/{setup}/return"))
}

/// Create a payment method setup
///
/// Opens a page of the payment gateway on which the customer enters a payment method, so that no card data reaches this
/// API. The subscriptions use the new payment method from their next payment attempt, and the next run charges their
/// owed payments. For a customer without a subscription, use the returned payment method to create one.
#[utoipa::path(
    post,
    path = "/accounts/{account}/payment-method-setups",
    operation_id = "create_payment_method_setup",
    tag = "payment methods",
    params(AccountPath, IdempotencyKey),
    request_body = NewSetup,
    responses((status = 201, description = "The setup was created, and its page is open", body = SetupView))
)]
pub async fn create_payment_method_setup(
    State(api): State<Api>,
    now: RequestTime,
    Path(AccountPath { account }): Path<AccountPath>,
    _: Query<NoParameters>,
    (caller, actor, public_url): (Caller, RequestActor, PublicUrl),
    key: IdempotencyKey,
    body: Body<NewSetup>,
) -> Result<Response, Problem> {
    caller.check_action(AccountAction::PaymentMethod)?;
    let mut request = key.idempotent_request(&body.hash, now.at);
    if let Some(stored) = api.replay_stored_response(request.as_ref(), StatusCode::CREATED).await? {
        return Ok(stored);
    }
    let account = api.table.get_account(&account).await?.ok_or_else(Problem::account_not_found)?;
    if account.erasure_requested_at.is_some() {
        return Err(problems::account_is_being_erased());
    }
    let NewSetup { subscriptions } = body.value;
    if subscriptions.as_ref().is_some_and(|ids| ids.is_empty() || ids.len() > 100) {
        return Err(Problem::invalid_field("subscriptions", "must name 1 to 100 subscriptions, or be absent for all"));
    }
    api.count_limited_use_by_caller(&caller, &LimitedOperation::SetupsOf(account.id.clone()), now.at).await?;
    let setup = api
        .payment_method_setups()?
        .open(&account, subscriptions, |id| setup_return_url(&public_url, id))
        .await
        .map_err(setup_problem)?;
    let view = SetupView::new(setup.clone(), now.at);
    let created = StoredResponse {
        json: serde_json::to_string(&view).expect("a setup can be serialized"),
        version: setup.version,
    };
    if let Some(request) = &mut request {
        request.response.clone_from(&created);
    }
    let action = new_action(ActionKind::CreateSetup, actor, now);
    let records = ChangeRecords { request: request.as_ref(), action: Some(&action) };
    match api.table.create_setup(&setup, records).await? {
        None => Ok(json_response(StatusCode::CREATED, created)),
        Some(replayed) => replay_response(replayed, StatusCode::CREATED),
    }
}

/// Get a payment method setup
///
/// Returns the state of the setup and its payment method. While the setup is open, this request looks up the payment
/// method at the gateway, so that it is not lost if the customer's browser did not return.
#[utoipa::path(
    get,
    path = "/accounts/{account}/payment-method-setups/{setup}",
    operation_id = "get_payment_method_setup",
    tag = "payment methods",
    params(SetupPath),
    responses((status = 200, description = "The setup", body = SetupView))
)]
pub async fn get_payment_method_setup(
    State(api): State<Api>,
    now: RequestTime,
    caller: Caller,
    Path(SetupPath { account, id }): Path<SetupPath>,
    _: Query<NoParameters>,
) -> Result<Json<SetupView>, Problem> {
    // The response contains the page on which a card is entered, and the request attaches the card.
    if caller.is_operator() {
        caller.check_role(Role::Support)?;
    }
    let setup = api.get_setup(id).await?;
    if setup.account != account {
        return Err(problems::setup_not_found());
    }
    let setup = api.payment_method_setups()?.complete(setup, now.today).await.map_err(setup_problem)?;
    Ok(Json(SetupView::new(setup, now.at)))
}

/// Return from the gateway's page
///
/// The gateway sends the customer's browser to this address; it needs no token. The request looks up the entered
/// payment method at the gateway and attaches it to the subscriptions. A browser gets a web page, or is redirected to
/// the merchant's page for customers.
#[utoipa::path(
    get,
    path = "/payment-method-setups/{setup}/return",
    operation_id = "return_from_payment_method_setup",
    tag = "payment methods",
    security(()),
    params(ReturnPath),
    responses(
        (status = 200, description = "The state of the setup", content(
            (ReturnView = "application/json"),
            (String = "text/html")
        )),
        (status = 303, description = "Redirects the browser to the merchant's page for customers")
    )
)]
pub async fn return_from_payment_method_setup(
    State(api): State<Api>,
    now: RequestTime,
    path: Result<axum::extract::Path<ReturnPath>, PathRejection>,
    _: Query<NoParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let path = path.map_err(|_| problems::setup_not_found())?;
    let stored = api.get_setup(path.id).await?;
    if stored.payment_method.is_none() {
        api.count_limited_use(&LimitedOperation::ReturnsTo(stored.id), now.at).await?;
    }
    let completed = api.payment_method_setups()?.complete(stored.clone(), now.today).await.map_err(setup_problem);
    let prefers_html = html_page::prefers_html(&headers);
    let setup = match completed {
        Err(problem) if prefers_html && problem.is_temporary() => return api.return_page(&stored, true, now.at).await,
        completed => completed?,
    };
    if !prefers_html {
        let status = SetupView::new(setup, now.at).status;
        return Ok(([(header::VARY, "accept")], Json(ReturnView { status })).into_response());
    }
    if let Some(url) = &api.merchant.account_url {
        let headers = [(header::LOCATION, url.as_str()), (header::VARY, "accept")];
        return Ok((StatusCode::SEE_OTHER, headers).into_response());
    }
    api.return_page(&setup, false, now.at).await
}

impl Api {
    /// Returns the service that opens and completes payment method setups.
    ///
    /// # Errors
    /// 503 if this deployment has no gateway.
    pub(super) fn payment_method_setups(&self) -> Result<&PaymentMethodSetups, Problem> {
        self.payment_method_setups.as_ref().ok_or_else(Problem::unavailable)
    }

    /// Returns the web page with the state of `setup`, in the language of the account. If `waits_for_gateway` is true, the
    /// gateway is temporarily unavailable, and the web page reloads itself.
    async fn return_page(
        &self,
        setup: &PaymentMethodSetup,
        waits_for_gateway: bool,
        now: DateTime<Utc>,
    ) -> Result<Response, Problem> {
        let account = self.table.get_account(&setup.account).await?;
        let language = Language::for_locale(&account.map(|account| account.locale).unwrap_or_default());
        let texts = &language.texts.card_return;
        let can_go_back = !waits_for_gateway && setup.payment_method.is_none() && setup.expires_at > now;
        let (heading, body) = match setup.payment_method {
            _ if waits_for_gateway => (&texts.waiting, &texts.waiting_body),
            Some(_) => (&texts.saved, &texts.saved_body),
            None if can_go_back => (&texts.not_entered, &texts.unchanged),
            None => (&texts.not_entered, &texts.expired),
        };
        let merchant = self.merchant.name.as_str();
        let values = context! {
            language => language.texts.language.as_str(),
            merchant,
            heading => heading.as_str(),
            body => html_page::render_template("body.txt", body, context! { merchant }),
            back => texts.back.as_str(),
            url => can_go_back.then_some(setup.url.as_str()),
            reloads => waits_for_gateway,
        };
        Ok(html_page::html_response(html_page::render_template("payment_method_given.html", PAGE_TEMPLATE, values)))
    }

    /// Returns the stored payment method setup with the id `id`.
    ///
    /// # Errors
    /// 404 if there is no setup with this id.
    async fn get_setup(&self, id: PathId<Ulid>) -> Result<PaymentMethodSetup, Problem> {
        self.table.get_setup(id.ok_or_else(problems::setup_not_found)?).await?.ok_or_else(problems::setup_not_found)
    }
}
