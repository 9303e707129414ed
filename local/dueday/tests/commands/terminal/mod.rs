//! Runs the command `dueday` as a process.

use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::Stdio;
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

/// Runs `dueday` with `arguments` and the data folder `data` in a pseudo terminal with 80 columns. `input` is what the
/// person types. Returns the exit code and everything that the person sees, with the escape sequences of colours.
#[cfg(target_os = "linux")]
pub fn in_terminal(data: &Path, arguments: &[&str], input: &str) -> (i32, String) {
    let quoted = |argument: &&str| format!("'{}'", argument.replace('\'', r"'\''"));
    let words: Vec<String> = [env!("CARGO_BIN_EXE_dueday")].iter().chain(arguments).map(quoted).collect();
    let mut script = Command::new("script");
    script.env_clear().env("DUEDAY_DATA", data).env("TERM", "xterm-256color").env("PATH", "/usr/bin:/bin");
    script.args(["--quiet", "--return", "--command"]).arg(format!("stty cols 80 rows 40 -echo; {}", words.join(" ")));
    let mut script = script.arg("/dev/null").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut script.stdin.take().unwrap(), input.as_bytes()).unwrap();
    let Output { status, stdout, .. } = script.wait_with_output().unwrap();
    (status.code().unwrap_or(-1), String::from_utf8(stdout).unwrap().replace("\r\n", "\n"))
}
