//! `dueday charging`: shows or changes the switch that stops all charges.

use billing::{ActionKind, Label};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::{Exit, Failure};

/// The arguments of `dueday charging`.
#[derive(Debug, Args)]
#[command(after_help = "\
While charging is off, runs claim and charge no payments; a run in progress stops charging at its next list page. \
Runs still look up attempts with an unknown outcome and settle them. Due payments stay due.

Examples:
  dueday charging off --table TABLE
  dueday charging on --table TABLE")]
pub struct ChargingArgs {
    /// on or off [default: show the current state]
    pub switch: Option<ChargingSwitch>,
    /// The reason for the change, for the action log; do not write personal data into it
    #[arg(long, value_name = "TEXT", requires = "switch")]
    pub reason: Option<Label>,
}

/// The new state of the switch: whether runs charge payments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ChargingSwitch {
    On,
    Off,
}

/// Whether runs charge payments, as printed with `--json`.
#[derive(Serialize)]
struct ChargingState {
    charging: bool,
}

/// Runs `dueday charging`.
pub async fn run_charging_command(context: &CommandContext, args: &ChargingArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let charging = match args.switch {
        None => open_table.settings.charging,
        Some(switch) => {
            let action = context.new_log_entry(ActionKind::SwitchCharging, args.reason.as_ref());
            open_table.table.set_charging(switch == ChargingSwitch::On, Some(&action)).await?;
            switch == ChargingSwitch::On
        }
    };
    context.print(&ChargingState { charging }, || match charging {
        true => "charging is on\n".to_owned(),
        false => "charging is off: runs charge nothing, and only settle open attempts\n".to_owned(),
    })?;
    Ok(Exit::Done)
}
