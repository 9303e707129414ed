//! `dueday findings`: successful payments without a receipt, and a person's decision about each.

use api::SubscriptionView;
use billing::{AccountId, Finding, FindingReason, GatewayToken, SubscriptionId};
use clap::{Args, Subcommand};
use serde::Serialize;
use settling::{Decision, FindingError, Findings, Settling};

use super::subscriptions::table_of;
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output::{self, count};
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 6] = [
    Column::whole("account"),
    Column::whole("subscription"),
    Column::whole("due"),
    Column::whole("payment"),
    Column::number("amount"),
    Column::text("why"),
];

/// `dueday findings`.
#[derive(Debug, Args)]
#[command(after_help = "\
A finding is a successful payment at the gateway that has no receipt here, and that no rule may settle. Until a person resolves it, \
every payment run and `dueday runs` fail, and a subscription whose period could be charged again is not charged.

Exits with 1 if a finding is open.

With --table, give --gateway as it is deployed.

Examples:
  dueday findings
  dueday findings resolve acme pi_3QK8 --receipt --because 'the customer confirms the payment'
  dueday findings resolve acme pi_3QK8 --close --because 'refunded in the dashboard'")]
pub struct FindingsArgs {
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// What to do instead of listing.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Resolve a finding; the gateway is asked first
    Resolve(ResolveArgs),
}

/// `dueday findings resolve`.
#[derive(Debug, Args)]
pub struct ResolveArgs {
    /// The account
    pub account: AccountId,
    /// The gateway's identifier of the payment
    pub payment: GatewayToken,
    #[command(flatten)]
    pub decision: DecisionArgs,
    /// Why; it is stored with the finding
    #[arg(long, value_name = "REASON")]
    pub because: String,
    /// Close it though the gateway still has the payment and its period is owed: the customer is charged again
    #[arg(long, requires = "close")]
    pub although_paid: bool,
}

/// The decision.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct DecisionArgs {
    /// The payment pays the period that is due: write its receipt
    #[arg(long)]
    pub receipt: bool,
    /// The payment was dealt with at the gateway, such as by a refund
    #[arg(long)]
    pub close: bool,
}

/// A finding as it is printed.
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

pub async fn findings(context: &Context, args: &FindingsArgs) -> Result<Exit, Failure> {
    match &args.action {
        None => list(context).await,
        Some(Action::Resolve(args)) => resolve(context, args).await,
    }
}

async fn list(context: &Context) -> Result<Exit, Failure> {
    let opened = Opened::open(context, Folder::Existing).await?;
    let open = opened.table.get_open_findings().await?;
    let (is_empty, text) = (open.is_empty(), text(&open));
    let views: Vec<FindingView> = open.into_iter().map(FindingView::from).collect();
    context.print(&views, || text)?;
    Ok(Exit::of(is_empty))
}

async fn resolve(context: &Context, args: &ResolveArgs) -> Result<Exit, Failure> {
    context.deployed_as_told()?;
    let opened = Opened::open(context, Folder::Existing).await?;
    let gateway = opened.gateway(context).await?;
    let decision = match (args.decision.receipt, args.although_paid) {
        (true, _) => Decision::Receipt,
        (false, false) => Decision::Close,
        (false, true) => Decision::CloseAlthoughPaid,
    };
    let policy = context.config.billing.policy.clone();
    let settling = Settling::new(opened.table.clone(), policy, context.clock.clone());
    let findings = Findings { settling: &settling, gateway: gateway.as_ref() };
    let of = (&args.account, &args.payment);
    let settled =
        findings.resolve(of, decision, &args.because, context.today()).await.map_err(|error| match error {
            FindingError::Table(error) => error.into(),
            error => Failure::Refused(error.to_string()),
        })?;
    let text = table_of(&settled);
    context.print(&SubscriptionView::from(settled), || text)?;
    Ok(Exit::Done)
}

fn text(open: &[Finding]) -> String {
    if open.is_empty() {
        return "No payment is without its receipt.\n".to_owned();
    }
    let rows = open.iter().map(|finding| {
        let is_blocked = if finding.blocks { "; not charged until it is resolved" } else { "" };
        vec![
            finding.account.to_string(),
            finding.subscription.to_string(),
            finding.due_on.to_string(),
            finding.payment.to_string(),
            finding.amount.to_string(),
            output::bad(&format!("{}{is_blocked}", finding.reason.sentence())),
        ]
    });
    let findings = count(u64::try_from(open.len()).unwrap_or(u64::MAX), "finding");
    format!("{}{findings}. Resolve each: dueday findings resolve ACCOUNT PAYMENT\n", table(&COLUMNS, rows))
}
