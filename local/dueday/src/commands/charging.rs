//! `dueday charging`: the kill switch.

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use shared::clock::SystemClock;

use crate::Failure;
use crate::arguments::{Charging, Settings, Switch};
use crate::machine::data::Opened;
use crate::terminal::output;

pub async fn charging(settings: &Settings, command: &Charging) -> Result<ExitCode, Failure> {
    let opened = Opened::open(settings, Arc::new(SystemClock)).await?;
    let is_on = match command.switch {
        None => opened.settings.charging,
        Some(switch) => {
            opened.table.set_charging(switch == Switch::On).await?;
            switch == Switch::On
        }
    };
    if settings.json {
        output::json(&json!({"charging": is_on}))?;
    } else if is_on {
        output::print("charging is on\n")?;
    } else {
        output::print("charging is off: runs claim and charge nothing, and settle what was begun\n")?;
    }
    Ok(ExitCode::SUCCESS)
}
