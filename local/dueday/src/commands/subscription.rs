//! `dueday subscription`: pause, resume, cancel, uncancel, retry.

use api::SubscriptionView;
use billing::{Settlement, Subscription};
use clap::{Args, Subcommand};
use config::RESUME;
use store::Changed;

use super::subscriptions::table_of;
use super::values::Which;
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::{Exit, Failure};

/// `dueday subscription`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --table, give --time-zone and --reminder-lead-days as they are deployed.

Examples:
  dueday subscription pause acme 01JZXCVBNM0123456789ABCDEF
  dueday subscription cancel acme 01JZXCVBNM0123456789ABCDEF \\
      --at-period-end")]
pub struct SubscriptionArgs {
    #[command(subcommand)]
    pub action: Action,
}

/// What is done with a subscription. Doing it twice is doing it once.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Stop payments until resumed; refused while anything is owed or under way
    Pause(Which),
    /// Take payments up again on the first payment day from today on
    Resume(Which),
    /// Cancel for good
    Cancel {
        #[command(flatten)]
        which: Which,
        /// Not now, but when the next due date comes, uncharged
        #[arg(long)]
        at_period_end: bool,
    },
    /// Undo a cancellation at period end
    Uncancel(Which),
    /// Try what is owed again with the same payment method at the next run, also one that is disputed
    Retry(Which),
}

impl Action {
    fn which(&self) -> &Which {
        match self {
            Self::Pause(which)
            | Self::Resume(which)
            | Self::Cancel { which, .. }
            | Self::Uncancel(which)
            | Self::Retry(which) => which,
        }
    }
}

pub async fn subscription(context: &Context, args: &SubscriptionArgs) -> Result<Exit, Failure> {
    context.deployed_as_told()?;
    if matches!(args.action, Action::Resume(_))
        && context.options.table().is_some()
        && context.options.given(&RESUME).is_none()
    {
        let reason = "with --table, give --resume as it is deployed (the parameter Resume of the stack)";
        return Err(Failure::Refused(reason.to_owned()));
    }
    let opened = Opened::open(context, Folder::Existing).await?;
    let (policy, today, now) = (&context.config.billing.policy, context.today(), context.clock.now());
    let Which { account, subscription: id } = args.action.which();
    let change = |stored: &Subscription| match &args.action {
        Action::Pause(_) => stored.pause(today).map(Settlement::from),
        Action::Resume(_) => stored.resume(policy.on_resume, policy.lead, today, now),
        Action::Cancel { at_period_end: true, .. } => stored.cancel_at_period_end(today).map(Settlement::from),
        Action::Cancel { .. } => Ok(stored.cancel(today, now)),
        Action::Uncancel(_) => stored.uncancel(policy.lead, today).map(Settlement::from),
        Action::Retry(_) => stored.retry(true, today, now).map(Settlement::from),
    };
    match opened.table.change_subscription(account, *id, None, |_| String::new(), change).await? {
        Changed::Applied(written) => {
            let text = text(&written);
            context.print(&SubscriptionView::from(*written), || text)?;
            Ok(Exit::Done)
        }
        Changed::Refused(refusal) => Err(Failure::Refused(refusal.to_string())),
        Changed::Missing | Changed::Replayed(_) => {
            Err(Failure::Refused(format!("there is no subscription {id} in the account {account}")))
        }
    }
}

fn text(written: &Subscription) -> String {
    let open = written.attempt.as_ref().map(|open| {
        format!("a payment of {} due on {} is being made; it is resolved first\n", open.amount, open.due_on)
    });
    table_of(written) + &open.unwrap_or_default()
}
