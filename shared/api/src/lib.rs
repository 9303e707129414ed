//! The HTTP API of accounts, subscriptions and receipts: one router for API Gateway and for the local server. The crate
//! `rest` contains the parts that this API shares with the API of the order desk.
//!
//! A route is registered together with its description, so every served route is in the OpenAPI document.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod actions;
mod count_use;
mod error_responses;
mod openapi;
mod parameters;
mod parts;
mod price_check;
mod problems;
mod queues;
mod routes;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use billing::{AccountId, AmountRules};
use charging::{ChargeConfig, OlderTableCheck, SignUpCharges};
use clock::Clock;
use config::Env;
use encryption::EncryptionKeys;
use gateway_objects::PaymentMethodSetups;
use gateway_objects::RefundRequester;
use gateways::{AmountRulesReader, FullGateway, configured_amount_rules};
use mail::Merchant;
use outbound::{AllowedAddresses, DeliveryQueue, EndpointUrlCheck};
use rest::list::ListView;
use rest::{Problem, RequestTime, idempotency};
use store::{IdempotentRequest, Page, Settings, Table, TableConfig, TableError};

pub use openapi::openapi_document;
pub use parts::{DeployedParts, PARTS, VARIABLES};
pub use queues::QueueStateReader;
pub use routes::{
    AccountExport, AccountView, ActionView, ActorView, AuditView, AuditViolationView, DeliveryView, EndpointView,
    EndpointWithSecret, ErasureView, ExplanationView, ExportError, MAX_EXPORTED_ITEMS, ReceiptView, RefundView,
    SetupView, SubscriptionView,
};

/// The log message of the API function if its settings for the payment gateway are not valid. A metric filter in
/// `template.yaml` matches this text.
pub const INVALID_GATEWAY_SETTINGS_MESSAGE: &str = "routes that need the payment gateway return 503";

/// The state that all routes of the API share: table, gateway, queue and configuration. It is created once, before the
/// first request.
#[derive(Clone, Debug)]
pub struct Api {
    table: Table,
    settings: Settings,
    merchant: Merchant,
    payment_method_setups: Option<PaymentMethodSetups>,
    refunds: Option<RefundRequester>,
    charges: Option<Arc<SignUpCharges>>,
    amount_rules: AmountRulesReader,
    clock: Arc<dyn Clock>,
    deliveries: Option<Arc<dyn DeliveryQueue>>,
    queues: Option<Arc<dyn QueueStateReader>>,
    addresses: EndpointUrlCheck,
    encryption: Option<EncryptionKeys>,
    parts: DeployedParts,
    has_docs: bool,
}

impl FromRef<Api> for RequestTime {
    fn from_ref(api: &Api) -> Self {
        let at = api.clock.now();
        Self { at, today: api.table.policy().date_at(at) }
    }
}

