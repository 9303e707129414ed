//! `dueday resolve`: settles a payment whose outcome only a person can know.

use api::SubscriptionView;
use billing::GatewayToken;
use clap::Args;
use gateways::PaymentGateway;
use settling::{Known, Resolved, Resolving, Settling};

use super::subscriptions::table_of;
use super::values::Which;
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::{Exit, Failure};

/// `dueday resolve`.
#[derive(Debug, Args)]
#[command(after_help = "\
For a payment that was begun and that the runs cannot settle. The gateway is asked first: what it contradicts is refused. \
Charged, it is receipted; not charged, it is tried again tomorrow.

With --table, give --gateway, --time-zone and --reminder-lead-days as they are deployed.

Examples:
  dueday resolve acme 01JZXCVBNM0123456789ABCDEF --charged pi_3QK8
  dueday resolve acme 01JZXCVBNM0123456789ABCDEF --not-charged")]
pub struct ResolveArgs {
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub known: KnownOutcome,
    /// Settle it as told, whatever the gateway says: for what it has lost
    #[arg(long)]
    pub although_the_gateway_says: bool,
}

/// What is known of it.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct KnownOutcome {
    /// It was charged: the gateway's identifier of the payment
    #[arg(long, value_name = "PAYMENT")]
    pub charged: Option<GatewayToken>,
    /// It was not charged, and never will be
    #[arg(long)]
    pub not_charged: bool,
}

pub async fn resolve(context: &Context, args: &ResolveArgs) -> Result<Exit, Failure> {
    context.deployed_as_told()?;
    let opened = Opened::open(context, Folder::Existing).await?;
    let Which { account, subscription: id } = &args.which;
    let known = args.known.charged.clone().map_or(Known::NotCharged, Known::Charged);
    let gateway = if args.although_the_gateway_says { None } else { Some(opened.gateway(context).await?) };
    let policy = context.config.billing.policy.clone();
    let settling = Settling::new(opened.table.clone(), policy, context.clock.clone());
    let by_hand = Resolving {
        settling: &settling,
        gateway: gateway.as_deref().map(|gateway| gateway as &dyn PaymentGateway),
        lease: context.config.charging.lease,
    };
    let resolved = by_hand.resolve((account, *id), &known, context.today()).await?;
    let refused = |reason: String| Err(Failure::Refused(reason));
    match resolved {
        Resolved::Settled(settled) => {
            let text = table_of(&settled);
            context.print(&SubscriptionView::from(*settled), || text)?;
            Ok(Exit::Done)
        }
        Resolved::NothingOpen => refused(format!("no payment of {id} is open: there is nothing to resolve")),
        Resolved::Held(until) => {
            let until = until.format("%Y-%m-%d %H:%M:%S UTC");
            refused(format!("a run holds this payment until {until}; resolve it after that"))
        }
        Resolved::Contradicted(reason) => {
            refused(format!("{reason}. If that is wrong, add --although-the-gateway-says"))
        }
        Resolved::Missing => refused(format!("there is no subscription {id} in the account {account}")),
    }
}
