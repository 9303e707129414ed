//! Runs the command `dueday` as a process.

use std::path::Path;
use std::process::{Command, Output};

/// Returns the command `dueday` with the data folder `data` and without other environment variables.
pub fn dueday(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dueday"));
    command.env_clear().env("DUEDAY_DATA", data);
    command
}

/// Runs `command`. Returns its exit code, standard output and standard error.
pub fn output(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap_or(-1), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}
