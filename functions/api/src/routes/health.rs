//! `GET /health`: whether the table answers. Needs no caller.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use crate::{Api, Problem};

#[derive(Debug, Serialize)]
pub struct Health {
    status: &'static str,
    shards: u32,
}

pub async fn check(State(api): State<Api>) -> Result<Json<Health>, Problem> {
    let settings = api.table.get_settings().await?;
    Ok(Json(Health { status: "ok", shards: settings.map_or(api.settings.shards, |settings| settings.shards) }))
}
