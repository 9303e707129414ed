//! `GET /health`: whether the table answers. Needs no caller.

use axum::Json;
use axum::extract::State;
use rest::Problem;
use rest::parameters::{NoParameters, Query};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;

/// That the table answers.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// `ok`: anything else is answered as a problem.
    #[schema(value_type = String, pattern = "^ok$")]
    status: &'static str,
    /// Partitions of the indexes.
    shards: u32,
}

/// Whether the table answers
///
/// Reads the settings of the table.
#[utoipa::path(
    get,
    path = "/health",
    operation_id = "check_health",
    tag = "operation",
    security(()),
    responses((status = 200, description = "It answers", body = Health))
)]
pub async fn check(State(api): State<Api>, _: Query<NoParameters>) -> Result<Json<Health>, Problem> {
    Ok(Json(Health { status: "ok", shards: api.shards().await? }))
}
