//! Processes that a test starts, and ends by the id they were started with.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::terminal::dueday;

/// A process, killed when dropped.
pub struct Process(pub Child);

impl Process {
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// `kill -9`. Answers whether that is what ended it.
    pub fn kill(&mut self) -> bool {
        let _ = self.0.kill();
        // What a signal has ended has no exit code.
        self.0.wait().unwrap().code().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `dueday gateway` on a free port, killed when dropped.
pub struct Gateway {
    pub url: String,
    _process: Process,
    /// Kept open: what it says goes there.
    _stdout: BufReader<ChildStdout>,
}

impl Gateway {
    /// Starts the gateway on the ledger in `data` and waits until it says where it listens.
    pub fn start(data: &Path) -> Self {
        let mut process = Process::start(dueday(data).args(["gateway", "--gateway-port", "0"]).stdout(Stdio::piped()));
        let mut stdout = BufReader::new(process.0.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("http://") {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "the gateway has ended");
        }
        let url = line.split_whitespace().next_back().unwrap().to_owned();
        Self { url, _process: process, _stdout: stdout }
    }
}
