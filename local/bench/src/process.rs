//! A process that is started, measured and stopped.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Failure;

/// A program of ours or of a peer, which is told what to do line by line, and says so when it has done it.
pub struct Process {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
    told: ChildStdin,
}

impl Process {
    pub fn start<S: AsRef<OsStr>>(
        program: &str,
        args: impl IntoIterator<Item = S>,
        environment: &[(String, String)],
    ) -> Result<Self, Failure> {
        let mut child = Command::new(program)
            .args(args)
            .envs(environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let said = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let told = child.stdin.take().ok_or("no input")?;
        Ok(Self { child, said, told })
    }

    /// A command of this very program.
    pub fn of_bench(args: &[String]) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        Self::start(&program.to_string_lossy(), args, &[])
    }

    /// The next line that it says.
    pub async fn line(&mut self) -> Result<String, Failure> {
        Ok(self.said.next_line().await?.ok_or("a process has ended early")?)
    }

    pub async fn tell(&mut self, line: &str) -> Result<(), Failure> {
        self.told.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(self.told.flush().await?)
    }

    pub fn id(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// What `answer` gives, unless the process ends first, which it should not.
    pub async fn before_it_ends<T>(&mut self, answer: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            answered = answer => Ok(answered),
            ended = self.child.wait() => Err(format!("a process has ended early: {}", ended?).into()),
        }
    }

    pub async fn stop(mut self) -> Result<(), Failure> {
        self.child.kill().await?;
        Ok(())
    }
}

/// Seconds of processor time that `process` has used, its threads included (proc(5)).
pub fn cpu_seconds(process: u32) -> Result<f64, Failure> {
    /// Fixed in Linux's interface, whatever the kernel is built with.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The command's name, in brackets, may hold spaces.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / TICKS)
}

/// The most memory that `process` has had, in MB (proc(5)).
pub fn peak_mb(process: u32) -> Result<f64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kb: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kb / 1024.0)
}

/// A program that was built beside this one.
pub fn built(name: &str) -> Result<PathBuf, Failure> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.exists() { Ok(path) } else { Err(format!("{} is missing: cargo build --release", path.display()).into()) }
}
