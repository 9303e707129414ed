//! `dueday reconcile accept`: stores a person's decision that a difference between the table and the gateway stays.

use billing::{AcceptedDifference, ActionKind, DifferenceKind, GatewayDifference, Label};
use chrono::NaiveDate;
use clap::Args;
use serde::Serialize;

use crate::commands::value_parsers::parse_date;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::{Exit, Failure};

/// The arguments of `dueday reconcile accept`.
#[derive(Debug, Args)]
pub struct AcceptArgs {
    /// The day in UTC
    #[arg(value_name = "DAY", value_parser = parse_date)]
    pub on: NaiveDate,
    /// The gateway's identifier in the difference: that of the payment, refund or dispute
    pub id: String,
    /// The reason for the decision; it is stored with the difference and in the action log; do not write personal data
    /// into it
    #[arg(long, value_name = "REASON")]
    pub because: Label,
}

/// An accepted difference in JSON output.
#[derive(Debug, Serialize)]
struct AcceptedView {
    date: NaiveDate,
    kind: DifferenceKind,
    id: String,
}

/// Accepts each difference with the id `args.id` in the latest comparison of the day.
///
/// # Errors
/// [`Failure::Refused`] in these cases:
/// - The comparison of the day is missing or not complete.
/// - The day was compared with the option `--report-only`.
/// - The comparison has no difference with this id.
/// - The difference is an open finding, which `dueday findings resolve` resolves.
/// - The difference is already accepted.
pub async fn accept_difference(context: &CommandContext, args: &AcceptArgs) -> Result<Exit, Failure> {
    let AcceptArgs { on, id, because } = args;
    let compare = context.command_line(&format!("reconcile --from {on} --to {on}"));
    let table = OpenTable::open(context, FolderRequirement::MustExist).await?.table;
    let compared = table.get_reconciliation(*on).await?.filter(|day| day.ended_at.is_some());
    let Some(day) = compared else {
        return Err(Failure::Refused(format!(
            "the comparison of {on} is missing or incomplete: run `{compare}` first"
        )));
    };
    if day.report_only {
        // A later comparison may settle a payment without a receipt, or store a finding, which `dueday findings
        // resolve` resolves. So this difference cannot be accepted yet.
        return Err(Failure::Refused(format!(
            "the latest comparison of {on} used the option --report-only: run `{compare}` first"
        )));
    }
    let differences: Vec<&GatewayDifference> = day.first_differences.iter().filter(|found| found.id == *id).collect();
    if differences.is_empty() {
        return Err(Failure::Refused(format!("the latest comparison of {on} has no difference with the id {id}")));
    }
    let findings = table.get_open_findings().await?;
    if let Some(finding) = findings.iter().find(|open| open.payment.as_str() == id) {
        let resolve = context.command_line(&format!("findings resolve {} {id}", finding.account));
        return Err(Failure::Refused(format!(
            "{id} is an open finding: decide about it with `{resolve} --because REASON`"
        )));
    }
    let action = context.new_log_entry(ActionKind::AcceptDifference, Some(because));
    let mut accepted = Vec::new();
    for GatewayDifference { kind, id, .. } in differences {
        let difference =
            AcceptedDifference { on: *on, kind: *kind, id: id.clone(), reason: because.clone(), at: action.at };
        if table.accept_difference(&difference, &action).await? {
            accepted.push(AcceptedView { date: *on, kind: *kind, id: id.clone() });
        }
    }
    if accepted.is_empty() {
        return Err(Failure::Refused(format!("{id} was accepted before: run `{compare}` to compare the day again")));
    }
    context.print(&accepted, || format!("accepted: {id}. `{compare}` compares the day again\n"))?;
    Ok(Exit::Done)
}
