//! `/audits`: the stored audits of the table and their violations. For operators.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use billing::{AuditRecord, AuditViolation};
use chrono::{DateTime, Utc};
use rest::list::{ListView, UnreadableView};
use rest::openapi::UlidText;
use rest::parameters::{PageQuery, Path, PathId, Query};
use rest::{OperatorAccess, Problem, RequestTime};
use serde::{Deserialize, Serialize};
use store::Table;
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use crate::{Api, problems};

/// An audit: a check of all items of the table against its invariants.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Audit)]
pub struct AuditView {
    /// The id of the audit.
    #[schema(value_type = UlidText)]
    pub id: String,
    /// The time at which the audit started.
    pub started_at: DateTime<Utc>,
    /// The time at which the audit had checked all items; null while it is running, and if it was interrupted.
    pub ended_at: Option<DateTime<Utc>>,
    /// Whether the audit also compared the table with the lists of the gateway.
    pub with_gateway_lists: bool,
    /// The number of accounts that were checked.
    pub accounts: u64,
    /// The number of subscriptions that were checked.
    pub subscriptions: u64,
    /// The number of violations by the name of the invariant; empty if all invariants hold.
    pub violations: BTreeMap<String, u64>,
}

impl From<AuditRecord> for AuditView {
    fn from(audit: AuditRecord) -> Self {
        Self {
            id: audit.id.to_string(),
            started_at: audit.started_at,
            ended_at: audit.ended_at,
            with_gateway_lists: audit.has_gateway_lists,
            accounts: audit.accounts,
            subscriptions: audit.subscriptions,
            violations: audit.violations,
        }
    }
}

/// A violation of an invariant that an audit found.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditViolation)]
pub struct AuditViolationView {
    /// The name of the invariant.
    pub invariant: String,
    /// The key of the item, or the name of the list, that violates the invariant.
    pub key: String,
    /// The description of the violation, cut to 500 characters.
    pub problem: String,
}

impl From<AuditViolation> for AuditViolationView {
    fn from(violation: AuditViolation) -> Self {
        let AuditViolation { invariant, key, problem, .. } = violation;
        Self { invariant, key, problem }
    }
}

/// An audit, and a page of its violations.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditWithViolations {
    /// The audit.
    pub audit: AuditView,
    /// The violations in the order in which they were found. Only the first 10,000 violations of an audit are stored.
    pub data: Vec<AuditViolationView>,
    /// The stored violations that cannot be read.
    pub unreadable: Vec<UnreadableView>,
    /// The value of the parameter `cursor` for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// The path parameter that names an audit.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct AuditPath {
    /// The id of the audit.
    #[serde(rename = "audit")]
    #[param(rename = "audit", value_type = UlidText)]
    id: PathId<Ulid>,
}

/// List the audits
///
/// Lists the audits of the last 90 days, the newest first.
#[utoipa::path(
    get,
    path = "/audits",
    operation_id = "list_audits",
    tag = "operation",
    params(PageQuery),
    responses((status = 200, description = "A page of the audits", body = ListView<AuditView>))
)]
pub async fn list_audits(
    State(api): State<Api>,
    now: RequestTime,
    _: OperatorAccess,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<AuditView>>, Problem> {
    let page = api.table.get_audits(&page.paging(Table::cursor_of_audits)?, now.at).await?;
    Ok(Json(ListView::from_page(page, AuditView::from)?))
}

/// Get an audit with its violations
///
/// Returns the audit and a page of its violations, in the order in which they were found.
#[utoipa::path(
    get,
    path = "/audits/{audit}",
    operation_id = "get_audit",
    tag = "operation",
    params(AuditPath, PageQuery),
    responses((status = 200, description = "The audit and a page of its violations", body = AuditWithViolations))
)]
pub async fn get_audit(
    State(api): State<Api>,
    now: RequestTime,
    Path(path): Path<AuditPath>,
    _: OperatorAccess,
    Query(page): Query<PageQuery>,
) -> Result<Json<AuditWithViolations>, Problem> {
    let (id, paging) = (path.id.ok_or_else(problems::audit_not_found)?, page.paging(Table::cursor_of_violations)?);
    let audit = api.table.get_audit(id, now.at).await?.ok_or_else(problems::audit_not_found)?;
    let page = api.table.get_audit_violations(&audit, &paging).await?;
    let ListView { data, unreadable, next_cursor } = ListView::from_page(page, AuditViolationView::from)?;
    Ok(Json(AuditWithViolations { audit: audit.into(), data, unreadable, next_cursor }))
}
