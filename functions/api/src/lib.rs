//! The HTTP API: one router for API Gateway and for the local machine.
//!
//! Every request has a [`Caller`], made at the edge from claims that the authorizer has verified. Without one every
//! route but health is 401. What a caller may not see is 404. Errors are RFC 9457 problems, all made in `problem.rs`.
//! A route is registered together with its description: what is not in the OpenAPI document is not served.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod body;
mod caller;
mod etag;
mod idempotency;
mod list;
mod openapi;
mod page;
mod parameters;
mod problem;
mod routes;
mod schema;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use chrono::NaiveDate;
use chrono_tz::Tz;
use shared::billing::{LeadDays, OnResume};
use shared::clock::Clock;
use shared::config::Config;
use shared::table::{Settings, Table, TableError};
use shared::webhooks::{DeliveryQueue, Reach};

pub use caller::{Caller, Claims};
pub use openapi::{document, local_document};
pub use problem::Problem;
pub use routes::{AccountView, ExplanationView, ReceiptView, SubscriptionView};

/// What the routes need. Clients are made once, before the first request.
#[derive(Clone, Debug)]
pub struct Api {
    table: Table,
    settings: Settings,
    lead: LeadDays,
    on_resume: OnResume,
    zone: Tz,
    merchant: String,
    clock: Arc<dyn Clock>,
    deliveries: Option<Arc<dyn DeliveryQueue>>,
    reach: Reach,
    has_docs: bool,
}

impl Api {
    /// The API on `table`. Makes the settings if the table is new.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn new(table: Table, config: &Config, clock: Arc<dyn Clock>) -> Result<Self, TableError> {
        let settings = table.init_settings(&config.initial_settings(clock.as_ref())).await?;
        let (lead, on_resume) = (config.policy.lead, config.policy.on_resume);
        let (zone, merchant) = (config.zone, config.merchant.clone());
        Ok(Self {
            table,
            settings,
            lead,
            on_resume,
            zone,
            merchant,
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

    /// The API of a server that serves `/docs` and `/openapi.json` beside it: `/` names them.
    pub fn with_docs(self) -> Self {
        Self { has_docs: true, ..self }
    }

    /// The router without an edge: whoever serves it puts a [`Caller`] into each request.
    pub fn router(self) -> Router {
        let (routes, _) = routes::all().split_for_parts();
        routes
            .fallback(async || Problem::not_found("there is nothing at this path"))
            .method_not_allowed_fallback(async || Problem::method_not_allowed())
            .layer(map_response(finished))
            .with_state(self)
    }

    /// The router behind API Gateway: callers come from the authorizer's claims.
    pub fn lambda_router(self, claims: Claims) -> Router {
        self.router().layer(from_fn_with_state(claims, caller::from_claims))
    }

    /// The number of shards, of which the table has the truth.
    async fn shards(&self) -> Result<u32, TableError> {
        Ok(self.table.get_settings().await?.map_or(self.settings.shards, |settings| settings.shards))
    }

    fn today(&self) -> NaiveDate {
        self.clock.now().with_timezone(&self.zone).date_naive()
    }
}

/// What all answers have in common: they are about people, so that no cache keeps them, and they end with a newline.
async fn finished(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Every answer was made whole in memory.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else { return Problem::internal().into_response() };
    let mut text = Vec::from(bytes);
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    Response::from_parts(parts, Body::from(text))
}
