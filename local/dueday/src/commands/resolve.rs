//! `dueday resolve`: settles a payment whose outcome only a person can know.

use std::process::ExitCode;
use std::sync::Arc;

use api::SubscriptionView;
use shared::clock::{Clock, SystemClock};
use shared::payments::{Known, Resolved, resolve_by_hand};

use crate::Failure;
use crate::arguments::{Resolve, Settings};
use crate::commands::look_up::{SUBSCRIPTION_COLUMNS, subscription_row};
use crate::machine::data::Opened;
use crate::terminal::output;

pub async fn resolve(settings: &Settings, command: &Resolve) -> Result<ExitCode, Failure> {
    settings.deployed_as_told()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let opened = Opened::open(settings, clock.clone()).await?;
    let (account, id) = (&command.which.account, command.which.subscription);
    let known = command.known.charged.clone().map_or(Known::NotCharged, Known::Charged);
    let today = clock.now().with_timezone(&opened.config.zone).date_naive();
    let (policy, lease) = (&opened.config.policy, opened.config.lease);
    let resolved =
        resolve_by_hand(&opened.table, (account, id), &known, policy, (today, lease), clock.as_ref()).await?;
    let refused = |reason: String| Err(Failure::Refused(reason));
    match resolved {
        Resolved::Settled(settled) if settings.json => output::json(&SubscriptionView::from(*settled))?,
        Resolved::Settled(settled) => {
            output::print(&output::table(&SUBSCRIPTION_COLUMNS, [subscription_row(&settled)]))?;
        }
        Resolved::NothingOpen => return refused(format!("no payment of {id} is open: there is nothing to resolve")),
        Resolved::Held(until) => {
            let until = until.format("%Y-%m-%d %H:%M:%S UTC");
            return refused(format!("a run holds this payment until {until}; resolve it after that"));
        }
        Resolved::Missing => return refused(format!("there is no subscription {id} in the account {account}")),
    }
    Ok(ExitCode::SUCCESS)
}
