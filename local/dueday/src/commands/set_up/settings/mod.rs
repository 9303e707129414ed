//! `dueday settings`: shows and changes the limits of the payment batch, and the policy.

mod policy;

use std::fmt::{self, Display, Formatter};

use billing::{ActionKind, PaymentLimit, PaymentLimits, Policy, PolicySetting, StoredPolicy};
use clap::{Args, Subcommand};
use serde::Serialize;
use strum::IntoEnumIterator as _;

use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of settings.
const COLUMNS: [TableColumn; 3] =
    [TableColumn::unwrapped("setting"), TableColumn::unwrapped("value"), TableColumn::text("meaning")];

/// The arguments of `dueday settings`.
#[derive(Debug, Args)]
#[command(after_help = "\
The settings are stored in the table, so a change needs no deployment. A run reads them when it begins, and with each \
list page of due payments. The policy (the settings from time-zone on) is read when a run begins. The API and the \
other functions use a changed policy after at most a minute.

Examples:
  dueday settings get --table TABLE
  dueday settings set max-charges 20000 --table TABLE
  dueday settings set max-sums EUR=250000.00,CHF=10000.00 --table TABLE
  dueday settings set max-charges none --table TABLE
  dueday settings set time-zone Europe/Berlin --table TABLE
  dueday settings adopt --time-zone Europe/Berlin --reminder-lead-days 7 --table TABLE")]
pub struct SettingsArgs {
    #[command(subcommand)]
    pub action: SettingsAction,
}

#[derive(Debug, Subcommand)]
pub enum SettingsAction {
    /// Show all settings, or one
    Get {
        #[arg(value_name = "SETTING", value_parser = parse_setting_name)]
        name: Option<SettingName>,
    },
    /// Change a setting
    Set {
        #[arg(value_name = "SETTING", value_parser = parse_setting_name)]
        name: SettingName,
        /// The new value; none removes a ceiling
        value: String,
        #[command(flatten)]
        confirmation: ConfirmationArgs,
    },
    /// Store the policy of the flags and variables in a table of an earlier version; what is not set gets its default
    Adopt {
        #[command(flatten)]
        confirmation: ConfirmationArgs,
    },
}

/// The name of a setting: of a limit of the payment batch, or of the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingName {
    Limit(PaymentLimit),
    Policy(PolicySetting),
}

impl SettingName {
    /// Returns the names of all settings.
    fn all() -> impl Iterator<Item = Self> {
        PaymentLimit::iter().map(Self::Limit).chain(Policy::setting_names().map(Self::Policy))
    }
}

impl Display for SettingName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(limit) => limit.fmt(f),
            Self::Policy(setting) => setting.fmt(f),
        }
    }
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
fn parse_setting_name(text: &str) -> Result<SettingName, String> {
    SettingName::all().find(|name| name.to_string() == text).ok_or_else(|| {
        let all = SettingName::all().map(|name| name.to_string()).collect::<Vec<_>>().join(", ");
        format!("must be one of {all}, not {text:?}")
    })
}

/// Shows or changes the settings of the table.
///
/// # Errors
/// [`Failure::Refused`] if the value is not allowed, or if another person has changed a setting at the same time. This
/// command then changes no setting.
pub async fn run_settings_command(context: &CommandContext, args: &SettingsArgs) -> Result<Exit, Failure> {
    // `settings set` also replaces a text that cannot be read.
    let open_table = OpenTable::open_with_any_policy(context, FolderRequirement::MustExist).await?;
    if let Some(Ok(policy)) = open_table.settings.policy.as_ref().map(StoredPolicy::read) {
        context.check_policy_flags(&policy)?;
    }
    let limits = &open_table.settings.payment_limits;
    let change = match &args.action {
        SettingsAction::Get { name } => {
            print_settings(context, limits, open_table.settings.policy.as_ref(), *name)?;
            return Ok(Exit::Done);
        }
        SettingsAction::Adopt { confirmation } => {
            let policy = policy::adopt_policy_of_flags(context, &open_table, *confirmation).await?;
            print_settings(context, limits, Some(&policy), None)?;
            return Ok(Exit::Done);
        }
        SettingsAction::Set { name: SettingName::Limit(limit), value, .. } => {
            let mut changed = limits.clone();
            changed.set_limit(*limit, value).map_err(|error| Failure::Refused(error.to_string()))?;
            let action = context.new_log_entry(ActionKind::ChangeSettings, None);
            if changed != *limits && !open_table.table.set_payment_limits(limits, &changed, Some(&action)).await? {
                let reason = "another person has changed a setting at the same time; run the command again";
                return Err(Failure::Refused(reason.to_owned()));
            }
            SettingChange {
                setting: limit.to_string(),
                before: limits.value_text(*limit),
                after: changed.value_text(*limit),
            }
        }
        SettingsAction::Set { name: SettingName::Policy(setting), value, confirmation } => {
            policy::set_policy_setting(context, &open_table, *setting, value, *confirmation).await?
        }
    };
    context.print(&change, || match change.before == change.after {
        true => format!("{} is already {}\n", change.setting, change.after),
        false => format!("{} was {} and is now {}\n", change.setting, change.before, change.after),
    })?;
    Ok(Exit::Done)
}

/// Prints the setting `name`, or all settings if `name` is `None`.
fn print_settings(
    context: &CommandContext,
    limits: &PaymentLimits,
    policy: Option<&StoredPolicy>,
    name: Option<SettingName>,
) -> Result<(), Failure> {
    let setting = |name: SettingName| {
        let (value, meaning) = match name {
            SettingName::Limit(limit) => (limits.value_text(limit), limit.description()),
            SettingName::Policy(setting) => {
                let stored = policy.map(|policy| policy.value_text(setting));
                (stored.unwrap_or_else(|| "not adopted".to_owned()), setting.description())
            }
        };
        Setting { setting: name.to_string(), value, meaning }
    };
    let shown = SettingName::all().filter(|shown| name.is_none_or(|name| name == *shown));
    let settings: Vec<Setting> = shown.map(setting).collect();
    context.print(&settings, || {
        let row = |setting: &Setting| vec![setting.setting.clone(), setting.value.clone(), setting.meaning.to_owned()];
        format_table(&COLUMNS, settings.iter().map(row))
    })
}
