//! `dueday findings`: lists successful payments without a receipt, and stores a person's decision about each.

use api::SubscriptionView;
use billing::{AccountId, ActionKind, Finding, FindingReason, GatewayToken, Label, SubscriptionId};
use charging::{FindingDecision, FindingError};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::commands::find::subscriptions::subscription_table;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::{self, format_count};
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of open findings.
const COLUMNS: [TableColumn; 6] = [
    TableColumn::unwrapped("account"),
    TableColumn::unwrapped("subscription"),
    TableColumn::unwrapped("due"),
    TableColumn::unwrapped("payment"),
    TableColumn::number("amount"),
    TableColumn::text("why"),
];

/// The arguments of `dueday findings`.
#[derive(Debug, Args)]
#[command(after_help = "\
A finding is a successful payment at the gateway that has no receipt here and that no rule can settle. Until a person \
resolves the finding, every payment run and `dueday runs` report a failure. A subscription whose period could be \
charged twice is not charged.

The command exits with 1 if a finding is open.

With --table, also give --gateway with the deployed value.

Examples:
  dueday findings
  dueday findings resolve acme pi_3QK8 --receipt --because 'the customer confirms the payment'
  dueday findings resolve acme pi_3QK8 --close --because 'refunded in the dashboard'")]
pub struct FindingsArgs {
    #[command(subcommand)]
    pub action: Option<FindingsAction>,
}

/// The subcommands of `dueday findings`. Without a subcommand, the command lists the open findings.
#[derive(Debug, Subcommand)]
pub enum FindingsAction {
    /// Resolve a finding, after a look-up of the payment at the gateway
    Resolve(ResolveFindingArgs),
}

/// The arguments of `dueday findings resolve`.
#[derive(Debug, Args)]
pub struct ResolveFindingArgs {
    /// The account
    pub account: AccountId,
    /// The gateway's identifier of the payment
    pub payment: GatewayToken,
    #[command(flatten)]
    pub decision: DecisionArgs,
    /// The reason for the decision; it is stored with the finding and in the action log
    #[arg(long, value_name = "REASON")]
    pub because: Label,
    /// Close the finding although the gateway still has the payment and its period is owed; the customer is charged
    /// again
    #[arg(long, requires = "close")]
    pub although_paid: bool,
}

/// The decision about a finding.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct DecisionArgs {
    /// Accept the payment for the period that is due, and write its receipt
    #[arg(long)]
    pub receipt: bool,
    /// Close the finding: the payment was handled at the gateway, such as by a refund
    #[arg(long)]
    pub close: bool,
}

/// A finding in JSON output.
#[derive(Debug, Serialize)]
pub struct FindingView {
    account: AccountId,
    subscription: SubscriptionId,
    due_date: chrono::NaiveDate,
    payment: GatewayToken,
    #[serde(flatten)]
    amount: billing::Money,
    reason: FindingReason,
    blocks_charging: bool,
    found_at: chrono::DateTime<chrono::Utc>,
}

impl From<Finding> for FindingView {
    fn from(finding: Finding) -> Self {
        Self {
            account: finding.account,
            subscription: finding.subscription,
            due_date: finding.due_on,
            payment: finding.payment,
            amount: finding.amount,
            reason: finding.reason,
            blocks_charging: finding.blocks,
            found_at: finding.found_at,
        }
    }
}

/// Runs `dueday findings`.
pub async fn run_findings_command(context: &CommandContext, args: &FindingsArgs) -> Result<Exit, Failure> {
    match &args.action {
        None => print_open_findings(context).await,
        Some(FindingsAction::Resolve(args)) => resolve_finding(context, args).await,
    }
}

/// Lists the open findings.
async fn print_open_findings(context: &CommandContext) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let open = open_table.table.get_open_findings().await?;
    let (is_empty, text) = (open.is_empty(), findings_text(&open));
    let views: Vec<FindingView> = open.into_iter().map(FindingView::from).collect();
    context.print(&views, || text)?;
    Ok(Exit::done_if(is_empty))
}

/// Resolves a finding by the decision of the operator.
async fn resolve_finding(context: &CommandContext, args: &ResolveFindingArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let gateway = open_table.gateway(context).await?;
    let decision = match (args.decision.receipt, args.although_paid) {
        (true, _) => FindingDecision::Receipt,
        (false, false) => FindingDecision::Close,
        (false, true) => FindingDecision::CloseAlthoughPaid,
    };
    let action = context.new_log_entry(ActionKind::ResolveFinding, Some(&args.because));
    let engine = context.charging_engine(&open_table.table).with_action(action);
    let because = args.because.as_str();
    let today = context.today(&open_table.table);
    let settled =
        engine.resolve_finding(gateway.as_ref(), &args.account, &args.payment, decision, because, today).await;
    let settled = settled.map_err(|error| match error {
        FindingError::Table(error) => error.into(),
        error => Failure::Refused(error.to_string()),
    })?;
    let text = subscription_table(&settled);
    context.print(&SubscriptionView::from(settled), || text)?;
    open_table.mention_unpublished_changes(context)?;
    Ok(Exit::Done)
}

fn findings_text(open: &[Finding]) -> String {
    if open.is_empty() {
        return "Every payment has its receipt.\n".to_owned();
    }
    let rows = open.iter().map(|finding| {
        let is_blocked = if finding.blocks { "; not charged until it is resolved" } else { "" };
        vec![
            finding.account.to_string(),
            finding.subscription.to_string(),
            finding.due_on.to_string(),
            finding.payment.to_string(),
            finding.amount.to_string(),
            output::red_text(&format!("{}{is_blocked}", finding.reason.sentence())),
        ]
    });
    let findings = format_count(u64::try_from(open.len()).unwrap_or(u64::MAX), "finding");
    format!(
        "{}{findings}. Resolve each: dueday findings resolve ACCOUNT PAYMENT --because REASON, with --receipt or --close\n",
        format_table(&COLUMNS, rows)
    )
}
