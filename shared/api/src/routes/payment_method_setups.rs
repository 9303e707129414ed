//! `/accounts/{account}/payment-method-setups`: how a customer gives a payment method, on a page of the gateway's own.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::PathRejection;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use billing::Setup;
use billing::{AccountId, PaymentMethod, SubscriptionId};
use chrono::{DateTime, Utc};
use delivery::Reach;
use minijinja::context;
use rest::body::Body;
use rest::html_page as page;
use rest::idempotency::{IdempotencyKey, answer, replay};
use rest::parameters::{AccountPath, NoParameters, Path, PathId, Query};
use rest::{Now, Problem};
use serde::{Deserialize, Serialize};
use settling::Setups;
use store::KeptAnswer;
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use crate::{Api, missing};

const PAGE: &str = include_str!("payment_method_given.html");

/// A setup of an account.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct SetupPath {
    /// The account.
    account: AccountId,
    /// The setup.
    #[serde(rename = "setup")]
    #[param(value_type = SubscriptionId)]
    id: PathId<Ulid>,
}

/// A setup, of whichever account.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ReturnPath {
    /// The setup.
    #[serde(rename = "setup")]
    #[param(value_type = SubscriptionId)]
    id: PathId<Ulid>,
}

/// What is to use the payment method that is given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreatePaymentMethodSetup)]
pub struct NewSetup {
    /// The subscriptions that are to use it; all that are not cancelled if absent.
    #[serde(default)]
    #[schema(min_items = 1, max_items = 100)]
    subscriptions: Option<Vec<SubscriptionId>>,
}

/// Whether a payment method was given.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetupStatus {
    /// Not yet.
    Open,
    /// It was, and is used.
    Complete,
    /// It was not, and its page is closed.
    Expired,
}

/// An opening of the gateway's page.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PaymentMethodSetup)]
pub struct SetupView {
    /// The setup's id.
    #[schema(value_type = SubscriptionId)]
    id: String,
    /// The account whose customer opens the page.
    account: AccountId,
    /// Whether a payment method was given.
    status: SetupStatus,
    /// Where the customer gives it. Whoever opens it can: send it to nobody else.
    url: String,
    /// When the page closes.
    expires_at: DateTime<Utc>,
    /// The subscriptions that are to use it; null: all that are not cancelled.
    subscriptions: Option<Vec<SubscriptionId>>,
    /// What was given.
    payment_method: Option<PaymentMethod>,
    /// When it was opened.
    created_at: DateTime<Utc>,
}

/// What has become of a setup.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReturnedFromSetup)]
pub struct Returned {
    /// Whether a payment method was given.
    status: SetupStatus,
}

impl SetupView {
    fn new(setup: Setup, now: DateTime<Utc>) -> Self {
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

impl Api {
    /// Where a customer comes back to, on this server as whoever asks knows it.
    fn come_back_at(&self, headers: &HeaderMap, setup: Ulid) -> String {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let host = host.map_or_else(|| "localhost".to_owned(), |host| host.to_string());
        let scheme = if self.reach == Reach::Public { "https" } else { "http" };
        format!("{scheme}://{host}/payment-method-setups/{setup}/return")
    }
}

/// Ask for a payment method
///
/// Opens a page of the payment gateway's, on which the customer gives a card: no card data comes here. Once it is given, the
/// subscriptions use it from their next attempt, and what they owe is payable at the next run. A customer who has no subscription
/// yet has a payment method then that one can be created with.
#[utoipa::path(
    post,
    path = "/accounts/{account}/payment-method-setups",
    operation_id = "create_payment_method_setup",
    tag = "payment methods",
    params(AccountPath, IdempotencyKey),
    request_body = NewSetup,
    responses((status = 201, description = "The page is open", body = SetupView))
)]
pub async fn create(
    State(api): State<Api>,
    now: Now,
    Path(AccountPath { account }): Path<AccountPath>,
    _: Query<NoParameters>,
    headers: HeaderMap,
    key: IdempotencyKey,
    body: Body<NewSetup>,
) -> Result<Response, Problem> {
    let mut request = key.request(&body.hash, now.at);
    if let Some(before) = api.replay(request.as_ref(), StatusCode::CREATED).await? {
        return Ok(before);
    }
    let account = api.table.get_account(&account).await?.ok_or_else(Problem::no_account)?;
    let NewSetup { subscriptions } = body.value;
    if subscriptions.as_ref().is_some_and(|named| named.is_empty() || named.len() > 100) {
        return Err(Problem::field("subscriptions", "must name 1 to 100 subscriptions, or be absent for all"));
    }
    let setup = api.setups()?.open(&account, subscriptions, |id| api.come_back_at(&headers, id)).await?;
    let view = SetupView::new(setup.clone(), now.at);
    let created =
        KeptAnswer { json: serde_json::to_string(&view).expect("a setup is representable"), version: setup.version };
    if let Some(request) = &mut request {
        request.answer.clone_from(&created);
    }
    match api.table.create_setup(&setup, request.as_ref()).await? {
        None => Ok(answer(StatusCode::CREATED, created)),
        Some(replayed) => replay(replayed, StatusCode::CREATED),
    }
}

