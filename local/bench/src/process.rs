//! Processes that the benchmark starts, measures and stops.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Failure;

/// A running program that reads commands from its standard input and prints its progress, one line each.
pub struct ChildProcess {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    stdin: ChildStdin,
}

impl ChildProcess {
    /// Starts `program` with the arguments `args` and the additional environment variables `environment`.
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
        let stdout = BufReader::new(child.stdout.take().ok_or("the process has no standard output")?).lines();
        let stdin = child.stdin.take().ok_or("the process has no standard input")?;
        Ok(Self { child, stdout, stdin })
    }

    /// Starts a command of this program in another process.
    pub fn start_bench_command(args: &[String]) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        Self::start(&program.to_string_lossy(), args, &[])
    }

    /// Returns the next line of the process's standard output.
    pub async fn read_line(&mut self) -> Result<String, Failure> {
        Ok(self.stdout.next_line().await?.ok_or("a process ended too early")?)
    }

    /// Writes `line` to the process's standard input.
    pub async fn write_line(&mut self, line: &str) -> Result<(), Failure> {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(self.stdin.flush().await?)
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Waits for `future` and returns its result. Fails if the process ends first.
    pub async fn wait_while_process_runs<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            result = future => Ok(result),
            status = self.child.wait() => Err(format!("a process ended too early: {}", status?).into()),
        }
    }

    pub async fn stop(mut self) -> Result<(), Failure> {
        self.child.kill().await?;
        Ok(())
    }
}

/// Returns the processor time that all threads of the process with the id `process` have used, in seconds (see the
/// manual page proc(5)).
pub fn read_cpu_seconds(process: u32) -> Result<f64, Failure> {
    /// The unit of the times in `/proc`, in ticks per second (`USER_HZ`): always 100 on Linux.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The command's name is in parentheses and may contain spaces, so the fields are counted from the last parenthesis.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    // The processor times in user mode and in kernel mode.
    Ok((ticks(11) + ticks(12)) / TICKS_PER_SECOND)
}

/// Returns the largest resident memory so far of the process with the id `process`, in MB (see the manual page
/// proc(5)).
pub fn read_peak_memory_mb(process: u32) -> Result<f64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("/proc/PID/status has no VmHWM")?;
    let kb: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kb / 1024.0)
}

/// Returns the path of the program `name`, which Cargo has built in the same folder as this program.
pub fn path_of_built_program(name: &str) -> Result<PathBuf, Failure> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{} is missing; run cargo build --release", path.display()).into())
    }
}
