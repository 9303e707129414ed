//! `dueday log`: shows the changes that people and programs have made.

use api::ActionView;
use billing::{AccountId, LoggedAction};
use chrono_tz::Tz;
use clap::Args;
use std::collections::BTreeMap;

use crate::commands::list_output::{LimitArgs, ListOutput, account_not_found};
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::local_time::format_seconds;
use crate::terminal::table::TableColumn;
use crate::{Exit, Failure};

/// The columns of the table of logged changes.
const COLUMNS: [TableColumn; 7] = [
    TableColumn::unwrapped("time"),
    TableColumn::text("actor"),
    TableColumn::unwrapped("action"),
    TableColumn::unwrapped("item"),
    TableColumn::text("before"),
    TableColumn::text("after"),
    TableColumn::text("reason"),
];

/// The arguments of `dueday log`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each change that was made with the API or with a command has one entry, the newest first. Payments and mails of the \
daily runs are not in the log: `dueday why` and `dueday events` show them. The entries are stored for two years \
(--action-days).

Examples:
  dueday log acme
  dueday log acme --json
  dueday log")]
pub struct LogArgs {
    /// The account's id [default: the changes that concern no account, such as those of webhook endpoints]
    pub account: Option<AccountId>,
    #[command(flatten)]
    pub limit: LimitArgs,
}

/// Runs `dueday log`.
pub async fn run_log_command(context: &CommandContext, args: &LogArgs) -> Result<Exit, Failure> {
    let OpenTable { table, .. } = &OpenTable::open(context, FolderRequirement::MustExist).await?;
    let paging = args.limit.paging();
    let now = context.clock.now();
    let zone = table.policy().zone;
    let page = match &args.account {
        Some(account) => {
            let page = table.get_actions_by_account(account, &paging, now).await?;
            if page.is_empty() && table.get_account(account).await?.is_none() {
                return Err(account_not_found(account));
            }
            page
        }
        None => table.get_actions_without_account(&paging, now).await?,
    };
    ListOutput::from(page).print::<ActionView>(context, "action", &COLUMNS, |logged| action_row(logged, zone))
}

/// Returns the cells of the table row of a logged change. Its time is in the billing time zone `zone`.
fn action_row(logged: &LoggedAction, zone: Tz) -> Vec<String> {
    let actor = logged.actor.kind().to_string();
    let subscription = logged.subscription.map(|id| id.to_string());
    vec![
        format_seconds(logged.at, zone),
        logged.actor.name().map_or_else(|| actor.clone(), |name| format!("{actor} {name}")),
        logged.kind.to_string(),
        logged.item.clone().or(subscription).unwrap_or_default(),
        changed_fields_text(&logged.before),
        changed_fields_text(&logged.after),
        logged.reason.as_ref().map_or_else(String::new, |reason| reason.as_str().to_owned()),
    ]
}

/// Returns the names and values of the changed fields as text.
fn changed_fields_text(fields: &BTreeMap<String, String>) -> String {
    fields.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}
