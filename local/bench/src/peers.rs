//! Installs the packages of the contestants in other languages: a Python environment and a folder of Node.js packages,
//! in the folder of Cargo's build results.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// The paths of the Python interpreter and of the JavaScript program, both with their packages.
pub struct Peers {
    pub python: PathBuf,
    pub javascript: PathBuf,
}

/// Installs the missing packages of both programs.
pub fn install() -> Result<Peers, Failure> {
    let peers = crate::folder().join("peers");
    let target = std::env::current_exe()?.with_file_name("bench-peers");
    let python = install_python(&target.join("python"), &peers.join("boto3/requirements.txt"))?;
    let javascript = target.join("javascript");
    if !javascript.join("node_modules").exists() {
        eprintln!("installing the AWS SDK for JavaScript");
        std::fs::create_dir_all(&javascript)?;
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(peers.join("javascript").join(file), javascript.join(file))?;
        }
        run_command(Command::new("npm").args(["ci", "--silent", "--no-fund", "--no-audit"]).current_dir(&javascript))?;
    }
    copy_file(&peers.join("javascript/batch.mjs"), &javascript.join("batch.mjs"))?;
    Ok(Peers { python, javascript: javascript.join("batch.mjs") })
}

/// Returns the Python interpreter of the Django program, and installs its packages if they are missing.
pub fn install_django() -> Result<PathBuf, Failure> {
    let target = std::env::current_exe()?.with_file_name("bench-peers").join("django");
    install_python(&target, &crate::folder().join("peers/django/requirements.txt"))
}

/// Returns the Python interpreter of the environment in `folder`. If it does not exist, creates it with the packages in
/// `requirements`.
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

fn copy_file(from: &Path, to: &Path) -> Result<(), Failure> {
    std::fs::copy(from, to).map(drop).map_err(Into::into)
}

fn run_command(command: &mut Command) -> Result<(), Failure> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed").into()),
    }
}
