//! The sandbox gateway in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Stdio};

use crate::process::Process;
use crate::terminal::dueday;

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
