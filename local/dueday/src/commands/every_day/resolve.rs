//! `dueday resolve`: settles an open payment whose outcome only a person can determine.

use api::SubscriptionView;
use billing::{ActionKind, Attempt, GatewayToken, Label};
use charging::{ApplyResult, OpenReason, StatedOutcome};
use clap::Args;
use gateways::PaymentGateway;

use crate::commands::find::subscriptions::subscription_table;
use crate::commands::subscription_args::SubscriptionSelector;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::{Exit, Failure};

/// The arguments of `dueday resolve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Use this command for an open payment that the runs cannot settle. It first looks up the payment at the gateway, and \
refuses an outcome that the gateway contradicts. A charged payment gets its receipt; a payment that was not charged is \
tried again tomorrow.

With --table, also give --gateway with the deployed value.

Examples:
  dueday resolve acme 01JZXCVBNM0123456789ABCDEF --charged pi_3QK8 --reason paid
  dueday resolve acme 01JZXCVBNM0123456789ABCDEF --not-charged --reason lost")]
pub struct ResolveArgs {
    #[command(flatten)]
    pub selector: SubscriptionSelector,
    #[command(flatten)]
    pub outcome: OutcomeArgs,
    /// Skip the look-up at the gateway, for a payment that the gateway has lost
    #[arg(long)]
    pub although_the_gateway_says: bool,
    /// The reason for the decision, for the action log; do not write personal data into it
    #[arg(long, value_name = "TEXT")]
    pub reason: Label,
}

/// The outcome of the payment, as the operator states it.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct OutcomeArgs {
    /// The customer was charged; the value is the gateway's identifier of the payment
    #[arg(long, value_name = "PAYMENT")]
    pub charged: Option<GatewayToken>,
    /// The customer was not charged, and will not be charged by this payment
    #[arg(long)]
    pub not_charged: bool,
}

/// Runs `dueday resolve`.
pub async fn run_resolve_command(context: &CommandContext, args: &ResolveArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let (account, id) = (&args.selector.account, args.selector.find_subscription(&open_table.table).await?.id);
    let stated = args.outcome.charged.clone().map_or(StatedOutcome::NotCharged, StatedOutcome::Charged);
    let gateway = if args.although_the_gateway_says { None } else { Some(open_table.gateway(context).await?) };
    let action = context.new_log_entry(ActionKind::ResolvePayment, Some(&args.reason));
    let engine = context.charging_engine(&open_table.table).with_action(action);
    let gateway = gateway.as_deref().map(|gateway| gateway as &dyn PaymentGateway);
    let resolved = engine.resolve_attempt(gateway, account, id, &stated, context.today(&open_table.table)).await;
    let refused = |reason: String| Err(Failure::Refused(reason));
    match resolved {
        Ok(ApplyResult::Settled(settled)) => {
            let text = subscription_table(&settled.settlement.subscription);
            context.print(&SubscriptionView::from(settled.settlement.subscription), || text)?;
            open_table.mention_unpublished_changes(context)?;
            Ok(Exit::Done)
        }
        Ok(ApplyResult::NothingOpen | ApplyResult::AlreadySettled(_) | ApplyResult::FindingStored(_)) => {
            refused(format!("no payment of {id} is open: there is nothing to resolve"))
        }
        Ok(ApplyResult::Open(OpenReason::Leased { until })) => {
            let until = until.format("%Y-%m-%d %H:%M:%S UTC");
            refused(format!("a run has leased this payment until {until}; resolve it after that time"))
        }
        Ok(ApplyResult::Open(OpenReason::NoResponse(error))) => {
            refused(format!("{error}. If the gateway has lost the payment, add --although-the-gateway-says"))
        }
        Ok(ApplyResult::Open(reason @ OpenReason::NotFinal)) => {
            refused(format!("{reason}. Repeat the command in {} minutes", Attempt::LEASE.num_minutes()))
        }
        Ok(ApplyResult::Open(reason)) => {
            refused(format!("{reason}. If the gateway is wrong, add --although-the-gateway-says"))
        }
        Ok(ApplyResult::Missing) => refused(format!("there is no subscription {id} in the account {account}")),
        Err(error) => Err(error.into()),
    }
}
