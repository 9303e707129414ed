//! `dueday audit list` and `dueday audit show`: the stored audits and their violations.

use api::{AuditView, AuditViolationView};
use billing::AuditRecord;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use clap::Args;
use serde::Serialize;
use store::{Paging, Table};
use ulid::Ulid;

use crate::commands::list_output::LimitArgs;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::local_time::format_minutes;
use crate::terminal::output;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of audits.
const AUDIT_COLUMNS: [TableColumn; 5] = [
    TableColumn::unwrapped("audit"),
    TableColumn::unwrapped("started"),
    TableColumn::unwrapped("ended"),
    TableColumn::number("accounts"),
    TableColumn::text("violations"),
];

/// The arguments of `dueday audit list`.
#[derive(Debug, Args)]
pub struct ListAuditsArgs {
    #[command(flatten)]
    pub limit: LimitArgs,
}

/// The arguments of `dueday audit show`.
#[derive(Debug, Args)]
pub struct ShowAuditArgs {
    /// The audit's id; the latest audit if absent
    pub audit: Option<Ulid>,
    #[command(flatten)]
    pub limit: LimitArgs,
}

/// A stored audit with its first violations.
#[derive(Serialize)]
struct ShownAudit {
    #[serde(flatten)]
    audit: AuditView,
    stored: Vec<AuditViolationView>,
}

/// Lists the stored audits.
pub async fn list_stored_audits(context: &CommandContext, args: &ListAuditsArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let page = open_table.table.get_audits(&args.limit.paging(), context.clock.now()).await?;
    let zone = open_table.table.policy().zone;
    let views: Vec<AuditView> = page.require_all_readable()?.items.into_iter().map(AuditView::from).collect();
    context.print(&views, || match views.as_slice() {
        [] => "No audit is stored: run `dueday audit`.\n".to_owned(),
        views => format_table(&AUDIT_COLUMNS, views.iter().map(|audit| audit_row(audit, zone))),
    })?;
    Ok(Exit::Done)
}

/// Shows a stored audit.
pub async fn show_stored_audit(context: &CommandContext, args: &ShowAuditArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let (table_of_data, now) = (&open_table.table, context.clock.now());
    let zone = table_of_data.policy().zone;
    let audit = match args.audit {
        Some(id) => table_of_data.get_audit(id, now).await?,
        None => latest_audit(table_of_data, now).await?,
    };
    let Some(audit) = audit else {
        return Err(Failure::Refused("there is no such audit, or it is more than 90 days old".to_owned()));
    };
    let page = table_of_data.get_audit_violations(&audit, &args.limit.paging()).await?;
    let has_more = page.next.is_some();
    let stored = page.require_all_readable()?.items.into_iter().map(AuditViolationView::from).collect();
    let shown = ShownAudit { audit: audit.into(), stored };
    context.print(&shown, || {
        let rows = shown.stored.iter().map(|violation| {
            vec![output::red_text(&violation.invariant), violation.key.clone(), violation.problem.clone()]
        });
        let violations = match shown.stored.as_slice() {
            [] => String::new(),
            _ => format!("\n{}", format_table(&super::COLUMNS, rows)),
        };
        let more = if has_more { "More violations are stored: use --limit.\n" } else { "" };
        format!("{}{violations}{more}", format_table(&AUDIT_COLUMNS, [audit_row(&shown.audit, zone)]))
    })?;
    Ok(Exit::Done)
}

/// Returns the latest audit that a person has started, if this audit was interrupted.
///
/// # Errors
/// [`Failure::Refused`] if no person has started an audit, or if the latest of these audits has ended.
pub async fn interrupted_audit(table: &Table, now: DateTime<Utc>) -> Result<AuditRecord, Failure> {
    let audits = table.get_audits(&Paging::all(), now).await?.into_items()?;
    match audits.into_iter().find(|audit| !audit.is_scheduled) {
        Some(audit) if audit.ended_at.is_none() => Ok(audit),
        _ => Err(Failure::Refused("no audit was interrupted: run `dueday audit` without --resume".to_owned())),
    }
}

/// Returns the latest stored audit.
async fn latest_audit(table: &Table, now: DateTime<Utc>) -> Result<Option<AuditRecord>, Failure> {
    let page = table.get_audits(&Paging { after: None, limit: Some(1) }, now).await?;
    Ok(page.into_items()?.pop())
}

/// Returns the cells of the table row of `audit`. Its times are in the billing time zone `zone`.
fn audit_row(audit: &AuditView, zone: Tz) -> Vec<String> {
    let counts: Vec<String> =
        audit.violations.iter().map(|(invariant, count)| format!("{count} {invariant}")).collect();
    vec![
        audit.id.clone(),
        format_minutes(audit.started_at, zone),
        audit.ended_at.map_or_else(|| "not ended".to_owned(), |at| format_minutes(at, zone)),
        audit.accounts.to_string(),
        if counts.is_empty() { "none".to_owned() } else { counts.join(", ") },
    ]
}
