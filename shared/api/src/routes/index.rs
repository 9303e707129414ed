//! `GET /`: what there is. Needs no caller.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use minijinja::context;
use rest::html_page as page;
use rest::parameters::{NoParameters, Query};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;

const PAGE: &str = include_str!("index.html");

/// What there is.
#[derive(Debug, Serialize, ToSchema)]
pub struct Index {
    /// What this is.
    #[schema(value_type = String)]
    name: &'static str,
    /// Its version.
    #[schema(value_type = String)]
    version: &'static str,
    /// Where to ask whether it works.
    #[schema(value_type = String)]
    health: &'static str,
    /// The page that describes every route and lets one try it; null where it is not served.
    #[schema(value_type = Option<String>)]
    docs: Option<&'static str>,
    /// The OpenAPI document; null where it is not served.
    #[schema(value_type = Option<String>)]
    openapi: Option<&'static str>,
}

/// What there is
///
/// As JSON or, when `text/html` is accepted, as a page.
#[utoipa::path(
    get,
    path = "/",
    operation_id = "read_index",
    tag = "operation",
    security(()),
    responses((status = 200, description = "Name, version and where to go on", content(
        (Index = "application/json"),
        (String = "text/html")
    )))
)]
pub async fn read(State(api): State<Api>, _: Query<NoParameters>, headers: HeaderMap) -> Response {
    let served = |path| api.has_docs.then_some(path);
    let index = Index {
        name: "Dueday",
        version: env!("CARGO_PKG_VERSION"),
        health: "/health",
        docs: served("/docs"),
        openapi: served("/openapi.json"),
    };
    if page::is_asked(&headers) {
        let values = context! { name => index.name, version => index.version, has_docs => api.has_docs };
        return page::answer(page::rendered("index.html", PAGE, values));
    }
    ([(header::VARY, "accept")], Json(index)).into_response()
}
