//! Reads the state of the data folder without changing or locking it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use store::Settings;

use super::data_folder::{RunningServer, database_path, open_engine};
use super::local_machine::dynamodb_client_of_server;
use crate::Failure;
use crate::context::CommandContext;

/// Returns the process that serves the data folder `folder`; `None` if no process uses the folder.
///
/// # Errors
/// If the folder cannot be read, or a process without servers uses the folder.
pub fn find_running_server(folder: &Path) -> io::Result<Option<RunningServer>> {
    let lock = match File::open(folder.join("running.json")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        lock => lock?,
    };
    // This function takes the lock only to find out whether another process holds it. The lock is released when `lock`
    // is dropped.
    if lock.try_lock_shared().is_ok() {
        return Ok(None);
    }
    let running = serde_json::from_reader(lock).map(Some);
    running.map_err(|_| io::Error::other("another command uses the data folder"))
}

/// Returns the settings of the local table; `None` if there is no table or it has no settings. `running` is the process
/// that serves the folder.
///
/// # Errors
/// If the table cannot be read.
pub async fn read_settings_of_local_table(
    context: &CommandContext,
    running: Option<&RunningServer>,
) -> Result<Option<Settings>, Failure> {
    let file = database_path(&context.options);
    let client = match running {
        Some(running) => dynamodb_client_of_server(running).await,
        None if !file.exists() => return Ok(None),
        None => open_engine(&file)?.client(),
    };
    Ok(context.config.table.connect_with(client).get_settings().await?)
}
