//! `GET /health`: whether the table answers. Needs no caller.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{Api, Problem};

#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    #[schema(value_type = String, pattern = "^ok$")]
    status: &'static str,
    /// Partitions of the indexes.
    shards: u32,
}

/// Whether the table answers
#[utoipa::path(
    get,
    path = "/health",
    operation_id = "check_health",
    tag = "operation",
    security(()),
    responses((status = 200, description = "It answers", body = Health))
)]
pub async fn check(State(api): State<Api>) -> Result<Json<Health>, Problem> {
    let settings = api.table.get_settings().await?;
    Ok(Json(Health { status: "ok", shards: settings.map_or(api.settings.shards, |settings| settings.shards) }))
}
