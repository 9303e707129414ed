//! The HTTP API of accounts, subscriptions and receipts: one router for API Gateway and for the local machine. What its routes
//! have in common with those of the order desk is in `rest`.
//!
//! A route is registered together with its description: what is not in the OpenAPI document is not served.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod missing;
mod openapi;
mod parameters;
mod routes;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use axum::http::StatusCode;
use axum::response::Response;
use billing::AccountId;
use clock::Clock;
use config::BillingConfig;
use delivery::{DeliveryQueue, Reach};
use gateways::Processor;
use mail::Merchant;
use payments::{ChargeConfig, ChargeDue};
use rest::list::ListView;
use rest::{Now, Problem, idempotency};
use settling::Refunds;
use settling::Setups;
use store::{IdempotentRequest, Page, Settings, Table, TableConfig, TableError};

pub use openapi::document;
pub use routes::{AccountView, ExplanationView, ReceiptView, RefundView, SubscriptionView};

/// What the routes need. Clients are made once, before the first request.
#[derive(Clone, Debug)]
pub struct Api {
    table: Table,
    settings: Settings,
    billing: BillingConfig,
    merchant: Merchant,
    setups: Option<Setups>,
    refunds: Option<Refunds>,
    charges: Option<Arc<ChargeDue>>,
    clock: Arc<dyn Clock>,
    deliveries: Option<Arc<dyn DeliveryQueue>>,
    reach: Reach,
    has_docs: bool,
}

impl FromRef<Api> for Now {
    fn from_ref(api: &Api) -> Self {
        let at = api.clock.now();
        Self { at, today: api.billing.date_at(at) }
    }
}

impl Api {
    /// The API on `table`. Makes the settings if the table is new.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn new(
        table: Table,
        (config, billing, merchant): (&TableConfig, BillingConfig, Merchant),
        clock: Arc<dyn Clock>,
    ) -> Result<Self, TableError> {
        let settings = table.init_settings(&config.initial_settings(clock.as_ref())).await?;
        Ok(Self {
            table,
            settings,
            billing,
            merchant,
            setups: None,
            refunds: None,
            charges: None,
            clock,
            deliveries: None,
            reach: Reach::Public,
            has_docs: false,
        })
    }

    /// The API that hands what is to be delivered again to `deliveries`, which go as far as `reach`.
    pub fn with_deliveries(self, deliveries: Arc<dyn DeliveryQueue>, reach: Reach) -> Self {
        Self { deliveries: Some(deliveries), reach, ..self }
    }

    /// The API whose customers give what is charged on pages of `gateway`, are charged at sign-up, and are given back through it. It
    /// answers within [`TIME_TO_WAIT`](payments::TIME_TO_WAIT), or not at all.
    pub fn with_gateway(self, gateway: Arc<dyn Processor>, config: &ChargeConfig) -> Self {
        let setups = Setups::new(self.table.clone(), gateway.clone(), self.billing.policy.lead, self.clock.clone());
        let refunds = Refunds::new(self.table.clone(), gateway.clone(), self.clock.clone());
        let charges =
            ChargeDue::new(self.table.clone(), gateway, (&self.billing, config), self.clock.clone()).while_waiting();
        Self { setups: Some(setups), refunds: Some(refunds), charges: Some(Arc::new(charges)), ..self }
    }

    /// The API of a server that serves `/docs` and `/openapi.json` beside it: `/` names them.
    pub fn with_docs(self) -> Self {
        Self { has_docs: true, ..self }
    }

    /// The routes. Whoever serves them puts a [`rest::Caller`] into each request.
    pub fn routes(self) -> Router {
        let (routes, _) = routes::all().split_for_parts();
        routes.with_state(self)
    }

    /// The routes, and an answer to all else.
    pub fn router(self) -> Router {
        rest::router(self.routes())
    }

    /// The number of shards, of which the table has the truth.
    async fn shards(&self) -> Result<u32, TableError> {
        Ok(self.table.get_settings().await?.map_or(self.settings.shards, |settings| settings.shards))
    }

    /// `page` of a list of `account` as it is shown. An empty one may be that of no account.
    ///
    /// # Errors
    /// 404.
    async fn list_of<T, U: Into<T>>(&self, account: &AccountId, page: Page<U>) -> Result<ListView<T>, Problem> {
        if page.is_empty() && self.table.get_account(account).await?.is_none() {
            return Err(Problem::no_account());
        }
        ListView::of(page, U::into)
    }

    /// The answer that was given to `request` before.
    async fn replay(
        &self,
        request: Option<&IdempotentRequest>,
        status: StatusCode,
    ) -> Result<Option<Response>, Problem> {
        let Some(request) = request else { return Ok(None) };
        self.table.get_answer(request).await?.map(|replayed| idempotency::replay(replayed, status)).transpose()
    }
}