impl Api {
    /// Creates the API of `table`, without gateway, delivery queue and encryption keys. Writes the settings item if the
    /// table is new.
    ///
    /// # Errors
    /// [`TableError`] if the settings cannot be read or written.
    pub async fn new(
        table: Table,
        config: &TableConfig,
        merchant: Merchant,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, TableError> {
        let settings = table.init_settings(&config.initial_settings(clock.as_ref())).await?;
        table.use_policy(&settings, clock.now())?;
        Ok(Self {
            table,
            settings,
            merchant,
            payment_method_setups: None,
            refunds: None,
            charges: None,
            amount_rules: AmountRulesReader::of_rules(AmountRules::none()),
            clock,
            deliveries: None,
            queues: None,
            addresses: EndpointUrlCheck::new(AllowedAddresses::PublicOnly),
            encryption: None,
            parts: DeployedParts::Full,
            has_docs: false,
        })
    }

    /// Adds the delivery queue: if an operator redelivers an event, the API sends the key of the delivery to this
    /// queue. `addresses` decides which URLs a webhook endpoint may have.
    pub fn with_deliveries(self, deliveries: Arc<dyn DeliveryQueue>, addresses: EndpointUrlCheck) -> Self {
        Self { deliveries: Some(deliveries), addresses, ..self }
    }

    /// Adds the queues of the deployment. `GET /status` shows the number of messages in each queue.
    pub fn with_queues(self, queues: Arc<dyn QueueStateReader>) -> Self {
        Self { queues: Some(queues), ..self }
    }

    /// Adds the keys that encrypt the signing secrets of webhook endpoints. Without keys, the routes that create an
    /// endpoint or rotate a secret return 503.
    pub fn with_encryption(self, keys: EncryptionKeys) -> Self {
        Self { encryption: Some(keys), ..self }
    }

    /// Sets the parts of the deployment. Requests that need a missing part are refused with 409.
    pub fn with_parts(self, parts: DeployedParts) -> Self {
        Self { parts, ..self }
    }

    /// Makes an API without a gateway refuse the prices that the gateway in the configuration `env` can never charge, if
    /// they are known without a request to the gateway.
    pub fn with_known_amount_rules(self, env: Env<'_>) -> Self {
        Self { amount_rules: AmountRulesReader::of_rules(configured_amount_rules(env)), ..self }
    }

    /// Adds the gateway, which the API needs for payment method setups, first payments at sign-up, and refunds. The API
    /// refuses the prices that the gateway can never charge. Each request to the gateway must end within
    /// [`SIGN_UP_GATEWAY_TIMEOUT`](charging::SIGN_UP_GATEWAY_TIMEOUT).
    pub fn with_gateway(self, gateway: Arc<dyn FullGateway>, config: &ChargeConfig) -> Self {
        self.with_checked_gateway(gateway, config, None)
    }

    /// Like [`Api::with_gateway`], but charges no sign-up while `check` refuses the table because it is older than the
    /// gateway's payments.
    pub fn with_checked_gateway(
        self,
        gateway: Arc<dyn FullGateway>,
        config: &ChargeConfig,
        check: Option<Arc<OlderTableCheck>>,
    ) -> Self {
        let setups = PaymentMethodSetups::new(self.table.clone(), gateway.clone(), self.clock.clone());
        let refunds = RefundRequester::new(self.table.clone(), gateway.clone(), self.clock.clone());
        let amount_rules = AmountRulesReader::of_gateway(gateway.clone());
        let charges = SignUpCharges::new(self.table.clone(), gateway, config, self.clock.clone());
        let charges = charges.with_older_table_check(check);
        Self {
            payment_method_setups: Some(setups),
            refunds: Some(refunds),
            charges: Some(Arc::new(charges)),
            amount_rules,
            ..self
        }
    }

    /// Makes the route `/` link to `/docs` and `/openapi.json`, for a server that also serves these two paths.
    pub fn with_docs(self) -> Self {
        Self { has_docs: true, ..self }
    }

    /// Returns the routes, without the 404 and 405 responses for other requests. The server must add a [`rest::Caller`]
    /// to each request.
    pub fn routes(self) -> Router {
        let (routes, _) = routes::all_api_routes().split_for_parts();
        routes.layer(from_fn_with_state(self.clone(), refresh_policy)).with_state(self)
    }

    /// Returns the routes, with 404 and 405 responses for all other requests.
    pub fn router(self) -> Router {
        rest::complete_router(self.routes())
    }

    /// Returns the stored settings. If the settings item was deleted, returns the settings with which this API object
    /// was created.
    async fn read_settings(&self) -> Result<Settings, TableError> {
        Ok(self.table.get_settings().await?.unwrap_or_else(|| self.settings.clone()))
    }

    /// Returns the number of shards in the settings.
    async fn read_shard_count(&self) -> Result<u32, TableError> {
        Ok(self.read_settings().await?.shards)
    }

    /// Converts `page`, a stored list page of `account`, into the wire format.
    ///
    /// # Errors
    /// 404 if `page` is empty and `account` does not exist.
    async fn convert_account_list<T, U: Into<T>>(
        &self,
        account: &AccountId,
        page: Page<U>,
    ) -> Result<ListView<T>, Problem> {
        if page.is_empty() && self.table.get_account(account).await?.is_none() {
            return Err(Problem::account_not_found());
        }
        ListView::from_page(page, U::into)
    }

    /// Returns the stored response, with the status code `status`, if `request` was carried out before under its
    /// idempotency key; `None` if `request` was not carried out before, or is `None`.
    async fn replay_stored_response(
        &self,
        request: Option<&IdempotentRequest>,
        status: StatusCode,
    ) -> Result<Option<Response>, Problem> {
        let Some(request) = request else { return Ok(None) };
        self.table
            .get_stored_response(request)
            .await?
            .map(|replayed| idempotency::replay_response(replayed, status))
            .transpose()
    }
}

/// The routes that make no request to the table: they need no token, so anyone could cause costs with them.
const PATHS_WITHOUT_TABLE: [&str; 2] = ["/", "/health"];

/// Reads the policy of the table again before a request, if the copy is too old.
async fn refresh_policy(State(api): State<Api>, request: Request, next: Next) -> Response {
    if PATHS_WITHOUT_TABLE.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    match api.table.refresh_policy(api.clock.now()).await {
        Ok(()) => next.run(request).await,
        Err(error) => Problem::from(error).into_response(),
    }
}
