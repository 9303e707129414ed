//! The peers' own installations: a Python environment and a folder of Node.js packages, beside what cargo builds.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// Where each peer's program and its packages are.
pub struct Peers {
    pub python: PathBuf,
    pub javascript: PathBuf,
}

/// Installs what is missing.
pub fn install() -> Result<Peers, Failure> {
    let peers = crate::folder().join("peers");
    let target = std::env::current_exe()?.with_file_name("bench-peers");
    let python = python(&target.join("python"), &peers.join("boto3/requirements.txt"))?;
    let javascript = target.join("javascript");
    if !javascript.join("node_modules").exists() {
        eprintln!("installing the AWS SDK for JavaScript");
        std::fs::create_dir_all(&javascript)?;
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(peers.join("javascript").join(file), javascript.join(file))?;
        }
        run(Command::new("npm").args(["ci", "--silent", "--no-fund", "--no-audit"]).current_dir(&javascript))?;
    }
    copy(&peers.join("javascript/batch.mjs"), &javascript.join("batch.mjs"))?;
    Ok(Peers { python, javascript: javascript.join("batch.mjs") })
}

/// The interpreter of the Django project, with its packages.
pub fn install_django() -> Result<PathBuf, Failure> {
    let target = std::env::current_exe()?.with_file_name("bench-peers").join("django");
    python(&target, &crate::folder().join("peers/django/requirements.txt"))
}

/// The interpreter of an environment in `folder` that has what `requirements` name.
fn python(folder: &Path, requirements: &Path) -> Result<PathBuf, Failure> {
    let python = folder.join("bin/python");
    if !python.exists() {
        eprintln!("installing {}", requirements.display());
        run(Command::new("python3").arg("-m").arg("venv").arg(folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        run(Command::new(&python).args(pip).arg(requirements))?;
    }
    Ok(python)
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    std::fs::copy(from, to).map(drop).map_err(Into::into)
}

fn run(command: &mut Command) -> Result<(), Failure> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{command:?} has failed").into()),
    }
}
