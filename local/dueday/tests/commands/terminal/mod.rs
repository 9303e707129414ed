//! The command as it is typed in a terminal.

use std::path::Path;
use std::process::{Command, Output};

/// `dueday` on the data folder `data`, without an environment.
pub fn dueday(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dueday"));
    command.env_clear().env("DUEDAY_DATA", data);
    command
}

/// Its exit code, and what it says to both sides.
pub fn output(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap_or(-1), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}
