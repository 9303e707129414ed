//! Runs the sandbox gateway in its own process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Stdio};

use crate::process::Process;
use crate::terminal::dueday;

/// A running `dueday gateway` on a free port, killed when dropped.
pub struct Gateway {
    pub url: String,
    _process: Process,
    /// The gateway's standard output. The pipe stays open, because the gateway ends if it cannot write its output.
    _stdout: BufReader<ChildStdout>,
}

impl Gateway {
    /// Starts the gateway with the ledger in `data`, and waits until the gateway prints its URL.
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
