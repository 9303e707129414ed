//! Installs the packages of the contestants in other languages: Python environments and folders of Node.js packages, in
//! the folder of Cargo's build results.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// The paths of the Python interpreter and of the JavaScript program that run the payment batch, both with their
/// packages.
pub struct InstalledPeers {
    pub python: PathBuf,
    pub javascript: PathBuf,
}

/// The source files of the JavaScript server of the HTTP API.
const FASTIFY_PROGRAM: [&str; 7] =
    ["server.mjs", "action_log.mjs", "fields.mjs", "problem.mjs", "sign_up.mjs", "subscriptions.mjs", "table.mjs"];

/// Installs the missing packages of the Python program and of the JavaScript program that run the payment batch.
pub fn install_payment_batch_peers() -> Result<InstalledPeers, Failure> {
    let peers = crate::bench_folder().join("peers");
    let target = std::env::current_exe()?.with_file_name("bench-peers");
    let python = install_python(&target.join("python"), &peers.join("boto3/requirements.txt"))?;
    let javascript = target.join("javascript");
    install_javascript(&javascript, &peers.join("javascript"), &["batch.mjs"])?;
    Ok(InstalledPeers { python, javascript: javascript.join("batch.mjs") })
}

/// Installs the missing packages of the JavaScript server of the HTTP API. Returns the path of the server.
pub fn install_api_server() -> Result<PathBuf, Failure> {
    let peers = crate::bench_folder().join("peers");
    let target = std::env::current_exe()?.with_file_name("bench-peers");
    let javascript = target.join("fastify");
    install_javascript(&javascript, &peers.join("fastify"), &FASTIFY_PROGRAM)?;
    copy_file(&peers.join("currencies.json"), &javascript.join("currencies.json"))?;
    Ok(javascript.join("server.mjs"))
}

/// Returns the path of the Python interpreter for the Django program. Installs the program's packages if they are
/// missing.
pub fn install_django() -> Result<PathBuf, Failure> {
    let target = std::env::current_exe()?.with_file_name("bench-peers").join("django");
    install_python(&target, &crate::bench_folder().join("peers/django/requirements.txt"))
}

/// Returns the path of the Python interpreter in the virtual environment `folder`. If the environment does not exist,
/// creates it with the packages in the file `requirements`.
fn install_python(folder: &Path, requirements: &Path) -> Result<PathBuf, Failure> {
    let python = folder.join("bin/python");
    if !python.exists() {
        eprintln!("installing {}", requirements.display());
        run_command(Command::new("python3").arg("-m").arg("venv").arg(folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        run_command(Command::new(&python).args(pip).arg(requirements))?;
    }
    Ok(python)
}

/// Copies the files `program` from the folder `source` to `folder`, because Node.js searches for packages in the folder
/// of the program. If `folder` has no packages yet, installs the packages of `package-lock.json`.
fn install_javascript(folder: &Path, source: &Path, program: &[&str]) -> Result<(), Failure> {
    if !folder.join("node_modules").exists() {
        eprintln!("installing {}", source.join("package-lock.json").display());
        std::fs::create_dir_all(folder)?;
        for file in ["package.json", "package-lock.json"] {
            copy_file(&source.join(file), &folder.join(file))?;
        }
        run_command(Command::new("npm").args(["ci", "--silent", "--no-fund", "--no-audit"]).current_dir(folder))?;
    }
    program.iter().try_for_each(|file| copy_file(&source.join(file), &folder.join(file)))
}

fn copy_file(from: &Path, to: &Path) -> Result<(), Failure> {
    std::fs::copy(from, to).map(drop).map_err(Into::into)
}

fn run_command(command: &mut Command) -> Result<(), Failure> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed").into()),
    }
}
