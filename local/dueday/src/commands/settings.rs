//! `dueday settings`: shows and changes the limits of the payment batch.

use billing::{ActionKind, PaymentLimit, PaymentLimits};
use clap::{Args, Subcommand};
use serde::Serialize;
use strum::IntoEnumIterator as _;

use crate::context::Context;
use crate::machine::data_folder::FolderPolicy;
use crate::machine::open_table::OpenTable;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

/// The columns of the table of settings.
const COLUMNS: [Column; 3] = [Column::whole("setting"), Column::whole("value"), Column::text("meaning")];

/// The arguments of `dueday settings`.
#[derive(Debug, Args)]
#[command(after_help = "\
The settings are stored in the table, so a change needs no deployment. A run reads them when it begins, and with each \
list page of due payments.

Examples:
  dueday settings get --table TABLE
  dueday settings set max-charges 20000 --table TABLE
  dueday settings set max-sums EUR=250000.00,CHF=10000.00 --table TABLE
  dueday settings set max-charges none --table TABLE")]
pub struct SettingsArgs {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Show all settings, or one
    Get {
        #[arg(value_name = "SETTING", value_parser = parse_name)]
        name: Option<PaymentLimit>,
    },
    /// Change a setting
    Set {
        #[arg(value_name = "SETTING", value_parser = parse_name)]
        name: PaymentLimit,
        /// The new value; none removes a ceiling
        value: String,
    },
}

/// A setting with its value, as printed with `--json`.
#[derive(Serialize)]
struct Setting {
    setting: String,
    value: String,
    meaning: &'static str,
}

/// A changed setting, as printed with `--json`.
#[derive(Serialize)]
struct SettingChange {
    setting: String,
    before: String,
    after: String,
}

/// Parses the name of a setting.
fn parse_name(text: &str) -> Result<PaymentLimit, String> {
    let all = PaymentLimit::iter().map(|limit| limit.to_string()).collect::<Vec<_>>().join(", ");
    text.parse().map_err(|_| format!("must be one of {all}, not {text:?}"))
}

/// Shows or changes the settings of the payment batch.
///
/// # Errors
/// [`Failure::Refused`] if the value is not allowed, or if another person has changed a setting at the same time. This
/// command then changes no setting.
pub async fn settings(context: &Context, args: &SettingsArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderPolicy::MustExist).await?;
    let limits = &open_table.settings.payment_limits;
    match &args.action {
        Action::Get { name } => print_settings(context, limits, *name)?,
        Action::Set { name, value } => {
            let mut changed = limits.clone();
            changed.set(*name, value).map_err(|error| Failure::Refused(error.to_string()))?;
            let action = context.action(ActionKind::ChangeSettings, None);
            if changed != *limits && !open_table.table.set_payment_limits(limits, &changed, Some(&action)).await? {
                let reason = "another person has changed a setting at the same time; run the command again";
                return Err(Failure::Refused(reason.to_owned()));
            }
            let change = SettingChange {
                setting: name.to_string(),
                before: limits.text_of(*name),
                after: changed.text_of(*name),
            };
            context.print(&change, || match change.before == change.after {
                true => format!("{} is already {}\n", change.setting, change.after),
                false => format!("{} was {} and is now {}\n", change.setting, change.before, change.after),
            })?;
        }
    }
    Ok(Exit::Done)
}

/// Prints the setting `name`, or all settings if `name` is `None`.
fn print_settings(context: &Context, limits: &PaymentLimits, name: Option<PaymentLimit>) -> Result<(), Failure> {
    let shown = PaymentLimit::iter().filter(|limit| name.is_none_or(|name| name == *limit));
    let settings: Vec<Setting> = shown
        .map(|limit| Setting { setting: limit.to_string(), value: limits.text_of(limit), meaning: limit.description() })
        .collect();
    context.print(&settings, || {
        let row = |setting: &Setting| vec![setting.setting.clone(), setting.value.clone(), setting.meaning.to_owned()];
        table(&COLUMNS, settings.iter().map(row))
    })
}
