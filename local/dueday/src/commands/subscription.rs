//! `dueday subscription`: pause, resume, cancel, uncancel.

use std::process::ExitCode;
use std::sync::Arc;

use api::SubscriptionView;
use shared::clock::{Clock, SystemClock};
use shared::table::Changed;

use crate::Failure;
use crate::arguments::{Action, Settings, Which};
use crate::commands::look_up::{SUBSCRIPTION_COLUMNS, subscription_row};
use crate::machine::data::Opened;
use crate::terminal::output;

pub async fn subscription(settings: &Settings, action: &Action) -> Result<ExitCode, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    settings.deployed_as_told()?;
    let opened = Opened::open(settings, clock.clone()).await?;
    let (lead, today) = (opened.config.policy.lead, clock.now().with_timezone(&opened.config.zone).date_naive());
    let (Action::Pause(which) | Action::Resume(which) | Action::Cancel { which, .. } | Action::Uncancel(which)) =
        action;
    let Which { account, subscription: id } = which;
    let changed = opened
        .table
        .change_subscription(
            account,
            *id,
            None,
            |_| String::new(),
            |stored| match action {
                Action::Pause(_) => stored.pause(),
                Action::Resume(_) => stored.resume(lead, today),
                Action::Cancel { at_period_end: true, .. } => stored.cancel_at_period_end(today),
                Action::Cancel { .. } => Ok(stored.cancel()),
                Action::Uncancel(_) => stored.uncancel(lead, today),
            },
        )
        .await?;
    match changed {
        Changed::Applied(written) if settings.json => output::json(&SubscriptionView::from(*written))?,
        Changed::Applied(written) => {
            output::print(&output::table(&SUBSCRIPTION_COLUMNS, [subscription_row(&written)]))?;
            if let Some(open) = &written.attempt {
                let (amount, due_on) = (open.amount, open.due_on);
                output::print(&format!("a payment of {amount} due on {due_on} is being made; it is resolved first\n"))?;
            }
        }
        Changed::Refused(refusal) => return Err(Failure::Refused(refusal.to_string())),
        Changed::Missing | Changed::Replayed(_) => {
            return Err(Failure::Refused(format!("there is no subscription {id} in the account {account}")));
        }
    }
    Ok(ExitCode::SUCCESS)
}
