//! `GET /health`: checks that the API responds. The route needs no token. It therefore makes no request to the table:
//! otherwise anyone could cause costs for the merchant.

use axum::Json;
use rest::parameters::{NoParameters, Query};
use serde::Serialize;
use utoipa::ToSchema;

/// The result of a health check.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`: an API that cannot read its table at its start does not respond.
    #[schema(value_type = String, pattern = "^ok$")]
    status: &'static str,
}

/// Check the health of the API
///
/// Returns `ok` if the API responds. The request needs no token, and causes no request to the table.
#[utoipa::path(
    get,
    path = "/health",
    operation_id = "check_health",
    tag = "operation",
    security(()),
    responses((status = 200, description = "The API responds", body = Health))
)]
pub async fn check_health(_: Query<NoParameters>) -> Json<Health> {
    Json(Health { status: "ok" })
}
