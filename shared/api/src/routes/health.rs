//! `GET /health`: checks that the table can be read. Needs no token.

use axum::Json;
use axum::extract::State;
use rest::Problem;
use rest::parameters::{NoParameters, Query};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;

/// The result of a successful health check.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`: if the table cannot be read, the response is a problem.
    #[schema(value_type = String, pattern = "^ok$")]
    status: &'static str,
    /// The number of shards: partitions of the table's indexes.
    shards: u32,
}

/// Check the health of the API
///
/// Reads the settings from the table. Needs no token.
#[utoipa::path(
    get,
    path = "/health",
    operation_id = "check_health",
    tag = "operation",
    security(()),
    responses((status = 200, description = "The API can read the table", body = Health))
)]
pub async fn check(State(api): State<Api>, _: Query<NoParameters>) -> Result<Json<Health>, Problem> {
    Ok(Json(Health { status: "ok", shards: api.read_shard_count().await? }))
}
