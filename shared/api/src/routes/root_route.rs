//! `GET /`: the name and version of the API, and links to its documentation. Needs no token.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use minijinja::context;
use rest::html_page;
use rest::parameters::{NoParameters, Query};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;

/// The HTML template of the web page at `/`.
const PAGE_TEMPLATE: &str = include_str!("index.html");

/// The name and version of the API, and the paths of its health check and its documentation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Index)]
pub struct ApiIndex {
    /// The name of the API.
    #[schema(value_type = String)]
    name: &'static str,
    /// The version of the API.
    #[schema(value_type = String)]
    version: &'static str,
    /// The path of the health check.
    #[schema(value_type = String)]
    health: &'static str,
    /// The path of the web page that describes every operation; null if this server does not have that page.
    #[schema(value_type = Option<String>)]
    docs: Option<&'static str>,
    /// The path of the OpenAPI document; null if this server does not have it.
    #[schema(value_type = Option<String>)]
    openapi: Option<&'static str>,
}

/// Get the index
///
/// Returns the name and version of the API, and links to its documentation: as a web page for browsers, and as JSON for
/// other clients. Needs no token.
#[utoipa::path(
    get,
    path = "/",
    operation_id = "read_index",
    tag = "operation",
    security(()),
    responses((status = 200, description = "Name, version and links", content(
        (ApiIndex = "application/json"),
        (String = "text/html")
    )))
)]
pub async fn get_api_index(State(api): State<Api>, _: Query<NoParameters>, headers: HeaderMap) -> Response {
    let served = |path| api.has_docs.then_some(path);
    let index = ApiIndex {
        name: "Dueday",
        version: env!("CARGO_PKG_VERSION"),
        health: "/health",
        docs: served("/docs"),
        openapi: served("/openapi.json"),
    };
    if html_page::prefers_html(&headers) {
        let values = context! { name => index.name, version => index.version, has_docs => api.has_docs };
        return html_page::html_response(html_page::render_template("index.html", PAGE_TEMPLATE, values));
    }
    ([(header::VARY, "accept")], Json(index)).into_response()
}