/// Read a payment method setup
///
/// Whether a payment method was given, and which. The gateway is asked while it is open, so that nothing is lost of a customer whose
/// browser did not come back.
#[utoipa::path(
    get,
    path = "/accounts/{account}/payment-method-setups/{setup}",
    operation_id = "get_payment_method_setup",
    tag = "payment methods",
    params(SetupPath),
    responses((status = 200, description = "The setup", body = SetupView))
)]
pub async fn read(
    State(api): State<Api>,
    now: Now,
    Path(SetupPath { account, id }): Path<SetupPath>,
    _: Query<NoParameters>,
) -> Result<Json<SetupView>, Problem> {
    let setup = api.setup(id).await?;
    if setup.account != account {
        return Err(missing::setup());
    }
    let setup = api.setups()?.complete(setup, now.today).await?;
    Ok(Json(SetupView::new(setup, now.at)))
}

/// Come back from the gateway's page
///
/// Where the gateway sends the customer's browser, without a token. What was given is asked of the gateway, and is used from then on.
/// A browser gets a page, or is led on to the merchant's own.
#[utoipa::path(
    get,
    path = "/payment-method-setups/{setup}/return",
    operation_id = "return_from_payment_method_setup",
    tag = "payment methods",
    security(()),
    params(ReturnPath),
    responses(
        (status = 200, description = "Whether something was given", content(
            (Returned = "application/json"),
            (String = "text/html")
        )),
        (status = 303, description = "On to the merchant's own page")
    )
)]
pub async fn come_back(
    State(api): State<Api>,
    now: Now,
    path: Result<axum::extract::Path<ReturnPath>, PathRejection>,
    _: Query<NoParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let path = path.map_err(|_| missing::setup())?;
    let asked = api.setup(path.id).await?;
    let completed = api.setups()?.complete(asked.clone(), now.today).await.map_err(Problem::from);
    let is_page = page::is_asked(&headers);
    let setup = match completed {
        Err(problem) if is_page && problem.may_pass() => return Ok(api.returned(&asked, true, now.at)),
        completed => completed?,
    };
    if !is_page {
        let status = SetupView::new(setup, now.at).status;
        return Ok(([(header::VARY, "accept")], Json(Returned { status })).into_response());
    }
    if let Some(url) = &api.merchant.account_url {
        let headers = [(header::LOCATION, url.as_str()), (header::VARY, "accept")];
        return Ok((StatusCode::SEE_OTHER, headers).into_response());
    }
    Ok(api.returned(&setup, false, now.at))
}

impl Api {
    /// Setups on the gateway's pages, which a deployment without a gateway does not have.
    fn setups(&self) -> Result<&Setups, Problem> {
        self.setups.as_ref().ok_or_else(Problem::unavailable)
    }

    /// The page that says what has become of `setup`; of one that cannot be asked after yet, it comes again by itself.
    fn returned(&self, setup: &Setup, is_late: bool, now: DateTime<Utc>) -> Response {
        let values = context! {
            merchant => self.merchant.name.as_str(),
            is_late,
            is_given => setup.payment_method.is_some(),
            is_open => setup.expires_at > now,
            url => setup.url.as_str(),
        };
        page::answer(page::rendered("payment_method_given.html", PAGE, values))
    }

    /// The setup of this id.
    async fn setup(&self, id: PathId<Ulid>) -> Result<Setup, Problem> {
        self.table.get_setup(id.or(missing::setup)?).await?.ok_or_else(missing::setup)
    }
}
