//! `dueday charging`: the kill switch.

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::{Exit, Failure};

/// `dueday charging`.
#[derive(Debug, Args)]
#[command(after_help = "\
Off, runs claim and charge nothing more from their next page on. What the gateway knows of payments that were begun is \
still looked up and settled; what is due stays due.

Examples:
  dueday charging off --table dueday
  dueday charging on --table dueday")]
pub struct ChargingArgs {
    /// on or off; says which it is if absent
    pub switch: Option<Switch>,
}

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

#[derive(Serialize)]
struct Charging {
    charging: bool,
}

pub async fn charging(context: &Context, args: &ChargingArgs) -> Result<Exit, Failure> {
    let opened = Opened::open(context, Folder::Existing).await?;
    let charging = match args.switch {
        None => opened.settings.charging,
        Some(switch) => {
            opened.table.set_charging(switch == Switch::On).await?;
            switch == Switch::On
        }
    };
    context.print(&Charging { charging }, || match charging {
        true => "charging is on\n".to_owned(),
        false => "charging is off: runs claim and charge nothing, and settle what was begun\n".to_owned(),
    })?;
    Ok(Exit::Done)
}
